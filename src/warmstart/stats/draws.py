"""Sequential tests that arms were drawn as stated: bets against the draw, which win only if it is broken.

Before each session the probability of every arm is known. A bettor tilts these probabilities by what the same stratum has
shown so far and stakes the whole capital: it grows by the ratio of the tilted to the stated probability of the arm that
came. If the draw is fair and does not depend on the stratum, nobody can expect to win: the capital starts at 1 and ever
reaches 2,000 with a probability of at most 1 / 2,000, however often one looks (Ville 1939). With constant probabilities
this is the Dirichlet mixture of Lindon and Malek ("Anytime-valid inference for multinomial count data", 2022).
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Hashable, Mapping, Sequence

WEIGHTS = (2.0, 20.0, 200.0)  # how many sessions the stated probabilities count before those seen outweigh them
QUICK = (1.0, 4.0, 40.0)  # a bet on what is missing believes soon what it sees: it is little
PARTS = 3  # strata of a number: its low, middle and high third among the earlier ones
FEWEST = 30  # earlier numbers that are needed to tell thirds apart

_LARGEST = 700.0  # exp(700) is still a float


class DrawBet:
    """A bet against one draw, in strata: `add` a session, then read the `capital`."""

    def __init__(self, weights: Sequence[float] = WEIGHTS) -> None:
        self._weights = weights
        self._logs = [0.0] * len(weights)
        self._seen: dict[Hashable, dict[str, list[float]]] = {}  # stratum -> arm -> [sessions, expected sessions]

    def add(self, stratum: Hashable, arm: str, shares: Mapping[str, float]) -> None:
        """Add a session: its stratum, the arm that came, and the probability of each arm."""
        own = shares.get(arm, 0.0)
        if not own > 0:
            self._logs = [_LARGEST] * len(self._weights)  # an arm that could not come
            return
        arms = self._seen.get(stratum)
        if arms is None:
            arms = self._seen[stratum] = {}
        rows = [
            (share, arms.get(name) or arms.setdefault(name, [0.0, 0.0])) for name, share in shares.items() if share > 0
        ]
        whole = 0.0
        for share, _row in rows:
            whole += share
        seen, expected = arms[arm]
        logs = self._logs
        for at, weight in enumerate(self._weights):  # plain loops: this runs five times per session of a report
            tilted = 0.0
            for share, row in rows:
                prior = weight * share
                tilted += share * (row[0] + prior) / (row[1] + prior)
            prior = weight * own
            grown = logs[at] + math.log((seen + prior) / (expected + prior) * whole / tilted)
            logs[at] = grown if grown < _LARGEST else _LARGEST
        for share, row in rows:
            row[1] += share / whole
        arms[arm][0] += 1

    @property
    def capital(self) -> float:
        """The bettor's capital: the mean of several who differ in how quickly they believe what they see."""
        return math.fsum(map(math.exp, self._logs)) / len(self._logs)


class Thirds:
    """Puts numbers into strata by the earlier ones, so that no number's own session decides about its stratum."""

    def __init__(self) -> None:
        self._known: list[float] = []

    def place(self, value: float | None) -> int | None:
        """Return the third of the earlier numbers in which a number lies, and remember it. None for an unknown number."""
        if value is None:
            return None
        known = self._known
        third = bisect_left(known, value) * PARTS // (len(known) + 1) if len(known) >= FEWEST else -1
        insort(known, value)
        return third


class DrawTest:
    """Several bets on the same draw. Their mean is one bet, so that many strata do not make false alarms more frequent."""

    def __init__(self, names: Sequence[str]) -> None:
        self._bets = {name: DrawBet() for name in names}
        self.most = 1.0  # the largest mean capital so far: a broken draw is not repaired by later sessions

    def add(self, strata: Mapping[str, Hashable], arm: str, shares: Mapping[str, float]) -> None:
        """Add a session with its stratum in each of the bets."""
        for name, bet in self._bets.items():
            bet.add(strata[name], arm, shares)
        self.most = max(self.most, math.fsum(bet.capital for bet in self._bets.values()) / len(self._bets))

    @property
    def strongest(self) -> str:
        """The bet that has won most."""
        return max(self._bets, key=lambda name: self._bets[name].capital)
