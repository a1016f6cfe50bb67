"""Routes on the page port only: which browsers get push notifications."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import delete, get, post
from litestar.params import JSONBody
from msgspec import Meta, Struct

from warmstart.confirm.errors import Conflict
from warmstart.confirm.notify.push import Subscription, add_subscription, remove_subscriptions
from warmstart.doors.web.answers import answers
from warmstart.doors.web.bodies import StrictRequest
from warmstart.doors.web.context import RouteContext, Shared, get_caller, needs

_DECIDERS = ("approver:decide",)
_CHANGING = answers(400, 401, 403, 409, 413, 415, 503)


class PushView(Struct, frozen=True):
    key: str  # the daemon's public key for push services; empty: it has no push
    subscribed: bool  # this login gets pushes


class PushBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A browser's subscription at its push service."""

    endpoint: Annotated[str, Meta(min_length=1, max_length=2_000)]
    p256dh: Annotated[str, Meta(min_length=1, max_length=200)]
    auth: Annotated[str, Meta(min_length=1, max_length=100)]


@get("/push", opt=needs(*_DECIDERS), responses=answers(401, 403, 503))
async def find_push(context: Shared, request: StrictRequest) -> PushView:
    """Whether this login gets pushes, and the daemon's key for asking for them."""
    (count,) = context.desk.store.row("count_pushes", {"session": get_caller(request).credential})
    return PushView(await _find_key(context), count > 0)


@post("/push", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def add_push(context: Shared, request: StrictRequest, data: JSONBody[PushBody]) -> PushView:
    """Send pushes to this browser as long as the login lasts."""
    key = await _find_key(context)
    if not key or context.companions is None:
        raise Conflict("the daemon has no push; install it with: pip install 'warmstart[push]'", code="no_push")
    who, wanted = get_caller(request), Subscription(data.endpoint, data.p256dh, data.auth)
    await asyncio.wrap_future(context.desk.change(lambda tx: add_subscription(tx, who, wanted)))
    context.companions.start_notifier()
    return PushView(key, True)


@delete("/push", status_code=200, opt=needs(*_DECIDERS), responses=_CHANGING)
async def remove_push(context: Shared, request: StrictRequest) -> PushView:
    """Send this login no pushes any more."""
    who = get_caller(request)
    await asyncio.wrap_future(context.desk.change(lambda tx: remove_subscriptions(tx, who)))
    return PushView(await _find_key(context), False)


async def _find_key(context: RouteContext) -> str:
    return await asyncio.to_thread(context.companions.find_push_key) if context.companions else ""


PUSHES = [find_push, add_push, remove_push]
