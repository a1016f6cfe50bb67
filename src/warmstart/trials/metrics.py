"""What arms can be compared by: each a pair of numbers a session, of which arms' sums are divided."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from warmstart.model import WINDOW, Measures

Pair = tuple[float, float]  # numerator and denominator; of times how long it took or was watched, and whether it came

_SECONDS = 600.0  # over which the time to the first success is compared


class Metric(Struct, frozen=True, kw_only=True):
    """One way to compare sessions."""

    name: str
    title: str
    read: Callable[[Measures], Pair | None]  # None: this session does not tell
    unit: str = ""
    lower_is_better: bool = True
    adjusted: bool = False  # for what was known before the session
    horizon: float | None = None  # a time until something happens, looked at so far


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
    Metric(name="total_errors", title="errors in all", read=lambda m: _mean(m.all_errors), adjusted=True),
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
    Metric(name="tokens", title="tokens, the seed's included", read=lambda m: _mean(m.tokens)),
    Metric(name="cost", title="cost", read=lambda m: _mean(m.cost), unit="USD"),
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
