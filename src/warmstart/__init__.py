"""Warmstart: agents that start experienced, and proof that it helps.

    import warmstart

    warmstart.inspect("session.jsonl")          # what is in a transcript: parse, judge, score
    warmstart.judge(messages)                   # which tool calls of a conversation worked
    with warmstart.open() as ws:                # remember
        ws.ingest()

Names are loaded when first used: importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warmstart.errors import (
        BadName,
        ConfigError,
        NotFound,
        Refused,
        SourceError,
        StoreError,
        StoreFull,
        StoreTooNew,
        UnknownFormat,
        WarmstartError,
    )
    from warmstart.model import (
        Counts,
        Evidence,
        Message,
        Outcome,
        Problem,
        Score,
        Session,
        Step,
        ToolCall,
        ToolResult,
        Usage,
    )
    from warmstart.pipeline import Warmstart
    from warmstart.reading import Ingested, Inspection, Scored, inspect, judge, scan, score

__all__ = [
    "BadName",
    "ConfigError",
    "Counts",
    "Evidence",
    "Ingested",
    "Inspection",
    "Message",
    "NotFound",
    "Outcome",
    "Problem",
    "Refused",
    "Score",
    "Scored",
    "Session",
    "SourceError",
    "Step",
    "StoreError",
    "StoreFull",
    "StoreTooNew",
    "ToolCall",
    "ToolResult",
    "UnknownFormat",
    "Usage",
    "Warmstart",
    "WarmstartError",
    "__version__",
    "inspect",
    "judge",
    "open",
    "scan",
    "score",
]

__version__ = "0.1.0"

_HOMES = {
    "errors": "BadName ConfigError NotFound Refused SourceError StoreError StoreFull StoreTooNew UnknownFormat "
    "WarmstartError",
    "model": "Counts Evidence Message Outcome Problem Score Session Step ToolCall ToolResult Usage",
    "pipeline": "Warmstart",
    "reading": "Ingested Inspection Scored inspect judge scan score",
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module 'warmstart' has no attribute {name!r}")
    value = getattr(import_module(f"warmstart.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


def open(home: Path | str | None = None, *, store: str | None = None) -> Warmstart:
    """Open Warmstart on `home` (default: WARMSTART_HOME or ~/.warmstart), or on another store."""
    from warmstart import config
    from warmstart.pipeline import Warmstart

    return Warmstart(config.load(home, store))
