"""Error rates by kind of work, and their course over the first turns of a session."""

from __future__ import annotations

from msgspec import Struct, field

from warmstart.calls.work import find_work
from warmstart.insights.rates import Clusters, add_cluster, add_clusters, make_rate
from warmstart.insights.types import KindOfWork
from warmstart.model import WINDOW, PastSession, TaskType

STEP = 5  # turns of one point of the course
KINDS: tuple[TaskType, ...] = ("code", "file", "research", "mixed")


class WorkTally(Struct, omit_defaults=True):
    """Counts errors by kind of work, over whole sessions and by steps of their first turns."""

    whole: dict[str, Clusters] = field(default_factory=dict)  # by kind
    steps: dict[tuple[str, int], Clusters] = field(default_factory=dict)  # by kind and step

    def add(self, session: PastSession) -> None:
        whole: dict[TaskType, list[int]] = {}
        steps: dict[tuple[TaskType, int], list[int]] = {}
        for call in session.calls:
            if not call.outcome.counts:
                continue
            kind = find_work(call)
            _count(whole.setdefault(kind, [0, 0]), failed=call.outcome.status == "error")
            if call.turn is not None and 1 <= call.turn <= WINDOW:
                _count(steps.setdefault((kind, (call.turn - 1) // STEP), [0, 0]), failed=call.outcome.status == "error")
        for kind, (errors, judged) in whole.items():
            add_cluster(self.whole.setdefault(kind, {}), errors, judged)
        for (kind, step), (errors, judged) in steps.items():
            add_cluster(self.steps.setdefault((kind, step), {}), errors, judged)

    def merge(self, other: WorkTally) -> None:
        """Add the sessions of another tally."""
        for kind, clusters in other.whole.items():
            add_clusters(self.whole.setdefault(kind, {}), clusters)
        for cell, clusters in other.steps.items():
            add_clusters(self.steps.setdefault(cell, {}), clusters)

    def freeze(self) -> tuple[KindOfWork, ...]:
        """Return the kinds of work that occurred."""
        return tuple(
            KindOfWork(
                name=kind,
                rate=make_rate(kind, self.whole[kind]),
                course=tuple(
                    make_rate(name, self.steps.get((kind, step), {})) for step, name in enumerate(_list_steps())
                ),
            )
            for kind in KINDS
            if self.whole.get(kind)
        )


def _count(counted: list[int], *, failed: bool) -> None:
    counted[0] += failed
    counted[1] += 1


def _list_steps() -> list[str]:
    return [f"{first}-{first + STEP - 1}" for first in range(1, WINDOW + 1, STEP)]
