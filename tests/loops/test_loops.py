"""The examples in docs/howto/loops.md run unchanged, with the real SDKs, against a scripted provider on loopback."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import warmstart
from loopback import serving
from places import HOWTO, SRC
from transcripts import work_lines, write_jsonl
from warmstart.store import TrialStore
from warmstart.store.notes import NoteStore

PAGE = (HOWTO / "loops.md").read_text()
TASK = "the order total test fails again, please fix it"
SEEDED = ("echo fine", "echo missing >&2; exit 3", None)  # the model's calls, in turn, and the end of a session
ADVISED = ("cat settings.yml",) * 3 + (None,)
LEVELS = ("tell", "correct", "stop")
ENDING = "all done"
MARK = "Example from an earlier session"

EXAMPLES = {  # heading -> the session it names, how its requests are written
    "OpenAI SDK": ("openai-1", "openai"),
    "Anthropic SDK": ("anthropic-1", "anthropic"),
    "OpenAI Agents SDK": ("agents-1", "responses"),
    "LangGraph": ("langgraph-1", "openai"),
    "Pydantic AI": ("pydantic-1", "openai"),
}


def find_code(heading: str) -> str:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.split(f"## {heading}\n")[1].split("\n## ")[0], re.S)
    return str(code)


SHARED = re.findall(r"as `loop\.py`:.*?```python\n(.*?)```", PAGE, re.S)[0]


class Provider(BaseHTTPRequestHandler):
    """A model that calls `bash` or ends, as the script says, in three protocols."""

    asked: list[dict[str, Any]] = []  # noqa: RUF012
    script = SEEDED * 2 + ADVISED * len(LEVELS)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = len(self.asked)
        self.asked.append(body)
        command = self.script[number]
        arguments = {"command": command} if command else None
        speak = {"completions": say_chat, "responses": say_response, "messages": say_message}
        answer = speak[self.path.rsplit("/", 1)[1]](f"call_{number}", arguments) | {"model": body["model"]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        pass


def say_chat(call: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": ENDING}
    if arguments:
        function = {"name": "bash", "arguments": json.dumps(arguments)}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": function}]}  # fmt: skip
    choice = {"index": 0, "finish_reason": "tool_calls" if arguments else "stop", "message": message}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage}


def say_response(call: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    item: dict[str, Any] = {"type": "message", "id": "m", "role": "assistant", "status": "completed"}
    item["content"] = [{"type": "output_text", "text": ENDING, "annotations": []}]
    if arguments:
        item = {"type": "function_call", "id": f"fc_{call}", "call_id": call, "name": "bash", "arguments": json.dumps(arguments), "status": "completed"}  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}  # fmt: skip
    facts = {
        "id": "r",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "tools": [],
        "tool_choice": "auto",
    }
    return facts | {"parallel_tool_calls": True, "output": [item], "usage": usage}


def say_message(call: str, arguments: dict[str, Any] | None) -> dict[str, Any]:
    part = {"type": "tool_use", "id": call, "name": "Bash", "input": arguments} if arguments else {"type": "text", "text": ENDING}  # fmt: skip
    usage = {"input_tokens": 1, "output_tokens": 1}
    facts = {"id": "m", "type": "message", "role": "assistant", "stop_sequence": None, "usage": usage}
    return facts | {"content": [part], "stop_reason": "tool_use" if arguments else "end_turn"}


@pytest.fixture
def provider() -> Iterator[str]:
    Provider.asked = []
    with serving(Provider) as address:
        yield f"http://{address}"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with shared templates from the sample transcripts; to be copied."""
    home = tmp_path_factory.mktemp("learned")
    with warmstart.open(home) as ws:
        ws.ingest(SRC / "warmstart" / "samples")
        ws.learn()
        for row, _template in ws.templates.find("active"):
            ws.templates.share(row.name)  # the example runs in another folder
    return home


RUN_IN_EACH_HOME = """
import os, runpy, sys
for home in sys.argv[1:]:
    os.environ["WARMSTART_HOME"] = home
    sys.modules.pop("loop", None)
    runpy.run_path("example.py", run_name="__main__")
"""


