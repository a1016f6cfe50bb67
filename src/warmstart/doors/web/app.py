"""The two applications: one for programs with tokens, one for people with a browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from litestar import Litestar, Router
from litestar.di import Provide
from litestar.openapi.spec import SecurityScheme
from litestar.routes import HTTPRoute
from litestar.types import ASGIApp, ControllerRouterHandler, Guard

from warmstart.confirm.desk.desk import Desk
from warmstart.doors.pages.confirm import HANDLERS
from warmstart.doors.web.answers import answer_error
from warmstart.doors.web.bodies import StrictRequest
from warmstart.doors.web.context import CSRF_HEADER, RouteContext, guard_by_session, guard_by_token, name_cookie
from warmstart.doors.web.document import App, Document, serve_document
from warmstart.doors.web.gate import Gate
from warmstart.doors.web.proof import SignedAnswers, make_prover
from warmstart.doors.web.routes import SHARED
from warmstart.doors.web.routes_api import API_ONLY
from warmstart.doors.web.routes_devices import DEVICES
from warmstart.doors.web.routes_login import PAGE_ONLY
from warmstart.doors.web.routes_push import PUSHES
from warmstart.doors.web.settings import ListeningPlace

_TOKEN = {"token": SecurityScheme(type="http", scheme="bearer")}
_CSRF = SecurityScheme(
    type="apiKey",
    name=CSRF_HEADER,
    security_scheme_in="header",
    description="`csrf_token` of the answer to `POST /login`. The cookie without it is refused: 403 `bad_csrf`.",
)


def make_api(context: RouteContext) -> Litestar:
    """Make the application for agents, scripts and the command line."""
    routes = [*SHARED, *API_ONLY]
    return _make(context, guard_by_token(context), routes, Document(routes, "Warmstart confirmations", _TOKEN))


def make_page(context: RouteContext) -> Litestar:
    """Make the application for people. The page's files are open to all: they show nothing by themselves."""
    routes = [*SHARED, *PAGE_ONLY, *DEVICES, *PUSHES]
    cookie = SecurityScheme(type="apiKey", name=name_cookie(context.addresses.page), security_scheme_in="cookie")
    document = Document(routes, "Warmstart confirmations: the page", {"session": cookie, "csrf": _CSRF})
    return _make(context, guard_by_session(context), routes, document, HANDLERS)


def _make(
    context: RouteContext,
    guard: Guard,
    routes: Sequence[ControllerRouterHandler],
    document: Document,
    files: Sequence[ControllerRouterHandler] = (),
) -> Litestar:
    def provide_context() -> RouteContext:
        return context

    router = Router(
        "/",
        route_handlers=[*routes, serve_document(document)],
        guards=[guard],
        dependencies={"context": Provide(provide_context, sync_to_thread=False)},
    )
    handlers: dict[Any, Any] = {Exception: answer_error}
    return App(
        [router, *files],
        request_class=StrictRequest,
        exception_handlers=handlers,
        before_send=[make_prover(context.desk)],
        logging_config=None,
        openapi_config=None,
    )


def protect(app: Litestar, place: ListeningPlace, desk: Desk, is_crowded: Callable[[], bool]) -> ASGIApp:
    """Wrap an application in the gate, and sign what leaves it."""
    methods = {route.path_format: sorted(route.methods) for route in app.routes if isinstance(route, HTTPRoute)}
    return SignedAnswers(Gate(app, place.hosts, place.origins, methods, is_crowded), desk, place.leads_here)
