"""Notes of other people: they arrive proposed, never replace what is in use, and keep their source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import structs

from warmstart import lazy_regex as re
from warmstart.notes.register import NoteRegister
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Note, NoteSource
from warmstart.store.notes import NoteDecision, make_note_id

BUNDLE = "bundle"  # who proposes a retirement: neither a person here nor the policy
NoteChange = Literal["new", "updated", "same", "known", "conflict", "older"]


class ReceivedNotes(NoteRegister):
    """Stores notes of others beside your own. Call it inside the store's `writing()`, then `write_indexes`."""

    def receive(self, notes: Iterable[Note]) -> list[tuple[Note, NoteChange]]:
        """Store notes of others as proposed, each with its source. The same again changes nothing.

        A note that says something else about the same cause than one in use is kept beside it: a conflict.
        """
        known = {note.id: note for note in self.list()}
        now = self._clock()
        received = []
        for note in notes:
            stored, change = self._place(note, known)
            if change in ("new", "updated", "conflict", "same") and known.get(stored.id) != stored:
                self._put(stored, known.get(stored.id), now)
                known[stored.id] = stored
            received.append((stored, change))
        return received

    def _place(self, note: Note, known: dict[str, Note]) -> tuple[Note, NoteChange]:
        """Return a received note as it is to be stored, and what changes by it."""
        name = note.key if note.project else f"{note.agent}:{note.key}"
        source = note.source or NoteSource(place="")
        fresh = structs.replace(
            note,
            id=make_note_id(note.project, "", name),
            scope="",
            status="proposed",
            decision=f"imported from {source.place}" + (f", signed by {source.signer}" if source.signer else ""),
            suspicions=find_suspicions(note),
            shown=0,
            recurred=0,
            errors=(),
            sessions=(),
        )
        old = known.get(fresh.id)
        if old is None:
            return fresh, "new"
        if is_same_statement(old, fresh):
            return self._refresh(old, fresh)
        if _has_same_origin(old, fresh) and source.revision < (old.source or source).revision:
            return old, "older"
        if _has_same_origin(old, fresh) and old.status == "proposed":
            return fresh, "updated"
        variant = "\0".join((name, source.key, source.place if not source.key else "", *_state(fresh)))
        beside = structs.replace(fresh, id=make_note_id(note.project, "", variant))
        if beside.id in known:
            return self._refresh(known[beside.id], beside)
        return structs.replace(beside, decision=f"{beside.decision}; differs from note {old.id}"), "conflict"

    @staticmethod
    def _refresh(old: Note, fresh: Note) -> tuple[Note, NoteChange]:
        """Return a stored note with newer counts of its signer; its status stays."""
        if old.source is None or not _has_same_origin(old, fresh):
            return old, "known"
        if fresh.source is not None and fresh.source.revision < old.source.revision:
            return old, "older"
        counts = ("support", "people", "failures", "against", "rate")
        newer = {name: getattr(fresh, name) for name in counts}
        return structs.replace(old, source=fresh.source, **newer), "same"

    def propose_retirement(self, note: Note, reason: str) -> bool:
        """Record that its source retired a note, for a person to decide; False if that was proposed before."""
        if any(one.by == BUNDLE and one.reason == reason for one in self._notes.decisions(note.id)):
            return False
        self._notes.decide(NoteDecision(note.id, note.status, BUNDLE, reason, self._clock()))
        return True

    def find_proposed_retirement(self, note: Note) -> str | None:
        """Return why its source retired a note, while nobody here has decided since."""
        last = next(reversed(self._notes.decisions(note.id)), None)
        return last.reason if last and last.by == BUNDLE and note.status != "retired" else None


def is_same_statement(one: Note, other: Note) -> bool:
    """Return whether two notes say the same. Numbers in their sentences are counts, which differ."""
    return _state(one) == _state(other)


def _state(note: Note) -> tuple[str, ...]:
    return note.kind, note.trigger, note.fix, re.sub(r"\d+", "0", note.text)


def _has_same_origin(one: Note, other: Note) -> bool:
    if one.source is None or other.source is None:
        return False
    return (one.source.place, one.source.key) == (other.source.place, other.source.key)
