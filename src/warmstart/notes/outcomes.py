"""How an occurrence of a note went, read from the transcript in the same way whether the note was shown or withheld. Pure.

The window begins with the call itself where advice can change that call (`stop`, `correct`), else behind it, because the
text arrives with the call's result. A call in the window counts as failed if it failed with the note's cause, or if it has
the note's trigger or its fix and failed: a wrong fix counts, a check that ran and failed by its findings does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warmstart.calls.fixes import ran_check
from warmstart.notes.digest import REACH, DigestedCall, state_form
from warmstart.notes.types import Note
from warmstart.store.occurrences import NoteOccurrence

SKEW = 10.0  # seconds by which a transcript's clock may be behind ours
_AT_ONCE = frozenset(("stop", "correct"))  # actions that change the call itself


class OccurrenceOutcome(Struct, frozen=True):
    """How an occurrence went."""

    failed: bool  # the call or its retry
    worked: bool  # a call of the same tool, in the same window


def read_outcome(calls: Sequence[DigestedCall], note: Note, occurrence: NoteOccurrence) -> OccurrenceOutcome | None:
    """Return how an occurrence went; None if its call is not in the transcript."""
    at = _find_call(calls, note, occurrence)
    if at is None:
        return None
    first = at if occurrence.action in _AT_ONCE else at + 1
    window = calls[first : at + 1 + REACH]
    own = calls[at].call.tool
    return OccurrenceOutcome(
        failed=any(_has_failed(entry, note) for entry in window),
        worked=any(entry.call.tool == own and entry.call.outcome.status in ("ok", "unknown") for entry in window),
    )


def _find_call(calls: Sequence[DigestedCall], note: Note, occurrence: NoteOccurrence) -> int | None:
    """Return the place of the occurrence's call: by its id, else the first one since the draw that the note is about."""
    if occurrence.call_id:
        places = [at for at, entry in enumerate(calls) if entry.call.call_id == occurrence.call_id]
        if places:
            return places[0]
    since = occurrence.at - SKEW
    for at, entry in enumerate(calls):
        is_late = entry.call.at is None or entry.call.at >= since
        if is_late and (note.trigger in entry.marks or _has_cause(entry, note)):
            return at
    return None


def _has_failed(entry: DigestedCall, note: Note) -> bool:
    if entry.call.outcome.status != "error":
        return False
    if _has_cause(entry, note):
        return True
    return (note.trigger in entry.marks or _uses_fix(entry, note)) and not ran_check(entry.call)


def _has_cause(entry: DigestedCall, note: Note) -> bool:
    return any(sighting.key == note.key for sighting in entry.sightings)


def _uses_fix(entry: DigestedCall, note: Note) -> bool:
    fix = note.fix.removesuffix(" first")
    if not fix:
        return False
    if note.kind == "path":
        return f"path:{fix}" in entry.marks
    return any(state_form(words).startswith(fix) for words in entry.commands)
