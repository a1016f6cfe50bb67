"""Routes on the page port only: log in by a link, show the login, log out."""

from __future__ import annotations

import asyncio

from litestar import Response, get, post
from litestar.params import JSONBody
from msgspec import Struct

from warmstart.confirm.errors import Unauthorized
from warmstart.confirm.tokens.access import BrowserSession
from warmstart.doors.web.answers import answers
from warmstart.doors.web.bodies import LoginBody, StrictRequest
from warmstart.doors.web.context import OPEN, RouteContext, Shared, find_session, get_caller, make_cookie, needs
from warmstart.doors.web.views import SessionView, Time, show_time

_ANYBODY = ("approver:decide", "audit:read", "agent:submit")


class WhoView(Struct, frozen=True):
    """Who is logged in. Without the CSRF token, which a holder of only the cookie must not get."""

    subject: str
    scopes: list[str]
    expires: Time


def _show_login(context: RouteContext, session: BrowserSession) -> SessionView:
    """Make the only answer that contains the CSRF token."""
    who = session.identity
    csrf = context.desk.csrf_token(who.credential)
    return SessionView(who.subject, sorted(who.scopes), csrf, show_time(session.expires))


@post("/login", status_code=200, opt=OPEN, responses=answers(400, 401, 403, 413, 415, 503))
async def log_in(context: Shared, request: StrictRequest, data: JSONBody[LoginBody]) -> Response[SessionView]:
    """Use a login link up. Only by POST: who merely looks at the link, as mail scanners do, does not spend it. The CSRF
    token in the answer goes with every later request, beside the cookie; it is told nowhere else."""
    try:
        session = await asyncio.wrap_future(context.desk.log_in(data.code))
    except Unauthorized:
        if (recorded := context.failures.note("login_failed", "nobody")) is not None:
            await asyncio.wrap_future(recorded)
        raise
    return Response(_show_login(context, session), cookies=[make_cookie(context, request, session.secret)])


@get("/session", opt=needs(*_ANYBODY), responses=answers(401, 403, 503))
async def get_session(context: Shared, request: StrictRequest) -> WhoView:
    """Who is logged in."""
    session = find_session(context, request)
    if session is None:
        raise Unauthorized
    who = session.identity
    return WhoView(who.subject, sorted(who.scopes), show_time(session.expires))


@post("/logout", status_code=204, opt=needs(*_ANYBODY), responses=answers(401, 403, 413, 415, 503))
async def log_out(context: Shared, request: StrictRequest) -> Response[None]:
    """End the session."""
    await asyncio.wrap_future(context.desk.log_out(get_caller(request)))
    return Response(None, status_code=204, cookies=[make_cookie(context, request, "")])


PAGE_ONLY = [log_in, get_session, log_out]
