"""What the user's own traffic can show: which drop of the error rate is detectable, and after how many weeks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from warmstart.errors import Refused
from warmstart.insights.times import count_weekly
from warmstart.plurals import format_count
from warmstart.stats.designs import DROPS, DesignDrop, DesignPower
from warmstart.stats.power import detectable_drop, measure_baseline, sessions_needed
from warmstart.trials.compare import CLUSTERS

_DROPS = (0.1, 0.2, 0.3, 0.4, 0.5)
_WEEKS = (1, 2, 4, 8, 13, 26, 52)
_LEAST = 10  # sessions with judged calls

SessionStart = tuple[
    str, float | None, str | None, str | None, int, int
]  # key, start, project, task, errors, judged calls


class Drop(Struct, frozen=True, kw_only=True):
    """What it takes to detect a drop of the error rate."""

    drop: float  # relative
    sessions: int | None  # of all arms together; None: more than anyone has
    weeks: float | None  # None: no traffic to estimate it from


class Reach(Struct, frozen=True, kw_only=True):
    """The smallest drop that is detectable after some weeks."""

    weeks: int
    sessions: int
    drop: float | None  # None: not even a drop to 0


class Power(Struct, frozen=True, kw_only=True):
    """What the user's own traffic can show, computed before an experiment starts."""

    sessions: int  # behind these figures
    rate: float  # errors per call over the first turns
    design_effect: float  # how much clustering inflates the variance
    per_week: float
    cold_share: float
    power: float
    drops: tuple[Drop, ...]
    reach: tuple[Reach, ...]


def compute_power(starts: Sequence[SessionStart], now: float, *, cold_share: float, power: float) -> Power:
    """Compute the power of an experiment from past sessions. Refuse if they show too little."""
    judged_starts = [start for start in starts if start[5]]
    if len(judged_starts) < _LEAST:
        raise Refused(
            f"{len(judged_starts)} remembered sessions with tool calls are too few to compute power, which needs {_LEAST}; "
            "ingest more: warmstart ingest"
        )
    tasks = {task for _key, _at, _project, task, *_counts in judged_starts}
    by_task = len(tasks) >= CLUSTERS  # then the comparison will cluster by task too
    baseline = measure_baseline(
        [(errors, judged, (by_task and task) or key) for key, _at, _project, task, errors, judged in judged_starts]
    )
    if baseline is None or not baseline.rate:
        raise Refused("the first turns of the remembered sessions have no errors, so there is no error rate to lower")
    per_week = count_weekly([at for _key, at, *_rest in judged_starts if at is not None], now)
    drops = []
    for drop in _DROPS:
        needed = sessions_needed(baseline, drop, power=power, share_cold=cold_share)
        weeks = needed / per_week if needed is not None and per_week else None
        drops.append(Drop(drop=drop, sessions=needed, weeks=weeks))
    reach = []
    for weeks in _WEEKS:
        sessions = int(weeks * per_week)
        smallest = detectable_drop(baseline, sessions, power=power, share_cold=cold_share) if sessions else None
        reach.append(Reach(weeks=weeks, sessions=sessions, drop=smallest))
    return Power(
        sessions=len(judged_starts),
        rate=baseline.rate,
        design_effect=baseline.design_effect,
        per_week=per_week,
        cold_share=cold_share,
        power=power,
        drops=tuple(drops),
        reach=tuple(reach),
    )


def plan_sessions(power: Power) -> DesignPower:
    """Return the power of comparing sessions, beside that of other designs."""
    drops = [DesignDrop(drop=one.drop, units=one.sessions, weeks=one.weeks) for one in power.drops if one.drop in DROPS]
    return DesignPower(
        design="sessions",
        unit="session",
        rate=power.rate,
        share=power.cold_share,
        per_week=power.per_week,
        drops=tuple(drops),
    )


def describe_reach(reach: Reach) -> str:
    """Say in a sentence which drop is detectable after some weeks."""
    weeks = format_count(reach.weeks, "week")
    return f"At your traffic a {reach.drop or 0:.0%} drop can be detected within {weeks}."


def describe_outlook(power: Power, control: str) -> str:
    """Say when the first useful drop becomes detectable."""
    soon = next((reach for reach in power.reach if reach.drop is not None and reach.drop <= 0.5), None)
    lead = f"At your traffic, with {power.cold_share:.0%} of sessions {control},"
    if soon is None:
        return f"{lead} even a 50% drop could not be detected within a year."
    return f"{lead} {describe_reach(soon).removeprefix('At your traffic ')}"
