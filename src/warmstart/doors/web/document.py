"""The OpenAPI document: made by Litestar from the routes, then made exact where it cannot know: which bodies are closed,
which routes are open, which answers are streams of events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from litestar import Litestar, Request, Response, get
from litestar.di import Provide
from litestar.openapi.config import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme
from litestar.plugins import PluginProtocol
from litestar.plugins.core import MsgspecDIPlugin
from litestar.types import ControllerRouterHandler

from warmstart import __version__
from warmstart.doors.web import bodies
from warmstart.doors.web.context import OPEN

_CLOSED = [
    kind.__name__
    for kind in (bodies.SubmitBody, bodies.DecideBody, bodies.ExecuteBody, bodies.AllowBody, bodies.LoginBody)
]
_EVENTS = {"text/event-stream": {"schema": {"type": "string"}}}
_HTML = {"200": {"description": "the page", "content": {"text/html": {"schema": {"type": "string"}}}}}
_LOGIN_PAGE = {
    "summary": "Login page",
    "description": "What a login link opens. Its code stays in the browser until the page posts it.",
    "operationId": "LoginPage",
    "security": [],
}


class App(Litestar):
    """Where pydantic is installed, for whatever reason, Litestar loads it at every start, a quarter of a second; here
    all types are msgspec's."""

    @staticmethod
    def _get_default_plugins(plugins: list[PluginProtocol]) -> list[PluginProtocol]:
        return [*plugins, MsgspecDIPlugin()]


class Document:
    """Made when somebody asks for it: a daemon that starts has better things to do."""

    def __init__(
        self, routes: Sequence[ControllerRouterHandler], title: str, schemes: dict[str, SecurityScheme]
    ) -> None:
        self._routes = routes
        self._title = title
        self._schemes = schemes
        self._body = b""

    def read(self) -> bytes:
        self._body = self._body or msgspec.json.encode(self._make())
        return self._body

    def _make(self) -> dict[str, Any]:
        config = OpenAPIConfig(
            title=self._title,
            version=__version__,
            components=Components(security_schemes=dict(self._schemes)),
            security=[{name: [] for name in self._schemes}],  # all of them together
            use_handler_docstrings=True,
        )
        nothing = {"context": Provide(lambda: None, sync_to_thread=False)}  # this application serves nobody
        app = App(
            self._routes,
            openapi_config=config,
            logging_config=None,
            dependencies=nothing,
            request_class=bodies.StrictRequest,
        )
        document = app.openapi_schema.to_schema()
        for name, schema in document["components"]["schemas"].items():
            if name in _CLOSED:
                schema["additionalProperties"] = False
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                _complete(path, method, operation)
        if login := document["paths"].get("/login"):  # the page's own file stands at this address too
            login["get"] = _LOGIN_PAGE | {"responses": _HTML | {"403": login["post"]["responses"]["403"]}}
        return document


def _complete(path: str, method: str, operation: dict[str, Any]) -> None:
    answers = operation["responses"]
    for parameter in operation.get("parameters", []):
        if parameter["name"] in ("since", "wait"):
            parameter["schema"]["minimum"] = 0  # which Litestar takes for none
    match method, path:
        case _, "/health" | "/login":
            operation["security"] = []
        case "get", "/events":
            answers["200"]["content"] = _EVENTS
        case "get", "/confirm/{id}":
            answers["200"]["content"] |= _EVENTS
        case "post", "/confirm":
            answers["200"] = answers["202"] | {"description": "allowed without asking"}


def serve_document(document: Document) -> ControllerRouterHandler:
    @get("/openapi.json", opt=OPEN, include_in_schema=False, sync_to_thread=False)
    def read_document(request: Request[Any, Any, Any]) -> Response[bytes]:
        return Response(document.read(), media_type="application/json")

    return read_document
