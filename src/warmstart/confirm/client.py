"""For agents: ask, wait, and only then act. Whatever goes wrong raises: silence, trouble and nonsense all mean no.

Standard library only, so that a hook that asks starts fast. A request outlives the daemon's restarts and lost answers:
submitting is repeated under one idempotency key, waiting goes on by the request's id.
"""

from __future__ import annotations

import functools
import inspect
import secrets
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple, ParamSpec, TypeVar, cast

from warmstart.confirm.canonical import check_value, write_canonical
from warmstart.confirm.errors import BadRequest, Denied, Expired, Unreachable
from warmstart.confirm.model import LONGEST, SHORTEST, USUAL, Decision
from warmstart.confirm.wire import Daemon, call, find_daemon
from warmstart.errors import NotFound

__all__ = ["Daemon", "Ticket", "ask", "find_daemon", "requires_confirmation", "submit"]

P = ParamSpec("P")
R = TypeVar("R")

_WAIT = 25  # seconds of one long poll
_PATIENCE = 5.0  # seconds to reach a daemon that does not answer, before anything was submitted
_PAUSE = 0.3  # seconds between attempts


class Ticket(NamedTuple):
    """A request that was handed in."""

    daemon: Daemon
    id: str
    action: str
    deadline: float  # by our own clock, monotonic
    page_url: str  # where people decide

    def wait(self) -> Decision:
        """Until it is decided. Returns an approval; raises Denied, Expired or Unreachable."""
        return _read_decision(self._poll())

    def take_up(self, details: Any = None) -> None:
        """Right before the deed, with what is about to be done: raises Conflict where that is not what was approved,
        or was done before."""
        execution = self._poll().get("execution")
        if not isinstance(execution, dict):
            raise Expired(f"{self.action}: the approval was taken up before, or is too old")
        body = {"token": execution.get("token"), "action": self.action, "details": {} if details is None else details}
        _call_patiently(self.daemon, "POST", f"/confirm/{self.id}/execute", body, until=time.monotonic() + _PATIENCE)

    def _poll(self) -> dict[str, Any]:
        """The request, once it is no longer pending."""
        while True:
            left = self.deadline - time.monotonic()
            path = f"/confirm/{self.id}?wait={max(0, min(_WAIT, int(left) + 1))}"
            state = _call_patiently(self.daemon, "GET", path, until=max(self.deadline, time.monotonic() + _PATIENCE))
            if state.get("status") != "pending":
                return state
            if left <= 0:
                raise Expired(f"{self.action}: nobody decided in time")


def submit(
    action: str,
    description: str,
    details: Any = None,
    timeout: float = USUAL,
    *,
    session_key: str = "",
    daemon: Daemon | None = None,
) -> Ticket:
    """Hand a request in, without waiting for its decision. Most callers want `ask`."""
    if not 0 < timeout <= LONGEST:
        raise BadRequest(f"timeout: up to {LONGEST} seconds")
    check_value(details)
    asked = daemon or find_daemon()
    body = {
        "action": action,
        "description": description,
        "details": {} if details is None else details,
        "session_key": session_key,
        "timeout_seconds": max(SHORTEST, int(timeout + 0.999)),
    }
    now = time.monotonic()
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    receipt = _call_patiently(asked, "POST", "/confirm", body, headers=headers, until=now + _PATIENCE)
    id, page = receipt.get("id"), receipt.get("page_url", "")
    if not isinstance(id, str) or not id.isalnum():
        raise Unreachable(f"{asked.url}: an answer that makes no sense")
    return Ticket(asked, id, action, now + timeout, str(page))


def ask(
    action: str,
    description: str,
    details: Any = None,
    timeout: float = USUAL,
    *,
    session_key: str = "",
    daemon: Daemon | None = None,
) -> Decision:
    """Ask a person and wait for the answer. Returns the approval, taken up and good for once; raises
    ConfirmationError (Denied, Expired, RateLimited, Unreachable ...) for everything else."""
    check_value(details)
    exact = write_canonical(details)  # as it is now: what changes while we wait is noticed
    ticket = submit(action, description, details, timeout, session_key=session_key, daemon=daemon)
    decision = ticket.wait()
    if write_canonical(details) != exact:
        raise BadRequest(f"{action}: the details changed while it was asked about")
    ticket.take_up(details)
    return decision


def requires_confirmation(
    action: str,
    description: str = "",
    *,
    timeout: float = USUAL,
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

        def confirm(args: Any, kwargs: Any) -> None:
            ticket = submit(action, told, tell(*args, **kwargs), timeout, session_key=session_key, daemon=daemon)
            ticket.wait()
            ticket.take_up(tell(*args, **kwargs))

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_later(*args: P.args, **kwargs: P.kwargs) -> Any:
                import asyncio

                await asyncio.to_thread(confirm, args, kwargs)
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
) -> dict[str, Any]:
    """Try again while the daemon cannot be reached, as during its restart; what it answers counts at once."""
    while True:
        try:
            return call(daemon, method, path, body, headers=headers, timeout=_WAIT + 10)
        except NotFound as error:  # another database than the one it was handed in to
            raise Unreachable(f"{daemon.url}: the request is not known there: {error}") from error
        except Unreachable:
            if time.monotonic() + _PAUSE > until:
                raise
        time.sleep(_PAUSE)


def _read_decision(state: dict[str, Any]) -> Decision:
    """An approval, or its opposite as an exception."""
    found = state.get("decision")
    if not isinstance(found, dict) or not isinstance(state.get("id"), str):
        raise Unreachable("the daemon's answer makes no sense")
    try:
        at = int(datetime.fromisoformat(str(found.get("at"))).timestamp() * 1000)
        decision = Decision(
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
