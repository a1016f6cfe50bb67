"""Find the session that a person names, also before anything was ingested."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from warmstart.doors.render.terminal import clean, progress_bar
from warmstart.errors import NotFound, Refused, SourceError
from warmstart.formats import find_files
from warmstart.pipeline import Warmstart

_LEAST = 6  # characters of an id that are looked for in file names
_MOST = 20  # files of that name that are read


def locate_session(ws: Warmstart, name: str) -> str:
    """Return the key of a session by its id or by the path of its transcript; its transcript is read if need be.

    A session that is not stored is looked for in the agents' usual places, by the names of the files there.
    """
    path = Path(name).expanduser()
    try:
        return ws.store.find_session(name).key
    except NotFound as error:
        if path.is_file():
            return _read_one(ws, path)
        if files := list(_find_files(ws, name))[:_MOST]:
            with progress_bar("reading") as progress:
                ws.ingest(*files, progress=progress)
            return ws.store.find_session(name).key
        raise NotFound(
            f"no session {name!r} is stored, nor in the agents' usual places; run: warmstart ingest"
        ) from error


def _read_one(ws: Warmstart, path: Path) -> str:
    report = ws.ingest(path)
    uri = path.resolve().as_uri()
    rows = [row for row in ws.sessions(limit=None) if row.source_uri.partition("#")[0] == uri]
    if len(rows) == 1:
        return rows[0].key
    if not rows:
        reason = report.problems[0].reason if report.problems else "it holds no session"
        raise Refused(f"{path}: {reason}")
    names = ", ".join(ws.store.shorten_id(row) for row in rows[:5])
    raise Refused(
        f"{path} holds {len(rows)} sessions; name one of them: {clean(names)}{' ...' if len(rows) > 5 else ''}"
    )


def _find_files(ws: Warmstart, name: str) -> Iterator[Path]:
    """Yield the transcripts whose file names contain the id: Claude Code and Codex name them so."""
    if len(name) < _LEAST or "/" in name:
        return
    for _agent, place in ws.places():
        try:
            yield from (file for file in find_files(place) if name in file.name)
        except SourceError:
            continue
