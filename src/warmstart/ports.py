"""Protocols by which one layer calls another without importing it."""

from __future__ import annotations

from typing import Protocol

from warmstart.model import Brief, MetNote, Outcome, PastSession, Signal, Task, ToolCall


class Judge(Protocol):
    """Returns the outcome of a call. `text` is the whole result, before it is shortened."""

    def __call__(self, call: ToolCall | None, text: str, signal: Signal | None) -> Outcome: ...


class Progress(Protocol):
    """Receives the progress of a long piece of work."""

    def __call__(self, done: int, total: int | None, what: str) -> None: ...


class BriefWriter(Protocol):
    """Writes what a task's project knows, in a few lines for the start of its session."""

    def __call__(self, task: Task) -> Brief: ...


class NoteDesk(Protocol):
    """Finds the notes that a session met and that wait, and approves one for a person."""

    def find_waiting(self, past: PastSession) -> list[MetNote]: ...
    def is_stored(self, note: str) -> bool: ...
    def learn(self, project: str) -> None: ...
    def approve(self, note: str) -> None: ...
