"""What the hooks saw, joined with what Hermes' database says.

The database cannot tell a call that a plugin blocked from one that failed, and calls whose arguments were no JSON leave
nothing in it. So a blocked or cancelled call counts as such, not as an error, and a refused one is counted as the
error that it was. Everything else is believed as the database has it.
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
from warmstart.ingest.read import Scored, scan, score
from warmstart.ingest.records import Recorder
from warmstart.model import Outcome, Session, Step, ToolCall, ToolResult
from warmstart.pipeline import Warmstart

_STOPPED = {BLOCKED: Outcome("rejected", "flag"), CANCELLED: Outcome("cancelled", "flag")}
_REFUSED = Outcome("error", "flag", "arguments")
_REFUSED_MARK = "_refused"  # behind the id of a call that is not in the database
_NOT_KEPT = "(arguments that were no JSON; Hermes keeps none of them)"


def join(ws: Warmstart, database: Path, seen: Iterable[SeenCall]) -> int:
    """Correct the remembered sessions. How many were not yet correct."""
    by_session: defaultdict[str, list[SeenCall]] = defaultdict(list)
    for one in seen:
        by_session[one.session].append(one)
    open = {session: found for session, found in by_session.items() if not _is_joined(ws, session, found)}
    if not open:
        return 0  # the usual case: the database need not be read twice
    recorder = Recorder(ws.settings.secrets)
    corrected = 0
    for scored in scan(Source(database), ws.settings.tools):
        if sightings := open.get(scored.session.id):
            corrected += _correct(ws, recorder, scored, sightings)
    return corrected


def _is_joined(ws: Warmstart, session: str, sightings: Sequence[SeenCall]) -> bool:
    """Whether what is remembered of a session agrees with what the hooks saw."""
    try:
        calls = ws.store.calls_of(ws.store.find_session(session).key)
    except NotFound:
        return True  # of another database, or of a session without a trace
    except Refused:
        return False
    stopped = Counter(call.call_id for call in calls if call.status in ("rejected", "cancelled"))
    failed = Counter(call.call_id.removesuffix(_REFUSED_MARK) for call in calls if call.status == "error")
    wanted = Counter(one.call for one in sightings if one.status in _STOPPED)
    refused = Counter(one.call for one in sightings if one.status == INVALID)
    return wanted <= stopped and refused <= failed


def _correct(ws: Warmstart, recorder: Recorder, scored: Scored, sightings: Sequence[SeenCall]) -> bool:
    """The corrected session is kept under the fingerprint of the uncorrected one: to read the database again without
    the hooks' journal changes nothing, as long as the session has not grown."""
    session = correct(scored.session, sightings)
    now = time.time()
    plain = recorder.record(scored.session, scored.score, now)
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
    """The session as it really went."""
    steps = list(session.steps)
    for one in sorted(sightings, key=lambda one: one.at):
        if one.status in _STOPPED:
            _stop(steps, one)
        elif one.status == INVALID:
            _add_refused(steps, one)
    return structs.replace(session, steps=tuple(steps))


def _stop(steps: list[Step], one: SeenCall) -> None:
    """Agents use ids again: of several calls it is the one whose answer came closest in time."""
    places = [at for at, step in enumerate(steps) if isinstance(step, ToolResult) and step.call_id == one.call]
    if places:
        at = min(places, key=lambda place: abs((steps[place].at or 0.0) - one.at))
        result = steps[at]
        assert isinstance(result, ToolResult)
        steps[at] = structs.replace(result, outcome=_STOPPED[one.status])


def _add_refused(steps: list[Step], one: SeenCall) -> None:
    """After the third try Hermes does keep the call: that one is there already."""
    for at, step in enumerate(steps):
        if not isinstance(step, ToolResult) or step.call_id != one.call:
            continue
        if step.outcome.status == "error" and step.outcome != _REFUSED:
            steps[at] = structs.replace(step, outcome=_REFUSED)
            return
    name = one.call + _REFUSED_MARK
    later = next((at for at, step in enumerate(steps) if (step.at or 0.0) > one.at), len(steps))
    call = ToolCall(name, one.tool, _NOT_KEPT, one.at)
    steps[later:later] = [call, ToolResult(name, "Invalid JSON arguments", _REFUSED, one.at)]
