"""The guard in Claude Code's settings: one `PreToolUse` hook for every tool; the rules decide which calls are meant.

Three things keep a broken guard from letting calls through: a time limit longer than any rule waits, a command that
turns every failure into exit code 2, and `onFailure` for the versions that know it (2.1.295 and later).
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

from warmstart.config import Settings
from warmstart.doors import settings_json
from warmstart.doors.guard_claude_code import ASK_UNTIL, EVENT, NAME
from warmstart.doors.guard_rules import Rule, load_rules
from warmstart.doors.hook_agents import CLAUDE_CODE, find_home
from warmstart.doors.hook_settings import check_shape, find_hooks, find_program, remove_hooks
from warmstart.doors.settings_file import SettingsFile
from warmstart.errors import Refused

_OURS = re.compile(r"(?:^|[\s'\"/\\])warmstart(?:\.exe)?['\"]? confirm guard claude-code(?=\s|$)")
_BROKEN = "the warmstart guard could not run, so this call was blocked"


class GuardHook:
    """The guard for the user or for one project."""

    def __init__(self, settings: Settings, project: Path | None = None) -> None:
        folder = project / CLAUDE_CODE.folder if project else find_home(CLAUDE_CODE, settings)
        self.path = folder / CLAUDE_CODE.file
        self._home = settings.home
        self._is_usual_home = settings.home == settings.user_home / ".warmstart"
        self._is_shared = project is not None
        self._file = SettingsFile(self.path, settings.home / "changed", owner="guard")

    def install(self) -> bool:
        """Put it in, fitting the rules as they are now; False where it is there. Raises ConfigError or Refused."""
        rules = [rule for rule in load_rules(self._home) if rule.agents is None or NAME in rule.agents]
        group = self._make_group(rules)
        try:
            value = settings_json.parse(self._file.read() or "")
            check_shape(value)
            if _find(value) == group["hooks"]:
                return False
            self._file.take_out(_remove)  # of an older version, or with another time limit
            return self._file.put_in(lambda text: [settings_json.append(text, ("hooks", EVENT), group)], _remove)
        except Refused as error:
            by_hand = settings_json.write({"hooks": {EVENT: [group]}})
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
            return next(iter(_find(settings_json.parse(self._file.read() or ""))), None)
        except Refused as error:
            raise Refused(self._tell(error)) from error

    def _make_group(self, rules: list[Rule]) -> dict[str, Any]:
        seconds = max((rule.timeout_seconds for rule in rules), default=0) + 2 * ASK_UNTIL
        hook = {"type": "command", "command": self._make_command(seconds), "timeout": seconds, "onFailure": "block"}
        return {"matcher": "*", "hooks": [hook]}

    def _make_command(self, seconds: int) -> str:
        words = [*find_program(shared=self._is_shared), "confirm", "guard", NAME]
        if not self._is_usual_home:
            words += ["--home", str(self._home.absolute())]
        words += ["--within", str(seconds)]
        return f"{shlex.join(words)} || {{ echo {shlex.quote(_BROKEN)} >&2; exit 2; }}"

    def _tell(self, error: Refused) -> str:
        told = str(error)
        return told if str(self.path) in told else f"{self.path}: {told}; it was left as it is"


def is_ours(value: Any) -> bool:
    """Whether it is a handler that calls the guard."""
    command = value.get("command") if isinstance(value, dict) else None
    return isinstance(command, str) and _OURS.search(command) is not None


def _find(value: Any) -> list[dict[str, Any]]:
    return [settings_json.look_up(value, path) for path in find_hooks(value, is_ours) if path[1] == EVENT]


def _remove(text: str) -> str:
    return remove_hooks(text, is_ours)
