"""Limits per token, requester and action, so that no agent buries the people who decide: requests that wait, their bytes,
requests per hour, and a pause after denials.

Those per token count all actions together, because the agent chooses the action's name. All are counted in the table, so
a restart does not reset them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from warmstart.confirm.audit.memory import TokenLoad, WriterMemory
from warmstart.confirm.errors import RateLimited
from warmstart.confirm.model import WINDOW, Identity, NewRequest
from warmstart.confirm.policy.policy import Defaults, Policy
from warmstart.confirm.store.protocol import ConfirmStore

_DENIALS = 3  # from the third denial within the time below, the requester pauses
_REMEMBERED = 600  # seconds
_LONGEST_PAUSE = 900  # seconds


class SubmitPast(NamedTuple):
    """What is known about earlier requests when a new one is submitted."""

    nth_latest: int | None  # when the token submitted as many requests ago as it may an hour
    denials: int  # of the requester, lately
    last_denial: int
    denied: int | None  # when exactly the same was denied
    recent: int  # requests with the same action in the last hour
    oldest: int | None  # of them
    is_listed: bool  # the whitelist may cover it


def read_load(store: ConfirmStore, who: Identity, now: int, memory: WriterMemory | None = None) -> TokenLoad:
    """Return what waits of this token. The writer remembers it."""
    if memory is not None and (known := memory.loads.get(who.credential)) is not None:
        return known
    load = TokenLoad(*store.row("load_of", {"credential": who.credential, "now": now}))
    if memory is not None:
        memory.loads[who.credential] = load
    return load


def read_past(
    store: ConfirmStore, policy: Policy, who: Identity, now: int, new: NewRequest | None = None
) -> SubmitPast:
    """Read everything at once: on a server each question is a way there and back."""
    values = {
        "credential": who.credential,
        "subject_key": who.key,
        "since": now - WINDOW * 1000,
        "skip": policy.submit_limit - 1,
        "remembered": now - _REMEMBERED * 1000,
        "paused": now - policy.defaults.cool_down_seconds * 1000,
        "digest": new.digest if new else "",
        "action_key": new.key if new else "",
        "session_key": new.session_key if new else "",
    }
    return SubmitPast(*store.row("past_of", values))


def check_load(
    policy: Policy, who: Identity, now: int, load: TokenLoad, past: SubmitPast, size: int = 0
) -> RateLimited | None:
    """Return why this token may not submit `size` more bytes now, or None if it may."""
    limits = policy.defaults
    if load.waiting >= limits.pending_limit:
        return RateLimited(
            f"{load.waiting} requests of this token are waiting, and {limits.pending_limit} may; wait until some are "
            "decided",
            limit=limits.pending_limit,
            retry_after=30,
            code="too_many_waiting",
        )
    if load.taken + size > limits.pending_bytes:
        return RateLimited(
            f"the requests of this token that are waiting hold {load.taken:,} bytes, and {limits.pending_bytes:,} may; "
            "wait until some are decided, or send less",
            limit=limits.pending_bytes,
            retry_after=30,
            code="too_much_waiting",
        )
    return _check_hour(policy.submit_limit, now, past) or _check_pause(limits, who, now, past)


def _check_hour(limit: int, now: int, past: SubmitPast) -> RateLimited | None:
    if past.nth_latest is None:
        return None
    wait = _wait_for(past.nth_latest, now)
    return RateLimited(
        f"this token may submit {limit} requests an hour, whatever their action; try again in {wait} seconds",
        limit=limit,
        retry_after=wait,
    )


def check_action(action: str, limit: int, now: int, past: SubmitPast) -> RateLimited | None:
    """Return why this action may not be asked for again so soon, or None if it may."""
    if past.recent < limit or past.oldest is None:
        return None
    wait = _wait_for(past.oldest, now)
    return RateLimited(
        f"{action}: {limit} an hour are allowed; try again in {wait} seconds", limit=limit, retry_after=wait
    )


def _wait_for(created: int, now: int) -> int:
    """Return seconds until a request is older than an hour."""
    return max(1, math.ceil((created - now + WINDOW * 1000) / 1000))


def _check_pause(limits: Defaults, who: Identity, now: int, past: SubmitPast) -> RateLimited | None:
    """Let a requester whose requests are denied again and again wait, longer each time."""
    if not limits.cool_down_seconds or past.denials < _DENIALS:
        return None
    pause = min(_LONGEST_PAUSE, limits.cool_down_seconds * 2 ** min(past.denials - _DENIALS, 10))
    return _make_pause(
        past.last_denial + pause * 1000 - now, f"{past.denials} requests of {who.subject} were denied lately"
    )


def check_repeat(limits: Defaults, now: int, past: SubmitPast) -> RateLimited | None:
    """Return why exactly the same request may not be asked again so soon after its denial, or None if it may."""
    pause = limits.cool_down_seconds * 1000
    return _make_pause(past.denied + pause - now, "exactly this was just denied") if pause and past.denied else None


def _make_pause(left: int, why: str) -> RateLimited | None:
    """Make the refusal for a pause of so many milliseconds, None if it is over."""
    if left <= 0:
        return None
    wait = math.ceil(left / 1000)
    return RateLimited(
        f"{why}; the next request may be submitted in {wait} seconds", retry_after=wait, code="cool_down"
    )
