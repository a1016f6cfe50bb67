"""The approval page: static files served on the page's own port, without a build step or third-party code.

An agent's texts reach the page as JSON and become text nodes there, never markup: see `text.js`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException

__all__ = ["HANDLERS", "PATHS", "PageFile", "read_page_file"]

_SHELL = "page.html"  # one document for every address; main.js reads the address
_ASSETS = (
    "page.css",
    "views.css",
    "icon-192.png",
    "icon-512.png",
    "icon.svg",
    "icon-waiting.svg",
    "main.js",
    "api.js",
    "arguments.js",
    "audit.js",
    "clock.js",
    "deciding.js",
    "denying.js",
    "devices.js",
    "events.js",
    "json.js",
    "listing.js",
    "live.js",
    "passkeys.js",
    "push.js",
    "requests.js",
    "showing.js",
    "text.js",
)
_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "webmanifest": "application/manifest+json",
}
_AT_THE_TOP = {  # a service worker governs only the addresses below its own
    "/manifest.webmanifest": "manifest.webmanifest",
    "/service-worker.js": "service-worker.js",
}
_NAMES = {"/": _SHELL, "/login": _SHELL} | _AT_THE_TOP | {f"/assets/{name}": name for name in _ASSETS}

PATHS = tuple(_NAMES)  # every address of the page


class PageFile(NamedTuple):
    """A file of the page."""

    content_type: str
    body: bytes


@cache
def read_page_file(path: str) -> PageFile | None:
    """Return the file behind an address, or None. Only the files listed here are ever opened."""
    name = _NAMES.get(path)
    if name is None:
        return None
    return PageFile(_KINDS[name.rpartition(".")[2]], files(__name__).joinpath(name).read_bytes())


@get(list(PATHS), include_in_schema=False, sync_to_thread=False)
def serve_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Serve a file to everyone who can reach the port: the files show nothing by themselves."""
    file = read_page_file(request.url.path)
    if file is None:
        raise NotFoundException
    return Response(file.body, media_type=file.content_type)


HANDLERS = [serve_file]  # the page's routes
