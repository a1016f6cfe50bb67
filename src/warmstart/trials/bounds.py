"""Bounds for missing sessions: the interval if those without a transcript had been the worst, or the best. Pure.

A host that crashes when a session goes badly loses the bad sessions. Nobody can know how a missing session went. But where an
arm has lost a larger share of its sessions than the other one, say 5 % more, those too many were at worst like the worst 5 %
of the other arm, which has not lost them (Lee 2009). So the comparison is done again with these sessions filled in from that
end of the other arm, once for the arm and once against it. Sessions that both arms lose alike are not filled in: an arm is
assumed to make losses more frequent or rarer, not both. The bounds without that assumption (Horowitz and Manski 1995), in
which all missing sessions of both arms are at their worst end, are shown beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from warmstart.stats.compare import Estimate
from warmstart.trials.metrics import Metric
from warmstart.trials.observation import Observation, Reading

Sides = tuple[list[Reading], list[Reading]]  # the measured sessions of the arm and of the control
Lost = tuple[list[Observation], list[Observation]]  # those without a transcript


class Bounds(Struct, frozen=True, kw_only=True):
    """The interval over both fillings, and the e-values that remain under the less favourable one."""

    low: float | None  # None, like `high`: there is no interval yet
    high: float | None
    e_below: float
    e_above: float


def bound_missing(
    sides: Sides, lost: Lost, metric: Metric, estimate: Callable[[Sides], Estimate], *, is_all: bool = False
) -> Bounds:
    """Return the bounds of a difference. `is_all` fills in all missing sessions, not only those too many in one arm."""
    rates = [len(gone) / max(1, len(gone) + len(side)) for gone, side in zip(lost, sides, strict=True)]
    shares = rates if is_all else [max(0.0, rates[0] - rates[1]), max(0.0, rates[1] - rates[0])]
    down = estimate(_fill(sides, lost, shares, _rank(sides, metric, 1)))
    up = estimate(_fill(sides, lost, shares, _rank(sides, metric, -1)))
    both = (down, up)
    return Bounds(
        low=min((one.low for one in both if one.low is not None), default=None),
        high=max((one.high for one in both if one.high is not None), default=None),
        e_below=up.e_below,
        e_above=down.e_above,
    )


def _fill(sides: Sides, lost: Lost, shares: Sequence[float], order: Callable[[Reading], float]) -> Sides:
    """Fill in the arm's missing sessions from the control's first ones in an order, and the control's from the arm's last."""
    of_arm, of_control = sides
    return (
        of_arm + _draw(lost[0], shares[0], len(of_arm), sorted(of_control, key=order)),
        of_control + _draw(lost[1], shares[1], len(of_control), sorted(of_arm, key=order, reverse=True)),
    )


def _draw(lost: Sequence[Observation], share: float, kept: int, donors: Sequence[Reading]) -> list[Reading]:
    """Give a share of the arm's sessions the values of as large a share of the donors."""
    tail = donors[: max(1, round(share * len(donors)))]
    filled = lost[: round(share * (kept + len(lost)))] if tail else ()
    return [(obs, tail[at % len(tail)][1]) for at, obs in enumerate(filled)]


def _rank(sides: Sides, metric: Metric, sign: int) -> Callable[[Reading], float]:
    """Return by what sessions are ordered: how much each raises its arm's value, or with sign -1 lowers it."""
    if metric.horizon is not None:
        return lambda reading: sign * reading[1][0]
    pairs = [pair for side in sides for _obs, pair in side]
    under = sum(denominator for _numerator, denominator in pairs)
    ratio = sum(numerator for numerator, _denominator in pairs) / under if under else 0.0
    return lambda reading: sign * (reading[1][0] - ratio * reading[1][1])