def run_example(heading: str, folder: Path, url: str, *homes: Path) -> None:
    """Run an example once per home, in one process: some SDKs take seconds to load."""
    (folder / "loop.py").write_text(SHARED)
    (folder / "example.py").write_text(find_code(heading))
    keys = {"OPENAI_API_KEY": "x", "ANTHROPIC_API_KEY": "x", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    urls = {"OPENAI_BASE_URL": f"{url}/v1", "ANTHROPIC_BASE_URL": url}
    done = subprocess.run(
        [sys.executable, "-c", RUN_IN_EACH_HOME, *map(str, homes)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | keys | urls | {"PYTHONPATH": f"{folder}{os.pathsep}{SRC}"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == [ENDING] * len(homes)


def sent(request: dict[str, Any]) -> list[dict[str, Any]]:
    return list(request["input"] if "input" in request else request["messages"])


def make_knowing(home: Path, folder: Path, level: str) -> None:
    """Make a home that knows: `settings.yml` is not in this folder, `settings.yaml` is."""
    wrong = ("Bash", {"command": "cat settings.yml"}, "Exit code 1\ncat: settings.yml: No such file or directory")
    right = ("Bash", {"command": "cat settings.yaml"}, "a: b")
    home.mkdir()
    (home / "config.toml").write_text(f'holdout = 0\n[advice]\npath = "{level}"\n')
    with warmstart.open(home) as ws:
        for number in range(3):
            lines = work_lines(f"past-{number}", wrong, right, cwd=str(folder), day=number + 1)
            lines[2]["message"]["content"][0]["is_error"] = True
            ws.ingest(write_jsonl(home / "past" / f"{number}.jsonl", lines))
        ws.learn()


@pytest.fixture(scope="module")
def knowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to work in, and beside it a home that knows about it for each level; to be copied."""
    root = tmp_path_factory.mktemp("knowing")
    (root / "work").mkdir()
    (root / "work" / "settings.yaml").write_text("a: b\n")
    for level in LEVELS:
        make_knowing(root / level, root / "work", level)
    return root


@pytest.mark.slow
@pytest.mark.parametrize("heading", EXAMPLES)
def test_the_example(heading: str, provider: str, learned: Path, knowing: Path, tmp_path: Path) -> None:
    """In five homes: it starts cold without templates and warm with them, and a wrong call is told, corrected, stopped."""
    shutil.copytree(learned, tmp_path / "warm")
    for level in LEVELS:
        shutil.copytree(knowing / level, tmp_path / level)
    run_example(heading, knowing / "work", provider, *(tmp_path / name for name in ("cold", "warm", *LEVELS)))
    assert len(Provider.asked) == len(Provider.script)
    seeded, advised = Provider.asked[: 2 * len(SEEDED)], Provider.asked[2 * len(SEEDED) :]
    check_seeds(heading, [sent(body) for body in seeded], tmp_path / "warm")
    check_advice(EXAMPLES[heading][0], advised, tmp_path)


def check_seeds(heading: str, requests: list[list[dict[str, Any]]], home: Path) -> None:
    session, dialect = EXAMPLES[heading]
    assert [message["content"] for message in requests[0] if message["role"] != "system"] == [TASK]
    with warmstart.open(home) as ws:
        seed = ws.provision(warmstart.Task(session=session, dialect="text" if heading == "Pydantic AI" else dialect))
        trial = TrialStore(ws.store).trial(session)
        assert seed and trial and trial.arm == "warm" and trial.transcript
        measures = ws.experiments.measures(trial)
    for messages in requests[len(SEEDED) :]:
        assert warmstart.lint(messages, dialect) == []
        check_place(messages, seed)
    assert (measures.all_errors, measures.all_calls, measures.turns) == (1, 2, 3), "the seed's own calls do not count"


def check_advice(session: str, asked: list[dict[str, Any]], homes: Path) -> None:
    """The same wrong call three times, once per level: told before it and after it, corrected, and stopped once."""
    told, corrected, stopped = (read_results(sent(asked[last])) for last in (3, 7, 11))
    assert "`settings.yml`, use `settings.yaml`" in json.dumps(asked[0]), "the brief"
    assert [result.count("[warmstart] ") for result in told] == [1, 1, 0] and "No such file" in told[0]
    assert corrected[0].startswith("a: b") and "[warmstart] corrected the call" in corrected[0]
    assert stopped[0].startswith("[warmstart] stopped: ") and all("No such file" in result for result in stopped[1:])
    for level, errors in zip(LEVELS, (3, 2, 2), strict=True):
        with warmstart.open(homes / level) as ws:
            trial = TrialStore(ws.store).trial(session)
            assert trial is not None and ws.experiments.measures(trial).all_errors == errors
            ws.learn()
            shown = {showing.how for showing in NoteStore(ws.store).showings() if showing.session == session}
            assert {"brief", level, "after"} == shown


def read_results(messages: list[dict[str, Any]]) -> list[str]:
    """Return the results of a request's tool calls, in any protocol, without those of the seed."""
    results = []
    for message in messages:
        if message.get("role") == "tool":
            results.append(message["content"])
        elif message.get("type") == "function_call_output":
            results.append(message["output"])
        elif isinstance(message.get("content"), list):
            results += [part["content"] for part in message["content"] if part["type"] == "tool_result"]
    texts = [result if isinstance(result, str) else "".join(part["text"] for part in result) for result in results]
    return texts[-3:]


def check_place(messages: list[dict[str, Any]], seed: warmstart.Seed) -> None:
    """Check that the seed occurs once, behind the system messages and before the task."""
    if seed.text is not None:
        assert messages[0]["role"] == "system" and messages[0]["content"].endswith(seed.text)
        assert messages[1]["content"] == TASK
        return
    assert list(map(simplify, messages[: len(seed.messages)])) == list(map(simplify, seed.messages))
    assert MARK not in json.dumps(messages[len(seed.messages) :]), "once"
    task = messages[len(seed.messages)]
    assert task["role"] == "user" and task["content"] == TASK


def simplify(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message without what frameworks write differently: empty content, spaces in arguments."""
    calls = [(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())]  # fmt: skip
    return {key: value for key, value in message.items() if value is not None} | {"tool_calls": calls}


def test_examples_are_short():
    for heading in EXAMPLES:
        lines = [line for line in find_code(heading).splitlines() if line.strip()]
        assert 10 <= len(lines) <= 20, (heading, len(lines))
