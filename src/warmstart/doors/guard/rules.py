"""The guard's rules, which say what tool calls need an approval: `guard.toml` under the home.

    [[rule]]
    tool = "Bash"                                   # one pattern or a list: * and ?; case does not matter
    arguments = { command = 'git\\s+push' }          # RE2, anywhere in that argument; all of them must match
    unless = { command = 'git push origin draft' }  # RE2, the whole argument: then this rule does not apply
    agents = ["claude-code"]                        # default: all agents
    action = "deploy_production"                    # the action's name in the daemon's policy
    description = "Publishes the site"              # for the person who decides
    timeout_seconds = 300                           # default: as the daemon's policy says

The first matching rule counts. A file with any error blocks every call, and so does one without rules: a file that was
emptied by accident must not look like one that allows everything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import msgspec
import re2
from msgspec import Meta, Struct

from warmstart.confirm.errors import BadRequest
from warmstart.confirm.model import LONGEST, SHORTEST
from warmstart.confirm.policy.actions import check_action
from warmstart.errors import ConfigError

FILE = "guard.toml"
ANYWHERE = "*"  # in place of an argument's name: any argument

Text = Annotated[str, Meta(min_length=1)]


class GuardedCall(Struct, frozen=True):
    """A tool call that an agent is about to make."""

    agent: str
    tool: str
    arguments: Mapping[str, Any]
    session: str = ""
    folder: str = ""


class GuardRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule: the calls that need an approval, and their action's name."""

    tool: Text | Annotated[list[Text], Meta(min_length=1)]
    action: str
    arguments: dict[str, Text] = {}
    unless: dict[str, Text] = {}
    agents: Annotated[list[Text], Meta(min_length=1)] | None = None
    description: Annotated[str, Meta(max_length=1_000)] = ""
    timeout_seconds: Annotated[int, Meta(ge=SHORTEST, le=LONGEST)] | None = None  # None: as the daemon's policy says

    def matches(self, call: GuardedCall) -> bool:
        return (
            (self.agents is None or call.agent in self.agents)
            and any(fnmatchcase(call.tool.lower(), glob.lower()) for glob in self.tools)
            and all(_is_found(pattern, name, call.arguments) for name, pattern in self.arguments.items())
            and not (
                self.unless and all(_is_all(pattern, name, call.arguments) for name, pattern in self.unless.items())
            )
        )

    @property
    def tools(self) -> Sequence[str]:
        return [self.tool] if isinstance(self.tool, str) else self.tool


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    rule: list[GuardRule]


def find_rules(home: Path) -> Path:
    return home / FILE


def load_rules(home: Path) -> list[GuardRule]:
    """Load the rules under a home. Raise ConfigError, after which the caller blocks."""
    path = find_rules(home)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there are no guard rules; see docs/howto/confirm.md") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_rules(text, str(path))


def parse_rules(text: str, where: str = FILE) -> list[GuardRule]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not valid TOML: {error}") from error
    try:
        rules = msgspec.convert(data, _File).rule
    except msgspec.ValidationError as error:
        from warmstart.mismatch import explain_setting  # an agent waits for every import

        raise ConfigError(f"{where}: {explain_setting(error, data, _File, text)}") from error
    if not rules:
        raise ConfigError(f"{where}: has no rules; add one, or uninstall the guard")
    for number, rule in enumerate(rules, start=1):
        if problem := _find_problem(rule):
            raise ConfigError(f"{where}: rule {number}: {problem}")
    return rules


def find_rule(rules: Sequence[GuardRule], call: GuardedCall) -> GuardRule | None:
    """Return the first rule that matches a call, or None."""
    return next((rule for rule in rules if rule.matches(call)), None)


def _find_problem(rule: GuardRule) -> str | None:
    try:
        check_action(rule.action)
    except BadRequest as error:
        return str(error)
    for name, pattern in (*rule.arguments.items(), *rule.unless.items()):
        try:
            _compile(pattern)
        except re2.error as error:
            return f"the pattern for {name} is not valid RE2: {error.args[0] if error.args else error}"
    return None


def _is_found(pattern: str, name: str, arguments: Mapping[str, Any]) -> bool:
    return any(_compile(pattern).search(text) for text in _read_argument(name, arguments))


def _is_all(pattern: str, name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a pattern matches every text of an argument from the first to the last character."""
    texts = list(_read_argument(name, arguments))
    return bool(texts) and all(_compile(pattern).fullmatch(text) for text in texts)


def _compile(pattern: str) -> Any:
    """Compile with RE2, which is linear in the text: an agent must not be able to keep its guard busy."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)


def _read_argument(name: str, arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts of an argument: `path`, nested `edits.path`, or `*` for all of them."""
    values: list[Any] = [arguments] if name == ANYWHERE else list(_look_up(arguments, name))
    while values:
        value = values.pop()
        if isinstance(value, str):
            yield value.encode("utf-8", "replace").decode()  # a request with lone surrogates is refused later
        elif isinstance(value, Mapping):
            if name == ANYWHERE:
                values.extend(value)
            values.extend(value.values())
        elif isinstance(value, Sequence):
            values.extend(value)
        else:
            yield msgspec.json.encode(value).decode()


def _look_up(value: Any, name: str) -> Iterator[Any]:
    """Yield the values at a dotted name. Lists are searched item by item; a key may itself contain dots."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if key == name:
                yield inner
            elif name.startswith(f"{key}."):
                yield from _look_up(inner, name[len(key) + 1 :])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for inner in value:
            yield from _look_up(inner, name)
