"""A scripted model on loopback that records every request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = dict[str, Any]  # a message; or {"status": ...}, {"sleep": ...}, {"redirect": ...}


def say(text: str = "Nothing to save.") -> Answer:
    return {"role": "assistant", "content": text}


def call(tool: str, /, id: str = "", **arguments: Any) -> Answer:
    return calls((tool, id, arguments))


def calls(*wanted: tuple[str, str, dict[str, Any]]) -> Answer:
    made = [
        {
            "id": id or f"call_new_{time.monotonic_ns()}_{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, id, arguments) in enumerate(wanted)
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


class Endpoint:
    """Serves until closed. `script` gives the answer to a request's body."""

    def __init__(self) -> None:
        self.script: Callable[[dict[str, Any]], Answer] = lambda body: say()
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.usage: dict[str, Any] | None = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.raw.append(raw)
                endpoint.headers.append(dict(self.headers))
                message = endpoint.script(json.loads(raw))
                if "sleep" in message:
                    time.sleep(message["sleep"])
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
                if endpoint.usage:
                    body["usage"] = endpoint.usage
                data = message["bytes"] if "bytes" in message else json.dumps(body).encode()
                self.send_response(message.get("status", 200))
                if "redirect" in message:
                    self.send_header("Location", message["redirect"])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                with suppress(OSError):
                    self.wfile.write(data)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(raw) for raw in self.raw]

    def answer(self, *answers: Answer) -> None:
        """Give these answers one after the other, then "Nothing to save."."""
        rest = iter(answers)
        lock = threading.Lock()

        def script(_body: dict[str, Any]) -> Answer:
            with lock:
                return next(rest, say())

        self.script = script

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
