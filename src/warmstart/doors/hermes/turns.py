"""Turns of Hermes' sessions: the words with which they open, and whether a task is among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from warmstart.dialects.providers import text_of_content
from warmstart.doors.hermes.latest import Latest
from warmstart.templates.small_talk import is_small_talk

_REMEMBERED = 2_000  # sessions
LONG_TALK = 8_000  # characters of small talk that a provider has cached, so that a seed before it would cost more


class TurnOpening(Struct, frozen=True):
    """How the latest turn of a session began."""

    text: str  # the user's own words, before Hermes adds its memories to them
    worked: bool  # an earlier message was a task
    talk: int = 0  # characters of the conversation before its first task
    task: str = ""  # the latest message that is a task, known in this process


class Turns:
    """Remembers how the latest turns of sessions began. Thread-safe."""

    def __init__(self) -> None:
        self._openings: Latest[str, TurnOpening] = Latest(_REMEMBERED)

    def begin(self, session: str, text: str, history: Sequence[Any]) -> None:
        """Keep the words of a turn. The history before the first task shows whether there was one in another process."""
        known = self._openings.get(session)
        if known is None or not known.task:
            said = [(message.get("role"), text_of_content(message.get("content"))) for message in _list(history)]
            worked = known.worked if known else _has_worked(said)
            known = TurnOpening("", worked, sum(len(words) for _role, words in said))
        task = known.task if is_small_talk(text) else text
        self._openings.put(session, structs.replace(known, text=text, task=task))

    def find(self, session: str) -> TurnOpening | None:
        return self._openings.get(session)


def read_turn(asked: Sequence[str], begun: bool) -> TurnOpening:
    """Return how a turn began, from the request alone."""
    text = asked[-1] if asked else ""
    worked = begun and any(not is_small_talk(earlier) for earlier in asked[:-1])
    return TurnOpening(text, worked, sum(map(len, asked[:-1])), "" if is_small_talk(text) else text)


def _list(history: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [message for message in history if isinstance(message, Mapping)]


def _has_worked(said: Sequence[tuple[Any, str]]) -> bool:
    """Return whether the agent has answered, and a message of the user was a task."""
    if not any(role == "assistant" for role, _words in said):
        return False
    return any(role == "user" and not is_small_talk(words) for role, words in said)
