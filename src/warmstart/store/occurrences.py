"""Trials of notes in the store: what was drawn at the first occurrence of a note in a session, and how that went."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from warmstart.store.protocol import Store


class NoteOccurrence(Struct, frozen=True, kw_only=True, gc=False):
    """The first call of a session that a note would speak at."""

    note: str
    session: str  # the agent's own id
    experiment: str = ""  # "" is the standing holdout
    withheld: bool
    share: float  # probability of being withheld
    action: str  # that was or would have been taken: tell, correct, stop, after
    expected: float | None = None  # failure rate without the note, from history before the draw
    call_id: str = ""  # "" where the agent names none
    at: float = 0.0  # seconds since the epoch
    failed: bool | None = None  # whether the call or its retry failed; None: not known
    worked: bool | None = None  # whether a later call of the same tool worked; None: not known


class OccurrenceStore:
    """The trials of notes of a store. Make changes inside the store's `writing()`."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def put(self, occurrences: Iterable[NoteOccurrence]) -> None:
        """Store what was drawn. Only the first occurrence of a note in a session counts."""
        rows = [
            (*(one.note, one.session, one.experiment, int(one.withheld), one.share), *(one.action, one.expected))
            + (one.call_id, one.at)
            for one in occurrences
        ]
        self.store.run_many("put_occurrence", rows)

    def find(self, note: str | None = None, experiment: str | None = None) -> list[NoteOccurrence]:
        """Return occurrences in order of time."""
        return [_make(row) for row in self.store.rows("occurrences", (note, experiment))]

    def has_unread(self) -> bool:
        """Return whether an occurrence is new, or a transcript that may hold it."""
        return bool(self.store.rows("has_unread")[0][0])

    def take_unread(self) -> list[tuple[NoteOccurrence, str, str]]:
        """Return the occurrences whose transcript is new or has changed, once, each with the session's key and content."""
        unread = [(_make(row[:11]), row[11], row[12]) for row in self.store.rows("unread_occurrences")]
        self.store.run("clear_unread")
        return unread

    def close(self, one: NoteOccurrence, transcript: str, content: str) -> None:
        """Store how an occurrence went, and by which content of its transcript."""
        failed, worked = (None if value is None else int(value) for value in (one.failed, one.worked))
        self.store.run("close_occurrence", (failed, worked, transcript, content, one.note, one.session))

    def move(self, old: str, new: str) -> None:
        """Move the occurrences of a note to another id. Those that are there stay."""
        self.store.run("rename_occurrences", (new, old))
        self.store.run("delete_occurrences", (old,))

    def named_in_brief(self) -> set[tuple[str, str]]:
        """Return the occurrences, as note and session, that the session's brief had named."""
        return {(note, session) for note, session in self.store.rows("occurrences_in_brief")}


def _make(row: tuple[object, ...]) -> NoteOccurrence:
    note, session, experiment, withheld, share, action, expected, call_id, at, failed, worked = row
    assert isinstance(share, float) and isinstance(at, float) and isinstance(expected, float | None)
    return NoteOccurrence(
        note=str(note),
        session=str(session),
        experiment=str(experiment),
        withheld=bool(withheld),
        share=share,
        action=str(action),
        expected=expected,
        call_id=str(call_id),
        at=at,
        failed=None if failed is None else bool(failed),
        worked=None if worked is None else bool(worked),
    )
