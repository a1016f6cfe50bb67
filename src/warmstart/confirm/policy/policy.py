"""What may happen without asking, what never may, and who decides the rest. Read once, at the start; a policy that
is not understood whole stops the start, because half a policy is a hole.

    high_risk = ["drop_*"]          # beside the built-in list, which cannot be shortened

    [defaults]
    timeout_seconds = 300
    rate_limit = 10                 # of one action within an hour
    execute_seconds = 600           # how long an approval can be taken up

    [[rule]]
    action = "deploy_*"             # * and ?; case and separators do not matter
    decision = "ask"                # ask (usual), allow, deny
    high_risk = true
    timeout_seconds = 900
    rate_limit = 3
    deciders = ["alice", "ops-*"]
    quorum = 2

All rules that match an action apply together, in any order: deny over ask over allow, high-risk where one says so,
else the strictest number. High-risk beats every allow.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
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
from warmstart.names import name_key

Seconds = Annotated[int, Meta(ge=SHORTEST, le=LONGEST)]
Limit = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Most = Annotated[int, Meta(ge=1, le=100)]


class Defaults(Struct, frozen=True, forbid_unknown_fields=True):
    """Where no rule says otherwise."""

    timeout_seconds: Seconds = USUAL
    rate_limit: Limit = MOST_AN_HOUR
    execute_seconds: Annotated[int, Meta(ge=1, le=LONGEST_APPROVAL)] = 600


class PolicyRule(Struct, frozen=True, forbid_unknown_fields=True):
    """What holds for the actions that a pattern matches. None: this rule does not say."""

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
    """What the policy says about one action."""

    decision: Literal["ask", "allow", "deny"]
    high_risk: bool
    timeout: int  # seconds, where the request names none
    longest: int  # seconds, whatever it names
    rate_limit: int
    deciders: tuple[tuple[str, ...], ...]  # of each list one pattern must fit
    quorum: int

    def lets_decide(self, subject: str) -> bool:
        key = name_key(subject)
        return all(any(fnmatchcase(key, name_key(glob)) for glob in globs) for globs in self.deciders)


class Policy(Struct, frozen=True):
    """A policy that was understood whole."""

    rules: tuple[PolicyRule, ...] = ()
    high_risk: tuple[str, ...] = ()
    defaults: Defaults = Defaults()
    notify: tuple[str, ...] = ()  # where to tell people; addresses hold secrets

    @property
    def digest(self) -> str:
        """Of what it says, however it was written: the audit records which policy was in force."""
        rules = sorted(msgspec.json.encode(rule) for rule in self.rules)
        said = [[rule.decode() for rule in rules], sorted(self.high_risk), self.defaults]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()

    def is_high_risk(self, action: str) -> bool:
        return (
            is_born_high_risk(action)
            or any(matches_broadly(glob, action) for glob in self.high_risk)
            or any(rule.high_risk and matches_broadly(rule.action, action) for rule in self.rules)
        )

    def rule_on(self, action: str) -> Ruling:
        """Everything about an action, strictest first."""
        found = [rule for rule in self.rules if matches_broadly(rule.action, action)]
        high_risk = self.is_high_risk(action)
        longest = min((r.timeout_seconds for r in found if r.timeout_seconds is not None), default=None)
        return Ruling(
            decision=_decide(found, action, high_risk),
            high_risk=high_risk,
            timeout=longest or self.defaults.timeout_seconds,
            longest=longest or LONGEST,
            rate_limit=_strictest((r.rate_limit for r in found), self.defaults.rate_limit),
            deciders=tuple(tuple(r.deciders) for r in found if r.deciders is not None),
            quorum=max((r.quorum for r in found if r.quorum is not None), default=1),
        )


def _decide(found: list[PolicyRule], action: str, high_risk: bool) -> Literal["ask", "allow", "deny"]:
    """Deny over high-risk over allow; a rule that allows must fit the name itself."""
    if any(rule.decision == "deny" for rule in found):
        return "deny"
    if high_risk or any(rule.decision == "ask" for rule in found):
        return "ask"
    allowed = any(rule.decision == "allow" and matches_strictly(rule.action, action) for rule in found)
    return "allow" if allowed else "ask"


def _strictest(numbers: Iterable[int | None], otherwise: int) -> int:
    return min((number for number in numbers if number is not None), default=otherwise)


def load_policy(path: Path) -> Policy:
    """The policy in a file. Raises ConfigError that names file, line and what is wrong."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_policy(text, str(path))


