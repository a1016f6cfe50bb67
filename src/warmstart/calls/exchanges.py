"""The exchanges of a session: the user's message that each call serves, and the agent's words after the last call."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct

from warmstart.calls.closings import write_closing_line
from warmstart.calls.prose import end_headings, plain, shorten, strip_programs
from warmstart.model import Message, Step, ToolCall

ASKED = 700  # maximum characters of a request: its end may name the value of an argument
CLOSING = 200  # maximum characters of the agent's closing words


class Served(Struct, frozen=True):
    """The place of a call in its exchange."""

    request: int  # number of the user's message, from 1; 0: the agent began by itself
    asked: str = ""  # of the first call of the exchange
    closing: str = ""  # of the last call of the exchange


class ServedRequest(Struct):
    """A request of the user that calls serve, in the words of the transcript."""

    request: int  # number of the user's message, from 1; 0: the agent began by itself
    asked: str  # messages in a row are one request
    calls: int = 0
    said: str = ""  # the agent's last words after the last call


def list_requests(steps: Iterable[Step]) -> list[ServedRequest]:
    """Return the requests that calls serve, in the order of their calls."""
    requests: list[ServedRequest] = []
    number, asked = 0, ""
    current: ServedRequest | None = None
    listening = False  # the last step was the user's
    for step in steps:
        if isinstance(step, ToolCall):
            if current is None:
                current = ServedRequest(number, asked)
                requests.append(current)
            current.calls += 1
            current.said, listening = "", False
        elif isinstance(step, Message) and step.role == "user":
            text = strip_programs(step.text).strip()
            if not text:
                continue
            if listening:
                asked = f"{asked}\n{text}"
            else:
                number, asked, current = number + 1, text, None
            listening = True
        elif isinstance(step, Message) and step.role == "assistant":
            listening = False
            if current is not None:
                current.said = step.text
    return requests


def find_served(requests: Iterable[ServedRequest], redact: Callable[[str], str]) -> list[Served]:
    """Return for each call the message that it serves.

    `redact` is given whole messages: half a secret would not be recognised.
    """
    served: list[Served] = []
    for exchange in requests:
        number = exchange.request
        asked = shorten(" ".join(end_headings(plain(redact(exchange.asked))).split()), ASKED) if exchange.asked else ""
        closing = write_closing_line(redact(exchange.said), CLOSING) if exchange.said.strip() else ""
        if exchange.calls == 1:
            served.append(Served(number, asked, closing))
            continue
        served.append(Served(number, asked))
        served += [Served(number)] * (exchange.calls - 2)
        served.append(Served(number, "", closing))
    return served
