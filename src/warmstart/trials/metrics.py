"""The metrics: each yields (numerator, denominator) per session; arms compare ratios of sums."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from warmstart.model import WINDOW, Measures

Pair = tuple[
    float, float
]  # (numerator, denominator); for a time: (how long it was watched, 1 if the event came else 0)

_SECONDS = 600.0  # horizon of the time to the first success


class Metric(Struct, frozen=True, kw_only=True):
    """One way to compare sessions."""

    name: str
    title: str
    read: Callable[[Measures], Pair | None]  # None: unknown for this session
    unit: str = ""
    lower_is_better: bool = True
    adjusted: bool = False  # for what was known before the session
    horizon: float | None = None  # set for a time until an event: waits count up to this horizon
    basis: Callable[[Measures], str] | None = None  # set for tokens and costs, which may be reported or estimated


def _mean(value: float | None) -> Pair | None:
    return None if value is None else (float(value), 1.0)


def _time(happened: float | None, watched: float | None) -> Pair | None:
    if happened is not None:
        return float(happened), 1.0
    return None if watched is None else (float(watched), 0.0)


_ALL = (
    Metric(
        name="error_rate",
        title=f"errors per call, first {WINDOW} turns",
        read=lambda m: (float(m.errors), float(m.judged)),
        adjusted=True,
    ),
    Metric(name="total_errors", title="errors in total", read=lambda m: _mean(m.all_errors), adjusted=True),
    Metric(
        name="turns_to_success",
        title="turns to the first call that works",
        read=lambda m: _time(m.success_turn, m.turns),
        horizon=float(WINDOW),
    ),
    Metric(
        name="seconds_to_success",
        title="seconds to the first call that works",
        read=lambda m: _time(m.success_seconds, m.seconds),
        horizon=_SECONDS,
        unit="s",
    ),
    Metric(name="turns", title="turns", read=lambda m: _mean(m.turns)),
    Metric(
        name="tokens",
        title="tokens, including the seed",
        read=lambda m: _mean(m.tokens),
        basis=lambda m: m.tokens_basis,
    ),
    Metric(name="cost", title="cost", read=lambda m: _mean(m.cost), unit="USD", basis=lambda m: m.cost_basis),
    Metric(
        name="tools", title="different tools used with success", read=lambda m: _mean(m.tools), lower_is_better=False
    ),
    Metric(
        name="working_calls",
        title="calls that work",
        read=lambda m: _mean(m.judged - m.errors),
        lower_is_better=False,
    ),
    Metric(name="success", title="tasks done", read=lambda m: _mean(m.label), lower_is_better=False),
)
METRICS = {metric.name: metric for metric in _ALL}
DECIDING = tuple(METRICS)  # an experiment can be decided by any of them
TIMES = tuple(metric.name for metric in _ALL if metric.horizon is not None)  # times until an event
