"""The figures in a few sentences: what the windows mean, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from warmstart.excerpt import first
from warmstart.insights.types import Advice, Along, Insights, Rate, RepeatedError

_LATELY = 8  # weeks
_SAID = 70  # characters of a message in a sentence


def explain_windows(along: Along) -> str:
    """What the rates along the session say, and what they do not."""
    if not along.windows:
        return ""
    if along.followed_from is None:
        return (
            "Too few sessions went on long enough to follow the same ones from start to end. Failing sessions tend to "
            "end early, so the windows hold different sessions and must not be read as one session's course."
        )
    start, end = along.windows[0], along.windows[-1]
    assert start.followed is not None and end.followed is not None
    turn = along.followed_from
    return (
        f"{along.followed_sessions} of {along.sessions} sessions reached turn {turn}. In turns {start.everyone.name} these had "
        f"{percent(start.followed.rate)} errors and all sessions {percent(start.everyone.rate)}: who is left changes from "
        f"window to window, so the line of all sessions is no session's course. The same sessions followed from the start "
        f"went from {percent(start.followed.rate)} to {percent(end.followed.rate)}; {_compare(start.followed, end.followed)}. "
        f"Whether longer sessions make fewer errors cannot be read from this."
    )


def percent(share: float | None) -> str:
    """A share for people; what is not known is a dash."""
    if share is None:
        return "-"
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"


def advise(insights: Insights) -> tuple[Advice, ...]:
    """At most three sentences that follow from the figures, each with the next command."""
    if not insights.overall.judged:
        return ()
    found = [_advise_learning(insights), _advise_looking(insights), _advise_measuring(insights)]
    return tuple(advice for advice in found if advice is not None)


def _compare(start: Rate, end: Rate) -> str:
    if start.low is None or start.high is None or end.low is None or end.high is None:
        return "there is too little to say how sure that is"
    if end.low > start.high:
        return "their errors rose along the way"
    if end.high < start.low:
        return "their errors fell along the way, for these sessions"
    return "the intervals overlap, so no change can be told"


def _advise_learning(insights: Insights) -> Advice | None:
    fixed = [error for error in insights.repeated if error.fixes]
    if not fixed:
        return None
    most = max(fixed, key=lambda error: (error.sessions - error.unfixed, error.count))
    mended = most.sessions - most.unfixed
    return Advice(
        text=f"{_name(most)} was fixed in {_count(mended, 'session')} after failing first. Examples of the corrected "
        "calls can spare new sessions the failure.",
        command="warmstart learn",
    )


def _advise_looking(insights: Insights) -> Advice | None:
    unfixed = [error for error in insights.repeated if error.unfixed > 1]
    if not unfixed:
        return None
    worst = max(unfixed, key=lambda error: (error.unfixed, error.count))
    return Advice(
        text=f"{_name(worst)} was not fixed in {worst.unfixed} of {_count(worst.sessions, 'session')}. No example can "
        "be made of that: look at one and mend the cause.",
        command=f"warmstart sessions show {worst.last_session[:12]}",
    )


def _advise_measuring(insights: Insights) -> Advice:
    overall = insights.overall
    weekly = _count_weekly(insights.by_week)
    pace = f", at about {_count(weekly, 'session')} a week" if weekly else ""
    return Advice(
        text=f"{percent(overall.rate)} of judged calls failed{pace}. See how small a drop that much traffic can prove "
        "before you start an experiment.",
        command="warmstart experiment power",
    )


def _count_weekly(weeks: Sequence[Rate]) -> int:
    """Sessions a week lately; 0 where nothing can be told."""
    days = [date.fromisoformat(week.name or "") for week in weeks]
    if not days:
        return 0
    since = max(days[0], days[-1] - timedelta(weeks=_LATELY - 1))
    sessions = sum(week.sessions for week, day in zip(weeks, days, strict=True) if day >= since)
    return round(sessions / ((days[-1] - since).days / 7 + 1))


def _name(error: RepeatedError) -> str:
    said = error.message or error.shape
    return f"{first(error.tool, 40)} “{first(said, _SAID)}”"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
