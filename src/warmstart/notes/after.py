"""The causes of a failed call, as keys of notes. Loaded only after failures: it needs the judges."""

from __future__ import annotations

from typing import Any

from warmstart.calls.checks import runs_check
from warmstart.judging.outcome import judge_result
from warmstart.model import Outcome, PastCall, Signal, ToolCall
from warmstart.notes.digest import read_command
from warmstart.notes.marks import Place, find_marks
from warmstart.notes.sightings import find_sightings

_TEXT = 8_000  # characters of a result that are judged; of a longer one its two ends


def find_causes(call: dict[str, Any], result: str, place: Place, *, failed: bool | None = None) -> list[str] | None:
    """Return the keys of a failed call's causes; None if it did not fail. `failed`: what the agent says about it."""
    text = result if len(result) <= _TEXT else result[: _TEXT // 2] + "\n" + result[-_TEXT // 2 :]
    made = ToolCall("", call["tool"], call["arguments"])
    outcome = judge_result(made, text, Signal(failed=True) if failed else None)
    if failed is False or (outcome.status != "error" and not failed) or outcome.status in ("denied", "rejected"):
        return None
    past = PastCall(
        ordinal=0, call_id="", tool=made.tool, arguments=made.arguments, excerpt=text, outcome=_as_error(outcome)
    )
    line = read_command(past)
    marks = find_marks(made.tool, made.arguments if line is None else {"command": line}, place)
    sightings = find_sightings(past, place, is_check=bool(line) and runs_check(line or ""), marks=marks)
    return [sighting.key for sighting in sightings]


def _as_error(outcome: Outcome) -> Outcome:
    return outcome if outcome.status == "error" else Outcome("error", "flag")
