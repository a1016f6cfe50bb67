"""Wording of insights, shared by the terminal and the page. Text from transcripts is cleaned here, once for both."""

from __future__ import annotations

from warmstart.doors.render.lake import describe_unread
from warmstart.doors.render.terminal import clean
from warmstart.excerpt import first
from warmstart.insights.advice import percent
from warmstart.insights.costs import IDLE
from warmstart.insights.fixes import SOON
from warmstart.insights.types import Cost, FixedBy, Insights, Rate, RepeatedError, TotalCost
from warmstart.plurals import format_count

UNKNOWN = "-"
NOTES = {
    "rates": "The 95% intervals treat calls of one session as related; a group with a single session has none. "
    "The groups did different work, so a difference between them may have other causes.",
    "cost": "An error costs the turns from the failing call to the call that fixed it, at the session's mean tokens per turn. "
    f"Time is read from timestamps; each run and each wait counts {IDLE / 60:.0f} minutes at most. An error not fixed "
    f"within {SOON} calls costs its own turn only. Unrelated work in between is counted too. Turns that several errors "
    "share count once in the total, so the rows above can add up to more.",
    "repeated": "Numbers, paths, ids and quoted text are masked. Forks and subagents count as the session they came from. "
    f"A fix is a call among the next {SOON} that did something about what the message names; where that is unclear, no "
    "fix is shown. A check that fails and passes after changes is work. See the occurrences of row N with --show N.",
    "work": "A shell call that runs code, tests or builds counts as code; reading, writing and searching files as file; "
    "the web as research; everything else as mixed.",
}


def name_of(text: str | None, limit: int = 60) -> str:
    """Return a name from a transcript, safe, short and on one line. A long path keeps its end."""
    if text is None:
        return "(unknown)"
    name = " ".join(clean(text).split()) or "(no name)"
    if len(name) <= limit:
        return name
    if name.startswith(("/", "~")) and " " not in name:
        return f"[...] {name[-limit:].partition('/')[2] or name[-limit:]}"
    return first(name, limit)


def interval_of(rate: Rate) -> str:
    if rate.low is None or rate.high is None:
        return UNKNOWN
    return f"{percent(rate.low)} to {percent(rate.high)}"


def tokens_of(cost: Cost) -> str:
    return UNKNOWN if cost.tokens is None else short_number(cost.tokens)


def minutes_of(cost: Cost) -> str:
    return UNKNOWN if cost.seconds is None else short_minutes(cost.seconds)


def short_number(number: float) -> str:
    """Shorten a number: 2,140 is 2.1 k, because it is an estimate."""
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
    """Return the error message, or the call if the tool returned none."""
    return name_of(error.message or f"(no message) {error.shape}", limit)


def shape_of(error: RepeatedError, limit: int = 120) -> str:
    others = f" and {format_count(error.shapes - 1, 'other form')}" if error.shapes > 1 else ""
    return name_of(error.shape, limit) + others


def fix_of(fix: FixedBy) -> str:
    what = name_of(fix.what, 160)
    if fix.how == "retry":
        return "worked on retry"
    return f"{what}: {'; '.join(name_of(example, 120) for example in fix.examples)}" if fix.examples else what


def endings_of(error: RepeatedError) -> list[str]:
    """Return how an error was fixed, by number of sessions, the note about it, then in how many no fix was seen."""
    endings = [f"{fix_of(fix)} ({format_count(fix.sessions, 'session')})" for fix in error.fixes]
    if error.note:
        endings.append(f"note {error.note.id}, {error.note.status}")
    if error.check:
        passed = f"passed after changes in {error.passed} of {format_count(error.sessions, 'session')}"
        return [*endings, f"a failing check: {passed}"]
    if error.unfixed:
        endings.append(f"no fix seen in {error.unfixed} of {format_count(error.sessions, 'session')}")
    return endings


def costs_of(total: TotalCost) -> list[tuple[str, str, str]]:
    """Return each cost with its share of the whole and for how many errors it is unknown."""
    cost = total.cost

    def describe(unknown: int) -> str:
        return f"unknown for {unknown:,} of {format_count(cost.errors, 'error')}" if unknown else "known for all errors"

    basis = "reported by the transcripts; "
    if cost.tokens_estimated:
        basis = "estimated; " if cost.tokens_estimated == cost.tokens else "partly estimated; "
    if cost.tokens is None:
        basis = ""
    turns = UNKNOWN if cost.turns is None else f"{cost.turns:,}"
    return [
        (f"{turns} turns", _share_of(total.turns_share, "turns"), describe(cost.turns_unknown)),
        (
            f"{tokens_of(cost)} tokens",
            _share_of(total.tokens_share, "tokens"),
            f"{basis}{describe(cost.tokens_unknown)}",
        ),
        (f"{minutes_of(cost)}", _share_of(total.seconds_share, "time"), describe(cost.seconds_unknown)),
    ]


def _share_of(share: float | None, what: str) -> str:
    return "" if share is None else f"{percent(share)} of all {what}"


def remarks_of(found: Insights) -> list[str]:
    """Return what the figures leave out."""
    remarks = []
    if out := sum(found.left_out.values()):
        kinds = ", ".join(f"{count:,} {status}" for status, count in found.left_out.items() if count)
        remarks.append(f"Rates leave out {format_count(out, 'call')}: {kinds}.")
    if found.unreadable:
        remarks.append(
            f"{format_count(found.unreadable, 'session')} could not be read from the store and were left out."
        )
    if found.unread_files:
        remarks.append(f"{describe_unread(found.unread_files)}.")
    if found.along.without_turns:
        remarks.append(
            f"Windows leave out {format_count(found.along.without_turns, 'session')} without known turns; "
            "ingest their transcripts again."
        )
    if found.undated:
        remarks.append(f"Weeks leave out {format_count(found.undated, 'session')} without a start time.")
    return remarks
