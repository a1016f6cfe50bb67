"""The seams: what one layer may ask of another without importing it."""

from __future__ import annotations

from typing import Protocol

from warmstart.model import Outcome, Signal, ToolCall


class Judge(Protocol):
    """Says what became of a call. The text is the whole result, before anything is cut from it."""

    def __call__(self, call: ToolCall | None, text: str, signal: Signal | None) -> Outcome: ...


class Progress(Protocol):
    """Told how far a long piece of work has come."""

    def __call__(self, done: int, total: int | None, what: str) -> None: ...
