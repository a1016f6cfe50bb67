"""The notes about errors of past sessions: they share the cause."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from warmstart.insights.errors import PlacedCause
from warmstart.insights.types import KnownNote
from warmstart.notes.mine import make_id
from warmstart.notes.types import Note


class ErrorNotes:
    """Finds the notes about the causes of failed calls."""

    def __init__(self, notes: Iterable[Note]) -> None:
        kept = [note for note in notes if note.status != "retired"]
        self._by_id = {note.id: note for note in kept}
        self._shared = {(note.project, note.key): note for note in kept if note.scope == "*"}
        self._made: dict[str, list[tuple[int, Note]]] = {}
        for note in kept:
            for error, origin in note.errors:
                self._made.setdefault(error, []).append((origin, note))

    def find(self, met: PlacedCause) -> KnownNote | None:
        """Return the note about a cause: of the project and scope, shared with all scopes, or a rule of the agent."""
        project, scope, agent, cause = met
        note = (
            self._by_id.get(make_id(project, scope, cause))
            or self._shared.get((project, cause))
            or (None if scope else self._by_id.get(make_id("", "", f"{agent}:{cause}")))
        )
        return _describe(note) if note is not None else None

    def find_made(self, error: str, origins: Collection[int]) -> KnownNote | None:
        """Return the note that a person made of an error; its origin keeps it within the sessions that are looked at."""
        note = next((note for origin, note in self._made.get(error, ()) if origin in origins), None)
        return _describe(note) if note is not None else None


def _describe(note: Note) -> KnownNote:
    return KnownNote(id=note.id, status=note.status, shown=note.shown)
