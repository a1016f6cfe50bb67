"""What the routes share, and the guards that identify the caller.

A route names in `scopes` the scopes that grant access (any one is enough), or says that it is open. A route that says
nothing refuses everybody.

The page needs two secrets. Cookies ignore ports: any other server on this machine, even an agent's own, gets the cookie
of a person who opens it. So the CSRF token, which the browser keeps for our address and port alone, must come with
every request, even one that only reads.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard
from msgspec import Struct, field

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.failures import FailureLog
from warmstart.confirm.errors import NotAllowed, RateLimited, Unauthorized
from warmstart.confirm.model import Identity
from warmstart.confirm.tokens.access import SESSION_LASTS, BrowserSession
from warmstart.confirm.tokens.tokens import is_same
from warmstart.doors.web.companions import Companions
from warmstart.doors.web.turns import LARGE, CallerTurns
from warmstart.doors.web.views import Addresses
from warmstart.doors.web.waiters import Waiters

COOKIE = "warmstart_confirm"
HTTPS_COOKIE = f"__Host-{COOKIE}"  # browsers accept it only over HTTPS and only from this very host
CSRF_HEADER = "X-CSRF-Token"
_LIMITED = "rate_limited"  # the audit's event
_TARPIT = 1.0  # seconds before a refusal in a flood is answered
OPEN: dict[str, Any] = {"scopes": None}
_UNKNOWN = "this token is not known here: it is of another database, was revoked or has expired"
Connection = ASGIConnection[Any, Any, Any, Any]


class RouteContext(Struct, frozen=True):
    """What every route needs."""

    desk: Desk
    addresses: Addresses
    waiters: Waiters
    failures: FailureLog
    turns: CallerTurns = field(default_factory=CallerTurns)
    companions: Companions | None = None  # None in tests of the routes alone


Shared = NamedDependency[RouteContext]  # the type of a route's parameter


def needs(*scopes: str, counted: bool = False) -> dict[str, Any]:
    """Return a route's `opt`: any one of these scopes grants access. `counted`: the limits per token are checked before
    the body is read."""
    return {"scopes": scopes, "counted": counted}


def get_caller(connection: Connection) -> Identity:
    """Return the identity that the guard has found."""
    identity = connection.state.who
    assert isinstance(identity, Identity)
    return identity


def guard_by_token(context: RouteContext) -> Guard:
    """Make the API's guard: only a bearer token grants access."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        who = find_bearer(context, connection)
        if who is None:
            sent = "Authorization" in connection.headers
            refusal = Unauthorized(_UNKNOWN if sent else None)
            await _refuse(context, connection, "auth_failed", "nobody", refusal, sent=sent)
        await _check_scopes(context, connection, who, scopes)
        if handler.opt.get("counted"):
            await _check_load(context, connection, who)

    return check


def guard_by_session(context: RouteContext) -> Guard:
    """Make the page's guard: every request needs the cookie of a login and its CSRF token."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        session = find_session(context, connection)
        if session is None:
            refusal = Unauthorized("log in first: open the link that `warmstart confirm login` prints")
            await _refuse(context, connection, "auth_failed", "nobody", refusal, sent=bool(_read_cookie(connection)))
        if not is_same(connection.headers.get(CSRF_HEADER, ""), context.desk.csrf_token(session.identity.credential)):
            wrong = NotAllowed(f"the header {CSRF_HEADER} is missing or wrong; log in again", code="bad_csrf")
            await _refuse(context, connection, "access_refused", session.identity, wrong)
        await _check_scopes(context, connection, session.identity, scopes)

    return check


def find_bearer(context: RouteContext, connection: Connection) -> Identity | None:
    given = connection.headers.getall("Authorization", [])
    kind, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return context.desk.find_identity(secret.strip()) if kind.lower() == "bearer" else None


def is_still_known(context: RouteContext, connection: Connection, who: Identity) -> bool:
    """Return whether the caller's login or token is still valid: a stream may outlast it."""
    if who.by_session:
        return find_session(context, connection) is not None
    return find_bearer(context, connection) is not None


