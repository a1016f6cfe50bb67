"""The policy file: which actions are allowed, which are denied, and who decides the rest. It is read once, at the start;
a policy with any error stops the start, because half a policy is a hole.

    high_risk = ["drop_*"]          # extends the built-in list, which cannot be shortened

    [defaults]
    timeout_seconds = 300
    rate_limit = 10                 # requests for one action per hour
    execute_seconds = 600           # how long an approval stays valid
    pending_limit = 100             # requests of one token that may wait at a time
    pending_bytes = 8000000         # their size together
    submit_limit = 600              # requests of one token per hour, whatever their action; 0: no limit
    cool_down_seconds = 60          # before the same request is asked again after a denial; 0: none

    [[rule]]
    action = "deploy_*"             # * and ?; case and separators do not matter
    decision = "ask"                # ask (default), allow, deny
    high_risk = true
    timeout_seconds = 900
    rate_limit = 3
    deciders = ["alice", "ops-*"]
    quorum = 2

All rules that match an action apply together, in any order: deny wins over ask, ask over allow; one rule makes the
action high-risk; of numbers the strictest counts. High-risk wins over every allow.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from warmstart.confirm.model import LONGEST, LONGEST_APPROVAL, MOST_AN_HOUR, SHORTEST, USUAL
from warmstart.confirm.policy.actions import HIGH_RISK, check_glob, is_born_high_risk, matches_broadly, matches_strictly
from warmstart.confirm.policy.quorum import count_deciders, find_common, find_example
from warmstart.errors import ConfigError
from warmstart.mismatch import describe_mismatch
from warmstart.names import name_key

Seconds = Annotated[int, Meta(ge=SHORTEST, le=LONGEST)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000_000)]
_SUBMITS_AN_HOUR = 600  # of one token
Most = Annotated[int, Meta(ge=1, le=100)]


class Defaults(Struct, frozen=True, forbid_unknown_fields=True):
    """Values for actions without a rule that sets them."""

    timeout_seconds: Seconds = USUAL
    rate_limit: Limit = MOST_AN_HOUR
    execute_seconds: Annotated[int, Meta(ge=1, le=LONGEST_APPROVAL)] = 600
    pending_limit: Limit = 100
    pending_bytes: Annotated[int, Meta(ge=300_000, le=1_000_000_000)] = 8_000_000
    submit_limit: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None  # None: see Policy.submit_limit
    cool_down_seconds: Annotated[int, Meta(ge=0, le=3_600)] = 60


class PolicyRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule for the actions that match a pattern. None: this rule does not set the value."""

    action: str
    decision: Literal["ask", "allow", "deny"] | None = None
    high_risk: bool | None = None
    timeout_seconds: Seconds | None = None
    rate_limit: Limit | None = None
    deciders: list[str] | None = None
    quorum: Most | None = None


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    high_risk: list[str] = []
    defaults: Defaults = Defaults()
    rule: list[PolicyRule] = []
    notify: list[str] = []


class Ruling(Struct, frozen=True):
    """The policy applied to one action."""

    decision: Literal["ask", "allow", "deny"]
    high_risk: bool
    timeout: int  # seconds, if the request names none
    longest: int  # seconds that a request may name at most
    rate_limit: int
    deciders: tuple[tuple[str, ...], ...]  # a decider must match one pattern of every list
    quorum: int

    def lets_decide(self, subject: str) -> bool:
        key = name_key(subject)
        return all(any(fnmatchcase(key, name_key(glob)) for glob in globs) for globs in self.deciders)


class Policy(Struct, frozen=True):
    """A valid policy."""

    rules: tuple[PolicyRule, ...] = ()
    high_risk: tuple[str, ...] = ()
    defaults: Defaults = Defaults()
    notify: tuple[str, ...] = ()  # apprise addresses, which hold secrets

    @property
    def digest(self) -> str:
        """A hash of the content, whatever the order of rules. The audit records which policy was in force."""
        rules = sorted(msgspec.json.encode(rule) for rule in self.rules)
        content = [[rule.decode() for rule in rules], sorted(self.high_risk), self.defaults]
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()

    @property
    def submit_limit(self) -> int:
        """Requests of one token per hour, whatever their action: 600, or twice what a single action may have. 0: any."""
        if self.defaults.submit_limit is not None:
            return self.defaults.submit_limit
        single = (rule.rate_limit for rule in self.rules if rule.rate_limit is not None)
        return max(_SUBMITS_AN_HOUR, 2 * max((self.defaults.rate_limit, *single)))

    def is_high_risk(self, action: str) -> bool:
        return (
            is_born_high_risk(action)
            or any(matches_broadly(glob, action) for glob in self.high_risk)
            or any(rule.high_risk and matches_broadly(rule.action, action) for rule in self.rules)
        )

    def rule_on(self, action: str) -> Ruling:
        """Combine all rules that match an action."""
        rules = [rule for rule in self.rules if matches_broadly(rule.action, action)]
        high_risk = self.is_high_risk(action)
        longest = min((r.timeout_seconds for r in rules if r.timeout_seconds is not None), default=None)
        limits = (r.rate_limit for r in rules if r.rate_limit is not None)
        return Ruling(
            decision=_decide(rules, action, high_risk),
            high_risk=high_risk,
            timeout=longest or self.defaults.timeout_seconds,
            longest=longest or LONGEST,
            rate_limit=min(limits, default=self.defaults.rate_limit),
            deciders=tuple(tuple(r.deciders) for r in rules if r.deciders is not None),
            quorum=max((r.quorum for r in rules if r.quorum is not None), default=1),
        )


