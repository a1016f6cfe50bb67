"""The guard in Claude Code's settings: one `PreToolUse` hook for every tool; the rules decide which calls are meant.

Three things keep a broken guard from letting calls through: a time limit longer than any rule waits, a command that
turns every failure into exit code 2, and `onFailure` for the versions that know it (2.1.295 and later).

The command says all that decides what runs and whom it asks: the interpreter, deaf to Python's own variables, the home
and the daemon. A project's settings may set variables for every hook, and a project may come from anywhere.
"""

from __future__ import annotations

import re
import shlex
import site
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warmstart import config
from warmstart.config import Settings
from warmstart.confirm.client.wire import DEFAULT_URL
from warmstart.confirm.model import LONGEST
from warmstart.doors.guard.claude_code import ASK_UNTIL, EVENT, NAME
from warmstart.doors.guard.rules import GuardRule, load_rules
from warmstart.doors.hooks.agents import CLAUDE_CODE, find_home
from warmstart.doors.install.hooks import check_shape, find_hooks, remove_hooks
from warmstart.doors.settings_edit import json_text
from warmstart.doors.settings_edit.file import SettingsFile
from warmstart.errors import ConfigError, Refused

_OURS = re.compile(r"(?:^|[\s'\"/\\])warmstart(?:\.exe)?['\"]? confirm guard claude-code(?=\s|$)")
_BROKEN = "the warmstart guard could not run, so this call was blocked"


class GuardHook:
    """The guard for the user or for one project."""

    def __init__(self, settings: Settings, project: Path | None = None, url: str = "") -> None:
        """`url`: of the daemon; else what WARMSTART_CONFIRM_URL says now, or the usual one."""
        folder = project / CLAUDE_CODE.folder if project else find_home(CLAUDE_CODE, settings)
        self.path = folder / CLAUDE_CODE.file
        self._home = settings.home
        self._url = url or find_url()
        self._file = SettingsFile(self.path, settings.home / "changed", owner="guard")

    def install(self) -> bool:
        """Put it in, fitting the rules as they are now; False where it is there. Raises ConfigError or Refused."""
        _check_url(self._url)
        rules = [rule for rule in load_rules(self._home) if rule.agents is None or NAME in rule.agents]
        group = self._make_group(rules)
        try:
            value = json_text.parse(self._file.read() or "")
            check_shape(value)
            if _find(value) == group["hooks"]:
                return False
            self._file.take_out(_remove)  # of an older version, or with another time limit
            return self._file.put_in(lambda text: [json_text.append(text, ("hooks", EVENT), group)], _remove)
        except Refused as error:
            by_hand = json_text.write({"hooks": {EVENT: [group]}})
            raise Refused(f"{self._tell(error)}; to add by hand: {by_hand}") from error

    def uninstall(self) -> bool:
        """Take it out; False where there is none."""
        try:
            return self._file.take_out(_remove)
        except Refused as error:
            raise Refused(f"{self._tell(error)}; remove by hand what calls: warmstart confirm guard") from error

    def find(self) -> dict[str, Any] | None:
        """What is installed. Raises Refused."""
        try:
            return next(iter(_find(json_text.parse(self._file.read() or ""))), None)
        except Refused as error:
            raise Refused(self._tell(error)) from error

    def _make_group(self, rules: list[GuardRule]) -> dict[str, Any]:
        longest = max((rule.timeout_seconds or LONGEST for rule in rules), default=0)  # how long, the policy may say
        seconds = longest + 2 * ASK_UNTIL
        hook = {"type": "command", "command": self._make_command(seconds), "timeout": seconds, "onFailure": "block"}
        return {"matcher": "*", "hooks": [hook]}

    def _make_command(self, seconds: int) -> str:
        words = [*find_program(), "confirm", "guard", NAME, "--home", str(self._home.absolute())]
        words += ["--url", self._url, "--within", str(seconds)]
        return f"{shlex.join(words)} || {{ echo {shlex.quote(_BROKEN)} >&2; exit 2; }}"

    def _tell(self, error: Refused) -> str:
        told = str(error)
        return told if str(self.path) in told else f"{self.path}: {told}; it was left as it is"


def find_url() -> str:
    """Where the daemon is, as far as the environment says now."""
    return config.read_variable("WARMSTART_CONFIRM_URL") or DEFAULT_URL


def find_program() -> list[str]:
    """This interpreter, by its whole path. It heeds no PYTHONPATH and the like; a user's own packages only where we are
    one of them."""
    is_users = Path(__file__).is_relative_to(site.getusersitepackages())
    return [sys.executable, "-EP" if is_users else "-I", "-m", "warmstart"]


def read_options(hook: dict[str, Any]) -> dict[str, str]:
    """What an installed hook says: `--home`, `--url`, `--within`. Those of an older version said less."""
    _, _, said = str(hook.get("command")).partition(f" confirm guard {NAME} ")
    try:
        words = shlex.split(said.partition(" || ")[0])
    except ValueError:  # somebody has changed it
        return {}
    return dict(zip(words[::2], words[1::2], strict=False))


def is_ours(value: Any) -> bool:
    """Whether it is a handler that calls the guard."""
    command = value.get("command") if isinstance(value, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _find(value: Any) -> list[dict[str, Any]]:
    return [json_text.look_up(value, path) for path in find_hooks(value, is_ours) if path[1] == EVENT]


def _remove(text: str) -> str:
    return remove_hooks(text, is_ours)


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url}: give the daemon's address, such as {DEFAULT_URL}")
