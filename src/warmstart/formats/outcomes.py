"""Outcomes by name, as Warmstart's own exports write them beside the messages of formats without a field for them."""

from __future__ import annotations

from typing import Any, get_args

from warmstart.model import Signal, Status

_SIGNALS: dict[str, Signal] = {
    status: Signal(status=status, basis="none" if status == "unknown" else "flag") for status in get_args(Status)
}


def read_outcome(name: Any) -> Signal | None:
    """Return what a named outcome says about a result; None where the name is none."""
    return _SIGNALS.get(name) if isinstance(name, str) else None
