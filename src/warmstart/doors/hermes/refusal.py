"""Errors of providers that a seed may have caused, and the second attempt of the same call without the seed.

Hermes takes a refusal (400) for final: the turn would be lost. So the call goes out again at once, as Hermes made it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

_REFUSED = frozenset((400, 413, 422))  # a conversation that the provider does not accept, or that is too large
_BROKEN = 500  # local servers answer so when a chat template fails; but it may be any other trouble too
_TOO_LARGE = 413
_FULL = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|maximum context|too many (?:input |prompt )?tokens|n_ctx|token limit"
    r"|(?:prompt|input|request|payload|conversation)\b.{0,40}\btoo (?:large|long)|reduce the length|exceed\w* .{0,20}context"
    r"|max\w*[ _](?:input|prompt)[ _]?(?:tokens|length)",
    re.I | re.S,
)
_OVERFLOWS = frozenset(("context_overflow", "payload_too_large"))  # Hermes' own names
_ONCE = "more than once"  # in Hermes' error about a second use of the function that calls on


class ProviderRefusal(NamedTuple):
    """An error that the seed may have caused."""

    status: int | None
    is_full: bool  # the conversation does not fit into the model's context

    @property
    def is_certain(self) -> bool:
        """Whether nothing but the request can be the cause."""
        return self.is_full or self.status != _BROKEN

    @property
    def why(self) -> str:
        if self.is_full:
            return "the model's context was full"
        return f"the provider answered {self.status} to a call with the seed, and accepted it without"


class SeedRemoved(Exception):
    """Warmstart took its examples out of this call, which has to be made again."""

    def __init__(self) -> None:
        super().__init__(self.__doc__)


def read_refusal(error: Exception) -> ProviderRefusal | None:
    """Return the refusal that an error is; None for an error that has nothing to do with the conversation."""
    cause = getattr(error, "original", error)  # Hermes wraps what comes from below
    status = getattr(cause, "status_code", None)
    if status is not None and status not in _REFUSED and status != _BROKEN:
        return None
    is_full = status == _TOO_LARGE or _is_full(cause)
    return ProviderRefusal(status, is_full) if is_full or status is not None else None


def _is_full(error: Exception) -> bool:
    if _FULL.search(f"{error} {getattr(error, 'body', None) or ''}"[:8_000]):
        return True
    try:
        classified = import_module("agent.error_classifier").classify_api_error(error)
        return classified.reason.value in _OVERFLOWS
    except Exception:  # noqa: BLE001  # of Hermes, in whatever version
        return False


def call_again(next_call: Callable[..., Any], request: Any) -> Any:
    """Make a call a second time, with another request. Raise SeedRemoved where Hermes does not allow it.

    Hermes' function calls on only once, so the one below it is used. SeedRemoved is no error that Hermes knows, so it
    makes the call again after a pause.
    """
    call_on = _find_rest(next_call) or next_call
    try:
        return call_on(request)
    except RuntimeError as error:
        if _ONCE in str(error):
            raise SeedRemoved from error
        raise


def _find_rest(next_call: Callable[..., Any]) -> Callable[[Any], Any] | None:
    """Return the function that calls the rest of Hermes' chain; None if this version has another chain."""
    names = getattr(getattr(next_call, "__code__", None), "co_freevars", ())
    cells = dict(zip(names, getattr(next_call, "__closure__", None) or (), strict=False))
    try:
        call_at, index = cells["call_at"].cell_contents, cells["index"].cell_contents
    except (KeyError, ValueError):
        return None
    if not callable(call_at) or not isinstance(index, int):
        return None
    return lambda request: call_at(index + 1, request)
