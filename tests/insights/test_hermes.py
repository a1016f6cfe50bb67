"""Hermes' results are JSON: errors are told apart by the message inside."""

from __future__ import annotations

import json
from pathlib import Path

import warmstart


def write_export(path: Path, results: list[tuple[str, str, dict[str, object]]]) -> None:
    """Write a Hermes export of one session: (tool, command or path, result) for each call."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Run the tests.", "timestamp": 1772355601.0}]
    for number, (tool, argument, result) in enumerate(results):
        function = {"name": tool, "arguments": json.dumps({"command" if tool == "terminal" else "path": argument})}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        at = 1772355602.0 + number
        messages.append({"role": "assistant", "content": "", "tool_calls": [call], "timestamp": at})
        messages.append(
            {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(result), "timestamp": at + 0.5}
        )
    session = {"id": "20260301_090000_aa11bb", "source": "cli", "model": "m", "started_at": 1772355600.0, "cwd": "/w"}
    path.write_text(json.dumps(session | {"messages": messages}) + "\n")


def test_missing_python_and_missing_pytest_are_two_errors(tmp_path: Path) -> None:
    no_python = {"output": "bash: line 1: python: command not found", "exit_code": 127, "error": None}
    no_pytest = {"output": "/usr/bin/python3: No module named pytest", "exit_code": 1, "error": None}
    no_file = {"error": "File not found: /w/a.py"}
    calls = [("terminal", "python -m pytest", no_python), ("terminal", "python3 -m pytest", no_pytest)]
    write_export(
        tmp_path / "export.jsonl",
        [*calls, *calls, ("read_file", "/w/a.py", no_file), ("read_file", "/w/a.py", no_file)],
    )
    with warmstart.open(tmp_path / "home") as ws:
        ws.ingest(tmp_path / "export.jsonl")
        errors = ws.insights().repeated
    assert {error.message for error in errors} == {
        "bash: line <n>: python: command not found",
        "<path>: No module named pytest",
        "File not found: <path>",
    }
