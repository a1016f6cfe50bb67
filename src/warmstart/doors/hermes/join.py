"""Correct sessions from Hermes' database by what the hooks saw.

The database does not distinguish a call that a plugin blocked from one that failed, and it keeps no trace of calls whose
arguments were not JSON. Here a blocked or cancelled call becomes one, not an error, and a refused call is added as an
error. Everything else stays as the database has it.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import structs

from warmstart.doors.hermes.journal import BLOCKED, CANCELLED, INVALID, SeenCall
from warmstart.errors import NotFound, Refused
from warmstart.formats.source import Source
from warmstart.ingest.places import add_place
from warmstart.ingest.read import Scored, scan, score
from warmstart.ingest.records import Recorder
from warmstart.model import Outcome, Session, Step, ToolCall, ToolResult
from warmstart.pipeline import Warmstart

_STOPPED = {BLOCKED: Outcome("denied", "flag"), CANCELLED: Outcome("cancelled", "flag")}
_REFUSED = Outcome("error", "flag", "arguments")
_REFUSED_MARK = "_refused"  # behind the id of a call that is not in the database
_NOT_KEPT = "(arguments that were not JSON; Hermes does not keep them)"


def join(ws: Warmstart, database: Path, seen: Iterable[SeenCall]) -> int:
    """Correct the stored sessions; return how many needed it."""
    by_session: defaultdict[str, list[SeenCall]] = defaultdict(list)
    for call in seen:
        by_session[call.session].append(call)
    wrong = {session: calls for session, calls in by_session.items() if not _is_joined(ws, session, calls)}
    if not wrong:
        return 0  # the usual case: the database need not be read twice
    recorder = Recorder(ws.settings.secrets, ws.settings.home)
    corrected = 0
    for scored in scan(Source(database), ws.settings.tools):
        if sightings := wrong.get(scored.session.id):
            corrected += _correct(ws, recorder, scored, sightings)
    return corrected


def _is_joined(ws: Warmstart, session: str, sightings: Sequence[SeenCall]) -> bool:
    """Say whether a stored session agrees with what the hooks saw."""
    try:
        calls = ws.store.calls_of(ws.store.find_session(session).key)
    except NotFound:
        return True  # it is in another database, or left no trace
    except Refused:
        return False
    stopped = Counter(call.call_id for call in calls if call.status in ("rejected", "denied", "cancelled"))
    failed = Counter(call.call_id.removesuffix(_REFUSED_MARK) for call in calls if call.status == "error")
    seen_stopped = Counter(seen.call for seen in sightings if seen.status in _STOPPED)
    seen_refused = Counter(seen.call for seen in sightings if seen.status == INVALID)
    return seen_stopped <= stopped and seen_refused <= failed


def _correct(ws: Warmstart, recorder: Recorder, scored: Scored, sightings: Sequence[SeenCall]) -> bool:
    """Store the corrected session under the fingerprint of the uncorrected one: reading the database again without the
    hooks' journal then changes nothing, until the session grows."""
    placed = add_place(ws.store, scored.session)
    session = correct(placed, sightings)
    now = time.time()
    plain = recorder.record(placed, scored.score, now)
    record = recorder.record(session, score(session, ws.settings.tools), now)
    known = ws.store.calls_of(record.session.key)
    if [call.status for call in known] == [call.status for call in record.calls]:
        return False
    with ws.store.writing():
        ws.store.put_session(record.session, record.calls, record.spent)
        kept = structs.replace(record.session, digest=plain.session.digest)
        ws.store.put_session(kept, record.calls, record.spent)
    return True


def correct(session: Session, sightings: Sequence[SeenCall]) -> Session:
    """Return the session with the outcomes that the hooks saw."""
    steps = list(session.steps)
    for seen in sorted(sightings, key=lambda seen: seen.at):
        if seen.status in _STOPPED:
            _mark_stopped(steps, seen)
        elif seen.status == INVALID:
            _add_refused(steps, seen)
    return structs.replace(session, steps=tuple(steps))


def _mark_stopped(steps: list[Step], seen: SeenCall) -> None:
    """Mark the call as stopped. Agents reuse ids: of several calls, take the one whose result is closest in time."""
    places = [at for at, step in enumerate(steps) if isinstance(step, ToolResult) and step.call_id == seen.call]
    if places:
        at = min(places, key=lambda place: abs((steps[place].at or 0.0) - seen.at))
        result = steps[at]
        assert isinstance(result, ToolResult)
        if result.outcome.status != "rejected":  # blocked because a person said no: their words are in the result
            steps[at] = structs.replace(result, outcome=_STOPPED[seen.status])


def _add_refused(steps: list[Step], seen: SeenCall) -> None:
    """Add the refused call, or mark it: after the third attempt Hermes does keep it."""
    for at, step in enumerate(steps):
        if not isinstance(step, ToolResult) or step.call_id != seen.call:
            continue
        if step.outcome.status == "error" and step.outcome != _REFUSED:
            steps[at] = structs.replace(step, outcome=_REFUSED)
            return
    name = seen.call + _REFUSED_MARK
    later = next((at for at, step in enumerate(steps) if (step.at or 0.0) > seen.at), len(steps))
    call = ToolCall(name, seen.tool, _NOT_KEPT, seen.at)
    steps[later:later] = [call, ToolResult(name, "Invalid JSON arguments", _REFUSED, seen.at)]
