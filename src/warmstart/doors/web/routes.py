"""Routes on both ports: look at requests, decide them, follow what happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from typing import Annotated, Any

import msgspec
from litestar import Response, get, post
from litestar.params import FromPath, FromQuery, JSONBody, QueryParameter
from litestar.response import Stream

from warmstart import __version__
from warmstart.confirm.audit.feed import Change
from warmstart.confirm.desk.decide import Answer
from warmstart.confirm.errors import BadRequest, Unauthorized
from warmstart.confirm.model import Identity, Request, Status
from warmstart.doors.web.answers import answers
from warmstart.doors.web.bodies import DecideBody, DenyAllBody, StrictRequest, make_wish
from warmstart.doors.web.context import OPEN, RouteContext, Shared, get_caller, is_still_known, needs
from warmstart.doors.web.turns import LARGE
from warmstart.doors.web.views import (
    AuditList,
    DeniedAllView,
    HealthView,
    RequestList,
    RequestView,
    show_entry,
    show_request,
    show_summaries,
)
from warmstart.doors.web.waiters import TOO_SLOW, next_change, wait_for
from warmstart.errors import NotFound
from warmstart.names import name_key

LONGEST_WAIT = 60  # seconds
PING_EVERY = 15.0
_DECIDERS = ("approver:decide",)
Known = Callable[[], bool]  # whether the waiting caller is still known: a wait may outlast a logout or a revocation


async def load_request(context: RouteContext, id: str, who: Identity) -> Request:
    """Return a request as of now: one past its deadline is expired first. Agents find only their own requests, and do not
    learn that others exist."""
    request = context.desk.find(id)
    if request is not None and context.desk.is_overdue(request):
        await asyncio.wrap_future(context.desk.expire(id))
        request = context.desk.find(id)
    if request is None or not (who.may("approver:decide") or request.subject_key == who.key):
        raise NotFound(f"no request {id[:40]}")
    return request


@get("/confirm", opt=needs("agent:submit", "approver:decide"), responses=answers(400, 401, 403, 503))
async def list_requests(
    context: Shared,
    request: StrictRequest,
    status: FromQuery[Status | None] = None,
    action: Annotated[str | None, QueryParameter(max_length=200)] = None,
    requester: Annotated[str | None, QueryParameter(max_length=200, description="Only of this subject.")] = None,
    high_risk: Annotated[bool, QueryParameter(description="Only high-risk requests.")] = False,
    limit: Annotated[int, QueryParameter(ge=1, le=200)] = 50,
    before: Annotated[int | None, QueryParameter(ge=1, le=1 << 53)] = None,
) -> RequestList:
    """Requests without their details, the newest first. Agents see their own. `next` is the `before` of the next page."""
    who, desk = get_caller(request), context.desk
    wanted = name_key(requester) if requester else None
    stored = desk.list_requests(
        status=status,
        action=action,
        subject_key=wanted if who.may("approver:decide") else who.key,
        limit=limit,
        before=before,
        high_risk=high_risk,
    )
    for overdue in [item.id for item in stored if desk.is_overdue(item)]:
        await asyncio.wrap_future(desk.expire(overdue))
    current = [desk.find(item.id) or item if desk.is_overdue(item) else item for item in stored]
    kept = [item for item in current if status is None or item.status == status]
    views = show_summaries(desk, kept, who, context.addresses)
    waiting = desk.count_pending() if who.may("approver:decide") else 0
    return RequestList(views, stored[-1].sequence if len(stored) == limit else None, waiting, len(views))


async def render(context: RouteContext, request: Request, who: Identity) -> RequestView:
    """Show a request with its details. Writing out large ones is done in a thread, one at a time for each caller."""
    if request.size <= LARGE:
        return show_request(context.desk, request, who, context.addresses)
    return await context.turns.run(who.credential, show_request, context.desk, request, who, context.addresses)


@get(
    "/confirm/{id:str}",
    opt=needs("agent:submit", "approver:decide"),
    responses=answers(400, 401, 403, 404, 503),
)
async def get_request(
    context: Shared,
    request: StrictRequest,
    id: FromPath[str],
    wait: Annotated[int, QueryParameter(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a change.")] = 0,
) -> Response[RequestView] | Stream:
    """One request. With `wait` the answer comes when it changes; with `Accept: text/event-stream`, events until it is
    resolved."""
    who = get_caller(request)
    is_known = partial(is_still_known, context, request, who)
    current = await load_request(context, id, who)
    if "text/event-stream" in request.headers.get("Accept", ""):
        return _stream(_follow_one(context, id, who, is_known))
    if wait and current.status == "pending":
        current = await _wait_for_change(context, current, who, is_known, wait)
    return Response(await render(context, current, who))


async def _wait_for_change(
    context: RouteContext, before: Request, who: Identity, is_known: Known, seconds: float
) -> Request:
    """Wait until the request is resolved or voted on, or the time is over. A sent notification does not count."""
    end = asyncio.get_running_loop().time() + seconds
    votes = len(context.desk.votes(before.id))
    with context.waiters.changes_of(before.id) as changed:
        while True:
            current = await load_request(context, before.id, who)
            if not is_known():
                raise Unauthorized
            left = end - asyncio.get_running_loop().time()
            has_news = current.status != "pending" or len(context.desk.votes(current.id)) != votes
            if has_news or left <= 0 or context.waiters.closed:
                return current
            changed.clear()
            await wait_for(changed, left)


async def _decide(
    context: RouteContext, request: StrictRequest, id: str, answer: Answer, body: DecideBody | None
) -> RequestView:
    who, desk = get_caller(request), context.desk
    current = desk.find(id)
    if current is None:
        raise NotFound(f"no request {id[:40]}")
    typed = body.typed_action if body else None
    if who.by_session and answer == "approved" and current.high_risk and typed != current.action:
        raise BadRequest(f"type the action's name to approve it: {current.action}", code="type_the_action")
    decided = await asyncio.wrap_future(desk.decide(who, id, make_wish(answer, body, desk.masker)))
    return await render(context, decided, who)


_DECIDING = answers(400, 401, 403, 404, 409, 410, 413, 415, 503)


@post("/confirm/{id:str}/approve", status_code=200, opt=needs(*_DECIDERS), responses=_DECIDING)
async def approve(
    context: Shared, request: StrictRequest, id: FromPath[str], data: JSONBody[DecideBody | None] = None
) -> RequestView:
    """Say yes. Who asked cannot."""
    return await _decide(context, request, id, "approved", data)


@post("/confirm/{id:str}/deny", status_code=200, opt=needs(*_DECIDERS), responses=_DECIDING)
async def deny(
    context: Shared, request: StrictRequest, id: FromPath[str], data: JSONBody[DecideBody | None] = None
) -> RequestView:
    """Say no."""
    return await _decide(context, request, id, "denied", data)


@post("/deny-all", status_code=200, opt=needs(*_DECIDERS), responses=answers(400, 401, 403, 413, 415, 503))
async def deny_all(context: Shared, request: StrictRequest, data: JSONBody[DenyAllBody]) -> DeniedAllView:
    """Say no to everything that one requester is waiting for."""
    who, desk = get_caller(request), context.desk
    reason = desk.masker.mask_text(data.reason)
    denied = refused = 0
    while True:
        some, rest = await asyncio.wrap_future(desk.deny_all(who, data.requester, reason))
        denied, refused = denied + some, rest
        if not some:
            return DeniedAllView(data.requester, denied, refused)


@get("/audit", opt=needs("audit:read"), responses=answers(400, 401, 403, 503))
async def read_audit(
    context: Shared,
    limit: Annotated[int, QueryParameter(ge=1, le=1_000)] = 100,
    since: Annotated[int | None, QueryParameter(ge=0, le=1 << 53)] = None,
) -> AuditList:
    """Audit entries after a sequence, or the latest; the oldest first."""
    entries = [show_entry(entry) for entry in context.desk.audit(limit, since)]
    return AuditList(entries, entries[-1].sequence if entries else since or 0)


@get("/health", opt=OPEN, responses=answers(503))
async def check_health(context: Shared) -> HealthView:
    """Whether the daemon works. Open to all: it says nothing about requests but how many wait."""
    desk = context.desk
    trouble = desk.trouble and "see the daemon's log"
    return HealthView("ok", __version__, desk.count_pending(), trouble, context.addresses.page)


# Events


@get("/events", opt=needs(*_DECIDERS), responses=answers(400, 401, 403, 503), media_type="text/event-stream")
async def follow_all(context: Shared, request: StrictRequest) -> Stream:
    """Server-sent events: every request that changes, as it is after the change, without its details."""
    last = request.headers.get("Last-Event-ID", "")
    since = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else None
    who = get_caller(request)
    return _stream(_follow_all(context, who, partial(is_still_known, context, request, who), since))


def _stream(events: AsyncIterator[bytes]) -> Stream:
    return Stream(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def _event(name: str, value: Any, sequence: int | None = None) -> bytes:
    head = b"" if sequence is None else b"id: %d\n" % sequence
    return head + b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))


async def _follow_one(context: RouteContext, id: str, who: Identity, is_known: Known) -> AsyncIterator[bytes]:
    sent = None
    with context.waiters.changes_of(id) as changed:
        while not context.waiters.closed:
            changed.clear()
            current = await load_request(context, id, who)
            if not is_known():
                return
            view = await render(context, current, who)
            if (state := msgspec.structs.replace(view, seconds_left=0)) != sent:  # it may wake late for a sent change
                sent = state
                yield _event("request", view)
            if current.status != "pending":
                return
            while not await wait_for(changed, PING_EVERY):  # set for good when the daemon stops
                if not is_known():
                    return
                yield _event("ping", {})


async def _follow_all(context: RouteContext, who: Identity, is_known: Known, since: int | None) -> AsyncIterator[bytes]:
    def ping() -> bytes:
        """Show that the stream is alive, and the open problems."""
        return _event("ping", {"trouble": context.desk.trouble})

    with context.waiters.all_changes() as stream:
        yield ping()
        seen = since or 0
        for missed in _read_missed(context, since):
            if context.waiters.closed or not is_known():
                return
            yield _show_change(context, who, missed)
            seen = missed.sequence
            await asyncio.sleep(0)  # let other tasks run: a fast socket never blocks
        while not context.waiters.closed:
            change = await next_change(stream, PING_EVERY)
            if change == TOO_SLOW or not is_known():
                return  # too slow, logged out, or the daemon stops: the browser reconnects if it may
            if change is None:
                yield ping()
            elif change.sequence > seen:
                yield _show_change(context, who, change)


def _read_missed(context: RouteContext, since: int | None) -> Iterator[Change]:
    """Yield all changes after a sequence, reading a part at a time."""
    while since is not None and (changes := context.desk.feed.read(since)):
        yield from changes
        since = changes[-1].sequence


def _show_change(context: RouteContext, who: Identity, change: Change) -> bytes:
    request = context.desk.find(change.request)
    if request is None:
        return b""
    (view,) = show_summaries(context.desk, [request], who, context.addresses)
    return _event("request", view, change.sequence)


SHARED = [list_requests, get_request, approve, deny, deny_all, read_audit, check_health, follow_all]
