"""Limits per token and per requester, so that no agent buries the people who decide: requests that wait, their bytes,
requests per hour, and a pause after denials.

They count all actions together, because the agent chooses the action's name. They are counted in the table, so a restart
does not reset them.
"""

from __future__ import annotations

import math

from warmstart.confirm.errors import RateLimited
from warmstart.confirm.model import WINDOW, Identity
from warmstart.confirm.policy.policy import Defaults, Policy
from warmstart.confirm.store.protocol import ConfirmStore

_DENIALS = 3  # from the third denial within the time below, the requester pauses
_REMEMBERED = 600  # seconds
_LONGEST_PAUSE = 900  # seconds


def check_load(store: ConfirmStore, policy: Policy, who: Identity, now: int, size: int = 0) -> RateLimited | None:
    """Return why this token may not submit `size` more bytes now, or None if it may."""
    limits = policy.defaults
    waiting, taken = store.row("load_of", {"credential": who.credential, "now": now})
    if waiting >= limits.pending_limit:
        return RateLimited(
            f"{waiting} requests of this token are waiting, and {limits.pending_limit} may; wait until some are decided",
            limit=limits.pending_limit,
            retry_after=30,
            code="too_many_waiting",
        )
    if taken + size > limits.pending_bytes:
        return RateLimited(
            f"the requests of this token that are waiting hold {taken:,} bytes, and {limits.pending_bytes:,} may; wait "
            "until some are decided, or send less",
            limit=limits.pending_bytes,
            retry_after=30,
            code="too_much_waiting",
        )
    return _check_hour(store, policy.submit_limit, who, now) or _check_pause(store, limits, who, now)


def _check_hour(store: ConfirmStore, limit: int, who: Identity, now: int) -> RateLimited | None:
    since = now - WINDOW * 1000
    row = (
        store.row("nth_latest_of", {"credential": who.credential, "since": since, "skip": limit - 1}) if limit else None
    )
    if row is None:
        return None
    wait = max(1, math.ceil((row[0] - since) / 1000))
    return RateLimited(
        f"this token may submit {limit} requests an hour, whatever their action; try again in {wait} seconds",
        limit=limit,
        retry_after=wait,
    )


def _check_pause(store: ConfirmStore, limits: Defaults, who: Identity, now: int) -> RateLimited | None:
    """Let a requester whose requests are denied again and again wait, longer each time."""
    if not limits.cool_down_seconds:
        return None
    count, last = store.row("denials_of", {"subject_key": who.key, "since": now - _REMEMBERED * 1000})
    if count < _DENIALS:
        return None
    pause = min(_LONGEST_PAUSE, limits.cool_down_seconds * 2 ** min(count - _DENIALS, 10))
    return _make_pause(last + pause * 1000 - now, f"{count} requests of {who.subject} were denied lately")


def check_repeat(store: ConfirmStore, limits: Defaults, who: Identity, now: int, digest: str) -> RateLimited | None:
    """Return why exactly the same request may not be asked again so soon after its denial, or None if it may."""
    pause = limits.cool_down_seconds * 1000
    row = store.row("denial_of", {"subject_key": who.key, "digest": digest, "since": now - pause}) if pause else None
    return _make_pause(row[0] + pause - now, "exactly this was just denied") if row and row[0] is not None else None


def _make_pause(left: int, why: str) -> RateLimited | None:
    """Make the refusal for a pause of so many milliseconds, None if it is over."""
    if left <= 0:
        return None
    wait = math.ceil(left / 1000)
    return RateLimited(
        f"{why}; the next request may be submitted in {wait} seconds", retry_after=wait, code="cool_down"
    )
