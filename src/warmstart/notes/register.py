"""The notes of a store: read, written with the decisions about them, and indexed for hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import structs

from warmstart.config import Settings
from warmstart.errors import Refused
from warmstart.notes.types import Note, NoteKind, NoteStatus
from warmstart.store import Store
from warmstart.store.notes import NoteDecision, NoteRow, NoteStore

RULES = 6  # raise it when marks, sightings or digests change their results: digests are then made anew
POLICY, PERSON = "policy", "person"

_decoder = msgspec.json.Decoder(Note)
encode = msgspec.json.Encoder(order="deterministic").encode


class NoteRegister:
    """The notes of a store, with recorded decisions."""

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float]) -> None:
        self._store = store
        self._notes = NoteStore(store)
        self._settings = settings
        self._clock = clock

    def list(
        self,
        *,
        project: str | None = None,
        scope: str | None = None,
        kind: NoteKind | None = None,
        status: NoteStatus | None = None,
    ) -> tuple[Note, ...]:
        """Return the notes that match, those that matter most first."""
        bodies = self._notes.bodies(project, scope, kind, status)
        notes = [note for _id, body in bodies if (note := _decode(body)) is not None]
        return tuple(sorted(notes, key=lambda note: (note.project, -note.rate, -note.support, note.id)))

    def _find(self, name: str) -> Note:
        note_id, body = self._notes.find(name)
        note = _decode(body)
        if note is None:
            raise Refused(f"note {note_id}: its record cannot be read; `warmstart learn` makes it again")
        return note

    def _put(self, note: Note, old: Note | None, now: float) -> None:
        if old == note:
            return
        self._notes.put(NoteRow(note.id, note.project, note.scope, note.kind, note.status, encode(note).decode(), now))
        if old is None or old.status != note.status:
            self._notes.decide(NoteDecision(note.id, note.status, POLICY, note.decision, now))

    def _retire(self, note: Note, by: str, reason: str, now: float) -> Note:
        retired = structs.replace(note, status="retired", decision=f"{by}: {reason}")
        self._notes.put(NoteRow(note.id, note.project, note.scope, note.kind, "retired", encode(retired).decode(), now))
        self._notes.decide(NoteDecision(note.id, "retired", by, reason, now))
        return retired

    def write_indexes(self) -> None:
        """Write the index files that hooks read, one a project, and the map from folders to them."""
        from warmstart.notes.index_files import delete_indexes, write_folders, write_index

        home = self._settings.home
        paths = {
            (project, scope): write_index(home, project, notes, scope=scope, roots=self._notes.roots(project))
            for project, scope, notes in self._list_indexed()
        }
        folders = {root: paths[project, ""] for project, scope, root in self._notes.folders() if (project, "") in paths}
        write_folders(home, folders)
        delete_indexes(home, paths.values())

    def find_old_indexes(self) -> Sequence[str]:
        """Return the projects whose index file is missing or does not hold their notes as they are now."""
        from warmstart.notes.index_files import is_current

        home = self._settings.home
        return [
            project
            for project, scope, notes in self._list_indexed()
            if not is_current(home, project, notes, scope=scope, roots=self._notes.roots(project))
        ]

    def _list_indexed(self) -> Iterator[tuple[str, str, Sequence[Note]]]:
        """Yield each project and scope with the notes of its index."""
        rules = self.list(project="", status="active")
        for project, scope, _count in self._notes.projects():
            own = [note for note in self.list(project=project, status="active") if note.scope in (scope, "*")]
            known = () if scope else rules
            if own or known:
                yield project, scope, [*own, *known]


def _decode(body: str) -> Note | None:
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
