"""Events of Claude Code's hooks, answered in this process or by the installed program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from io import BytesIO
from pathlib import Path
from typing import Any

from warmstart.doors.hooks.catch_up import has_work
from warmstart.doors.hooks.run import HookCall, run
from warmstart.ingest.queue import Queue

PROGRAM = Path(sys.executable).with_name("warmstart")
PROJECT = "/home/dev/shop"
SESSION = "00893aaf-19fa-41d2-8238-13269b9b3ca0"
PROMPT = "deploy the shop to the cluster"


def call(said: bytes, *words: str, agent: str = "claude-code", **more: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as an agent does; it must end well and print nothing but the protocol's JSON."""
    done = subprocess.run(
        [PROGRAM, "hook", "run", agent, *words], input=said, capture_output=True, timeout=30, check=False, **more
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done


def answer(event: dict[str, Any], agent: str = "claude-code") -> str | None:
    """Answer an event in this process. One that starts background work must go to the program."""
    return _read(event, run(HookCall(agent), BytesIO(json.dumps(event).encode())))


def answer_by_program(event: dict[str, Any], **more: Any) -> str | None:
    return _read(event, call(json.dumps(event).encode(), **more).stdout)


def _read(event: dict[str, Any], out: bytes | None) -> str | None:
    """Return the additional context of an answer, or None for silence."""
    if not out:
        return None
    output = json.loads(out)
    assert list(output) == ["hookSpecificOutput"]
    assert set(output["hookSpecificOutput"]) == {"hookEventName", "additionalContext"}
    assert output["hookSpecificOutput"]["hookEventName"] == event["hook_event_name"]
    return str(output["hookSpecificOutput"]["additionalContext"])


def event(name: str, session: str = SESSION, **facts: Any) -> dict[str, Any]:
    """Return an event as Claude Code's documentation shows it."""
    path = f"~/.claude/projects/-home-dev-shop/{session}.jsonl"
    common = {"session_id": session, "transcript_path": path, "cwd": PROJECT, "permission_mode": "default"}
    return common | {"hook_event_name": name} | facts


def start(session: str = SESSION, source: str = "startup", **facts: Any) -> dict[str, Any]:
    return event("SessionStart", session, source=source, model="claude-sonnet-4-5-20250929", **facts)


def prompt(text: str = PROMPT, session: str = SESSION, **facts: Any) -> dict[str, Any]:
    return event("UserPromptSubmit", session, prompt=text, **facts)


def read_log() -> str:
    file = Path(os.environ["WARMSTART_HOME"], "hooks.log")
    return file.read_text() if file.exists() else ""


def user_home() -> Path:
    return Path(os.environ["HOME"])


def wait_for_quiet(seconds: float = 120) -> None:
    """Wait until the background process has read the whole queue and learned from it."""
    home = Path(os.environ["WARMSTART_HOME"])
    queue = Queue(home)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not has_work(home):  # else a process may be about to take the lock
            with queue.alone() as alone:
                if alone and not has_work(home):
                    return
        time.sleep(0.2)
    raise AssertionError(f"{queue.count()} transcripts still wait: {read_log()}")
