"""What trials of notes can show at a user's own traffic, counted in the digests of stored sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field, structs

from warmstart.notes.advise import SURE
from warmstart.notes.digest import Digest
from warmstart.notes.types import Note
from warmstart.notes.withholding import TRIED
from warmstart.stats.designs import DesignPower, choose_fastest, plan_design

_AT_ONCE = frozenset(("stop", "correct"))
_SHARE = 0.5  # of occurrences that an experiment withholds
_WEEK = 7 * 86_400.0
_RECENT = 4  # weeks


class NoteTraffic(Struct):
    """The root sessions that could try a note."""

    note: str
    times: list[float] = field(default_factory=list)  # of the sessions that made a call with its trigger
    failed: int = 0  # of those: at the user's level, the call or the next one with the same cause failed
    stoppable: int = 0  # of those: the call itself failed, where the note is sure enough to stop it
    met: int = 0  # sessions that met the cause
    at_once: bool = False  # advice changes the call itself
    sessions: list[float] = field(default_factory=list)  # all of the project


class Traffic(Struct):
    """The sessions that could try any note of their project."""

    notes: list[NoteTraffic] = field(default_factory=list)
    sessions: list[float] = field(default_factory=list)
    met: int = 0  # sessions that met the cause of any note


def count_traffic(
    places: Iterable[tuple[Collection[Note], Collection[Digest]]],
    levels: Mapping[str, str],
    since: float | None = None,
) -> Traffic:
    """Count what sessions met, for the notes and digests of each project. `levels`: of advice, under "" for most kinds."""
    traffic = Traffic()
    for notes, digests in places:
        dated = [digest for digest in digests if digest.at is not None and (since is None or digest.at >= since)]
        roots = {digest.session: digest.at or 0.0 for digest in dated}
        keys = {note.key for note in notes}
        traffic.sessions += roots.values()
        traffic.met += len({digest.session for digest in dated if keys & digest.causes.keys()})
        for note in notes:
            is_at_once = levels.get(note.kind, levels.get("", "tell")) in _AT_ONCE
            traffic.notes.append(_count_note(note, dated, list(roots.values()), is_at_once=is_at_once))
    return traffic


def _count_note(note: Note, digests: Iterable[Digest], sessions: list[float], *, is_at_once: bool) -> NoteTraffic:
    """Count a note's occurrences. For a note that is told with a call's result, only the next failure counts."""
    own = NoteTraffic(note.id, sessions=sessions, at_once=is_at_once)
    tried: dict[str, float] = {}
    failures: dict[str, int] = {}
    for digest in digests:
        cause = digest.causes.get(note.key)
        if cause is not None:
            failures[digest.session] = failures.get(digest.session, 0) + cause.calls
        if note.trigger and note.kind in TRIED and any(digest.marks.get(note.trigger, ())):
            tried[digest.session] = digest.at or 0.0
    own.times = list(tried.values())
    own.met = len(failures)
    if note.certainty >= SURE:
        own.stoppable = sum(session in failures for session in tried)
    own.failed = sum(failures.get(session, 0) > (0 if is_at_once else 1) for session in tried)
    return own


def plan_notes(traffic: Traffic, now: float, *, cold_share: float, holdout: float, power: float) -> list[DesignPower]:
    """Return what each design can show: for the note that shows it first, and for all notes together."""
    pace = _Pace(traffic.sessions, now)
    kept = 1 - holdout  # sessions that get advice
    designs: list[DesignPower | None] = [
        choose_fastest(
            plan_design(
                "recurrence",
                rate=own.met / len(own.sessions),
                share=cold_share,
                per_week=pace.count(own.sessions),
                power=power,
                note=own.note,
            )
            for own in traffic.notes
            if own.met
        )
    ]
    if traffic.met:
        rate, weekly = traffic.met / len(traffic.sessions), pace.count(traffic.sessions)
        designs.append(plan_design("recurrence, pooled", rate=rate, share=cold_share, per_week=weekly, power=power))
    tried = [own for own in traffic.notes if own.failed]
    designs.append(
        choose_fastest(
            plan_design(
                "occurrence",
                rate=own.failed / len(own.times),
                share=_SHARE,
                per_week=pace.count(own.times) * kept,
                power=power,
                note=own.note,
                known=own.at_once,
            )
            for own in tried
        )
    )
    if tried:
        times = [at for own in tried for at in own.times]
        rate, weekly = sum(own.failed for own in tried) / len(times), pace.count(times) * kept
        designs.append(plan_design("occurrence, pooled", rate=rate, share=_SHARE, per_week=weekly, power=power))
    designs.append(_plan_stops(traffic.notes, pace, kept=kept, power=power))
    return [design for design in designs if design is not None]


def _plan_stops(notes: Iterable[NoteTraffic], pace: _Pace, *, kept: float, power: float) -> DesignPower | None:
    """Return what would be shown if notes stopped calls: a call that is only told fails anyway, and its retry hardly."""
    fastest = choose_fastest(
        plan_design(
            "occurrence, stopped",
            rate=own.stoppable / len(own.times),
            share=_SHARE,
            per_week=pace.count(own.times) * kept,
            power=power,
            note=own.note,
            known=True,
        )
        for own in notes
        if own.stoppable and not own.at_once
    )
    return structs.replace(fastest, assumes='[advice] level = "stop"') if fastest else None


class _Pace:
    """How often something happened in the last four weeks with sessions, as `count_weekly` counts sessions."""

    def __init__(self, sessions: Sequence[float], now: float) -> None:
        self._last = min(now, max(sessions, default=now))
        self._weeks = max(1.0, min(_RECENT, (self._last - min(sessions, default=now)) / _WEEK))

    def count(self, times: Iterable[float]) -> float:
        """Return how often per week."""
        return sum(self._last - _RECENT * _WEEK < at <= self._last for at in times) / self._weeks
