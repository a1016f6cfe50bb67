"""The guard in the settings of an agent: one `PreToolUse` hook for every tool; the rules decide which calls need a yes.

Three things keep a broken guard from letting calls through: a time limit longer than any rule waits, a command that
turns every failure into exit code 2, and `onFailure` for the versions of Claude Code that know it (2.1.295 and later).

The command names everything that decides what runs and whom it asks: the interpreter, deaf to Python's own variables,
the home, the daemon and its key. A project's settings can set variables for every hook, and a project may come from anywhere.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from warmstart import config
from warmstart.config import Settings
from warmstart.confirm.client.wire import DEFAULT_URL
from warmstart.confirm.model import LONGEST
from warmstart.confirm.tokens.files import AGENT_TOKEN, read_token_file
from warmstart.confirm.tokens.identity import split_token
from warmstart.doors.guard.agent_hook import ASK_UNTIL, EVENT
from warmstart.doors.guard.rules import ASKED_FOR, load_rules
from warmstart.doors.hooks.agents import CLAUDE_CODE, HookAgent
from warmstart.doors.install.hook_settings import HookSettings
from warmstart.doors.install.program import find_isolated_program
from warmstart.endpoints.http import parse_url
from warmstart.errors import ConfigError

_BROKEN = "the warmstart guard could not run, so this call was blocked"


class GuardHook:
    """The guard in one agent, for the user or for one project."""

    def __init__(self, agent: HookAgent, settings: Settings, project: Path | None = None, url: str = "") -> None:
        """`url`: the daemon's; by default that in WARMSTART_CONFIRM_URL now, or the usual one. The daemon's key is the one
        in the agents' token file now."""
        self.agent = agent
        self._command = name_command(agent)
        self._hooks = HookSettings(agent, settings, project, self._command)
        self.path = self._hooks.path
        self._home = settings.home
        self._url = url or find_url()

    def install(self) -> bool:
        """Add the guard, fitting the rules as they are now; return False if it is there. Raises ConfigError, Refused."""
        try:
            parse_url(self._url)
        except ConfigError as error:
            raise ConfigError(f"{error}; give the daemon's address, such as {DEFAULT_URL}") from error
        return self._hooks.install({EVENT: self._make_group()})

    def uninstall(self) -> bool:
        """Remove the guard; return False if there is none. Raises Refused."""
        return self._hooks.uninstall()

    def find(self) -> dict[str, Any] | None:
        """Return the installed handler. Raises Refused."""
        return self._hooks.find().get(EVENT)

    def find_changes(self) -> list[str]:
        """Return how the installed guard differs from the one that `install` writes. Raises ConfigError, Refused."""
        found = [(group, handler) for event, group, handler in self._hooks.find_groups() if event == EVENT]
        if len(found) != 1:
            return [f"it is there {len(found)} times"]
        ((group, handler),) = found
        options = self.read_options(handler)
        wanted = self._make_group(options.get("--url", ""), options.get("--key", ""))
        right, changes = dict(wanted["hooks"][0]), []
        needed, within = right["timeout"], options.get("--within", "")
        if within.isdecimal() and int(within) >= needed:  # the rules may have got shorter
            right["command"] = right["command"].replace(f" --within {needed} ", f" --within {within} ")
            right["timeout"] = int(within)
        if group.get("matcher") != wanted["matcher"]:
            changes.append(f"its matcher is {json.dumps(group.get('matcher'))}, not {json.dumps(wanted['matcher'])}")
        for name in sorted({*right, *handler}):
            if name == "command" and handler.get(name) != right.get(name):
                changes.append("its command is not the one that `guard install` writes")
            elif handler.get(name) != right.get(name):
                changes.append(f"its {name} is {json.dumps(handler.get(name))}, not {json.dumps(right.get(name))}")
        if (key := find_pinned_key(self._home)) and options.get("--key", "") not in ("", key):
            changes.append("it pins another daemon's key than the agents' token")
        return changes

    def find_obstacle(self) -> str | None:
        """Return why the agent runs no hook of these settings, and what to do about it. Raises Refused."""
        return self._hooks.find_obstacle()

    def read_options(self, handler: dict[str, Any]) -> dict[str, str]:
        """Return the options `--home`, `--url`, `--within`, `--key` of an installed handler; none if it was changed."""
        _, _, options = str(handler.get("command")).partition(f" {self._command} ")
        try:
            words = shlex.split(options.partition(" || ")[0])
        except ValueError:
            return {}
        return dict(zip(words[::2], words[1::2], strict=False))

    def _make_group(self, url: str = "", key: str | None = None) -> dict[str, Any]:
        """Make the group, with the daemon and the key as they are now unless others are given."""
        name = self.agent.name
        rules = [rule for rule in load_rules(self._home) if rule.agents is None or name in rule.agents]
        longest = max((rule.timeout_seconds or LONGEST for rule in rules), default=0)  # LONGEST: up to the policy
        longest = max(longest, ASKED_FOR)
        seconds = longest + 2 * ASK_UNTIL
        words = [*find_isolated_program(), *self._command.split(), "--home", str(self._home.absolute())]
        words += ["--url", url or self._url, "--within", str(seconds)]
        if key := find_pinned_key(self._home) if key is None else key:
            words += ["--key", key]
        line = f"{shlex.join(words)} || {{ echo {shlex.quote(_BROKEN)} >&2; exit 2; }}"
        blocking = {"onFailure": "block"} if self.agent is CLAUDE_CODE else {}
        return {"matcher": "*", "hooks": [{"type": "command", "command": line, "timeout": seconds} | blocking]}


def find_pinned_key(home: Path) -> str:
    """Return the daemon's key in the agents' token file, empty if there is none yet. Raises ConfigError."""
    return split_token(read_token_file(home / AGENT_TOKEN)).key


def name_command(agent: HookAgent) -> str:
    """Return the words after `warmstart` by which the guard is known."""
    return f"confirm guard {agent.name}"


def find_url() -> str:
    """Return the daemon's address that the environment names now, or the usual one."""
    return config.read_variable("WARMSTART_CONFIRM_URL") or DEFAULT_URL
