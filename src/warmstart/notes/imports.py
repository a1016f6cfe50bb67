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

        What its signer changed waits for a decision, and then replaces the note that it changes. A note that says something
        else about the same cause than your own, one that you edited, or another signer's is kept beside it: a conflict.
        """
        known = {note.id: note for note in self.list()}
        now = self._clock()
        received = []
        for note in notes:
            stored, change = self._place(note, known)
            if change in ("new", "updated", "conflict", "same") and known.get(stored.id) != stored:
                self._put(stored, known.get(stored.id), now)
                known[stored.id] = stored
            if change == "same" and (update := known.pop(_name_update(stored), None)) and update.status == "proposed":
                self._notes.delete(update.id)  # its signer took the change back
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
        if not _has_same_origin(old, fresh) and (earlier := _find_beside(fresh, known)):
            old, fresh = earlier, structs.replace(fresh, id=earlier.id)
        if is_same_statement(old, fresh):
            return self._refresh(old, fresh)
        if _is_older(old, fresh):
            return old, "older"
        if _has_same_origin(old, fresh) and not old.is_written:
            return (fresh, "updated") if old.status == "proposed" else self._place_update(old, fresh, known)
        variant = "\0".join((name, source.key, source.place if not source.key else "", *_state(fresh)))
        beside = structs.replace(fresh, id=make_note_id(note.project, "", variant))
        if beside.id in known:
            return self._refresh(known[beside.id], beside)
        return structs.replace(beside, decision=f"{beside.decision}; differs from note {old.id}"), "conflict"

    def _place_update(self, old: Note, fresh: Note, known: dict[str, Note]) -> tuple[Note, NoteChange]:
        """Return what a signer changed in a note that is decided about, as a proposal of its own."""
        assert fresh.source is not None
        update = structs.replace(
            fresh,
            id=_name_update(structs.replace(fresh, id=old.id)),
            source=structs.replace(fresh.source, replaces=old.id),
            decision=f"{fresh.decision}; replaces note {old.id}: {old.text}",
        )
        waiting = known.get(update.id)
        if waiting is None or not is_same_statement(waiting, update):
            return (waiting, "older") if waiting and _is_older(waiting, update) else (update, "updated")
        return self._refresh(waiting, update)

    @staticmethod
    def _refresh(old: Note, fresh: Note) -> tuple[Note, NoteChange]:
        """Return a stored note with newer counts of its signer; its status stays."""
        if old.source is None or not _has_same_origin(old, fresh):
            return old, "known"
        if _is_older(old, fresh):
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


def _find_beside(fresh: Note, known: dict[str, Note]) -> Note | None:
    """Return the note that was kept beside another when this signer's file was received before."""
    source = fresh.source
    if source is None or not source.key or not source.file:
        return None
    for note in known.values():
        other = note.source
        if other and not other.replaces and (other.key, other.file) == (source.key, source.file):
            return note
    return None


def _name_update(note: Note) -> str:
    """Return the id of the change that its signer made in a note; there is one at a time."""
    source = note.source or NoteSource(place="")
    return make_note_id(note.project, "", f"{note.id}\0{source.key or source.place}")


def _has_same_origin(one: Note, other: Note) -> bool:
    """Return whether two notes are one signer's. An address can be written in many ways, a key in one."""
    if one.source is None or other.source is None:
        return False
    if one.source.key or other.source.key:
        return one.source.key == other.source.key
    return one.source.place == other.source.place


def _is_older(old: Note, fresh: Note) -> bool:
    """Return whether a stored note is a later one of the same signer. Another place must have more than its revision."""
    if old.source is None or fresh.source is None or not _has_same_origin(old, fresh):
        return False
    behind = old.source.revision - fresh.source.revision
    return behind > 0 or (behind == 0 and old.source.place != fresh.source.place and not is_same_statement(old, fresh))