def parse_policy(text: str, where: str = "policy") -> Policy:
    try:
        file = msgspec.convert(tomllib.loads(text), _File)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: no valid TOML: {error}") from error
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise ConfigError(f"{_place(where, text, path.rstrip('`'))}: {message}") from error
    _check_globs(file, text, where)
    for number, rule in enumerate(file.rule):
        problem = _what_is_wrong(rule)
        if problem:
            raise ConfigError(f"{_place(where, text, f'.rule[{number}].{problem[0]}')}: {problem[1]}")
    policy = Policy(
        rules=tuple(file.rule),
        high_risk=tuple(file.high_risk),
        defaults=file.defaults,
        notify=tuple(file.notify),
    )
    if (unreached := _find_unreached(policy)) is not None:
        raise ConfigError(f"{_place(where, text, unreached[0])}: {unreached[1]}")
    return policy


def _find_unreached(policy: Policy) -> tuple[str, str] | None:
    """`(path, reason)` of an action that could only expire, because too few may decide about it."""
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
        problem = f"{action}: {ruling.quorum} must approve, but only {count} may decide, by all rules that fit it"
        return f".rule[{number}].{'quorum' if rule.quorum else 'deciders'}", problem
    return None


def _name_actions(policy: Policy) -> Iterator[str]:
    """Actions to try a policy on: those it names, one for each pattern, and one where two patterns meet that might ask too
    much of too few."""
    yield from HIGH_RISK
    yield from (find_example(rule.action) for rule in policy.rules)
    most = max((rule.quorum or 1 for rule in policy.rules), default=1)
    strict = [rule for rule in policy.rules if rule.deciders is not None or (rule.quorum or 1) > 1]
    for one, other in combinations(strict, 2):
        count = count_deciders(rule.deciders for rule in (one, other) if rule.deciders is not None)
        if count is not None and count < most and (name := find_common(one.action, other.action)) is not None:
            yield name


def _check_globs(file: _File, text: str, where: str) -> None:
    for number, glob in enumerate(file.high_risk):
        if wrong := check_glob(glob):
            raise ConfigError(f"{_place(where, text, f'.high_risk[{number}]')}: {glob!r}: {wrong}")


def _what_is_wrong(rule: PolicyRule) -> tuple[str, str] | None:
    """`(key, reason)` of a rule that cannot be meant."""
    if wrong := check_glob(rule.action):
        return "action", f"{rule.action!r}: {wrong}"
    if rule.high_risk is False:
        return "high_risk", "the high-risk list can be extended, not shortened; leave it out"
    if rule.decision == "allow" and is_born_high_risk(rule.action):
        return "decision", f"{rule.action} is high-risk and never allowed without asking"
    if rule.decision == "allow" and rule.high_risk:
        return "decision", "a rule cannot both allow and call it high-risk"
    if rule.deciders is not None and not any(name.strip() for name in rule.deciders):
        return "deciders", "names nobody; such requests could only expire"
    return None


_KEY = re.compile(r"\.(\w+)|\[(\d+)\]")


def _place(where: str, text: str, path: str) -> str:
    """`file:line` of a value such as `.rule[2].quorum`: the nth table's header, then the key below it."""
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
    """Where the table that holds a value begins."""
    if not parts:
        return 0
    number = parts[1] if len(parts) > 1 and isinstance(parts[1], int) else 0
    header = re.compile(rf"\s*\[\[?\s*[\"']?{re.escape(str(parts[0]))}[\"']?\s*\]\]?\s*(#.*)?$")
    found = [at for at, line in enumerate(lines) if header.match(line)]
    return found[number] if number < len(found) else 0
