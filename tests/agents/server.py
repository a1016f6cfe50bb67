"""A scripted model on this machine, which real agents talk to: Anthropic's Messages and OpenAI's Responses, streamed.

A script is a list of turns. Which one comes next is told by how many results of tools a request carries, so a request
that is repeated gets the same turn again. Every request is kept: what an agent really sent is what tests look at.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple

from loopback import serving

Json = dict[str, Any]
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"


class ScriptedCall(NamedTuple):
    """A tool call that the model makes."""

    tool: str
    arguments: Mapping[str, Any]


Turn = str | ScriptedCall | Sequence[ScriptedCall]


class Received(NamedTuple):
    """A request as it arrived."""

    path: str
    body: Json

    @property
    def results(self) -> list[Json]:
        """The results of tools that the request carries, oldest first."""
        if self.path == RESPONSES:
            return [item for item in self.body["input"] if str(item.get("type")).endswith("_call_output")]
        blocks = (block for message in self.body["messages"] for block in _list_blocks(message))
        return [block for block in blocks if block.get("type") == "tool_result"]

    @property
    def opening(self) -> str:
        """The first messages of the person, with what the agent puts around them."""
        messages = self.body["input" if self.path == RESPONSES else "messages"]
        return json.dumps([message for message in messages if message.get("role") == "user"][:2])

    def count(self, text: str) -> int:
        """Return how often the model is told a text."""
        return sum(string.count(text) for string in _list_strings(self.body))


class ModelServer:
    """What the server says and what it was sent."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Received] = []  # those that a session makes for its task, not for a title and the like
        self._scripts = {"": _Script(())}
        self._lock = threading.Lock()
        self._answers = 0

    def play(self, *turns: Turn, aside: Mapping[str, Sequence[Turn]] | None = None) -> None:
        """Start a script: forget the requests, and count results from here. After the last turn the model says done.

        `aside`: scripts of other conversations at the same time, such as subagents', each by a word of its first message.
        """
        with self._lock:
            self._scripts = {word: _Script(turns) for word, turns in (aside or {}).items()} | {"": _Script(turns)}
            self.requests = []

    def choose(self, received: Received) -> tuple[Sequence[ScriptedCall] | str, str]:
        """Return the turn for a request, and a number for its answer that is never used twice."""
        with self._lock:
            self._answers += 1
            number = f"{self._answers:06d}"
            if not received.body.get("tools"):
                return "A title", number
            self.requests.append(received)
            script = next(script for word, script in self._scripts.items() if word in received.opening)
            return script.choose(len(received.results)), number


class _Script:
    """The turns of one conversation."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = [[turn] if isinstance(turn, ScriptedCall) else turn for turn in turns]
        self._before: int | None = None  # results of an earlier script that the conversation carries

    def choose(self, results: int) -> Sequence[ScriptedCall] | str:
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
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
            path = self.path.partition("?")[0]
            if path == MESSAGES:
                self._stream(stream_message(*model.choose(Received(path, body)), str(body.get("model"))))
            elif path == RESPONSES:
                self._stream(stream_response(*model.choose(Received(path, body))))
            else:
                self._send("application/json", b'{"input_tokens": 10}')

        def do_GET(self) -> None:
            self._send("application/json", b'{"data": [], "models": []}')

        do_HEAD = do_GET  # noqa: N815

        def _stream(self, events: Iterator[Json]) -> None:
            lines = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._send("text/event-stream", "".join(lines).encode())

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


def stream_message(turn: str | Sequence[ScriptedCall], number: str, model: str) -> Iterator[Json]:
    """Give the events of an answer by Anthropic's Messages."""
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": model, "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
    for index, (block, delta) in enumerate(_list_message_blocks(turn, number)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = "end_turn" if isinstance(turn, str) else "tool_use"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def _list_message_blocks(turn: str | Sequence[ScriptedCall], number: str) -> Iterator[tuple[Json, Json]]:
    if isinstance(turn, str):
        yield {"type": "text", "text": ""}, {"type": "text_delta", "text": turn}
        return
    for at, call in enumerate(turn):
        block = {"type": "tool_use", "id": f"toolu_{number}{at}", "name": call.tool, "input": {}}
        yield block, {"type": "input_json_delta", "partial_json": json.dumps(call.arguments)}


def stream_response(turn: str | Sequence[ScriptedCall], number: str) -> Iterator[Json]:
    """Give the events of an answer by OpenAI's Responses."""
    answer = {"id": f"resp_{number}", "object": "response", "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": answer}
    items = list(_list_response_items(turn, number))
    for index, item in enumerate(items):
        yield {"type": "response.output_item.added", "output_index": index, "item": item}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    usage = {
        "input_tokens": 10,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 15,
    }
    yield {"type": "response.completed", "response": answer | {"status": "completed", "output": items, "usage": usage}}


def _list_response_items(turn: str | Sequence[ScriptedCall], number: str) -> Iterator[Json]:
    if isinstance(turn, str):
        text = {"type": "output_text", "text": turn, "annotations": []}
        yield {"type": "message", "id": f"msg_{number}", "role": "assistant", "status": "completed", "content": [text]}
        return
    for at, call in enumerate(turn):
        yield {
            "type": "function_call",
            "id": f"fc_{number}{at}",
            "call_id": f"call_{number}{at}",
            "name": call.tool,
            "arguments": json.dumps(call.arguments),
            "status": "completed",
        }


def _list_strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_strings(inner)


def _list_blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