def find_session(context: RouteContext, connection: Connection) -> BrowserSession | None:
    secret = _read_cookie(connection)
    return context.desk.find_session(secret) if secret else None


def _read_cookie(connection: Connection) -> str:
    return connection.cookies.get(HTTPS_COOKIE) or connection.cookies.get(COOKIE, "")


def name_cookie(address: str) -> str:
    """Return the cookie's name on a page at that address."""
    return HTTPS_COOKIE if address.startswith("https:") else COOKIE


def make_cookie(context: RouteContext, connection: Connection, secret: str) -> Cookie:
    """Make the login's cookie, which no script can read and no other site can make a browser send. The browser's `Origin`
    says whether it uses HTTPS: there may be a proxy in between, and the daemon may also be reached without one."""
    name = name_cookie(connection.headers.get("Origin", context.addresses.page))
    return Cookie(
        key=name,
        value=secret,
        path="/",
        httponly=True,
        samesite="strict",
        secure=name == HTTPS_COOKIE,
        max_age=SESSION_LASTS if secret else 0,
    )


def _wanted_scopes(connection: Connection, handler: BaseRouteHandler) -> tuple[str, ...] | None:
    """Return the scopes that grant access; None if the route is open. OPTIONS is open; the framework answers it."""
    if connection.scope["method"] == "OPTIONS":  # type: ignore[typeddict-item]
        return None
    scopes: tuple[str, ...] | None = handler.opt.get("scopes", ())
    return scopes


async def _check_scopes(context: RouteContext, connection: Connection, who: Identity, scopes: tuple[str, ...]) -> None:
    if not (who.scopes & {*scopes, "admin"}):
        wanted = " or ".join(scopes) or "nobody"
        await _refuse(context, connection, "access_refused", who, NotAllowed(f"a token for {wanted} is needed"))
    connection.state.who = who
    connection.state.turns = context.turns


async def _check_load(context: RouteContext, connection: Connection, who: Identity) -> None:
    """Refuse a submission beyond the limits of its token before its body is read. A small one of a token that was not
    refused lately is not checked here: the writer does so anyway."""
    desk, announced = context.desk, connection.headers.get("Content-Length", "")
    size = int(announced) if announced.isascii() and announced.isdigit() and len(announced) < 10 else 0
    if 0 < size <= LARGE and not context.failures.has_noted(_LIMITED, who, _name_route(connection)):
        return
    limited = desk.check_load(who, size)
    if limited is not None and not desk.has_answer(who, connection.headers.get("Idempotency-Key", "")):
        await refuse_load(context, connection, who, limited)


def _name_route(connection: Connection) -> str:
    return f"{connection.scope['method']} {connection.scope['path_template']}"  # type: ignore[typeddict-item]


async def refuse_load(
    context: RouteContext, connection: Connection, who: Identity, limited: RateLimited, **details: Any
) -> NoReturn:
    """Record the refusal and raise it. One of many within the minute is only counted, and answered late: a program that
    floods the daemon waits instead of keeping it busy."""
    recorded = context.failures.note(
        _LIMITED, who, _name_route(connection), why=limited.code, limit=limited.limit, **details
    )
    if recorded is not None:
        await asyncio.wrap_future(recorded)
    else:
        await asyncio.sleep(_TARPIT)
    raise limited


async def _refuse(
    context: RouteContext, connection: Connection, event: str, who: Identity | str, error: Exception, sent: bool = True
) -> NoReturn:
    """Record the failure and raise its error. A request without any secret is not recorded: it is no attempt."""
    if sent:
        why = getattr(error, "code", "")
        recorded = context.failures.note(
            event, who, _name_route(connection), why=why, path=connection.scope["path"][:200]
        )
        if recorded is not None:
            await asyncio.wrap_future(recorded)
    raise error
