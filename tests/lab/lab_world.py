"""Shared by tests of the lab: a model that imitates its examples, a real loopback endpoint, and a trained folder.

The solver's sessions take seconds to write, so they are written once per test run and copied into each folder; the lab
treats them as those of a stopped run.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from warmstart.endpoints.chat import AskedCall, EndpointError, Reply
from warmstart.lab.chores.make import make_sessions, make_tasks
from warmstart.lab.chores.tasks import LabTask
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.agent import AgentLimits
from warmstart.lab.run.lab import Lab, Plan

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body
NAME = "scripted"
START = 1_790_000_000.0
SEED = "warm_"  # how ids of seeded calls begin
TRAINED = {
    task.request: session.family
    for held_out in (False, True)
    for session in make_sessions(1, held_out=held_out)
    for task in session.tasks
}


class Clock:
    """A clock that advances by a second with every look."""

    def __init__(self, start: float = START) -> None:
        self._seconds = count(start)

    def __call__(self) -> float:
        return next(self._seconds)


def make_plan(**facts: Any) -> Plan:
    return Plan(
        **{"tasks": 6, "model": ModelFacts(name=NAME, runtime="endpoint"), "limits": AgentLimits(turns=2)} | facts
    )


def call(tool: str, arguments: dict[str, Any] | str, id: str = "") -> AskedCall:
    return AskedCall(id, tool, arguments if isinstance(arguments, str) else json.dumps(arguments))


def families_shown(messages: list[dict[str, Any]]) -> set[str]:
    """Return the families whose training tasks a conversation shows, in any form."""
    told = "\n".join(message.get("content") or "" for message in messages[:-1])
    return {family for request, family in TRAINED.items() if request in told}


LONGER = {"count_rows": "insert_and_count", "move_to_new_folder": "move_and_note"}  # whose calls include a family's own


def shows_how(task: LabTask, messages: list[dict[str, Any]]) -> bool:
    """Return whether a conversation shows an example of a task's family, or of a longer one that makes the same calls."""
    return not {task.family, LONGER.get(task.family, task.family)}.isdisjoint(families_shown(messages))


class Imitator:
    """A model that does tasks of which it has an example, also as a part of a longer one, and only talks otherwise.

    If a request is reworded, its first call is wrong; the families in `STUCK` it never gets right.
    """

    STUCK = ("find_file", "average")

    def __init__(self, random_seed: int = 1, fails_after: int | None = None) -> None:
        tasks = make_tasks(random_seed=random_seed, split="test", per_family=2)
        self.tasks: dict[str, LabTask] = {task.request: task for task in tasks}
        assert len(self.tasks) == len(tasks)
        self.asked: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self._fails_after = fails_after

    def ask(self, body: bytes) -> Reply:
        if self._fails_after is not None and len(self.bodies) >= self._fails_after:
            raise EndpointError("the model is gone")
        request = json.loads(body)
        self.asked.append(request)
        self.bodies.append(body)
        return self.answer(request["messages"])

    def answer(self, messages: list[dict[str, Any]]) -> Reply:
        told = {"prompt_tokens": sum(len(str(one)) for one in messages) // 4, "answer_tokens": 20, "cached_tokens": 8}
        at, task = self.find_task(messages)
        if not shows_how(task, messages[: at + 1]):
            return Reply(text="I would rather talk about the weather.", **told)
        if task.family in self.STUCK or ("-reworded-" in task.id and at == len(messages) - 1):
            return Reply(calls=(call("read_file", {"path": "no/such/file.txt"}),), **told)
        return Reply(calls=tuple(call(one.tool, one.arguments) for one in task.solution), **told)

    def find_task(self, messages: list[dict[str, Any]]) -> tuple[int, LabTask]:
        return next(
            (at, self.tasks[said["content"]])
            for at, said in reversed(list(enumerate(messages)))
            if said["role"] == "user" and said["content"] in self.tasks
        )


def is_seeded(request: dict[str, Any]) -> bool:
    return any(one["id"].startswith(SEED) for said in request["messages"] for one in said.get("tool_calls") or ())


# A folder with what the solver has taught


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which a run with cold and warm and two turns can start at once; tests copy it."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    folder = place / "trained"
    with (place / "trained.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "plan.json").exists():
            lab = Lab(folder, make_plan(tasks=1), Imitator(fails_after=0), Clock(START - 86_400))
            with suppress(EndpointError):
                lab.run()
            lab.close()
    return folder


def copy_trained(trained: Path, folder: Path, parts: tuple[str, ...] = ("training", "home")) -> Path:
    for part in parts:
        shutil.copytree(trained / part, folder / part, ignore=shutil.ignore_patterns("*-wal", "*-shm"))  # of a reader
    return folder


def read_sessions(folder: Path, part: str = "sessions") -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted((folder / part).rglob("*"))
        if path.is_file()
    }


def without_times(files: dict[str, bytes]) -> dict[str, Any]:
    told = {name: json.loads(data) for name, data in files.items()}
    for transcript in told.values():
        for message in transcript["messages"]:
            assert message.pop("timestamp")
    return told


# A real endpoint


class Endpoint:
    """A server on loopback. `answer` returns status, headers and body for a request's body and may be replaced."""

    def __init__(self, answer: Callable[[bytes], Answer]) -> None:
        self.answer = answer
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                endpoint.bodies.append(body)
                endpoint.headers.append({"path": self.path, **self.headers})
                status, headers, data = endpoint.answer(body)
                with suppress(ConnectionError):  # the client may be dead
                    self.send_response(status)
                    for name, value in ({"Content-Length": str(len(data))} | headers).items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(data)

            def log_message(self, *_args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@contextmanager
def serve(answer: Callable[[bytes], Answer]) -> Iterator[Endpoint]:
    endpoint = Endpoint(answer)
    try:
        yield endpoint
    finally:
        endpoint.close()


def write_answer(reply: Reply) -> bytes:
    """Return a reply in the form of an OpenAI-compatible server."""
    calls = [
        {"id": one.id or f"x{n}", "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
        for n, one in enumerate(reply.calls)
    ]
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    answer: dict[str, Any] = {"choices": [{"message": message | ({"tool_calls": calls} if calls else {})}]}
    if reply.prompt_tokens is not None:
        answer["usage"] = {"prompt_tokens": reply.prompt_tokens, "completion_tokens": reply.answer_tokens}
        if reply.cached_tokens is not None:
            answer["usage"]["prompt_tokens_details"] = {"cached_tokens": reply.cached_tokens}
    return json.dumps(answer).encode()


def as_model(model: Imitator) -> Callable[[bytes], Answer]:
    """Return a server's `answer` that asks a scripted model."""
    return lambda body: (200, {"Content-Type": "application/json"}, write_answer(model.ask(body)))
