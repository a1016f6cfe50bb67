"""The designs of experiments beside each other: how many weeks each takes at a user's own traffic. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from warmstart.stats.occurrences import occurrences_needed

DROPS = (0.1, 0.3, 0.5)
PLANNED = 0.3  # the drop by which designs are compared
YEAR = 52.0  # weeks

DesignName = Literal[
    "sessions", "recurrence", "recurrence, pooled", "occurrence", "occurrence, pooled", "occurrence, stopped"
]


class DesignDrop(Struct, frozen=True, kw_only=True):
    """What it takes to show a relative drop."""

    drop: float
    units: int | None  # sessions or occurrences, of both arms together; None: more than anyone has
    weeks: float | None  # None: no traffic to estimate it from


class DesignPower(Struct, frozen=True, kw_only=True):
    """What one design can show."""

    design: DesignName
    unit: Literal["session", "occurrence"]
    rate: float  # errors per call, sessions that meet the cause, or occurrences that fail, without any help
    share: float  # of the units that go without help
    per_week: float  # units
    note: str = ""  # the note with the most units, where one note is tried
    assumes: str = ""  # a setting that is not the user's; such a design is never chosen by itself
    drops: tuple[DesignDrop, ...] = ()

    def weeks_for(self, drop: float) -> float | None:
        """Return the weeks until a drop is shown."""
        return next((one.weeks for one in self.drops if one.drop == drop), None)


def plan_design(
    design: DesignName, *, rate: float, share: float, per_week: float, power: float, note: str = "", known: bool = False
) -> DesignPower:
    """Return what a design of events (recurrences, occurrences) can show. `known`: as in `occurrences_needed`."""
    drops = []
    for drop in DROPS:
        units = occurrences_needed(rate, drop, share=share, power=power, known=known) if rate > 0 else None
        weeks = units / per_week if units is not None and per_week > 0 else None
        drops.append(DesignDrop(drop=drop, units=units, weeks=weeks))
    unit: Literal["session", "occurrence"] = "occurrence" if design.startswith("occurrence") else "session"
    return DesignPower(
        design=design, unit=unit, rate=rate, share=share, per_week=per_week, note=note, drops=tuple(drops)
    )


def choose_fastest(designs: Iterable[DesignPower], drop: float = PLANNED) -> DesignPower | None:
    """Return the design that shows a drop first; None if none ever does."""
    reachable = [
        (weeks, design) for design in designs if not design.assumes and (weeks := design.weeks_for(drop)) is not None
    ]
    return min(reachable, key=lambda pair: pair[0])[1] if reachable else None


def choose_unit(designs: Iterable[DesignPower]) -> Literal["session", "occurrence"]:
    """Return the unit to draw: sessions, unless they cannot show the planned drop within a year and occurrences can."""
    listed = [design for design in designs if not design.assumes]
    fast = {
        unit: min((d.weeks_for(PLANNED) or 1e9 for d in listed if d.unit == unit), default=1e9)
        for unit in ("session", "occurrence")
    }
    return "occurrence" if fast["session"] > YEAR >= fast["occurrence"] else "session"
