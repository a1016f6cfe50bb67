"""What the routes share, and who is asking them.

A route says in `scopes` which of them let in (any one is enough), or that it is open; a route that says nothing lets
nobody in.

On the page it takes two secrets. Cookies know no ports: whatever else listens on this machine, an agent's own server
too, gets the cookie of a person who opens it. So the CSRF token, which the browser keeps for our address and port
alone, must come with every request, also with one that only reads.
"""

from __future__ import annotations

import asyncio
from typing import Any, NoReturn

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie
from litestar.di import NamedDependency
from litestar.handlers import BaseRouteHandler
from litestar.types import Guard
from msgspec import Struct

from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.failures import FailureLog
from warmstart.confirm.errors import NotAllowed, Unauthorized
from warmstart.confirm.model import Identity
from warmstart.confirm.tokens.access import SESSION_LASTS, BrowserSession
from warmstart.confirm.tokens.tokens import is_same
from warmstart.doors.web.views import Addresses
from warmstart.doors.web.waiters import Waiters

COOKIE = "warmstart_confirm"
HTTPS_COOKIE = f"__Host-{COOKIE}"  # browsers take it over HTTPS only, and from no other host of the same domain
CSRF_HEADER = "X-CSRF-Token"
OPEN: dict[str, Any] = {"scopes": None}
_UNKNOWN = "this token is not known here: of another database, revoked or too old"
Connection = ASGIConnection[Any, Any, Any, Any]


class RouteContext(Struct, frozen=True):
    """What every route needs."""

    desk: Desk
    addresses: Addresses
    waiters: Waiters
    failures: FailureLog


Shared = NamedDependency[RouteContext]  # as routes take it


def needs(*scopes: str) -> dict[str, Any]:
    """For a route's `opt`: one of these scopes lets in."""
    return {"scopes": scopes}


def who_asks(connection: Connection) -> Identity:
    """Set by the guard."""
    identity = connection.state.who
    assert isinstance(identity, Identity)
    return identity


def guard_by_token(context: RouteContext) -> Guard:
    """For the API: a bearer token, and nothing else."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        who = find_bearer(context, connection)
        if who is None:
            sent = "Authorization" in connection.headers
            wrong = Unauthorized(_UNKNOWN if sent else None)
            await _fail(context, connection, "auth_failed", "nobody", wrong, sent=sent)
        await _check_scopes(context, connection, who, scopes)

    return check


def guard_by_session(context: RouteContext) -> Guard:
    """For the page: the cookie of a login and its CSRF token, both with everything."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        session = find_session(context, connection)
        if session is None:
            wanted = Unauthorized("log in first: open the link that `warmstart confirm login` prints")
            await _fail(context, connection, "auth_failed", "nobody", wanted, sent=bool(_read_cookie(connection)))
        if not is_same(connection.headers.get(CSRF_HEADER, ""), context.desk.csrf_token(session.identity.credential)):
            wrong = NotAllowed(f"the header {CSRF_HEADER} is missing or wrong; log in again", code="bad_csrf")
            await _fail(context, connection, "access_refused", session.identity, wrong)
        await _check_scopes(context, connection, session.identity, scopes)

    return check


def find_bearer(context: RouteContext, connection: Connection) -> Identity | None:
    given = connection.headers.getall("Authorization", [])
    kind, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return context.desk.find_identity(secret.strip()) if kind.lower() == "bearer" else None


def is_still_known(context: RouteContext, connection: Connection, who: Identity) -> bool:
    """For streams, which outlast a logout."""
    if who.by_session:
        return find_session(context, connection) is not None
    return find_bearer(context, connection) is not None


def find_session(context: RouteContext, connection: Connection) -> BrowserSession | None:
    secret = _read_cookie(connection)
    return context.desk.find_session(secret) if secret else None


def _read_cookie(connection: Connection) -> str:
    return connection.cookies.get(HTTPS_COOKIE) or connection.cookies.get(COOKIE, "")


def name_cookie(address: str) -> str:
    """What it is called on a page at that address."""
    return HTTPS_COOKIE if address.startswith("https:") else COOKIE


def make_cookie(context: RouteContext, connection: Connection, secret: str) -> Cookie:
    """No script reads it, no other site makes a browser send it. Whether HTTPS is used the browser says, in `Origin`:
    a proxy may stand between, and the same daemon may be reached without."""
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
    """None: open. Which methods an address knows is open too; it is the framework that answers OPTIONS."""
    if connection.scope["method"] == "OPTIONS":  # type: ignore[typeddict-item]
        return None
    scopes: tuple[str, ...] | None = handler.opt.get("scopes", ())
    return scopes


async def _check_scopes(context: RouteContext, connection: Connection, who: Identity, scopes: tuple[str, ...]) -> None:
    if not (who.scopes & {*scopes, "admin"}):
        wanted = " or ".join(scopes) or "nobody"
        await _fail(context, connection, "access_refused", who, NotAllowed(f"a token for {wanted} is needed"))
    connection.state.who = who


async def _fail(
    context: RouteContext, connection: Connection, event: str, who: Identity | str, error: Exception, sent: bool = True
) -> NoReturn:
    """Record and refuse. Who sent nothing at all has not tried anything."""
    if sent:
        route = f"{connection.scope['method']} {connection.scope['path_template']}"  # type: ignore[typeddict-item]
        why = getattr(error, "code", "")
        noted = context.failures.note(event, who, route, why=why, path=connection.scope["path"][:200])
        if noted is not None:
            await asyncio.wrap_future(noted)
    raise error
