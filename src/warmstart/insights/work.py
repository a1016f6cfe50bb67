"""Error rates by kind of work, and their course over the first turns of a session."""

from __future__ import annotations

from collections import Counter

from warmstart.calls.work import find_work
from warmstart.insights.rates import Clusters, make_rate
from warmstart.insights.types import KindOfWork
from warmstart.model import WINDOW, PastSession, TaskType

STEP = 5  # turns of one point of the course
KINDS: tuple[TaskType, ...] = ("code", "file", "research", "mixed")


class WorkTally:
    """Counts errors by kind of work, over whole sessions and by steps of their first turns."""

    def __init__(self) -> None:
        self._whole: dict[TaskType, Clusters] = {kind: Counter() for kind in KINDS}
        self._steps: dict[TaskType, list[Clusters]] = {kind: [Counter() for _ in _list_steps()] for kind in KINDS}

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
            self._whole[kind][errors, judged] += 1
        for (kind, step), (errors, judged) in steps.items():
            self._steps[kind][step][errors, judged] += 1

    def freeze(self) -> tuple[KindOfWork, ...]:
        """Return the kinds of work that occurred."""
        return tuple(
            KindOfWork(
                name=kind,
                rate=make_rate(kind, self._whole[kind]),
                course=tuple(
                    make_rate(name, clusters) for name, clusters in zip(_list_steps(), self._steps[kind], strict=True)
                ),
            )
            for kind in KINDS
            if self._whole[kind]
        )


def _count(counted: list[int], *, failed: bool) -> None:
    counted[0] += failed
    counted[1] += 1


def _list_steps() -> list[str]:
    return [f"{first}-{first + STEP - 1}" for first in range(1, WINDOW + 1, STEP)]
