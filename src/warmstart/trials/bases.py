"""Compare like with like: tokens and costs that are reported, and those that are estimated, are different figures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from warmstart.model import Measures
from warmstart.trials.metrics import Metric

_ALIKE = {
    "completed": "reported"
}  # only the output of a completed count comes from the text, a few per cent of the tokens
_WEAKEST = ("reported", "completed", "priced", "estimated")


class Measured(Protocol):
    """A session that may have measures."""

    @property
    def measures(self) -> Measures | None: ...


SessionT = TypeVar("SessionT", bound=Measured)


class OneBasis(Struct, Generic[SessionT], frozen=True):
    """Both arms' sessions whose figures rest on the same basis."""

    sides: tuple[list[SessionT], ...]
    basis: str | None = None  # the weakest one among them; None: the metric has none
    left_out: tuple[int, ...] = (0, 0)  # sessions on another basis, per arm


def keep_one_basis(sides: Sequence[Sequence[SessionT]], metric: Metric) -> OneBasis[SessionT]:
    """Keep the sessions on the basis that most sessions of the smaller arm have. Sessions without measures stay."""
    if metric.basis is None:
        return OneBasis(tuple(list(side) for side in sides))
    bases = [[_find_basis(session, metric) for session in side] for side in sides]
    groups = sorted({_group(basis) for side in bases for basis in side if basis is not None}, key=_WEAKEST.index)
    if not groups:
        return OneBasis(tuple(list(side) for side in sides))

    def count(group: str) -> tuple[int, int]:
        sizes = [sum(basis is not None and _group(basis) == group for basis in side) for side in bases]
        return min(sizes), sum(sizes)

    chosen = max(groups, key=count)
    kept = [
        [session for session, basis in zip(side, own, strict=True) if basis is None or _group(basis) == chosen]
        for side, own in zip(sides, bases, strict=True)
    ]
    compared = {basis for side in bases for basis in side if basis is not None and _group(basis) == chosen}
    left_out = tuple(len(side) - len(rest) for side, rest in zip(sides, kept, strict=True))
    return OneBasis(tuple(kept), max(compared, key=_WEAKEST.index), left_out)


def count_bases(sides: Sequence[Sequence[SessionT]], metric: Metric) -> list[dict[str, int]]:
    """Count each arm's sessions by the basis of their figures. Sessions whose figure is unknown have none."""
    counts = []
    for side in sides:
        bases = Counter(basis for session in side if (basis := _find_basis(session, metric)) is not None)
        counts.append({basis: bases[basis] for basis in _WEAKEST if bases[basis]})
    return counts


def _find_basis(session: Measured, metric: Metric) -> str | None:
    """Return the basis of a session's figure; None if the figure is unknown."""
    measures = session.measures
    if measures is None or metric.basis is None or metric.read(measures) is None:
        return None
    return metric.basis(measures)


def _group(basis: str) -> str:
    return _ALIKE.get(basis, basis)
