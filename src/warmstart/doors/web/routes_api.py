"""Routes for agents and programs, on the API port only."""

from __future__ import annotations

import asyncio
from typing import Annotated

from litestar import Response, delete, get, post
from litestar.params import FromPath, HeaderParameter, JSONBody

from warmstart.confirm.desk import decide
from warmstart.confirm.errors import RateLimited
from warmstart.confirm.policy.actions import check_action
from warmstart.doors.web.answers import answers
from warmstart.doors.web.bodies import (
    KEY_PATTERN,
    AllowBody,
    ExecuteBody,
    StrictRequest,
    SubmitBody,
    make_allowance,
    make_key,
    make_request,
)
from warmstart.doors.web.context import Shared, get_caller, needs, refuse_load
from warmstart.doors.web.views import (
    AllowanceList,
    AllowanceView,
    ExecutedView,
    RequestView,
    SubmittedView,
    show_allowance,
    show_receipt,
    show_request,
    show_time,
)

_SMALL = 512  # bytes: masking a larger body in the event loop would hold up everybody else


@post(
    "/confirm",
    status_code=202,
    opt=needs("agent:submit", counted=True),
    responses=answers(400, 401, 403, 413, 415, 422, 429, 503),
)
async def submit(
    context: Shared,
    request: StrictRequest,
    data: JSONBody[SubmitBody],
    key: Annotated[str | None, HeaderParameter(name="Idempotency-Key", pattern=KEY_PATTERN)] = None,
) -> Response[SubmittedView]:
    """Ask for a person's yes. On the disk before it is answered."""
    who, desk = get_caller(request), context.desk
    length = len(await request.body())
    if length <= _SMALL:
        new = make_request(data, desk.masker.mask_submission)
    else:
        new = await context.turns.run(who.credential, make_request, data, desk.outside_masker.mask)
    try:
        stored = await asyncio.wrap_future(desk.submit(who, new, make_key(key, data)))
    except RateLimited as limited:
        await refuse_load(context, request, who, limited, action=new.action, digest=new.digest)
    receipt = show_receipt(stored, context.addresses, data.timeout_seconds)
    return Response(receipt, status_code=200 if receipt.status == "auto_approved" else 202)


@post(
    "/confirm/{id:str}/execute",
    status_code=200,
    opt=needs("agent:submit"),
    responses=answers(400, 401, 403, 404, 409, 410, 413, 415, 503),
)
async def execute(
    context: Shared, request: StrictRequest, id: FromPath[str], data: JSONBody[ExecuteBody]
) -> ExecutedView:
    """Take an approval up, right before the deed. Other arguments than approved are refused, and so is a second time."""
    details = {} if data.details is None else data.details
    action = check_action(data.action)
    done = await asyncio.wrap_future(context.desk.execute(get_caller(request), id, data.token, action, details))
    assert done.executed is not None
    return ExecutedView(id, done.status, show_time(done.executed), done.digest)


@delete(
    "/confirm/{id:str}",
    status_code=200,
    opt=needs("agent:submit"),
    responses=answers(401, 403, 404, 409, 410, 413, 415, 503),
)
async def withdraw(context: Shared, request: StrictRequest, id: FromPath[str]) -> RequestView:
    """Take a request back. Only its requester can, and only while it waits."""
    who, desk = get_caller(request), context.desk
    gone = await asyncio.wrap_future(desk.change(lambda tx: decide.withdraw(tx, who, id)))
    return show_request(desk, gone, who, context.addresses)


@get("/whitelist", opt=needs("admin"), responses=answers(401, 403, 503))
async def list_allowances(context: Shared) -> AllowanceList:
    """What is allowed without asking, for now."""
    return AllowanceList([show_allowance(entry) for entry in context.desk.allowances()])


@post("/whitelist", opt=needs("admin"), responses=answers(400, 401, 403, 409, 413, 415, 503))
async def add_allowance(context: Shared, request: StrictRequest, data: JSONBody[AllowBody]) -> AllowanceView:
    """Allow one action in one session for a while; never a high-risk one."""
    new = make_allowance(data, context.desk.masker)
    return show_allowance(await asyncio.wrap_future(context.desk.allow(new, get_caller(request))))


@delete("/whitelist/{id:str}", opt=needs("admin"), responses=answers(401, 403, 404, 413, 415, 503))
async def remove_allowance(context: Shared, request: StrictRequest, id: FromPath[str]) -> None:
    """Ask again from now on."""
    await asyncio.wrap_future(context.desk.disallow(id, get_caller(request)))


API_ONLY = [submit, withdraw, execute, list_allowances, add_allowance, remove_allowance]
