"""A session as exchanges: a message, the calls made with it, and their results. All formats of exports are made of them."""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from warmstart.model import Arguments, Message, Session, ToolCall, ToolResult


class AnsweredCall(Struct, frozen=True):
    """A call and its result; None: never answered."""

    call: ToolCall
    answer: ToolResult | None


class Exchange(Struct):
    """A message of anyone, or calls without one. Only the agent's messages have calls."""

    message: Message | None = None
    calls: list[AnsweredCall] = field(default_factory=list)

    @property
    def role(self) -> str:
        """Who speaks; calls without a message are the agent's."""
        return self.message.role if self.message else "assistant"

    @property
    def at(self) -> float | None:
        """When it began."""
        times = (self.message.at if self.message else None, *(one.call.at for one in self.calls))
        return next((at for at in times if at is not None), None)

    def takes(self, call: ToolCall) -> bool:
        """Return whether a further call can be part of it: formats refer to a call by its id within the exchange."""
        return self.role == "assistant" and all(one.call.call_id != call.call_id for one in self.calls)


def write_arguments(arguments: Arguments) -> str:
    """Return arguments as models write them: JSON, or the text that is none."""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def split_exchanges(session: Session) -> list[Exchange]:
    """Return the exchanges of a session, in order. Each result stands with its call; results without a call are left out."""
    exchanges: list[Exchange] = []
    answered = iter(session.calls())
    ended = True  # a result has come since the last call
    for step in session.steps:
        if isinstance(step, Message):
            exchanges.append(Exchange(step))
            ended = False
        elif isinstance(step, ToolCall):
            if ended or not exchanges or not exchanges[-1].takes(step):
                exchanges.append(Exchange())
            exchanges[-1].calls.append(AnsweredCall(*next(answered)))
            ended = False
        else:
            ended = True
    return exchanges
