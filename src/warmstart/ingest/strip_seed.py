"""Remove the seed from a session's transcript.

Agents that record the whole list of messages record the seed too. Its calls all worked, so they would make every warm
session look better than it was, and its first request would pass for the task.
"""

from __future__ import annotations

from msgspec import structs

from warmstart.dialects.compose import BRIEF_MARK, NOTES_MARK, TEXT_HEADER
from warmstart.dialects.providers import EXAMPLE_MARK
from warmstart.model import Message, Session, Step

_MARKS = (EXAMPLE_MARK, BRIEF_MARK, NOTES_MARK, TEXT_HEADER)
_LEADING = 8  # a seed begins within these steps, after the system messages


def strip_seed(session: Session) -> Session:
    """Return the session without its seed; the same object if there is none."""
    if not any(map(_begins, session.steps[:_LEADING])):
        return session
    kept: list[Step] = []
    inside = False
    for step in session.steps:
        if _begins(step):
            inside = True
        elif inside and isinstance(step, Message):
            if step.role == "user":  # the user's own message always ends the seed
                inside = False
                kept.append(step)
            elif step.role == "assistant":  # its first text after the request is the example's last word
                inside = False
        elif not inside:
            kept.append(step)
    task = next((step.text for step in kept if isinstance(step, Message) and step.role == "user"), None)
    return structs.replace(session, steps=tuple(kept), task=task)


def _begins(step: Step) -> bool:
    return isinstance(step, Message) and step.role == "user" and step.text.startswith(_MARKS)
