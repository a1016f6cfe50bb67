"""A transcript without the seed that its session was given.

Who records the whole list of messages records the seed too. Its calls all worked, so they would make every warm session
look better than it was, and its first request would pass for the task. What we put in we take out again.
"""

from __future__ import annotations

from msgspec import structs

from warmstart.dialects.compose import NOTES_MARK, NOTES_REPLY, TEXT_HEADER
from warmstart.dialects.providers import CLOSING, EXAMPLE_MARK
from warmstart.model import Message, Session, Step

_MARKS = (EXAMPLE_MARK, NOTES_MARK, TEXT_HEADER)
_ENDS = (CLOSING, "Done, that call worked.", NOTES_REPLY)  # the second is what seeds ended with before
_LEADING = 8  # steps within which a seed begins: it follows the system messages


def strip_seed(session: Session) -> Session:
    """The session from where the person's own words begin; the same one where there is no seed in it."""
    if not any(map(_begins, session.steps[:_LEADING])):
        return session
    kept: list[Step] = []
    inside = False
    for step in session.steps:
        if _begins(step):
            inside = True
        elif inside and isinstance(step, Message):
            if step.role == "user":  # the person speaks: whatever was before, the seed is over
                inside = False
                kept.append(step)
            elif step.text.strip() in _ENDS:
                inside = False
        elif not inside:
            kept.append(step)
    asked = next((step.text for step in kept if isinstance(step, Message) and step.role == "user"), None)
    return structs.replace(session, steps=tuple(kept), task=asked)


def _begins(step: Step) -> bool:
    return isinstance(step, Message) and step.role == "user" and step.text.startswith(_MARKS)
