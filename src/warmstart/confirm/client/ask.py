"""For agents: ask, wait, and only then act. Whatever goes wrong raises: silence, trouble and nonsense all mean no.

Standard library only, so that a hook that asks starts fast. A request outlives the daemon's restarts and lost answers:
submitting is repeated under one idempotency key, waiting goes on by the request's id.
"""

from __future__ import annotations

import functools
import inspect
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from warmstart.confirm.canonical import check_value, write_canonical
from warmstart.confirm.client.wire import Daemon, call, find_daemon
from warmstart.confirm.errors import BadRequest, Denied, Expired, Unauthorized, Unreachable
from warmstart.confirm.model import LONGEST, SHORTEST, HumanDecision
from warmstart.confirm.tokens.files import UNKNOWN_TOKEN
from warmstart.errors import NotFound

__all__ = ["Daemon", "Ticket", "ask", "find_daemon", "requires_confirmation", "submit"]

P = ParamSpec("P")
R = TypeVar("R")

_WAIT = 25  # seconds of one long poll
_SHORT_WAIT = 5  # of one that may be given up meanwhile
_PATIENCE = 5.0  # seconds to reach a daemon that does not answer, before anything was submitted
_PAUSE = 0.3  # seconds between attempts


class Ticket(NamedTuple):
    """A request that was handed in."""

    daemon: Daemon
    id: str
    action: str
    deadline: float  # by our own clock, monotonic
    page_url: str  # where people decide
    cancelled: threading.Event | None = None  # set by who no longer wants it

    def wait(self) -> HumanDecision:
        """Until it is decided. Returns an approval; raises Denied, Expired or Unreachable."""
        return _read_decision(self._poll())

    def take_up(self, details: Any = None) -> None:
        """Right before the deed, with what is about to be done: raises Conflict where that is not what was approved,
        or was done before."""
        execution = self._poll().get("execution")
        if not isinstance(execution, dict):
            raise Expired(f"{self.action}: the approval was taken up before, or is too old")
        body = {"token": execution.get("token"), "action": self.action, "details": {} if details is None else details}
        self._call("POST", f"/confirm/{self.id}/execute", body, until=time.monotonic() + _PATIENCE)

    def _poll(self) -> dict[str, Any]:
        """The request, once it is no longer pending."""
        longest = _WAIT if self.cancelled is None else _SHORT_WAIT
        while True:
            left = self.deadline - time.monotonic()
            path = f"/confirm/{self.id}?wait={max(0, min(longest, int(left) + 1))}"
            state = self._call("GET", path, until=max(self.deadline, time.monotonic() + _PATIENCE))
            if state.get("status") != "pending":
                return state
            if left <= 0:
                raise Expired(f"{self.action}: nobody decided in time")

    def _call(self, method: str, path: str, body: Any = None, *, until: float) -> dict[str, Any]:
        """What nobody wants any more is not asked for, and above all not taken up: the audit would say it was done."""

        def check() -> None:
            if self.cancelled is not None and self.cancelled.is_set():
                raise Expired(f"{self.action}: given up before it was decided or done", code="cancelled")

        return _call_patiently(self.daemon, method, path, body, until=until, check=check)


def submit(
    action: str,
    description: str,
    details: Any = None,
    timeout: float | None = None,
    *,
    session_key: str = "",
    daemon: Daemon | None = None,
    within: float | None = None,
    cancelled: threading.Event | None = None,
) -> Ticket:
    """Hand a request in, without waiting for its decision. Most callers want `ask`.

    Without a timeout the daemon's policy says how long it may wait; `within` is how many seconds we can, whatever it
    says. Who sets `cancelled`, from another thread, gives it up: it is no longer waited for, and never taken up.
    """
    if timeout is not None and not 0 < timeout <= LONGEST:
        raise BadRequest(f"timeout: up to {LONGEST} seconds")
    check_value(details)
    asked = daemon or find_daemon()
    body = {
        "action": action,
        "description": description,
        "details": {} if details is None else details,
        "session_key": session_key,
    }
    if timeout is not None:
        body["timeout_seconds"] = max(SHORTEST, int(timeout + 0.999))
    began = time.monotonic()
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    receipt = _call_patiently(asked, "POST", "/confirm", body, headers=headers, until=began + _PATIENCE)
    id, page = receipt.get("id"), receipt.get("page_url", "")
    seconds = receipt.get("timeout_seconds") if timeout is None else timeout
    if (
        not isinstance(id, str)
        or not id.isalnum()
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= LONGEST
    ):
        raise Unreachable(f"{asked.url}: an answer that makes no sense")
    deadline = time.monotonic() + seconds  # not before the daemon's own
    if within is not None:
        deadline = min(deadline, began + within)
    return Ticket(asked, id, action, deadline, str(page), cancelled)


