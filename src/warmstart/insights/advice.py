"""Put the figures into a few sentences: what the windows mean, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence

from warmstart.excerpt import first
from warmstart.insights.types import Along, Insights, Rate, Recommendation, RepeatedError
from warmstart.plurals import format_count

_Advised = tuple[RepeatedError, Recommendation]
_MESSAGE = 70  # characters of an error message in a sentence


def explain_windows(along: Along) -> str:
    """Explain what the rates along the session show, and what they do not."""
    if not along.windows:
        return ""
    if along.followed_from is None:
        return (
            "Too few sessions were long enough to follow the same ones from start to end. Failing sessions tend to end "
            "early, so the windows hold different sessions and do not show how errors develop within one."
        )
    start, end = along.windows[0], along.windows[-1]
    assert start.followed is not None and end.followed is not None
    turn = along.followed_from
    course = f"went from {percent(start.followed.rate)} to {percent(end.followed.rate)}"
    reading = "These figures do not show whether longer sessions make fewer errors."
    if along.followed_sessions == along.sessions:
        change = _compare(start.followed, end.followed)
        return f"All {along.sessions} sessions reached turn {turn}. Their error rate {course}; {change}. {reading}"
    return (
        f"{along.followed_sessions} of {along.sessions} sessions reached turn {turn}. In turns {start.everyone.name} their "
        f"error rate was {percent(start.followed.rate)}, that of all sessions {percent(start.everyone.rate)}. Fewer sessions "
        f"are left in each window, so the rate of all sessions does not show how errors develop within one. The sessions "
        f"followed from the start {course}; {_compare(start.followed, end.followed)}. {reading}"
    )


def percent(share: float | None) -> str:
    """Write a share as a percentage; a dash if it is unknown."""
    if share is None:
        return "-"
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"


def advise(insights: Insights) -> tuple[Recommendation, ...]:
    """Return up to four pieces of advice that follow from the figures, each with the next command."""
    if not insights.overall.judged:
        return ()
    pieces: list[Recommendation] = []
    left = list(insights.repeated)  # each row is advised about once
    for advise_about in (_advise_deciding, _advise_learning, _advise_looking):
        if (advised := advise_about(left)) is not None:
            error, advice = advised
            pieces.append(advice)
            left = [
                other
                for other in left
                if other.number != error.number
                and (error.note is None or other.note is None or other.note.id != error.note.id)
            ]
    return (*pieces, _advise_measuring(insights))


def _compare(start: Rate, end: Rate) -> str:
    if start.low is None or start.high is None or end.low is None or end.high is None:
        return "there are too few sessions for intervals"
    if end.low > start.high:
        return "their error rate rose"
    if end.high < start.low:
        return "their error rate fell"
    return "the intervals overlap, so this shows no change"


def _advise_deciding(errors: Sequence[RepeatedError]) -> _Advised | None:
    """Offer the note that waits about the error that was seen in most sessions."""
    waiting = [(error, error.note) for error in errors if error.note and error.note.status == "proposed"]
    if not waiting:
        return None
    error, note = max(waiting, key=lambda pair: (pair[0].sessions, pair[0].count))
    return error, Recommendation(
        text=f"{_name(error)} was met in {format_count(error.sessions, 'session')}. A note about it waits "
        f"for your decision; read it with: warmstart notes show {note.id}.",
        command=f"warmstart notes approve {note.id}",
        note=note.id,
    )


def _advise_learning(errors: Sequence[RepeatedError]) -> _Advised | None:
    fixed = [(error, fix) for error in errors for fix in error.fixes if fix.how != "retry"]
    if not fixed:
        return None
    most, fix = max(fixed, key=lambda pair: (pair[1].sessions, pair[0].count))
    fixed_by = f"{_name(most)} was fixed in {format_count(fix.sessions, 'session')}: {first(fix.what, _MESSAGE)}."
    if most.note is None or most.note.status != "active":
        return most, Recommendation(
            text=f"{fixed_by} Examples of the corrected calls can spare new sessions the failure.",
            command="warmstart learn",
            note=most.note.id if most.note else None,
        )
    shown = f"shown to {format_count(most.note.shown, 'session')} so far" if most.note.shown else "not shown yet"
    return most, Recommendation(
        text=f"{fixed_by} An active note informs new sessions about it ({shown}).",
        command=f"warmstart notes show {most.note.id}",
        note=most.note.id,
    )


def _advise_looking(errors: Sequence[RepeatedError]) -> _Advised | None:
    """Name the error that no session has fixed. What was fixed in some sessions has a corrected call to learn from."""
    unfixed = [error for error in errors if error.unfixed > 1 and not error.fixes and not error.check]
    if not unfixed:
        return None
    worst = max(unfixed, key=lambda error: (error.unfixed, error.count))
    so = "there is no corrected call to learn from" if worst.note is None else "its note can only warn"
    return worst, Recommendation(
        text=f"{_name(worst)}: no fix was seen in {worst.unfixed} of {format_count(worst.sessions, 'session')}, so {so}. "
        "Look at one session and fix the cause.",
        command=f"warmstart sessions show {worst.last_session[:12]}",
    )


def _advise_measuring(insights: Insights) -> Recommendation:
    overall = insights.overall
    pace = f", at {describe_pace(insights.weekly)}" if insights.weekly else ""
    return Recommendation(
        text=f"{percent(overall.rate)} of judged calls failed{pace}. Before you start an experiment, see how small a drop "
        "this traffic can detect.",
        command="warmstart experiment power",
    )


def describe_pace(weekly: float) -> str:
    """Write the traffic in words, alike wherever it is shown: "6.5 sessions a week"."""
    number = f"{weekly:.1f}".removesuffix(".0")
    return f"{number} session{'' if number == '1' else 's'} a week"


def _name(error: RepeatedError) -> str:
    return f"{first(error.tool, 40)} “{first(error.message or error.shape, _MESSAGE)}”"
