"""The guard as Hermes' `pre_tool_call` hook. It applies in every mode, `--yolo` included, because it does not depend on
Hermes' own permission prompt.

Hermes lets a call through if a hook raises, so this one never does. During the wait it reports activity to Hermes, in
versions that accept it, and an interrupted turn ends the wait.

It is a plugin of its own, `warmstart-guard`, beside the one that seeds: if that cannot be loaded, the guard still runs.
If the guard's own parts cannot be loaded, for example after a rebuilt environment lost a package, it blocks every call.

The hook lives in Hermes' process. Hermes' environment and the `.env` in its own home decide which daemon it asks, never
the folder that it works in. They are read once, at the start; later changes have no effect.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # nothing but the standard library is loaded here: a broken package must not switch the guard off
    from warmstart.doors.guard.guard import Guard, GuardVerdict

NAME, TITLE = "hermes", "Hermes"
PLUGIN = "warmstart-guard"  # the name of the guard among Hermes' plugins
LONGEST = 540  # seconds: Hermes ends a scheduled job that seems idle for 600
_FILE = "guard.toml"

CheckCall = Callable[[Any, Any, Any], str | None]  # tool, arguments, session -> why it is blocked; None: it may run


def register(ctx: Any) -> None:
    """Register the guard with Hermes, once: both plugins bring it. Without rules there is nothing to guard."""
    home = find_home()
    if is_wanted(home) and not _is_registered(ctx):
        ctx.register_hook("pre_tool_call", make_hook(home))


def find_home() -> Path:
    """Return Warmstart's home, even if the rest of the package cannot be loaded."""
    try:
        return Path(import_module("warmstart.config").find_homes()[1])
    except Exception:  # noqa: BLE001 - a broken dependency, or settings that cannot be read
        named = os.environ.get("WARMSTART_HOME")
        return Path(named).expanduser() if named else Path.home() / ".warmstart"


def is_wanted(home: Path) -> bool:
    """Return whether there are rules. A file that cannot be read counts as rules: it blocks every call and says so."""
    try:
        return (home / _FILE).exists()
    except OSError:
        return True


def _is_registered(ctx: Any) -> bool:
    """Return whether the other plugin was first. Where Hermes does not tell, a second guard asks a second time."""
    hooks = getattr(getattr(ctx, "_manager", None), "_hooks", None)
    known = hooks.get("pre_tool_call", ()) if isinstance(hooks, Mapping) else ()
    return any(getattr(hook, "is_warmstart_guard", False) for hook in known)


def make_hook(home: Path) -> HermesGuardHook:
    """Make the function to register as `pre_tool_call`. If the guard cannot be loaded, it blocks every call."""
    try:
        return HermesGuardHook(_load_guard(home))
    except Exception as error:  # noqa: BLE001 - a broken dependency: without the rules no call is known to be harmless
        return HermesGuardHook(_block_all(error))


class HermesGuardHook:
    """Answers Hermes' question whether a call may run."""

    is_warmstart_guard = True
    __name__ = "warmstart_guard"  # in Hermes' log

    def __init__(self, check: CheckCall) -> None:
        self._check = check

    def __call__(
        self, tool_name: str = "", args: Any = None, session_id: str = "", **_more: Any
    ) -> dict[str, str] | None:
        reason = self._check(tool_name, args, session_id)
        return {"action": "block", "message": reason} if reason is not None else None


def find_trouble() -> str:
    """Return why the guard would not run in this environment; empty if it would. `guard check` asks Hermes' Python."""
    from importlib.metadata import entry_points

    if not any(entry.name == PLUGIN for entry in entry_points(group="hermes_agent.plugins")):
        return f"the installed Warmstart is too old: it has no plugin {PLUGIN}; install it again"
    try:
        _load_guard(find_home())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
        return f"it cannot be loaded, so that every call is blocked: {type(error).__name__}: {error}"
    return ""


def _load_guard(home: Path) -> CheckCall:
    from functools import partial

    from warmstart import config
    from warmstart.confirm.client.wire import DEFAULT_URL
    from warmstart.doors.guard.guard import Guard, block

    url, token = map(config.read_variable, ("WARMSTART_CONFIRM_URL", "WARMSTART_CONFIRM_TOKEN"))
    key = _find_key(home, token)
    make = partial(Guard, home, TITLE, url=url or DEFAULT_URL, token=token, key=key, longest=LONGEST)

    def check(tool: Any, arguments: Any, session: Any) -> str | None:
        try:
            verdict = _check(make(pulse=_HermesPulse().beat), tool, arguments, session)
        except Exception as error:  # noqa: BLE001 - raising would let the call through
            verdict = block(f"the guard failed: {type(error).__name__}")
        return verdict.reason if verdict.kind == "blocked" else None

    return check


def _block_all(error: Exception) -> CheckCall:
    kind, missing = type(error).__name__, getattr(error, "name", None)
    why = (
        f"Blocked, and not run: the guard cannot be loaded ({kind}{f': {missing}' if missing else ''}), so that no call can "
        "be checked. Install Warmstart again in the environment of Hermes, then run: warmstart confirm guard check. "
        "Do not try to reach the same by other means; tell the user instead."
    )
    return lambda _tool, _arguments, _session: why


def _find_key(home: Path, token: str) -> str:
    """Return the daemon's key as it is pinned at the start, empty if there is no token yet. A file that is changed later
    cannot lead to another daemon."""
    from contextlib import suppress

    from warmstart.confirm.tokens.files import AGENT_TOKEN, read_token_file
    from warmstart.confirm.tokens.identity import split_token
    from warmstart.errors import WarmstartError

    with suppress(WarmstartError, OSError, TypeError, ValueError):  # a home that is none blocks every call later
        return split_token(token or read_token_file(home / AGENT_TOKEN)).key
    return ""


def _check(guard: Guard, tool: Any, arguments: Any, session: Any) -> GuardVerdict:
    from warmstart.doors.guard.guard import block
    from warmstart.doors.guard.rules import GuardedCall

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