def _decide(rules: list[PolicyRule], action: str, high_risk: bool) -> Literal["ask", "allow", "deny"]:
    """Apply deny over high-risk over allow. A rule that allows must match the name itself."""
    if any(rule.decision == "deny" for rule in rules):
        return "deny"
    if high_risk or any(rule.decision == "ask" for rule in rules):
        return "ask"
    allowed = any(rule.decision == "allow" and matches_strictly(rule.action, action) for rule in rules)
    return "allow" if allowed else "ask"


def load_policy(path: Path) -> Policy:
    """Read a policy from a file. Raise ConfigError with file, line and problem."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_policy(text, str(path))


def parse_policy(text: str, where: str = "policy") -> Policy:
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        path = str(error).partition(" - at `$")[2]
        raise ConfigError(f"{_place(where, text, path.rstrip('`'))}: {describe_mismatch(str(error))}") from error
    _check_globs(file, text, where)
    for number, rule in enumerate(file.rule):
        problem = _find_problem(rule)
        if problem:
            raise ConfigError(f"{_place(where, text, f'.rule[{number}].{problem[0]}')}: {problem[1]}")
    policy = Policy(
        rules=tuple(file.rule),
        high_risk=tuple(file.high_risk),
        defaults=file.defaults,
        notify=tuple(file.notify),
    )
    if (unreachable := _find_unreachable(policy)) is not None:
        raise ConfigError(f"{_place(where, text, unreachable[0])}: {unreachable[1]}")
    return policy


def _find_unreachable(policy: Policy) -> tuple[str, str] | None:
    """Return `(path, reason)` for an action that could only expire because too few people may decide about it."""
    for action in _name_actions(policy):
        ruling = policy.rule_on(action)
        count = count_deciders(ruling.deciders)
        if ruling.decision != "ask" or count is None or count >= ruling.quorum:
            continue
        number, rule = max(
            (number, rule)
            for number, rule in enumerate(policy.rules)
            if rule.deciders is not None and matches_broadly(rule.action, action)
        )
        problem = f"{action}: {ruling.quorum} must approve, but only {count} may decide under all matching rules"
        return f".rule[{number}].{'quorum' if rule.quorum else 'deciders'}", problem
    return None


def _name_actions(policy: Policy) -> Iterator[str]:
    """Yield actions to try a policy on: the high-risk ones, one per pattern, and one where two patterns overlap whose
    deciders could be too few."""
    yield from HIGH_RISK
    yield from (find_example(rule.action) for rule in policy.rules)
    most = max((rule.quorum or 1 for rule in policy.rules), default=1)
    strict = [rule for rule in policy.rules if rule.deciders is not None or (rule.quorum or 1) > 1]
    for left, right in combinations(strict, 2):
        count = count_deciders(rule.deciders for rule in (left, right) if rule.deciders is not None)
        if count is not None and count < most and (name := find_common(left.action, right.action)) is not None:
            yield name


def _check_globs(file: _File, text: str, where: str) -> None:
    for number, glob in enumerate(file.high_risk):
        if wrong := check_glob(glob):
            raise ConfigError(f"{_place(where, text, f'.high_risk[{number}]')}: {glob!r}: {wrong}")


def _find_problem(rule: PolicyRule) -> tuple[str, str] | None:
    """Return `(key, reason)` for a rule that contradicts itself or the built-in list, or None."""
    if wrong := check_glob(rule.action):
        return "action", f"{rule.action!r}: {wrong}"
    if rule.high_risk is False:
        return "high_risk", "the high-risk list can be extended, not shortened; leave it out"
    if rule.decision == "allow" and is_born_high_risk(rule.action):
        return "decision", f"{rule.action} is high-risk and cannot be allowed without asking"
    if rule.decision == "allow" and rule.high_risk:
        return "decision", "a rule cannot both allow an action and make it high-risk"
    if rule.deciders is not None and not any(name.strip() for name in rule.deciders):
        return "deciders", "names nobody, so such requests could only expire; name at least one decider"
    return None


_KEY = re.compile(r"\.(\w+)|\[(\d+)\]")


def _place(where: str, text: str, path: str) -> str:
    """Return `file:line` of a value such as `.rule[2].quorum`: find the nth table's header, then the key below it."""
    parts: list[Any] = [int(number) if number else name for name, number in _KEY.findall(path)]
    lines = text.splitlines()
    start = _find_table(lines, parts)
    key = next((part for part in reversed(parts) if isinstance(part, str)), None)
    for at in range(start, len(lines)):
        if at > start and lines[at].lstrip().startswith("["):
            break
        if key and re.match(rf"\s*[\"']?{re.escape(key)}[\"']?\s*=", lines[at]):
            return f"{where}:{at + 1}"
    return f"{where}:{start + 1}"


def _find_table(lines: list[str], parts: list[Any]) -> int:
    """Return the line where the table that holds a value begins."""
    if not parts:
        return 0
    number = parts[1] if len(parts) > 1 and isinstance(parts[1], int) else 0
    header = re.compile(rf"\s*\[\[?\s*[\"']?{re.escape(str(parts[0]))}[\"']?\s*\]\]?\s*(#.*)?$")
    headers = [at for at, line in enumerate(lines) if header.match(line)]
    return headers[number] if number < len(headers) else 0
