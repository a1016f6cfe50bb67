"""The application: pages, their JSON, their files, logins, actions and events, behind the gate."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
from litestar import Litestar, MediaType, Request, Response, get, post
from litestar.datastructures import Cookie
from litestar.exceptions import HTTPException
from litestar.response import ServerSentEvent, ServerSentEventMessage
from litestar.types import ASGIApp
from msgspec import Struct

from warmstart.confirm.tokens.tokens import is_same
from warmstart.doors.pages.insights.page import STYLE as INSIGHTS_STYLE
from warmstart.doors.pages.markup import element
from warmstart.doors.ui.access import LOGIN_LASTS, Access, Viewer
from warmstart.doors.ui.actions import ActionDone, run_action
from warmstart.doors.ui.figures import Figures
from warmstart.doors.ui.layout import GUEST_PAGES, Content, make_note, make_page, make_warning
from warmstart.doors.ui.live import LiveFeed
from warmstart.doors.ui.pages.index import PAGES
from warmstart.doors.ui.request import PageRequest, find_page
from warmstart.doors.ui.stores import OpenStores
from warmstart.doors.ui.work import Work
from warmstart.doors.web.gate import Gate
from warmstart.errors import NotFound, Refused, StoreError, WarmstartError

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
TOKEN_HEADER = "X-Warmstart-Token"
_ASSETS = Path(__file__).with_name("assets")
_FILES = {
    "ui.css": (_ASSETS / "ui.css", "text/css; charset=utf-8"),
    "ui.js": (_ASSETS / "ui.js", "text/javascript; charset=utf-8"),
    "icon.svg": (_ASSETS / "icon.svg", "image/svg+xml"),
    "insights.css": (INSIGHTS_STYLE, "text/css; charset=utf-8"),
}
_HTML = "text/html; charset=utf-8"
_TITLES = {404: "Not found", 403: "Not for guests", 503: "The store cannot be read", 400: "This cannot be shown"}
_encode = msgspec.json.Encoder(enc_hook=str).encode
AnyRequest = Request[Any, Any, Any]


class UiParts(Struct, frozen=True, kw_only=True):
    """What the application answers with."""

    stores: OpenStores
    figures: Figures
    work: Work
    access: Access
    live: LiveFeed
    cookie: str  # its name


def make_app(parts: UiParts, hosts: Iterable[str], origins: Iterable[str]) -> ASGIApp:
    """Make the application, wrapped in the gate that the confirmation page has."""

    @get("/assets/{name:str}", sync_to_thread=False)
    def serve_file(request: AnyRequest) -> Response[bytes]:
        name = str(request.path_params["name"])
        if name not in _FILES:
            raise HTTPException(status_code=404, detail=f"no file {name}")
        path, kind = _FILES[name]
        return _answer(_read(path), kind)

    @get("/login", sync_to_thread=False)
    def log_in(request: AnyRequest) -> Response[bytes]:
        done = parts.access.log_in(request.query_params.get("code", ""), _find_host(request))
        if done is None:
            refusal = "This link was used before, is older than ten minutes, or belongs to another start of the server."
            return _refuse_login(refusal)
        secret, viewer = done
        start = "/" if viewer.role == "owner" else "/notes"
        answer = _answer(b"", _HTML, 303)
        answer.headers["Location"] = f"{start}#token={viewer.token}"
        answer.set_cookie(
            Cookie(
                key=parts.cookie,
                value=secret,
                path="/",
                httponly=True,
                samesite="strict",
                max_age=int(LOGIN_LASTS),
            )
        )
        return answer

    @get("/pending.json", sync_to_thread=False)
    def report_pending(request: AnyRequest) -> Response[bytes]:
        """Report how far a figure is, or the work."""
        if _find_viewer(parts, request) is None:
            return _refuse_login()
        figure = parts.figures.look_up(request.query_params.get("key", ""))
        work = parts.work.state
        return _answer_json({"figure": figure, "work": work})

    @get("/events")
    async def stream_events(request: AnyRequest) -> ServerSentEvent | Response[bytes]:
        viewer = _find_viewer(parts, request)
        if viewer is None or viewer.role != "owner":
            return _refuse_login()

        async def follow() -> AsyncIterator[ServerSentEventMessage]:
            async for event in parts.live.follow():
                yield ServerSentEventMessage(data=_encode(event).decode())

        return ServerSentEvent(follow())

    @get(["/", "/{path:path}"])
    async def serve_page(request: AnyRequest) -> Response[bytes]:
        viewer = _find_viewer(parts, request)
        if viewer is None:
            return _refuse_login()
        return await asyncio.to_thread(_serve, parts, viewer, request)

    @post("/do/{path:path}", status_code=200)
    async def act(request: AnyRequest) -> Response[bytes]:
        viewer = _find_viewer(parts, request)
        if viewer is None:
            return _answer_json({"error": "log in first: open the link that `warmstart ui` prints"}, 401)
        if viewer.role != "owner":
            return _answer_json({"error": "this link only reads"}, 403)
        if not is_same(request.headers.get(TOKEN_HEADER, ""), viewer.token):
            return _answer_json({"error": f"the header {TOKEN_HEADER} is missing or wrong; open a new link"}, 403)
        try:
            body = msgspec.json.decode(await request.body() or b"{}", type=dict[str, str])
        except (msgspec.DecodeError, RecursionError) as error:
            return _answer_json({"error": f"not an object of texts: {error}"}, 400)
        name = str(request.path_params["path"]).strip("/")
        return await asyncio.to_thread(_act, parts, name, body)

    app = Litestar(
        [serve_file, log_in, report_pending, stream_events, serve_page, act],
        exception_handlers={Exception: _answer_error},
        openapi_config=None,
        logging_config=None,
    )
    return Gate(app, hosts, origins, {})


def _serve(parts: UiParts, viewer: Viewer, request: AnyRequest) -> Response[bytes]:
    """Answer with a page or its JSON. A fault of the store is shown on the page; the other pages go on."""
    path = request.url.path.strip("/")
    if path.endswith(".json"):
        answer = _serve_named(parts, viewer, request, path.removesuffix(".json"), is_json=True)
        if answer.status_code != 404 or "/" not in path:
            return answer
        page = _serve_named(parts, viewer, request, path, is_json=False)  # of a thing whose name ends so
        return answer if page.status_code == 404 else page
    return _serve_named(parts, viewer, request, path, is_json=False)


def _serve_named(parts: UiParts, viewer: Viewer, request: AnyRequest, path: str, *, is_json: bool) -> Response[bytes]:
    section, _, name = path.partition("/")
    section = section or "home"
    query = {key: value for key, value in request.query_params.items() if isinstance(value, str)}
    try:
        if viewer.role != "owner" and section not in GUEST_PAGES:
            return _show_problem("This link only shows errors, notes and effects.", 403, viewer, is_json)
        page = find_page(PAGES, section, name)
        with parts.stores.borrow() as ws:
            asked = PageRequest(
                ws=ws,
                figures=parts.figures,
                work=parts.work,
                viewer=viewer,
                name=name,
                query=query,
                is_json=is_json,
            )
            try:
                value = page.load(asked)
            except Refused as error:
                if is_json or page.make_form is None:
                    raise
                content = Content(
                    title=_TITLES[400], body=[make_warning(str(error)), page.make_form(asked)], status=400
                )
            else:
                if is_json:
                    return _answer_json(page.describe(value))
                content = page.show(value, asked)
        return _answer(make_page(content, section, viewer), _HTML, content.status)
    except NotFound as error:
        return _show_problem(str(error), 404, viewer, is_json, section)
    except StoreError as error:
        return _show_problem(str(error), 503, viewer, is_json, section)
    except WarmstartError as error:
        return _show_problem(str(error), 400, viewer, is_json, section)


def _act(parts: UiParts, name: str, body: dict[str, str]) -> Response[bytes]:
    try:
        with parts.stores.borrow() as ws:
            done: ActionDone = run_action(name, ws, parts.work, body)
        return _answer_json(done)
    except NotFound as error:
        return _answer_json({"error": str(error)}, 404)
    except StoreError as error:
        return _answer_json({"error": str(error)}, 503)
    except WarmstartError as error:
        return _answer_json({"error": str(error)}, 400)


def _show_problem(text: str, status: int, viewer: Viewer, is_json: bool, section: str = "") -> Response[bytes]:
    if is_json:
        return _answer_json({"error": text}, status)
    body = [make_warning(text)]
    if status == 503:
        body.append(make_note("The other pages work as far as they do not need it. Settings shows the details."))
    content = Content(title=_TITLES.get(status, "A problem"), body=body, status=status)
    return _answer(make_page(content, section, viewer), _HTML, status)


def _refuse_login(why: str = "") -> Response[bytes]:
    text = element("p", {}, why, " Open the link that ", element("code", {}, "warmstart ui"), " prints.")
    return _answer(make_page(Content(title="Log in", body=[text]), "", None), _HTML, 401)


def _answer_error(request: AnyRequest, error: Exception) -> Response[bytes]:
    """Answer faults of ours without their details, which may hold parts of transcripts."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    text = str(error.detail) if isinstance(error, HTTPException) else f"a fault of Warmstart: {type(error).__name__}"
    return _answer_json({"error": text}, status)


def _find_viewer(parts: UiParts, request: AnyRequest) -> Viewer | None:
    return parts.access.find(request.cookies.get(parts.cookie, ""), _find_host(request))


def _find_host(request: AnyRequest) -> str:
    """Return the host that the browser named; the gate has checked that it is one of ours."""
    return urlsplit(f"//{request.headers.get('host', '')}").hostname or ""


def _answer(body: bytes, kind: str, status: int = 200) -> Response[bytes]:
    headers = {"Content-Security-Policy": CONTENT_POLICY}
    return Response(body, status_code=status, media_type=kind, headers=headers)


def _answer_json(value: Any, status: int = 200) -> Response[bytes]:
    return _answer(_encode(value), MediaType.JSON, status)


@cache
def _read(path: Path) -> bytes:
    return path.read_bytes()
