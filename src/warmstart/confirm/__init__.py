"""Ask a person before a dangerous action runs, and run exactly what was approved.

    from warmstart.confirm import ask, requires_confirmation

    ask("delete_data", "Drop last year's orders", {"table": "orders_2025"})   # blocks; returns, or raises

    @requires_confirmation("delete_data")
    def drop(table: str) -> None: ...

The daemon: `warmstart confirm serve`, or `ConfirmationServer(...).start_background()`. Names are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warmstart.confirm.client.ask import Daemon, Ticket, ask, find_daemon, requires_confirmation, submit
    from warmstart.confirm.errors import (
        BadRequest,
        ConfirmationError,
        Conflict,
        Denied,
        Expired,
        KeyReused,
        NotAllowed,
        RateLimited,
        Unauthorized,
        Unreachable,
        UntrustedDaemon,
    )
    from warmstart.confirm.model import HumanDecision

__all__ = [
    "BadRequest",
    "ConfirmationError",
    "ConfirmationServer",
    "Conflict",
    "Daemon",
    "Denied",
    "Expired",
    "HumanDecision",
    "KeyReused",
    "NotAllowed",
    "RateLimited",
    "Ticket",
    "Unauthorized",
    "Unreachable",
    "UntrustedDaemon",
    "ask",
    "find_daemon",
    "requires_confirmation",
    "submit",
]

_HOMES = {
    "warmstart.confirm.client.ask": "Daemon Ticket ask find_daemon requires_confirmation submit",
    "warmstart.confirm.errors": "BadRequest ConfirmationError Conflict Denied Expired KeyReused NotAllowed RateLimited "
    "Unauthorized Unreachable UntrustedDaemon",
    "warmstart.confirm.model": "HumanDecision",
    "warmstart.doors.web": "ConfirmationServer",  # a door, so it is imported by name only
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'warmstart.confirm' has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
