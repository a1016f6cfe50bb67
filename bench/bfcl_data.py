"""The data of BFCL v4's multi-turn tasks, out of the wheel `bfcl-eval`: requests, tools, ground truth, classes that run.

The wheel is installed without its dependencies: `pip install --no-deps bfcl-eval`, and `pip install mpmath` for its MathAPI.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import uuid
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_SET = "BFCL_v4_multi_turn_base.json"
_INSTALL = "it needs BFCL's data: pip install --no-deps bfcl-eval && pip install mpmath"


class BfclCall(NamedTuple):
    """One call: the tool and its arguments by name."""

    tool: str
    arguments: dict[str, Any]
    written: str  # as BFCL writes it: cd(folder='document')


class BfclTurn(NamedTuple):
    """A request, the calls that meet it, and what they return."""

    request: str
    calls: tuple[BfclCall, ...]
    results: tuple[str, ...]

    @property
    def tools(self) -> frozenset[str]:
        return frozenset(call.tool for call in self.calls)


class BfclTask(NamedTuple):
    """A task with the turns of its ground truth."""

    number: int
    turns: tuple[BfclTurn, ...]
    docs: tuple[dict[str, Any], ...]  # of the tools that it has
    entry: dict[str, Any]  # as BFCL's checker takes it
    truth: tuple[tuple[str, ...], ...]  # as BFCL's checker takes it

    @property
    def tools(self) -> tuple[str, ...]:
        return tuple(doc["name"] for doc in self.docs)


def load_tasks() -> list[BfclTask]:
    """Return all tasks. Their ground truth is executed once, for the results."""
    data = find_data()
    answers = {entry["id"]: entry["ground_truth"] for entry in _read_lines(data / "possible_answer" / _SET)}
    return [_make_task(entry, answers[entry["id"]]) for entry in _read_lines(data / _SET)]


def find_data() -> Path:
    """Return the folder of BFCL's data."""
    try:
        import bfcl_eval
        import mpmath  # noqa: F401
    except ImportError:
        sys.exit(_INSTALL)
    return Path(str(bfcl_eval.__file__)).parent / "data"


def _read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


@cache
def _read_docs(class_name: str) -> tuple[dict[str, Any], ...]:
    from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING

    return tuple(_read_lines(find_data() / "multi_turn_func_doc" / MULTI_TURN_FUNC_DOC_FILE_MAPPING[class_name]))


def _make_task(entry: dict[str, Any], truth: list[list[str]]) -> BfclTask:
    left_out = set(entry.get("excluded_function") or ())
    docs = [doc for name in entry["involved_classes"] for doc in _read_docs(name) if doc["name"] not in left_out]
    names = {doc["name"]: list(doc["parameters"]["properties"]) for doc in docs} | _read_all_parameters()
    turns = []
    for asked, written in zip(entry["question"], truth, strict=True):
        results = execute(entry, written, "history")
        calls = tuple(read_call(call, names) for call in written)
        turns.append(BfclTurn("\n".join(message["content"] for message in asked), calls, tuple(results)))
    number = int(entry["id"].rpartition("_")[2])
    return BfclTask(number, tuple(turns), tuple(docs), entry, tuple(map(tuple, truth)))


@cache
def _read_all_parameters() -> dict[str, list[str]]:
    from bfcl_eval.constants.executable_backend_config import MULTI_TURN_FUNC_DOC_FILE_MAPPING

    names: dict[str, list[str]] = {}
    for class_name in MULTI_TURN_FUNC_DOC_FILE_MAPPING:
        if "Memory" not in class_name and "Web" not in class_name:
            names |= {doc["name"]: list(doc["parameters"]["properties"]) for doc in _read_docs(class_name)}
    return names


def execute(entry: dict[str, Any], calls: list[str], who: str) -> list[str]:
    """Execute calls in BFCL's own classes, one world for each task and `who`; BFCL's prints are dropped."""
    from bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils import execute_multi_turn_func_call

    with contextlib.redirect_stdout(io.StringIO()):
        results, _instances = execute_multi_turn_func_call(
            calls, entry["initial_config"], entry["involved_classes"], who, entry["id"]
        )
    return list(results)


def read_call(written: str, names: dict[str, list[str]]) -> BfclCall:
    """Return a call that BFCL writes as Python, its arguments by name."""
    node = ast.parse(written.strip(), mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"no call: {written}")
    arguments = dict(zip(names.get(node.func.id, ()), map(_read_value, node.args), strict=False))
    arguments |= {word.arg: _read_value(word.value) for word in node.keywords if word.arg}
    return BfclCall(node.func.id, arguments, written)


def _read_value(node: ast.expr) -> Any:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return ast.unparse(node)
    return list(value) if isinstance(value, tuple) else value


def write_session(task: BfclTask) -> dict[str, Any]:
    """Return a task's ground truth as a transcript of chat messages. Nobody closes a turn with words there."""
    return {"id": f"bfcl_{task.number}", "success": True, "messages": _write_turns(task.number, task.turns)}


def write_played_session(task: BfclTask, calls: list[str], words: str) -> dict[str, Any]:
    """Return a model's own session of a task's first turn as a transcript; nothing says whether it solved the task."""
    made = tuple(read_call(call, {}) for call in calls)
    results = tuple(execute(task.entry, calls, f"played{uuid.uuid4().hex}")) if calls else ()
    messages = _write_turns(task.number, [BfclTurn(task.turns[0].request, made, results)])
    closing = [{"role": "assistant", "content": words}] if words else []
    return {"id": f"bfcl_{task.number}", "messages": [*messages, *closing]}


def _write_turns(number: int, turns: Sequence[BfclTurn]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for turn in turns:
        messages.append({"role": "user", "content": turn.request})
        for call, result in zip(turn.calls, turn.results, strict=True):
            name = f"call_{number}_{len(messages)}"
            function = {"name": call.tool, "arguments": json.dumps(call.arguments)}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": name, "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": name, "content": result})
    return messages
