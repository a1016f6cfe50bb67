"""Compare two failure rates occurrence by occurrence: exact for small counts, valid at every look.

A note is withheld at an occurrence with a known probability. If showing it makes no difference, a failure says nothing
about the arm: given the outcome and everything before, the arm still has its drawn probability. So each occurrence
multiplies the evidence by P(arm | outcome, alternative) / P(arm), and the product is a martingale with mean 1, whatever
the failure rates are and however they drift between projects and over time. Against "not better" it is a supermartingale.

The alternatives are a grid of failure rates without the note and of the share that is left with it, averaged (a mixture
of martingales is one). History says which rate is likely; a wrong guess costs power, never validity. By Ville's
inequality the evidence for `works` reaches 22.5 in at most 4.5 % of all trials without an effect, at any of all looks, and
that for `harms` reaches 200 in at most 0.5 %: together 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from statistics import NormalDist
from typing import Literal, NamedTuple

from msgspec import Struct

WORKS = 22.5  # evidence for "works"; 1 / 22.5 + 1 / 200 < 5 %
HARMS = 200.0
MISMATCH = 0.001  # below this probability the split, or the missing outcomes, are not what was drawn

_RATES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.99)  # without the note
_LEFT = ((0.3, 0.1), (0.5, 0.7), (0.7, 0.13), (0.9, 0.07))  # share of the failures that is left with it -> weight
_WIDTH = 0.2  # how far from history's rate a rate may well be
_LARGEST = 700.0  # exp(700) is still a float
_REGRET = 0.6  # nats that not quite knowing the rate without the note costs; calibrated by bench/stats.py
_NO_HISTORY = 0.7  # nats that not knowing it at all costs beyond that
_MOST = 10_000_000  # units beyond which no number is given
_NORMAL = NormalDist()

OccurrenceVerdict = Literal["works", "harms", "inconclusive"]


class Drawn(NamedTuple):
    """One occurrence, as far as the statistics go."""

    share: float  # probability of being withheld, or of a cold session
    withheld: bool
    failed: bool


class TrialEvidence(Struct, frozen=True, gc=False):
    """E-values of one trial, and for pooling their logarithms for each share of failures that may be left."""

    works: float = 1.0  # against "it does not lower failures"
    harms: float = 1.0  # against "it does not raise failures"
    logs: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0,) * len(_LEFT), (0.0,) * len(_LEFT))


class ArmTally(Struct, frozen=True, gc=False):
    """The outcomes of both arms."""

    shown: int = 0
    shown_failed: int = 0
    withheld: int = 0
    withheld_failed: int = 0

    @property
    def difference(self) -> float | None:
        """Return the failure rate with the note minus the rate without it; None while an arm is empty."""
        if not self.shown or not self.withheld:
            return None
        return self.shown_failed / self.shown - self.withheld_failed / self.withheld


def tally(occurrences: Iterable[Drawn]) -> ArmTally:
    """Count the outcomes of both arms."""
    counts = [0, 0, 0, 0]
    for one in occurrences:
        counts[2 * one.withheld] += 1
        counts[2 * one.withheld + 1] += one.failed
    return ArmTally(*counts)


class OccurrenceTest:
    """A trial that takes one occurrence at a time. `expected`: the failure rate without the note, from history."""

    def __init__(self, expected: float | None = None) -> None:
        self._weights = _weigh_rates(None if expected is None else round(expected, 2))
        self._sums = [[0.0] * (len(_RATES) * len(_LEFT)) for _ in range(2)]

    def add(self, one: Drawn, times: int = 1) -> None:
        """Add an occurrence, or several alike."""
        if not 0 < one.share < 1:
            raise ValueError("a share must lie between 0 and 1")
        for side, factors in enumerate(_list_factors(one.share, one.withheld, one.failed)):
            sums = self._sums[side]
            self._sums[side] = [total + times * factor for total, factor in zip(sums, factors, strict=True)]

    def may_decide(self) -> bool:
        """Return whether a verdict is possible: an average is never larger than its largest member. Quicker than `weigh`."""
        return max(map(max, self._sums)) >= math.log(min(WORKS, HARMS))

    def weigh(self) -> TrialEvidence:
        """Return the evidence so far."""
        logs = [self._average(sums) for sums in self._sums]
        works, harms = (_mix(side) for side in logs)
        return TrialEvidence(works, harms, (logs[0], logs[1]))

    def _average(self, sums: list[float]) -> tuple[float, ...]:
        size = len(_RATES)
        return tuple(
            _log_sum(log + weight for log, weight in zip(sums[at * size : (at + 1) * size], self._weights, strict=True))
            for at in range(len(_LEFT))
        )


def weigh_occurrences(occurrences: Iterable[Drawn], expected: float | None = None) -> TrialEvidence:
    """Return the evidence of a whole trial. The order does not matter."""
    counts: dict[Drawn, int] = {}
    for one in occurrences:
        counts[one] = counts.get(one, 0) + 1
    test = OccurrenceTest(expected)
    for one, times in counts.items():
        test.add(one, times)
    return test.weigh()


def pool_evidence(trials: Iterable[TrialEvidence]) -> TrialEvidence:
    """Return the evidence of several trials together that all notes spare the same share of their failures.

    For each such share the trials' martingales multiply, because each occurrence belongs to one of them.
    """
    sums = [[0.0] * len(_LEFT) for _ in range(2)]
    for trial in trials:
        for side, logs in enumerate(trial.logs):
            sums[side] = [total + log for total, log in zip(sums[side], logs, strict=True)]
    works, harms = (_mix(side) for side in sums)
    return TrialEvidence(works, harms, (tuple(sums[0]), tuple(sums[1])))


def judge_evidence(evidence: TrialEvidence) -> OccurrenceVerdict:
    """Return the verdict, with at most 5 % false ones over all looks."""
    if evidence.works >= WORKS and evidence.works > evidence.harms:
        return "works"
    return "harms" if evidence.harms >= HARMS else "inconclusive"


def _mix(logs: Iterable[float]) -> float:
    total = _log_sum(log + math.log(weight) for log, (_left, weight) in zip(logs, _LEFT, strict=True))
    return math.exp(min(total, _LARGEST))


def _log_sum(logs: Iterable[float]) -> float:
    values = list(logs)
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


@lru_cache(128)
def _weigh_rates(expected: float | None) -> tuple[float, ...]:
    """Return the logarithms of the rates' weights."""
    weights = [1.0 if expected is None else math.exp(-(((r - expected) / _WIDTH) ** 2) / 2) for r in _RATES]
    total = math.fsum(weights)
    return tuple(math.log(weight / total) for weight in weights)


