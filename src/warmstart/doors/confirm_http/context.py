"""What the routes share, and who is asking them.

A route says in `scopes` which of them let in (any one is enough), or that it is open; a route that says nothing lets
nobody in.
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

from warmstart.confirm.access import SESSION_LASTS, Session
from warmstart.confirm.desk import Desk
from warmstart.confirm.errors import NotAllowed, Unauthorized
from warmstart.confirm.failures import FailureLog
from warmstart.confirm.model import Identity
from warmstart.confirm.tokens import is_same
from warmstart.doors.confirm_http.views import Addresses
from warmstart.doors.confirm_http.waiting import Waiters

COOKIE = "warmstart_confirm"
CSRF_HEADER = "X-CSRF-Token"
OPEN: dict[str, Any] = {"scopes": None}
Connection = ASGIConnection[Any, Any, Any, Any]


class Context(Struct, frozen=True):
    """What every route needs."""

    desk: Desk
    addresses: Addresses
    waiters: Waiters
    failures: FailureLog


Shared = NamedDependency[Context]  # as routes take it


def needs(*scopes: str) -> dict[str, Any]:
    """For a route's `opt`: one of these scopes lets in."""
    return {"scopes": scopes}


def who_asks(connection: Connection) -> Identity:
    """Set by the guard."""
    identity = connection.state.who
    assert isinstance(identity, Identity)
    return identity


def guard_by_token(context: Context) -> Guard:
    """For the API: a bearer token, and nothing else."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        who = find_bearer(context, connection)
        if who is None:
            sent = "Authorization" in connection.headers
            await _fail(context, connection, "auth_failed", "nobody", Unauthorized(), sent=sent)
        await _check_scopes(context, connection, who, scopes)

    return check


def guard_by_session(context: Context) -> Guard:
    """For the page: the cookie of a login, and the CSRF token with everything that changes something."""

    async def check(connection: Connection, handler: BaseRouteHandler) -> None:
        if (scopes := _wanted_scopes(connection, handler)) is None:
            return
        session = find_session(context, connection)
        if session is None:
            wanted = Unauthorized("log in first: open the link that `warmstart confirm login` prints")
            await _fail(context, connection, "auth_failed", "nobody", wanted, sent=COOKIE in connection.cookies)
        csrf = context.desk.csrf_token(session.identity.credential)
        if connection.scope["method"] not in ("GET", "HEAD") and not is_same(  # type: ignore[typeddict-item]
            connection.headers.get(CSRF_HEADER, ""), csrf
        ):
            wrong = NotAllowed(f"the header {CSRF_HEADER} is missing or wrong; load the page again", code="bad_csrf")
            await _fail(context, connection, "access_refused", session.identity, wrong)
        await _check_scopes(context, connection, session.identity, scopes)

    return check


def find_bearer(context: Context, connection: Connection) -> Identity | None:
    given = connection.headers.getall("Authorization", [])
    kind, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return context.desk.find_identity(secret.strip()) if kind.lower() == "bearer" else None


def is_still_known(context: Context, connection: Connection, who: Identity) -> bool:
    """For streams, which outlast a logout."""
    if who.by_session:
        return find_session(context, connection) is not None
    return find_bearer(context, connection) is not None


def find_session(context: Context, connection: Connection) -> Session | None:
    secret = connection.cookies.get(COOKIE, "")
    return context.desk.find_session(secret) if secret else None


def make_cookie(context: Context, secret: str) -> Cookie:
    """For this page alone: no script reads it, no other site makes a browser send it."""
    return Cookie(
        key=COOKIE,
        value=secret,
        path="/",
        httponly=True,
        samesite="strict",
        secure=context.addresses.page.startswith("https:"),
        max_age=SESSION_LASTS if secret else 0,
    )


def _wanted_scopes(connection: Connection, handler: BaseRouteHandler) -> tuple[str, ...] | None:
    """None: open. Which methods an address knows is open too; it is the framework that answers OPTIONS."""
    if connection.scope["method"] == "OPTIONS":  # type: ignore[typeddict-item]
        return None
    scopes: tuple[str, ...] | None = handler.opt.get("scopes", ())
    return scopes


async def _check_scopes(context: Context, connection: Connection, who: Identity, scopes: tuple[str, ...]) -> None:
    if not (who.scopes & {*scopes, "admin"}):
        wanted = " or ".join(scopes) or "nobody"
        await _fail(context, connection, "access_refused", who, NotAllowed(f"a token for {wanted} is needed"))
    connection.state.who = who


async def _fail(
    context: Context, connection: Connection, event: str, who: Identity | str, error: Exception, sent: bool = True
) -> NoReturn:
    """Record and refuse. Who sent nothing at all has not tried anything."""
    if sent:
        why = getattr(error, "code", "")
        noted = context.failures.note(event, who, why=why, path=connection.scope["path"][:200])
        if noted is not None:
            await asyncio.wrap_future(noted)
    raise error
