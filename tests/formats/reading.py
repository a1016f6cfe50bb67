"""Judges and helpers for the tests of readers."""

from __future__ import annotations

from typing import Any

from warmstart.model import UNKNOWN, Outcome, Session, Signal, ToolCall


def judge(call: ToolCall | None, text: str, signal: Signal | None) -> Outcome:
    """Judge by the error flag alone."""
    return Outcome("error", "flag") if signal and signal.failed else UNKNOWN


class Listener:
    """A judge that records the calls, texts and signals it receives."""

    def __init__(self) -> None:
        self.calls: list[ToolCall | None] = []
        self.texts: list[str] = []
        self.signals: list[Signal | None] = []

    def __call__(self, call: ToolCall | None, text: str, signal: Signal | None) -> Outcome:
        self.calls.append(call)
        self.texts.append(text)
        self.signals.append(signal)
        return judge(call, text, signal)


def steps(session: Session, kind: type) -> list[Any]:
    """Return the steps of one kind."""
    return [step for step in session.steps if isinstance(step, kind)]