@lru_cache(4_096)
def _list_factors(share: float, withheld: bool, failed: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the logarithm of each alternative's factor: for a note that works, and for one that harms."""
    works, harms = (
        tuple(
            _find_factor(share, withheld, *_chances(rate, left, failed=failed, harms=side))
            for left, _weight in _LEFT
            for rate in _RATES
        )
        for side in (False, True)
    )
    return works, harms


def _chances(rate: float, left: float, *, failed: bool, harms: bool) -> tuple[float, float]:
    """Return the chance of this outcome when shown, and when withheld."""
    shown, withheld = (rate, rate * left) if harms else (rate * left, rate)
    return (shown, withheld) if failed else (1 - shown, 1 - withheld)


def _find_factor(share: float, is_withheld: bool, shown: float, withheld: float) -> float:
    return math.log((withheld if is_withheld else shown) / ((1 - share) * shown + share * withheld))


# The interval beside the verdict


def difference_interval(counts: ArmTally, alpha: float = 0.05) -> tuple[float, float] | None:
    """Return the interval of the difference of the failure rates, shown minus withheld; None while an arm is empty.

    It holds at all looks together, for rates that stay the same: both arms' rates are averaged over Jeffreys' prior, and a
    difference is left out when no pair of rates with it comes within 1 / alpha of that average's likelihood.
    """
    if not counts.shown or not counts.withheld:
        return None
    bar = _log_marginal(counts.shown_failed, counts.shown) + _log_marginal(counts.withheld_failed, counts.withheld)
    bar += math.log(alpha)
    middle = counts.difference or 0.0

    def fits(difference: float) -> bool:
        return _best_fit(counts, difference) >= bar

    return _find_edge(fits, middle, -1.0), _find_edge(fits, middle, 1.0)


def _find_edge(fits: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return the last difference that fits, on the way from one that does."""
    if fits(outside):
        return outside
    for _step in range(24):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return outside


def _best_fit(counts: ArmTally, difference: float) -> float:
    """Return the largest log-likelihood of two rates with this difference. It is concave along that line."""
    low, high = max(0.0, -difference), min(1.0, 1.0 - difference)

    def fit(rate: float) -> float:
        own = _log_likelihood(counts.shown_failed, counts.shown, rate + difference)
        return own + _log_likelihood(counts.withheld_failed, counts.withheld, rate)

    for _step in range(30):
        left, right = low + (high - low) / 3, high - (high - low) / 3
        if fit(left) < fit(right):
            low = left
        else:
            high = right
    return fit((low + high) / 2)


def _log_likelihood(failed: int, number: int, rate: float) -> float:
    rate = min(max(rate, 1e-12), 1 - 1e-12)
    return failed * math.log(rate) + (number - failed) * math.log1p(-rate)


def _log_marginal(failed: int, number: int) -> float:
    return _log_beta(failed + 0.5, number - failed + 0.5) - _log_beta(0.5, 0.5)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


# Before a trial


def occurrences_needed(rate: float, drop: float, *, share: float, power: float = 0.8, known: bool = True) -> int | None:
    """Return after how many occurrences (or sessions) a drop is shown with this chance; None if beyond all reach.

    `known`: whether the trial will know from history which rate to expect.
    The logarithm of the evidence is a random walk: the chance that it has reached the bar by then is that of a Brownian
    motion with its drift and variance.
    """
    if not 0 < rate <= 1 or not 0 < drop <= 1 or not 0 < share < 1:
        raise ValueError("a rate, a drop and a share must lie above 0 and at most at 1")
    rate = min(rate, 0.995)
    drift, variance = _find_walk(rate, rate * max(1 - drop, 0.005), share)
    _left, weight = min(_LEFT, key=lambda known: abs(known[0] - (1 - drop)))
    bar = math.log(WORKS) + _REGRET + (0 if known else _NO_HISTORY) - math.log(weight)
    low, high = 1, 2
    while _chance_crossed(drift, variance, bar, high) < power:
        low, high = high, high * 2
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _chance_crossed(drift, variance, bar, middle) >= power else (middle, high)
    return high


def _find_walk(withheld: float, shown: float, share: float) -> tuple[float, float]:
    """Return drift and variance of the logarithm of the evidence per occurrence, for the best alternative."""
    mean = square = 0.0
    for failed in (False, True):
        chances = (shown, withheld) if failed else (1 - shown, 1 - withheld)
        for is_withheld in (False, True):
            weight = (share if is_withheld else 1 - share) * chances[is_withheld]
            factor = _find_factor(share, is_withheld, *chances)
            mean += weight * factor
            square += weight * factor * factor
    return mean, max(square - mean * mean, 1e-12)


def _chance_crossed(drift: float, variance: float, bar: float, number: int) -> float:
    spread = math.sqrt(variance * number)
    late = _NORMAL.cdf((-drift * number - bar) / spread)
    reflected = math.exp(min(2 * drift * bar / variance, _LARGEST)) * late if late > 0 else 0.0
    return _NORMAL.cdf((drift * number - bar) / spread) + reflected


def count_shares(occurrences: Iterable[tuple[float, bool]]) -> tuple[Mapping[str, int], Mapping[str, float]]:
    """Return how many were shown and withheld, and how many were expected, from `(share, withheld)`."""
    drawn = list(occurrences)
    withheld = sum(is_withheld for _share, is_withheld in drawn)
    expected = math.fsum(share for share, _withheld in drawn)
    return (
        {"shown": len(drawn) - withheld, "withheld": withheld},
        {"shown": len(drawn) - expected, "withheld": expected},
    )
