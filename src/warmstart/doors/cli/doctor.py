"""`warmstart doctor`: is everything in order?"""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from warmstart import __version__
from warmstart.errors import SourceError, WarmstartError
from warmstart.formats import find_files
from warmstart.pipeline import Warmstart

_PARTS = ("apsw", "msgspec", "google-re2", "ahocorasick-rs", "zstandard", "click", "rich")


def examine(ws: Warmstart) -> dict[str, Any]:
    """Versions, agents' places with how many files each holds, and the store's health."""
    places = []
    for agent, path in ws.places():
        try:
            files = sum(1 for _file in find_files(path))
        except SourceError:
            files = 0
        places.append({"agent": agent, "path": str(path), "files": files})
    templates: dict[str, Any] = {}
    try:
        store = ws.store.health()
        healthy = store.get("integrity") == "ok"
        if healthy:
            templates = _templates(ws)
            healthy = not templates["unreadable"]
    except WarmstartError as error:
        store, healthy = {"error": str(error)}, False
    return {
        "versions": {"warmstart": __version__, "python": platform.python_version()} | {p: _version(p) for p in _PARTS},
        "home": str(ws.settings.home),
        "places": places,
        "store": store,
        "templates": templates,
        "healthy": healthy,
    }


def _templates(ws: Warmstart) -> dict[str, Any]:
    library = ws.templates
    found = library.find()
    by_status: dict[str, int] = {}
    for row, _template in found:
        by_status[row.status] = by_status.get(row.status, 0) + 1
    return by_status | {"unreadable": [f"{problem.path}: {problem.reason}" for problem in library.problems]}


def _version(part: str) -> str:
    try:
        return version(part)
    except PackageNotFoundError:
        return "not installed"
