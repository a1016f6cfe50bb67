"""The guard's rules, which say what tool calls need an approval: `guard.toml` under the home.

    [[rule]]
    tool = "Bash"                                   # one pattern or a list: * and ?; case does not matter
    arguments = { command = 'git\\s+push' }          # RE2, anywhere in that argument; all of them must match
    unless = { command = 'git push origin draft' }  # RE2, the whole argument: then this rule does not apply
    agents = ["claude-code"]                        # default: all agents
    action = "deploy_production"                    # the action's name in the daemon's policy
    description = "Publishes the site"              # for the person who decides
    timeout_seconds = 300                           # default: as the daemon's policy says

    [tools]                                         # what tools of other kinds do, see tools.toml
    harmless = ["mcp__docs__*"]

    [defaults]                                      # calls that no rule matches
    unknown = "ask"                                 # of tools that are listed nowhere: ask or leave
    code_later = "ask"                              # writes to what can run code later: ask or leave

The first matching rule counts. A rule for one tool that runs commands counts for all tools of the agent that do. A file
with any error blocks every call, and so does one without rules: a file that was emptied by accident must not look like
one that allows everything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import re2
from msgspec import Meta, Struct

from warmstart.confirm.errors import BadRequest
from warmstart.confirm.model import LONGEST, SHORTEST
from warmstart.confirm.policy.actions import check_action
from warmstart.doors.guard.calls import GuardedCall, read_texts
from warmstart.doors.guard.code_later import find_later_code
from warmstart.doors.guard.tools import AgentTools, ToolNames, load_tools
from warmstart.errors import ConfigError

__all__ = [
    "FILE",
    "GuardDefaults",
    "GuardFile",
    "GuardRule",
    "GuardedCall",
    "find_rule",
    "find_rules",
    "load_guard_file",
    "load_rules",
    "parse_guard_file",
    "parse_rules",
]

FILE = "guard.toml"
ASKED_FOR = 300  # seconds that a call waits which no rule of the file matches

Text = Annotated[str, Meta(min_length=1)]


class GuardRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A rule: the calls that need an approval, and their action's name."""

    tool: Text | Annotated[list[Text], Meta(min_length=1)]
    action: str
    arguments: dict[str, Text] = {}
    unless: dict[str, Text] = {}
    agents: Annotated[list[Text], Meta(min_length=1)] | None = None
    description: Annotated[str, Meta(max_length=1_000)] = ""
    timeout_seconds: Annotated[int, Meta(ge=SHORTEST, le=LONGEST)] | None = None  # None: as the daemon's policy says

    def matches(self, call: GuardedCall, tools: AgentTools | None = None) -> bool:
        """Return whether the call needs this approval, under its own name or as a command like any other."""
        known = load_tools(call.agent) if tools is None else tools
        return any(map(self._matches, known.list_equals(call)))

    def _matches(self, call: GuardedCall) -> bool:
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


class GuardDefaults(Struct, frozen=True, forbid_unknown_fields=True):
    """What happens to calls that no rule matches."""

    unknown: Literal["ask", "leave"] = "ask"
    code_later: Literal["ask", "leave"] = "ask"


class GuardFile(Struct, frozen=True, forbid_unknown_fields=True):
    """All of `guard.toml`."""

    rule: list[GuardRule]
    tools: ToolNames = ToolNames()
    defaults: GuardDefaults = GuardDefaults()

    def tools_of(self, agent: str) -> AgentTools:
        return load_tools(agent).extend(self.tools)

    def judge(self, call: GuardedCall) -> GuardRule | None:
        """Return the rule under which a call is asked, of the file or one of those that hold without a file; None if it
        is left alone."""
        tools = self.tools_of(call.agent)
        rule = next((rule for rule in self.rule if rule.matches(call, tools)), None)
        if rule is not None or self._is_exempt(call, tools):
            return rule
        kind = tools.classify(call)
        if kind == "later":
            return _make_rule(call, "schedule_code", "makes something run later, or where the guard does not see it")
        if self.defaults.code_later == "ask" and (place := find_later_code(call, tools)) is not None:
            return _make_rule(call, "change_what_runs", f"changes what can run code later: {place}")
        if kind is None and self.defaults.unknown == "ask":
            return _make_rule(call, "use_unknown_tool", "a tool that the guard does not know")
        return None

    def _is_exempt(self, call: GuardedCall, tools: AgentTools) -> bool:
        """Return whether a person calls this very tool harmless in the file."""
        return any(fnmatchcase(call.tool.lower(), glob.lower()) for glob in self.tools.harmless)


def _make_rule(call: GuardedCall, action: str, why: str) -> GuardRule:
    return GuardRule(tool=call.tool, action=action, description=why, timeout_seconds=ASKED_FOR)


def find_rules(home: Path) -> Path:
    return home / FILE


def load_rules(home: Path) -> list[GuardRule]:
    """Load the rules under a home, without the other settings. Raise ConfigError, after which the caller blocks."""
    return load_guard_file(home).rule


def load_guard_file(home: Path) -> GuardFile:
    """Load the guard's file under a home. Raise ConfigError, after which the caller blocks."""
    path = find_rules(home)
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise ConfigError(f"{path}: there are no guard rules; see docs/howto/confirm.md") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    return parse_guard_file(text, str(path))


def parse_rules(text: str, where: str = FILE) -> list[GuardRule]:
    return parse_guard_file(text, where).rule


def parse_guard_file(text: str, where: str = FILE) -> GuardFile:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{where}: not valid TOML: {error}") from error
    try:
        file = msgspec.convert(data, GuardFile)
    except msgspec.ValidationError as error:
        from warmstart.mismatch import explain_setting  # an agent waits for every import

        raise ConfigError(f"{where}: {explain_setting(error, data, GuardFile, text)}") from error
    if not file.rule:
        raise ConfigError(f"{where}: has no rules; add one, or uninstall the guard")
    for number, rule in enumerate(file.rule, start=1):
        if problem := _find_problem(rule):
            raise ConfigError(f"{where}: rule {number}: {problem}")
    return file


def find_rule(rules: Sequence[GuardRule], call: GuardedCall) -> GuardRule | None:
    """Return the first of these rules that matches a call, or None."""
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
    return any(_compile(pattern).search(text) for text in read_texts(name, arguments))


def _is_all(pattern: str, name: str, arguments: Mapping[str, Any]) -> bool:
    """Return whether a pattern matches every text of an argument from the first to the last character."""
    texts = list(read_texts(name, arguments))
    return bool(texts) and all(_compile(pattern).fullmatch(text) for text in texts)


def _compile(pattern: str) -> Any:
    """Compile with RE2, which is linear in the text: an agent must not be able to keep its guard busy."""
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options)
