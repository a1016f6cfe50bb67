"""When to weigh: all trials, or all occurrences of notes, only after those measured have grown by a small share."""

from __future__ import annotations

from typing import Literal

from warmstart.store.protocol import Store

DUE = 0.02  # share by which the measured ones must have grown before all of them are weighed and acted on again


def is_weighing_due(store: Store, unit: Literal["trial", "occurrence"], number: int) -> bool:
    """Count newly measured trials or occurrences, and return whether all are to be weighed now, which is then recorded.

    Weighing reads all of them. Doing that for every session would cost more with each; verdicts are valid at any time, so
    that a decision may wait. Call it in the transaction that measures and weighs.
    """
    closed, weighed = store.rows("count_closed", (unit, number))[0]
    if closed - weighed < DUE * closed:
        return False
    store.run("set_weighed", (unit,))
    return True
