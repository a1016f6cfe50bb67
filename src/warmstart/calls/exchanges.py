"""The exchanges of a session: the user's message that each call serves, and the agent's words after the last call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from warmstart.calls.prose import end_headings, iterate_sentences, join_sentences, plain, shorten, strip_programs
from warmstart.model import Message, Step, ToolCall

ASKED = 700  # maximum characters of a request: its end may name the value of an argument
CLOSING = 200  # maximum characters of the agent's closing words


class Served(Struct, frozen=True):
    """The place of a call in its exchange."""

    request: int  # number of the user's message, from 1; 0: the agent began by itself
    asked: str = ""  # of the first call of the exchange
    closing: str = ""  # of the last call of the exchange


def find_served(steps: Iterable[Step], redact: Callable[[str], str]) -> list[Served]:
    """Return for each call the message that it serves.

    Messages in a row are one request. `redact` is given whole messages: half a secret would not be recognised.
    """
    served: list[Served] = []
    number, asked, said = 0, "", ""
    first: int | None = None  # index of the exchange's first call
    listening = False  # the last step was the user's
    for step in steps:
        if isinstance(step, ToolCall):
            if first is None:
                first = len(served)
                request = shorten(" ".join(end_headings(plain(redact(asked))).split()), ASKED) if asked else ""
                served.append(Served(number, request))
            else:
                served.append(Served(number))
            said, listening = "", False
        elif isinstance(step, Message) and step.role == "user":
            text = strip_programs(step.text).strip()
            if not text:
                continue
            if listening:
                asked = f"{asked}\n{text}"
            else:
                _close(served, first, said, redact)
                number, asked, first, said = number + 1, text, None, ""
            listening = True
        elif isinstance(step, Message) and step.role == "assistant":
            said, listening = step.text, False
    _close(served, first, said, redact)
    return served


def _close(served: list[Served], first: int | None, said: str, redact: Callable[[str], str]) -> None:
    """Put the agent's last words at the last call of an exchange."""
    if first is None or not said.strip():
        return
    closing = join_sentences(iterate_sentences(redact(said)), CLOSING)
    last = served[-1]
    served[-1] = Served(last.request, last.asked, closing)
