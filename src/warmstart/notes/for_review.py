"""Notes that a review proposes: those that a session met and that wait for a person. Mining finds them, never a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from warmstart.model import MetNote, PastSession
from warmstart.notes.digest import digest_session, read_calls
from warmstart.notes.learning import ALONE
from warmstart.notes.library import NoteLibrary
from warmstart.notes.marks import Place
from warmstart.notes.mine import add_up
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note


class ReviewedNotes:
    """Finds the notes of a reviewed session, and approves the one that a person chose."""

    def __init__(self, library: NoteLibrary, find_roots: Callable[[str], Sequence[str]]) -> None:
        """`find_roots` returns the folders of a project, to which paths are relative."""
        self._library = library
        self._find_roots = find_roots

    def find_waiting(self, past: PastSession) -> list[MetNote]:
        """Return the notes about causes that a session met, without those that somebody has decided about."""
        if not past.project:
            return []
        roots = self._find_roots(past.project)
        calls = self._find_calls(past, roots)
        known = {note.id: note for note in self._library.list(project=past.project)}
        mined = add_up(past.project, [digest_session(past, roots=roots)], past.scope).make_notes(min_support=1)
        waiting = [known.get(note.id, note) for note in mined if note.kind in ALONE or note.id in known]
        return [_describe(note, calls[note.key]) for note in waiting if note.status == "proposed" and note.key in calls]

    def _find_calls(self, past: PastSession, roots: Sequence[str]) -> dict[str, list[int]]:
        """Return by cause the indexes of the session's failed calls."""
        place = Place(past.folder or past.project, (*roots, *((past.root,) if past.root else ())))
        calls: dict[str, list[int]] = {}
        for index, entry in enumerate(read_calls(past, place)):
            for sighting in entry.sightings:
                calls.setdefault(sighting.key, []).append(index)
        return calls

    def is_stored(self, note: str) -> bool:
        """Return whether a note can be approved."""
        return any(known.id == note for known in self._library.list())

    def learn(self, project: str) -> None:
        """Learn the notes of a project from its stored sessions."""
        self._library.learn(project=project)

    def approve(self, note: str) -> None:
        """Approve a note for a person."""
        self._library.approve(note)


def _describe(note: Note, calls: Sequence[int]) -> MetNote:
    note = structs.replace(note, suspicions=find_suspicions(note))
    return MetNote(
        id=note.id,
        project=note.project,
        kind=note.kind,
        subject=note.subject,
        text=note.text,
        calls=tuple(calls),
        suspicions=note.suspicions,
    )
