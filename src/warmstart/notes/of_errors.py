"""The notes about errors of past sessions: they share the cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from warmstart.calls.checks import runs_check
from warmstart.insights.types import KnownNote
from warmstart.model import PastSession
from warmstart.notes.digest import read_command
from warmstart.notes.marks import Place
from warmstart.notes.mine import make_id
from warmstart.notes.sightings import find_sightings
from warmstart.notes.types import Note


class ErrorNotes:
    """Finds the notes about failed calls."""

    def __init__(self, notes: Iterable[Note], find_roots: Callable[[str], Sequence[str]]) -> None:
        """`find_roots` returns the folders of a project, to which paths are relative."""
        kept = [note for note in notes if note.status != "retired"]
        self._by_id = {note.id: note for note in kept}
        self._shared = {(note.project, note.key): note for note in kept if note.scope == "*"}
        self._find_roots = find_roots
        self._roots: dict[str, Sequence[str]] = {}

    def find(self, session: PastSession, index: int) -> list[KnownNote]:
        """Return the notes with the causes of a session's failed call."""
        if not self._by_id:
            return []
        call, project = session.calls[index], session.project or ""
        if project not in self._roots:
            self._roots[project] = self._find_roots(project)
        own = (session.root,) if session.root else ()
        place = Place(session.folder or session.project, (*self._roots[project], *own))
        line = read_command(call)
        notes = []
        for sighting in find_sightings(call, place, is_check=bool(line) and runs_check(line or "")):
            rule = make_id("", "", f"{session.agent}:{sighting.key}")
            note = (
                self._by_id.get(make_id(project, session.scope, sighting.key))
                or self._shared.get((project, sighting.key))
                or (None if session.scope else self._by_id.get(rule))
            )
            if note is not None:
                notes.append(KnownNote(id=note.id, status=note.status, shown=note.shown))
        return notes
