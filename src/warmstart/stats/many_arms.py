"""Many arms at once: checks of the split, false discoveries, shrinkage of effects, shares for the next sessions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from statistics import NormalDist

_SMALL = 5.0  # expected counts below this are too small for chi-square (Cochran 1954)
_NODES = 400  # points of the numeric integrals
_NORMAL = NormalDist()


def ratio_mismatch(observed: Mapping[str, int], expected: Mapping[str, float]) -> float:
    """Return the probability of a split at least this odd if arms were assigned in the expected shares. Very small: a bug.

    A chi-square test; with small expected counts, exact binomial tests of each arm against the rest, corrected for their
    number.
    """
    _check_counts(observed)
    total, weight = sum(observed.values()), math.fsum(expected.values())
    if not all(math.isfinite(share) and share >= 0 for share in expected.values()) or not weight > 0:
        raise ValueError("expected shares must be finite, not negative and not all zero")
    if any(count and not expected.get(arm) for arm, count in observed.items()):
        return 0.0
    shares = {arm: share / weight for arm, share in expected.items() if share > 0}
    if total == 0 or len(shares) < 2:
        return 1.0
    counts = {arm: observed.get(arm, 0) for arm in shares}
    if total * min(shares.values()) >= _SMALL:
        distance = sum((counts[arm] - total * share) ** 2 / (total * share) for arm, share in shares.items())
        return chi_square_tail(distance, len(shares) - 1)
    return _correct([_binomial_test(counts[arm], total, share) for arm, share in shares.items()])


def missing_mismatch(closed: Mapping[str, int], missing: Mapping[str, int]) -> float | None:
    """Return the probability that transcripts are missing this unevenly by chance. Small: the rest is not comparable.

    None if there is nothing to compare: fewer than two arms with trials, no transcript missing, or all missing.
    """
    _check_counts(closed)
    _check_counts(missing)
    trials = {arm: closed.get(arm, 0) + missing.get(arm, 0) for arm in (*closed, *missing)}
    trials = {arm: count for arm, count in trials.items() if count}
    total, lost = sum(trials.values()), sum(missing.values())
    if len(trials) < 2 or lost in (0, total):
        return None
    share = lost / total
    if min(trials.values()) * min(share, 1 - share) >= _SMALL:
        distance = sum(
            (missing.get(arm, 0) - count * share) ** 2 / (count * share * (1 - share)) for arm, count in trials.items()
        )
        return chi_square_tail(distance, len(trials) - 1)
    return _correct([_fisher_test(missing.get(arm, 0), count, lost, total) for arm, count in trials.items()])


def e_bh(e_values: Mapping[str, float], alpha: float = 0.05) -> set[str]:
    """Return the arms that count as discoveries, with a false discovery rate below alpha (Wang and Ramdas 2022).

    These are the k largest of K e-values, for the largest k with e_(k) >= K / (k alpha). The rate holds at every look and
    however the arms depend on each other.
    """
    if any(math.isnan(value) or value < 0 for value in e_values.values()):
        raise ValueError("e-values must not be negative")
    ordered = sorted(e_values.values(), reverse=True)
    bars = [len(ordered) / (rank * alpha) for rank in range(1, len(ordered) + 1)]
    passed = [value for value, bar in zip(ordered, bars, strict=True) if value >= bar]
    return {arm for arm, value in e_values.items() if value >= passed[-1]} if passed else set()


def shrink(estimates: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
    """Shrink the (difference, standard error) of each template towards 0, by the share of noise in all of them.

    The best of many estimates is too good on average (the winner's curse). Effects are assumed normal around 0, not around
    their common mean: a template without evidence of its own must not inherit the others', and most mined seeds do nothing.
    The effects' spread is averaged over its posterior (half-Cauchy prior, Gelman 2006) instead of estimated as one number,
    which for a few templates would often be 0 and then claim certainty.
    """
    if any(not math.isfinite(value) or not 0 < se < math.inf for value, se in estimates.values()):
        raise ValueError("estimates must be finite and standard errors positive")
    if not estimates:
        return {}
    scale = sorted(se for _, se in estimates.values())[len(estimates) // 2]
    spreads = [scale * math.tan(math.pi / 2 * (node + 0.5) / _NODES) for node in range(_NODES)]
    logs = [
        sum(_log_normal(value, se * se + spread * spread) for value, se in estimates.values()) for spread in spreads
    ]
    top = max(logs)
    weights = [math.exp(log - top) for log in logs]
    total = math.fsum(weights)
    shrunk = {}
    for arm, (value, se) in estimates.items():
        shares = [spread * spread / (spread * spread + se * se) for spread in spreads]
        mean = math.fsum(w * share for w, share in zip(weights, shares, strict=True)) / total
        square = math.fsum(w * share * share for w, share in zip(weights, shares, strict=True)) / total
        shrunk[arm] = mean * value, math.sqrt(mean * se * se + max(0.0, square - mean * mean) * value * value)
    return shrunk


def best_arm_probabilities(
    means_and_ses: Mapping[str, tuple[float, float]], *, lower_is_better: bool = True
) -> dict[str, float]:
    """Return the probability that each arm is the best, from normal posteriors: the shares of Thompson sampling."""
    if any(not math.isfinite(mean) or not 0 <= se < math.inf for mean, se in means_and_ses.values()):
        raise ValueError("means must be finite and standard errors not negative")
    sign = -1 if lower_is_better else 1
    arms = {arm: (sign * mean, se) for arm, (mean, se) in means_and_ses.items()}
    nodes = [_NORMAL.inv_cdf((node + 0.5) / _NODES) for node in range(_NODES)]
    wins = {
        arm: math.fsum(
            math.prod(_chance_below(mean + se * node, rival) for name, rival in arms.items() if name != arm)
            for node in (nodes if se else (0.0,))
        )
        / (_NODES if se else 1)
        for arm, (mean, se) in arms.items()
    }
    total = math.fsum(wins.values())
    return {arm: win / total for arm, win in wins.items()}


def with_floor(probabilities: Mapping[str, float], arm: str, floor: float) -> dict[str, float]:
    """Raise one arm's share (the cold one's) to at least `floor`, taking from the others in proportion."""
    if not 0 <= floor <= 1:
        raise ValueError("the floor must lie between 0 and 1")
    own = probabilities.get(arm, 0.0)
    rest = math.fsum(share for name, share in probabilities.items() if name != arm)
    if own >= floor or rest <= 0:
        return dict(probabilities) | {arm: own if rest > 0 else 1.0}
    return {name: share * (1 - floor) / rest for name, share in probabilities.items() if name != arm} | {arm: floor}


def chi_square_tail(value: float, degrees: int) -> float:
    """Return the probability of a larger chi-square value; a finite sum for even and for odd degrees of freedom."""
    half = value / 2
    if degrees % 2:
        total, term, start = math.erfc(math.sqrt(half)), math.sqrt(4 * half / math.pi) * math.exp(-half), 1.5
    else:
        total, term, start = math.exp(-half), half * math.exp(-half), 2.0
    for step in range((degrees - 1) // 2):
        total += term
        term *= half / (start + step)
    return min(1.0, total)


def _log_normal(value: float, variance: float) -> float:
    return -(value * value / variance + math.log(variance)) / 2


def _chance_below(value: float, rival: tuple[float, float]) -> float:
    mean, se = rival
    if se:
        return _NORMAL.cdf((value - mean) / se)
    return 0.5 if value == mean else float(value > mean)


def _correct(probabilities: list[float]) -> float:
    """Apply Bonferroni's correction. Two arms are one test: each is the complement of the other."""
    return min(1.0, min(probabilities) * (len(probabilities) if len(probabilities) > 2 else 1))


def _binomial_test(count: int, total: int, share: float) -> float:
    def log_chance(k: int) -> float:
        return _log_choose(total, k) + k * math.log(share) + (total - k) * math.log1p(-share)

    return _sum_as_odd(log_chance, count, range(total + 1))


def _fisher_test(count: int, drawn: int, marked: int, total: int) -> float:
    def log_chance(k: int) -> float:
        return _log_choose(marked, k) + _log_choose(total - marked, drawn - k) - _log_choose(total, drawn)

    return _sum_as_odd(log_chance, count, range(max(0, drawn + marked - total), min(drawn, marked) + 1))


def _sum_as_odd(log_chance: Callable[[int], float], seen: int, possible: range) -> float:
    """Return the probability of all outcomes that are no likelier than the one seen."""
    bar = log_chance(seen) + 1e-9
    return min(1.0, math.fsum(math.exp(log) for log in map(log_chance, possible) if log <= bar))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _check_counts(counts: Mapping[str, int]) -> None:
    if any(count < 0 for count in counts.values()):
        raise ValueError("counts must not be negative")
