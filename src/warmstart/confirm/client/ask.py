"""Ask for a confirmation, wait for it, and only then act. Every failure raises: silence, errors and invalid answers all
mean no.

Standard library only, so that a hook starts fast. A request survives restarts of the daemon and lost answers: the
submission is repeated with one idempotency key, the wait continues with the request's id.
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
_SHORT_WAIT = 5  # seconds of one long poll that may be cancelled
_PATIENCE = 5.0  # seconds to keep trying to reach a daemon for a call other than waiting
_PAUSE = 0.3  # seconds between attempts
_NONSENSE = "the answer is not that of a confirmation daemon"


class Ticket(NamedTuple):
    """A submitted request."""

    daemon: Daemon
    id: str
    action: str
    deadline: float  # on this process's monotonic clock
    page_url: str  # where people decide
    cancelled: threading.Event | None = None  # set it to give the request up

    def wait(self) -> HumanDecision:
        """Wait for the decision. Return an approval; raise Denied, Expired or Unreachable."""
        return _read_decision(self._poll())

    def take_up(self, details: Any = None) -> None:
        """Use the approval up, right before acting. Raise Conflict if these are not the approved details or the approval
        was already used."""
        execution = self._poll().get("execution")
        if not isinstance(execution, dict):
            raise Expired(f"{self.action}: the approval was already used or has lapsed; ask again")
        body = {"token": execution.get("token"), "action": self.action, "details": {} if details is None else details}
        self._call("POST", f"/confirm/{self.id}/execute", body, until=time.monotonic() + _PATIENCE)

    def _poll(self) -> dict[str, Any]:
        """Return the request once it is no longer pending."""
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
        """Call the daemon unless the request was cancelled: a cancelled one must never be executed, because the audit
        would record it as done."""

        def check() -> None:
            if self.cancelled is not None and self.cancelled.is_set():
                raise Expired(f"{self.action}: cancelled before it was decided or done", code="cancelled")

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
    """Submit a request without waiting for its decision. Most callers want `ask`.

    Without a `timeout` the daemon's policy says how long the request may wait. `within` limits this program's own wait,
    in seconds. Setting `cancelled` from another thread gives the request up: it ends the wait, and the request is never
    executed.
    """
    if timeout is not None and not 0 < timeout <= LONGEST:
        raise BadRequest(f"timeout: {timeout} is not between 0 and {LONGEST} seconds")
    check_value(details)
    daemon = daemon or find_daemon()
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
    receipt = _call_patiently(daemon, "POST", "/confirm", body, headers=headers, until=began + _PATIENCE)
    id, page = receipt.get("id"), receipt.get("page_url", "")
    seconds = receipt.get("timeout_seconds") if timeout is None else timeout
    if (
        not isinstance(id, str)
        or not id.isalnum()
        or not isinstance(seconds, int | float)
        or not 0 < seconds <= LONGEST
    ):
        raise Unreachable(f"{daemon.url}: {_NONSENSE}")
    deadline = time.monotonic() + seconds  # not before the daemon's own deadline
    if within is not None:
        deadline = min(deadline, began + within)
    return Ticket(daemon, id, action, deadline, str(page), cancelled)


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
    """Ask a person and wait for the answer. Return the approval, already used up and valid for one action; raise
    ConfirmationError (Denied, Expired, RateLimited, Unreachable ...) otherwise.

    `timeout`, `within` and `cancelled` are those of `submit`.
    """
    check_value(details)
    exact = write_canonical(details)  # to notice changes during the wait
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
        raise BadRequest(f"{action}: the details changed during the wait; ask again with the new ones")
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
    """Decorate a function so that it asks before every call, with its arguments as details, and only then runs.

    Arguments must be JSON values; otherwise `describe(*args, **kwargs)` must return the details. They are compared again
    right before the call: arguments that were not approved do not run.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        text = description or f"{function.__qualname__}: {(inspect.getdoc(function) or 'call it').splitlines()[0]}"
        get_details = describe or functools.partial(_bind_arguments, inspect.signature(function))

        def confirm(args: Any, kwargs: Any, cancelled: threading.Event | None = None) -> None:
            details = get_details(*args, **kwargs)
            ticket = submit(action, text, details, timeout, session_key=session_key, daemon=daemon, cancelled=cancelled)
            ticket.wait()
            ticket.take_up(get_details(*args, **kwargs))

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_later(*args: P.args, **kwargs: P.kwargs) -> Any:
                import asyncio

                cancelled = threading.Event()
                try:
                    await asyncio.to_thread(confirm, args, kwargs, cancelled)
                finally:
                    cancelled.set()  # the thread outlives a cancelled task and must not execute its request
                return await function(*args, **kwargs)

            return cast("Callable[P, R]", call_later)

        @functools.wraps(function)
        def call_now(*args: P.args, **kwargs: P.kwargs) -> R:
            confirm(args, kwargs)
            return function(*args, **kwargs)

        return call_now

    return decorate


def _bind_arguments(signature: inspect.Signature, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Return the arguments by name, including defaults, without `self` and `cls`."""
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
    """Call the daemon, and try again until a time while it cannot be reached, as during a restart. `check` runs before
    every attempt and may raise."""
    while True:
        if check:
            check()
        try:
            return call(daemon, method, path, body, headers=headers, timeout=_WAIT + 10)
        except NotFound as error:  # the daemon uses another database than the one submitted to
            raise Unreachable(f"{daemon.url}: the daemon does not know this request: {error}") from error
        except Unauthorized as error:  # a token was sent
            raise Unauthorized(f"{daemon.url}: {UNKNOWN_TOKEN}") from error
        except Unreachable:
            if time.monotonic() + _PAUSE > until:
                raise
        time.sleep(_PAUSE)


def _read_decision(state: dict[str, Any]) -> HumanDecision:
    """Return an approval; raise for any other decision."""
    given = state.get("decision")
    if not isinstance(given, dict) or not isinstance(state.get("id"), str):
        raise Unreachable(_NONSENSE)
    try:
        at = int(datetime.fromisoformat(str(given.get("at"))).timestamp() * 1000)
        decision = HumanDecision(
            status=given["status"], by=str(given["by"]), reason=str(given["reason"]), at=at, request=state["id"]
        )
    except (KeyError, ValueError, OverflowError) as error:
        raise Unreachable(f"{_NONSENSE}: {error}") from error
    because = f": {decision.reason}" if decision.reason else ""
    match decision.status:
        case "approved" | "auto_approved":
            return decision
        case "denied":
            raise Denied(f"{state.get('action')}: denied by {decision.by}{because}", decision=decision)
        case "withdrawn":
            raise Denied(f"{state.get('action')}: withdrawn by {decision.by}", decision=decision)
        case "expired":
            raise Expired(f"{state.get('action')}: nobody decided in time", decision=decision)
        case _:
            raise Unreachable(_NONSENSE)