def ask(
    action: str,
    description: str,
    details: Any = None,
    timeout: float | None = None,
    *,
    session_key: str = "",
    daemon: Daemon | None = None,
    within: float | None = None,
    cancelled: threading.Event | None = None,
) -> HumanDecision:
    """Ask a person and wait for the answer. Returns the approval, taken up and good for once; raises
    ConfirmationError (Denied, Expired, RateLimited, Unreachable ...) for everything else.

    Without a timeout the daemon's policy says how long; `within` and `cancelled` are those of `submit`.
    """
    check_value(details)
    exact = write_canonical(details)  # as it is now: what changes while we wait is noticed
    ticket = submit(
        action,
        description,
        details,
        timeout,
        session_key=session_key,
        daemon=daemon,
        within=within,
        cancelled=cancelled,
    )
    decision = ticket.wait()
    if write_canonical(details) != exact:
        raise BadRequest(f"{action}: the details changed while it was asked about")
    ticket.take_up(details)
    return decision


def requires_confirmation(
    action: str,
    description: str = "",
    *,
    timeout: float | None = None,
    describe: Callable[..., Any] | None = None,
    session_key: str = "",
    daemon: Daemon | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A function that asks before every call, with its arguments as details, and only then runs.

    Arguments must be JSON values; where they are not, `describe(*args, **kwargs)` says what they are. They are looked
    at again right before the call: other ones than approved do not run.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        told = description or f"{function.__qualname__}: {(inspect.getdoc(function) or 'call it').splitlines()[0]}"
        tell = describe or functools.partial(_arguments, inspect.signature(function))

        def confirm(args: Any, kwargs: Any, cancelled: threading.Event | None = None) -> None:
            details = tell(*args, **kwargs)
            ticket = submit(action, told, details, timeout, session_key=session_key, daemon=daemon, cancelled=cancelled)
            ticket.wait()
            ticket.take_up(tell(*args, **kwargs))

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_later(*args: P.args, **kwargs: P.kwargs) -> Any:
                import asyncio

                cancelled = threading.Event()
                try:
                    await asyncio.to_thread(confirm, args, kwargs, cancelled)
                finally:
                    cancelled.set()  # the thread outlives a cancelled task, and must not take up what will not be done
                return await function(*args, **kwargs)

            return cast("Callable[P, R]", call_later)

        @functools.wraps(function)
        def call_now(*args: P.args, **kwargs: P.kwargs) -> R:
            confirm(args, kwargs)
            return function(*args, **kwargs)

        return call_now

    return decorate


def _arguments(signature: inspect.Signature, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Arguments by name, defaults too: what really arrives. The object a method belongs to is left out."""
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name not in ("self", "cls")}


def _call_patiently(
    daemon: Daemon,
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str] | None = None,
    until: float,
    check: Callable[[], None] | None = None,
) -> dict[str, Any]:
    """Try again while the daemon cannot be reached, as during its restart; what it answers counts at once. `check` comes
    before every attempt, and may raise."""
    while True:
        if check:
            check()
        try:
            return call(daemon, method, path, body, headers=headers, timeout=_WAIT + 10)
        except NotFound as error:  # another database than the one it was handed in to
            raise Unreachable(f"{daemon.url}: the request is not known there: {error}") from error
        except Unauthorized as error:  # we did send one
            raise Unauthorized(f"{daemon.url}: {UNKNOWN_TOKEN}") from error
        except Unreachable:
            if time.monotonic() + _PAUSE > until:
                raise
        time.sleep(_PAUSE)


def _read_decision(state: dict[str, Any]) -> HumanDecision:
    """An approval, or its opposite as an exception."""
    found = state.get("decision")
    if not isinstance(found, dict) or not isinstance(state.get("id"), str):
        raise Unreachable("the daemon's answer makes no sense")
    try:
        at = int(datetime.fromisoformat(str(found.get("at"))).timestamp() * 1000)
        decision = HumanDecision(
            status=found["status"], by=str(found["by"]), reason=str(found["reason"]), at=at, request=state["id"]
        )
    except (KeyError, ValueError, OverflowError) as error:
        raise Unreachable(f"the daemon's answer makes no sense: {error}") from error
    because = f": {decision.reason}" if decision.reason else ""
    match decision.status:
        case "approved" | "auto_approved":
            return decision
        case "denied":
            raise Denied(f"{state.get('action')}: denied by {decision.by}{because}", decision=decision)
        case "expired":
            raise Expired(f"{state.get('action')}: nobody decided in time", decision=decision)
        case _:
            raise Unreachable("the daemon's answer makes no sense")
