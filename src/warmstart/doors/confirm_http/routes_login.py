"""Routes on the page port only: come in by a link, see who one is, go."""

from __future__ import annotations

import asyncio

from litestar import Response, get, post
from litestar.params import JSONBody

from warmstart.confirm.access import Session
from warmstart.confirm.errors import Unauthorized
from warmstart.doors.confirm_http.answers import answers
from warmstart.doors.confirm_http.bodies import LoginBody, StrictRequest
from warmstart.doors.confirm_http.context import OPEN, Context, Shared, find_session, make_cookie, needs, who_asks
from warmstart.doors.confirm_http.views import SessionView, show_time

_ANYBODY = ("approver:decide", "audit:read", "agent:submit")


def _show(context: Context, session: Session) -> SessionView:
    who = session.identity
    csrf = context.desk.csrf_token(who.credential)
    return SessionView(who.subject, sorted(who.scopes), csrf, show_time(session.expires))


@post("/login", status_code=200, opt=OPEN, responses=answers(400, 401, 403, 413, 415, 503))
async def log_in(context: Shared, data: JSONBody[LoginBody]) -> Response[SessionView]:
    """Use a login link up. Only by POST: who merely looks at the link, as mail scanners do, does not spend it."""
    try:
        session = await asyncio.wrap_future(context.desk.log_in(data.code))
    except Unauthorized:
        if (noted := context.failures.note("login_failed", "nobody")) is not None:
            await asyncio.wrap_future(noted)
        raise
    return Response(_show(context, session), cookies=[make_cookie(context, session.secret)])


@get("/session", opt=needs(*_ANYBODY), responses=answers(401, 403, 503))
async def get_session(context: Shared, request: StrictRequest) -> SessionView:
    """Who is logged in, and the CSRF token for what they change."""
    session = find_session(context, request)
    if session is None:
        raise Unauthorized
    return _show(context, session)


@post("/logout", status_code=204, opt=needs(*_ANYBODY), responses=answers(401, 403, 413, 415, 503))
async def log_out(context: Shared, request: StrictRequest) -> Response[None]:
    """End the session."""
    await asyncio.wrap_future(context.desk.log_out(who_asks(request)))
    return Response(None, status_code=204, cookies=[make_cookie(context, "")])


PAGE_ONLY = [log_in, get_session, log_out]
