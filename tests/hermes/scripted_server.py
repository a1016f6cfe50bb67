"""A model provider on loopback that answers from a script, in the three protocols that Hermes speaks.

Every request is kept. A script is a function from a request's body to an answer.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_TOKENS, ANSWER_TOKENS = 1_000, 20


@dataclass
class Call:
    """A tool call that the model makes."""

    name: str
    arguments: dict[str, Any] | str  # a string goes out as it is, valid or not
    id: str = ""


@dataclass
class Answer:
    """An answer of the model."""

    text: str = ""
    calls: list[Call] = field(default_factory=list)
    status: int = 200  # another one is an error, with `text` as its message


Script = Callable[[dict[str, Any]], Answer]


@dataclass
class Request:
    path: str
    body: dict[str, Any]
    raw: bytes
    scene: str = ""


def rounds_since_user(body: dict[str, Any]) -> int:
    """Return the number of the model's answers after the user's last message."""
    count = 0
    for message in reversed(body["messages"]):
        if message["role"] == "user":
            return count
        count += message["role"] == "assistant"
    return count


def count_own_results(body: dict[str, Any]) -> int:
    """Return the number of results of the session's own calls: Hermes speaks as the user after an empty answer."""
    results = [message for message in body["messages"] if message["role"] == "tool"]
    return sum(not str(message.get("tool_call_id")).startswith("warm_") for message in results)


class ScriptedServer:
    """Serves until closed."""

    def __init__(self) -> None:
        self.script: Script = lambda body: Answer("Done.")
        self.scenes: dict[str, Script] = {}  # scripts for requests under /scene/NAME
        self.models: list[dict[str, Any]] = [{"id": "scripted", "object": "model"}]
        self.looked_up: list[str] = []  # paths of GET requests
        self.requests: list[Request] = []
        self._count = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def asked(self, scene: str = "") -> list[Request]:
        """Return the requests of the agent's own loop: those with tools."""
        return [request for request in self.requests if request.body.get("tools") and request.scene == scene]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def do_GET(self) -> None:
                server.looked_up.append(self.path)
                self._send(200, {"object": "list", "data": server.models})

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = json.loads(raw or b"{}")
                scene, path = _split_scene(self.path)
                server.requests.append(Request(path, body, raw, scene))
                answer = server.scenes.get(scene, server.script)(body)
                if answer.status != 200:
                    self._send(answer.status, {"error": {"message": answer.text, "type": "invalid_request_error"}})
                    return
                for call in answer.calls:
                    server._count += 1
                    call.id = call.id or f"call_{server._count:06d}"
                make = next((_MAKERS[end] for end in _MAKERS if self.path.endswith(end)), None)
                if make is None:  # Hermes looks what kind of server it is
                    self._send(404, {"error": {"message": "not found", "type": "invalid_request_error"}})
                    return
                whole, events = make(answer)
                if body.get("stream"):
                    self._stream(events)
                else:
                    self._send(200, whole)

            def _send(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def _stream(self, events: Iterator[tuple[str, Any]]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Connection", "close")
                self.end_headers()
                for name, value in events:
                    line = f"event: {name}\n" if name else ""
                    data = value if isinstance(value, str) else json.dumps(value)
                    self.wfile.write(f"{line}data: {data}\n\n".encode())
                self.close_connection = True

        return Handler


def _split_scene(path: str) -> tuple[str, str]:
    """Return the scene that a path names, and the path without it."""
    if not path.startswith("/scene/"):
        return "", path
    scene, _, rest = path.removeprefix("/scene/").partition("/")
    return scene, f"/{rest}"


Made = tuple[dict[str, Any], Iterator[tuple[str, Any]]]


def _written(call: Call) -> str:
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)


def _chat(answer: Answer) -> Made:
    usage = {
        "prompt_tokens": PROMPT_TOKENS,
        "completion_tokens": ANSWER_TOKENS,
        "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS,
    }
    base = {"id": "chatcmpl-1", "created": 1, "model": "scripted"}
    calls = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _written(call)}}
        for call in answer.calls
    ]
    reason = "tool_calls" if calls else "stop"
    message = {"role": "assistant", "content": answer.text or None} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": reason}
    whole = base | {"object": "chat.completion", "choices": [choice], "usage": usage}

    def events() -> Iterator[tuple[str, Any]]:
        def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
            return base | {
                "object": "chat.completion.chunk",
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            }

        yield "", chunk({"role": "assistant", "content": answer.text})
        for index, call in enumerate(calls):
            yield "", chunk({"tool_calls": [{"index": index, **call}]})
        yield "", chunk({}, reason)
        yield "", base | {"object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield "", "[DONE]"

    return whole, events()


def _anthropic(answer: Answer) -> Made:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for call in answer.calls:
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
    reason = "tool_use" if answer.calls else "end_turn"
    usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": ANSWER_TOKENS}
    base = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "stop_sequence": None}
    whole = base | {"content": blocks, "stop_reason": reason, "usage": usage}

    def events() -> Iterator[tuple[str, Any]]:
        start = base | {"content": [], "stop_reason": None, "usage": usage}
        yield "message_start", {"type": "message_start", "message": start}
        for index, block in enumerate(blocks):
            empty = block | ({"text": ""} if block["type"] == "text" else {"input": {}})
            yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
            if block["type"] == "text":
                delta = {"type": "text_delta", "text": block["text"]}
            else:
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
            yield "content_block_stop", {"type": "content_block_stop", "index": index}
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield (
            "message_delta",
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": ANSWER_TOKENS}},
        )
        yield "message_stop", {"type": "message_stop"}

    return whole, events()


def _responses(answer: Answer) -> Made:
    items: list[dict[str, Any]] = []
    if answer.text:
        part = {"type": "output_text", "text": answer.text, "annotations": []}
        items.append({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]})
    for call in answer.calls:
        items.append(
            {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
            | {"arguments": _written(call), "status": "completed"}
        )
    usage = {
        "input_tokens": PROMPT_TOKENS,
        "output_tokens": ANSWER_TOKENS,
        "total_tokens": PROMPT_TOKENS + ANSWER_TOKENS,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    base = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    whole = base | {"status": "completed", "output": items, "usage": usage}

    def events() -> Iterator[tuple[str, Any]]:
        number = iter(range(1_000))

        def event(name: str, **fields: Any) -> tuple[str, Any]:
            return name, {"type": name, "sequence_number": next(number), **fields}

        yield event("response.created", response=base | {"status": "in_progress", "output": []})
        for index, item in enumerate(items):
            yield event("response.output_item.added", output_index=index, item=item)
            if item["type"] == "message":
                where = {"item_id": item["id"], "output_index": index, "content_index": 0}
                yield event("response.output_text.delta", **where, delta=answer.text, logprobs=[])
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=whole)

    return whole, events()


_MAKERS: dict[str, Callable[[Answer], Made]] = {
    "/chat/completions": _chat,
    "/messages": _anthropic,
    "/responses": _responses,
}
