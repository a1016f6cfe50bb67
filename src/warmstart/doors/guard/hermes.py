"""The guard as Hermes' `pre_tool_call` hook. It applies in every mode, `--yolo` included, because it does not depend on
Hermes' own permission prompt.

Hermes lets a call through if a hook raises, so this one never does. During the wait it reports activity to Hermes, in
versions that accept it, and an interrupted turn ends the wait.

The hook lives in Hermes' process. Hermes' environment and the `.env` in its own home decide which daemon it asks, never
the folder that it works in. They are read once, at the start; later changes have no effect.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from warmstart import config
from warmstart.confirm.client.wire import DEFAULT_URL
from warmstart.confirm.tokens.files import AGENT_TOKEN, read_token_file
from warmstart.confirm.tokens.identity import split_token
from warmstart.doors.guard.guard import Guard, GuardVerdict, block
from warmstart.doors.guard.rules import GuardedCall, find_rules
from warmstart.errors import WarmstartError

NAME, TITLE = "hermes", "Hermes"
LONGEST = 540  # seconds: Hermes ends a scheduled job that seems idle for 600


def is_wanted(home: Path) -> bool:
    """Return whether there are rules. A file that cannot be read counts as rules: it blocks every call and says so."""
    try:
        return find_rules(home).exists()
    except OSError:
        return True


def make_hook(home: Path) -> Callable[..., dict[str, str] | None]:
    """Make the function to register as `pre_tool_call`."""
    url, token = map(config.read_variable, ("WARMSTART_CONFIRM_URL", "WARMSTART_CONFIRM_TOKEN"))
    key = _find_key(home, token)
    make = partial(Guard, home, TITLE, url=url or DEFAULT_URL, token=token, key=key, longest=LONGEST)

    def guard_tool(tool_name: str = "", args: Any = None, session_id: str = "", **_more: Any) -> dict[str, str] | None:
        try:
            verdict = _check(make(pulse=_HermesPulse().beat), tool_name, args, session_id)
        except Exception as error:  # noqa: BLE001 - raising would let the call through
            verdict = block(f"the guard failed: {type(error).__name__}")
        return {"action": "block", "message": verdict.reason} if verdict.kind == "blocked" else None

    return guard_tool


def _find_key(home: Path, token: str) -> str:
    """Return the daemon's key as it is pinned at the start, empty if there is no token yet. A file that is changed later
    cannot lead to another daemon."""
    with suppress(WarmstartError, OSError, TypeError, ValueError):  # a home that is none blocks every call later
        return split_token(token or read_token_file(home / AGENT_TOKEN)).key
    return ""


def _check(guard: Guard, tool: Any, arguments: Any, session: Any) -> GuardVerdict:
    if not isinstance(tool, str) or not isinstance(arguments, Mapping | None):
        return block("a call that makes no sense")
    call = GuardedCall(NAME, tool, arguments or {}, session if isinstance(session, str) else "")
    return guard.check(call)


class _HermesPulse:
    """Reports activity to Hermes during a wait, and notices that the turn was interrupted."""

    def __init__(self) -> None:
        now = time.monotonic()
        self._state = {"last_touch": now, "start": now}

    def beat(self) -> str | None:
        touch = _find("tools.environments.base", "touch_activity_if_due")
        if touch:
            touch(self._state, "waiting for a person's confirmation")
        is_interrupted = _find("tools.interrupt", "is_interrupted")
        return "the turn was interrupted before anybody decided" if is_interrupted and is_interrupted() else None


def _find(module: str, name: str) -> Callable[..., Any] | None:
    """Return a function of Hermes, or None if this version lacks it."""
    try:
        function = getattr(import_module(module), name, None)
    except ImportError:
        return None
    return function if callable(function) else None
