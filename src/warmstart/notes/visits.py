"""The visits of a project's sessions, read from their stored digests."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import structs

from warmstart.notes.touched import Visit, merge_visits
from warmstart.notes.types import MOST_FILES
from warmstart.notes.where import Where, find_where
from warmstart.store.notes import NoteStore

_visits = msgspec.json.Decoder(Visit)  # skips what else a digest holds


def look_up_where(
    notes: NoteStore,
    rules: int,
    text: str,
    *,
    project: str,
    scope: str = "",
    root: Path | None = None,
    limit: int = MOST_FILES,
) -> Where:
    """Return the files that requests like this one led to in a project, as one scope knows it."""
    bodies = [body for _key, body in notes.digests(project, scope, rules)]
    visits = [visit for body in bodies if body and (visit := _decode(body)) is not None]
    if bodies and not visits:
        return Where(project=project, silent="nothing is learned about this project yet; run: warmstart learn")
    here = root if root is not None and root.is_dir() else None
    where = find_where(merge_visits(visits), text, folder=str(root or ""), limit=limit, root=here)
    return structs.replace(where, project=project)


def _decode(body: str) -> Visit | None:
    try:
        return _visits.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
