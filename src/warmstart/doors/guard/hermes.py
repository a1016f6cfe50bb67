"""The guard as Hermes' `pre_tool_call` hook. It counts in every mode, `--yolo` too: it does not ask Hermes' own gate.

Hermes lets a call through when a hook raises, so nothing is raised here. While it waits, Hermes is told that it is not
idle where Hermes lets that be known, and a turn that is interrupted ends the wait.

It lives in Hermes' process, so what Hermes was started with decides where it asks: its environment and the `.env` in its
own home, no folder that it works in. That is read once, at the start: what is set later changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from warmstart import config
from warmstart.confirm.client.wire import DEFAULT_URL
from warmstart.doors.guard.guard import Guard, GuardVerdict, block
from warmstart.doors.guard.rules import GuardedCall, find_rules

NAME, TITLE = "hermes", "Hermes"
LONGEST = 540  # seconds: a scheduled job that seems idle for 600 is ended by Hermes


def is_wanted(home: Path) -> bool:
    """Whether there are rules. A file that cannot be read counts: it blocks, and says so."""
    try:
        return find_rules(home).exists()
    except OSError:
        return True


def make_hook(home: Path) -> Callable[..., dict[str, str] | None]:
    """What to register as `pre_tool_call`."""
    url, token = map(config.read_variable, ("WARMSTART_CONFIRM_URL", "WARMSTART_CONFIRM_TOKEN"))
    make = partial(Guard, home, TITLE, url=url or DEFAULT_URL, token=token, longest=LONGEST)

    def guard_tool(tool_name: str = "", args: Any = None, session_id: str = "", **_told: Any) -> dict[str, str] | None:
        try:
            verdict = _check(make(pulse=_Signs().give), tool_name, args, session_id)
        except Exception as error:  # noqa: BLE001 - raising would let the call through
            verdict = block(f"the guard failed: {type(error).__name__}")
        return {"action": "block", "message": verdict.reason} if verdict.kind == "blocked" else None

    return guard_tool


def _check(guard: Guard, tool: Any, arguments: Any, session: Any) -> GuardVerdict:
    if not isinstance(tool, str) or not isinstance(arguments, Mapping | None):
        return block("a call that makes no sense")
    call = GuardedCall(NAME, tool, arguments or {}, session if isinstance(session, str) else "")
    return guard.check(call)


class _Signs:
    """Of life, to Hermes; and from Hermes, that nobody wants the answer any more."""

    def __init__(self) -> None:
        now = time.monotonic()
        self._state = {"last_touch": now, "start": now}

    def give(self) -> str | None:
        touch = _find("tools.environments.base", "touch_activity_if_due")
        if touch:
            touch(self._state, "waiting for a person's confirmation")
        is_interrupted = _find("tools.interrupt", "is_interrupted")
        return "the turn was interrupted before anybody decided" if is_interrupted and is_interrupted() else None


def _find(module: str, name: str) -> Callable[..., Any] | None:
    """A function of Hermes, where this version has it."""
    try:
        found = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return found if callable(found) else None
