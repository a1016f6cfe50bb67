"""The approval page: plain files, served as they are on the page's own port. No build step, nothing from elsewhere.

Whatever an agent wrote reaches the page as JSON and becomes text nodes there, never markup: see `text.js`.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from litestar import Request, Response, get
from litestar.exceptions import NotFoundException

__all__ = ["HANDLERS", "PATHS", "PageFile", "read_page_file"]

_SHELL = "page.html"  # one document for every address: the scripts tell them apart
_ASSETS = (
    "page.css",
    "icon.svg",
    "icon-waiting.svg",
    "main.js",
    "api.js",
    "arguments.js",
    "clock.js",
    "deciding.js",
    "events.js",
    "json.js",
    "listing.js",
    "live.js",
    "requests.js",
    "showing.js",
    "text.js",
)
_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_NAMES = {"/": _SHELL, "/login": _SHELL} | {f"/assets/{name}": name for name in _ASSETS}

PATHS = tuple(_NAMES)  # every address that the page owns


class PageFile(NamedTuple):
    """What is answered for an address of the page."""

    content_type: str
    body: bytes


@cache
def read_page_file(path: str) -> PageFile | None:
    """The file behind an address; None where the page has none. Only names listed here are ever opened."""
    name = _NAMES.get(path)
    if name is None:
        return None
    return PageFile(_KINDS[name.rpartition(".")[2]], files(__name__).joinpath(name).read_bytes())


@get(list(PATHS), include_in_schema=False, sync_to_thread=False)
def serve_file(request: Request[Any, Any, Any]) -> Response[bytes]:
    """Open to everyone who may reach the port: by themselves the files show nothing."""
    found = read_page_file(request.url.path)
    if found is None:
        raise NotFoundException
    return Response(found.body, media_type=found.content_type)


HANDLERS = [serve_file]  # what the daemon's server adds to the page's port
