"""Insights in words: what the terminal and the page say alike. Text from transcripts is cleaned here, once for both."""

from __future__ import annotations

from warmstart.doors.render.terminal import clean
from warmstart.excerpt import first
from warmstart.insights.advice import percent
from warmstart.insights.costs import IDLE
from warmstart.insights.fixes import SOON
from warmstart.insights.types import Cost, FixedBy, Insights, Rate, RepeatedError, TotalCost

UNKNOWN = "-"
NOTES = {
    "rates": "Intervals are 95% and take the calls of one session together; there is none where one session says all. "
    "Groups did different work: a difference between them need not be their doing.",
    "cost": "From a failing call to the call that fixed it: turns at the session's own mean of tokens a turn; time by the "
    f"clock, each run and each wait counted as {IDLE / 60:.0f} minutes at most. What nothing fixed within {SOON} calls "
    "counts its own turn only; work in between that had nothing to do with the error is counted too. What several errors "
    "share counts once, so that lines can add up to more than the total.",
    "repeated": "Numbers, paths, ids and quoted text are masked. An error is unfixed in a session where none of the "
    f"{SOON} calls after it got right what had failed.",
}


def name_of(text: str | None, limit: int = 60) -> str:
    """A name from a transcript: safe, short, on one line. Of a long path the end tells most."""
    if text is None:
        return "(not told)"
    told = " ".join(clean(text).split()) or "(no name)"
    if len(told) <= limit:
        return told
    if told.startswith(("/", "~")) and " " not in told:
        return f"[...] {told[-limit:].partition('/')[2] or told[-limit:]}"
    return first(told, limit)


def interval_of(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return UNKNOWN
    return f"{percent(rate.low)} to {percent(rate.high)}"


def count_of(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def tokens_of(cost: Cost) -> str:
    return UNKNOWN if cost.tokens is None else short_number(cost.tokens)


def minutes_of(cost: Cost) -> str:
    return UNKNOWN if cost.seconds is None else short_minutes(cost.seconds)


def short_number(number: float) -> str:
    """2,140 as 2.1 k: nobody compares the last digits of an estimate."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            shown = number / size
            return f"{shown:.0f} {unit}" if shown >= 10 else f"{shown:.1f} {unit}"
    return f"{number:.0f}"


def short_minutes(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"


def what_failed(error: RepeatedError, limit: int = 120) -> str:
    """The message; where the tool said nothing, the call."""
    return name_of(error.message or f"(no message) {error.shape}", limit)


def shape_of(error: RepeatedError, limit: int = 120) -> str:
    others = f" and {count_of(error.shapes - 1, 'other form')}" if error.shapes > 1 else ""
    return name_of(error.shape, limit) + others


def fix_of(fix: FixedBy) -> str:
    what = name_of(fix.what, 160)
    match fix.how:
        case "other tool":
            return f"another tool: {what}"
        case "same call":
            return "the same call again" if what == "repeated" else f"the same call {what}"
        case _:
            return what


def endings_of(error: RepeatedError) -> list[str]:
    """How it ended, with how many sessions: the commonest fixes, then what was not fixed."""
    told = [f"{fix_of(fix)} ({count_of(fix.sessions, 'session')})" for fix in error.fixes]
    rest = error.sessions - error.unfixed - sum(fix.sessions for fix in error.fixes)
    if rest:
        told.append(f"otherwise ({count_of(rest, 'session')})")
    if error.unfixed:
        told.append(f"unfixed in {error.unfixed} of {count_of(error.sessions, 'session')}")
    return told


def costs_of(total: TotalCost) -> list[tuple[str, str, str]]:
    """Each cost with its share of everything and how much of it is unknown."""
    cost = total.cost

    def tell(unknown: int) -> str:
        return f"unknown for {unknown:,} of {count_of(cost.errors, 'error')}" if unknown else "all errors known"

    basis = "reported by the transcripts; "
    if cost.tokens_estimated:
        basis = "estimated; " if cost.tokens_estimated == cost.tokens else "partly estimated; "
    if cost.tokens is None:
        basis = ""
    turns = UNKNOWN if cost.turns is None else f"{cost.turns:,}"
    return [
        (f"{turns} turns", _share_of(total.turns_share, "turns"), tell(cost.turns_unknown)),
        (f"{tokens_of(cost)} tokens", _share_of(total.tokens_share, "tokens"), f"{basis}{tell(cost.tokens_unknown)}"),
        (f"{minutes_of(cost)}", _share_of(total.seconds_share, "time"), tell(cost.seconds_unknown)),
    ]


def _share_of(share: float | None, what: str) -> str:
    return "" if share is None else f"{percent(share)} of all {what}"


def remarks_of(found: Insights) -> list[str]:
    """What was left out, so that nobody takes a part for the whole."""
    told = []
    if out := sum(found.left_out.values()):
        kinds = ", ".join(f"{count:,} {status}" for status, count in found.left_out.items() if count)
        told.append(f"{count_of(out, 'call')} are in no rate: {kinds}.")
    if found.unreadable:
        told.append(f"{count_of(found.unreadable, 'session')} could not be read from the store and were left out.")
    if found.along.without_turns:
        told.append(
            f"{count_of(found.along.without_turns, 'session')} without counted turns are not in the windows; "
            "ingest their transcripts again."
        )
    if found.undated:
        told.append(f"{count_of(found.undated, 'session')} do not say when they started and are in no week.")
    return told
