"""A scripted model on this machine, which real agents talk to.

It speaks Anthropic's Messages, OpenAI's Chat Completions and Responses, and Gemini, streamed or whole (see wires).

A script is a list of turns. Which one comes next is told by how many results of tools a request carries, so a request
that is repeated gets the same turn again. Every request is kept: what an agent really sent is what tests look at.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from agents.wires import (
    Answer,
    Json,
    ScriptedCall,
    make_chat,
    make_gemini,
    stream_chat,
    stream_message,
    stream_response,
)
from loopback import serving

__all__ = ["ModelServer", "Received", "ScriptedCall", "Turn", "run_model"]

MESSAGES, CHAT, RESPONSES = "/v1/messages", "/v1/chat/completions", "/v1/responses"
GEMINI = re.compile(r"/v1(?:beta)?/models/([^/:]+):(generateContent|streamGenerateContent)")

Turn = str | ScriptedCall | Sequence[ScriptedCall]


class Received(NamedTuple):
    """A request as it arrived."""

    path: str
    body: Json
    at: float = 0.0  # seconds of a clock that only runs forward

    @property
    def results(self) -> list[Json]:
        """The results of tools that the request carries, oldest first."""
        return [part for part in self._list_parts() if _is_result(part)]

    @property
    def opening(self) -> str:
        """The first messages of the person, with what the agent puts around them."""
        return json.dumps([message for message in self.messages if message.get("role") == "user"][:2])

    @property
    def messages(self) -> list[Json]:
        """The conversation, as the protocol carries it."""
        return next((self.body[name] for name in ("messages", "input", "contents") if name in self.body), [])

    @property
    def has_tools(self) -> bool:
        """Whether the model may call tools. Agents ask without them for titles, summaries and the like."""
        return bool(self.body.get("tools"))

    def _list_parts(self) -> Iterator[Json]:
        """Give messages and the blocks inside them: a protocol carries its results in one place or the other."""
        for message in self.messages:
            yield message
            for name in ("content", "parts"):
                blocks = message.get(name)
                yield from (block for block in blocks if isinstance(block, dict)) if isinstance(blocks, list) else ()

    def count(self, text: str) -> int:
        """Return how often the model is told a text."""
        return sum(string.count(text) for string in _list_strings(self.body))


class ModelServer:
    """What the server says and what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Received] = []  # those that a session makes for its task, not for a title and the like
        self.hits = 0  # requests of every kind
        self._scripts = {"": _Script(())}
        self._lock = threading.Lock()
        self._answers = 0
        self.prompt_tokens = 10  # that Chat Completions report of each request; agents compact by it

    def play(self, *turns: Turn, aside: Mapping[str, Sequence[Turn]] | None = None) -> None:
        """Start a script: forget the requests, and count results from here. After the last turn the model says done.

        `aside`: scripts of other conversations at the same time, such as subagents', each by a word of its first message.
        """
        with self._lock:
            self._scripts = {word: _Script(turns) for word, turns in (aside or {}).items()} | {"": _Script(turns)}
            self.requests, self.hits = [], 0

    def choose(self, received: Received) -> tuple[Answer, str]:
        """Return the turn for a request, and a number for its answer that is never used twice."""
        with self._lock:
            self._answers += 1
            number = f"{self._answers:06d}"
            if not received.has_tools:
                return "A title", number
            self.requests.append(received)
            script = next(script for word, script in self._scripts.items() if word in received.opening)
            return script.choose(len(received.results)), number


class _Script:
    """The turns of one conversation."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = [[turn] if isinstance(turn, ScriptedCall) else turn for turn in turns]
        self._before: int | None = None  # results of an earlier script that the conversation carries

    def choose(self, results: int) -> Answer:
        if self._before is None:
            self._before = results
        left = results - self._before
        for turn in self._turns:
            if left == 0:
                return turn
            left -= 0 if isinstance(turn, str) else len(turn)
        return "done"


@contextmanager
def run_model() -> Iterator[ModelServer]:
    """Run the server for as long as the block lasts."""
    model = ModelServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            model.hits += 1
            arrived = time.monotonic()
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            received, asked = Received(path, body, arrived), str(body.get("model"))
            if path == MESSAGES:
                self._stream(stream_message(*model.choose(received), asked))
            elif path == RESPONSES:
                self._stream(stream_response(*model.choose(received)))
            elif path == CHAT and body.get("stream"):
                self._stream(stream_chat(*model.choose(received), asked, model.prompt_tokens), last="data: [DONE]\n\n")
            elif path == CHAT:
                self._send_json(make_chat(*model.choose(received), asked))
            elif gemini := GEMINI.fullmatch(path):
                answer = make_gemini(*model.choose(received), gemini[1])
                self._send_json(answer) if gemini[2] == "generateContent" else self._stream(iter([answer]))
            else:
                self._send_json({"input_tokens": 10, "totalTokens": 10})

        def do_GET(self) -> None:
            model.hits += 1
            self._send_json({"data": [], "models": []})

        do_HEAD = do_GET  # noqa: N815

        def _stream(self, events: Iterator[Json], last: str = "") -> None:
            lines = (f"{_name_event(event)}data: {json.dumps(event)}\n\n" for event in events)
            self._send("text/event-stream", ("".join(lines) + last).encode())

        def _send_json(self, value: Json) -> None:
            self._send("application/json", json.dumps(value).encode())

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        def log_message(self, *_words: Any) -> None:
            pass

    with serving(Handler) as place:
        model.url = f"http://{place}"
        yield model


def _list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_strings(inner)


def _is_result(part: Json) -> bool:
    """Return whether a part is a tool's result, in any of the protocols."""
    kind = str(part.get("type"))
    return (
        kind == "tool_result"
        or kind.endswith("_call_output")
        or part.get("role") == "tool"
        or "functionResponse" in part
    )


def _name_event(event: Json) -> str:
    return f"event: {event['type']}\n" if "type" in event else ""
