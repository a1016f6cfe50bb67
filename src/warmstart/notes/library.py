"""The notes of a store: learned beside templates, decided about, shown, and measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct, structs

from warmstart.errors import Refused
from warmstart.notes.briefs import ProjectBriefs
from warmstart.notes.effect import MOST, EffectReader, NoteEffects, Recurrence
from warmstart.notes.learning import NoteLearner
from warmstart.notes.mine import make_id
from warmstart.notes.note_trials import NoteTrial
from warmstart.notes.publish import Published, prepare
from warmstart.notes.register import PERSON, RULES, encode
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note, NoteStatus
from warmstart.scopes import SHARED
from warmstart.store.notes import NoteDecision, NoteRow, Showing


class ShownNote(Struct, frozen=True, kw_only=True):
    """A note with its decisions and what became of sessions that were shown it."""

    note: Note
    decisions: tuple[NoteDecision, ...]
    sessions: tuple[str, ...]  # that were shown it
    before: Recurrence  # sessions that met it before it was first shown
    since: Recurrence
    trial: NoteTrial | None = None  # None: never drawn


class NoteLibrary(NoteLearner, ProjectBriefs):
    """Learns notes, shows them, takes a person's decisions, and writes briefs."""

    # Deciding

    def show(self, name: str) -> ShownNote:
        """Return one note with its decisions and its recurrence, by its id or a unique prefix."""
        note = self._find(name)
        showings = [showing for showing in self._notes.showings(note.id) if showing.how != "wrong"]
        before, since = self._effects.count(note, min((showing.at for showing in showings), default=None))
        return ShownNote(
            note=note,
            decisions=tuple(self._notes.decisions(note.id)),
            sessions=tuple(dict.fromkeys(showing.session for showing in showings)),
            before=before,
            since=since,
            trial=self._find_trial(note.id),
        )

    def approve(self, name: str) -> Note:
        """Activate a note: a person's decision."""
        return self._set_status(name, "active", "approved")

    def retire(self, name: str) -> Note:
        """Retire a note: a person's decision."""
        return self._set_status(name, "retired", "retired")

    def edit(self, name: str, text: str) -> Note:
        """Replace the sentence of a note: a person's decision, which also activates it."""
        text = " ".join(text.split())
        if not text:
            raise Refused("a note needs a text")
        note = structs.replace(self._find(name), text=text)
        return self._store_decision(note, "active", "edited")

    def share(self, name: str) -> Note:
        """Let every scope of the project use a note: a person's decision."""
        note = structs.replace(self._find(name), scope=SHARED)
        return self._store_decision(note, note.status, "shared")

    def delete(self, name: str) -> Note:
        """Delete a note and what was recorded about it. Learning makes it again if sessions still support it."""
        note = self._find(name)
        with self._store.writing():
            self._notes.delete(note.id)
        self.write_indexes()
        return note

    def import_(self, notes: Iterable[Note], source: str) -> tuple[Note, ...]:
        """Store notes of others as proposed: a person approves them here."""
        now = self._clock()
        stored = []
        with self._store.writing():
            known = {note.id for note in self.list()}
            for note in notes:
                fresh = structs.replace(
                    note,
                    id=make_id(note.project, note.scope, note.key if note.project else f"{note.agent}:{note.key}"),
                    status="proposed",
                    decision=f"imported from {source}",
                    suspicions=find_suspicions(note),
                    shown=0,
                    recurred=0,
                )
                if fresh.id not in known:
                    self._put(fresh, None, now)
                    stored.append(fresh)
        return tuple(stored)

    def _set_status(self, name: str, status: NoteStatus, verb: str) -> Note:
        return self._store_decision(self._find(name), status, verb)

    def _store_decision(self, note: Note, status: NoteStatus, verb: str) -> Note:
        now = self._clock()
        decided = structs.replace(note, status=status, decision=f"{verb} by a person")
        with self._store.writing():
            self._notes.put(
                NoteRow(note.id, note.project, decided.scope, note.kind, status, encode(decided).decode(), now)
            )
            self._notes.decide(NoteDecision(note.id, status, PERSON, verb, now))
        self.write_indexes()
        return decided

    # Showing

    def publish(self, file: Path, *, project: str) -> Published:
        """Return a file with the project's active notes in its managed block; call write() on it to write it."""
        notes = [note for note in self.list(project=project, status="active") if note.scope in ("", SHARED)]
        return prepare(file, notes)

    def record(self, showings: Sequence[Showing]) -> None:
        """Record what sessions were shown."""
        with self._store.writing():
            self._notes.put_showings(showings)

    def weigh(self, most: int = MOST) -> NoteEffects:
        """Return what became of the notes that sessions were shown, the most shown first."""
        return self._effects.weigh(self.list(), most)

    @property
    def _effects(self) -> EffectReader:
        return EffectReader(self._notes, RULES)
