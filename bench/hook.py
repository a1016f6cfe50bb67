"""Measure how long agents wait for our hooks: whole processes of the installed program, in bare interpreter starts.

    python bench/hook.py [--json] [--rounds N]

The store holds the templates learned from the sample transcripts and 1,000 made-up ones, the project 1,000 notes. Each
event goes as JSON to its own process, as an agent starts a hook, alternating with the same interpreter doing nothing:
the start of a session, its first prompt, calls that no note and that one note concerns, a file that was read, a failed
call, a later prompt and a stop. Every round is a new session.

JSON keys: `bare_ms`, `events` {name: {p50_ms, p90_ms, over_bare}} for `start`, `first_prompt`, `call` (PreToolUse, no
note), `call_matched` (PreToolUse, told), `call_done` (PostToolUse), `call_failed` (PostToolUseFailure), `later_prompt`,
`stop` (`over_bare` is the median of the pairs' ratios), `worst_over_bare` (of all), `worst_call_over_bare` (of `call`,
`call_matched` and `call_done`; bar: 3), `answered` {name: share of the processes that answered}.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from provision import fill, make_template, quantile
from warmstart import config
from warmstart.notes.index_files import write_folders, write_index
from warmstart.notes.types import Note
from warmstart.pipeline import Warmstart

PROJECT = "/home/mira/orders-api"  # the samples' project
MODEL = "claude-sonnet-4-5-20250929"
PROMPT = "the order total test fails again, please fix it"
EVENTS = ("start", "first_prompt", "call", "call_matched", "call_done", "call_failed", "later_prompt", "stop")
CALLS = ("call", "call_matched", "call_done")  # for which an agent waits at every call
NOTES = 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder:
        report = measure(Path(folder), options.rounds)
    print(json.dumps(report)) if options.json else show(report)


def measure(user_home: Path, rounds: int) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WARMSTART_", "CLAUDE_CONFIG", "PYTHONDONTWRITE"))}
    env |= {"HOME": str(user_home), "WARMSTART_HOLDOUT": "0"}
    with Warmstart(config.load(environ=env)) as ws:
        ws.ingest(ROOT / "src" / "warmstart" / "samples")
        ws.learn()
        fill(ws, [make_template(number) for number in range(1_000)])
    write_notes(user_home / ".warmstart")
    transcripts = user_home / ".claude" / "projects" / "-home-mira-orders-api"
    transcripts.mkdir(parents=True)
    taken: dict[str, list[float]] = {name: [] for name in EVENTS}
    bare: list[float] = []
    ratios: dict[str, list[float]] = {name: [] for name in EVENTS}
    answered = dict.fromkeys(EVENTS, 0)
    for number in range(rounds + 1):
        session = str(uuid.uuid4())
        transcript = transcripts / f"{session}.jsonl"
        transcript.write_text("{}\n")
        for name in EVENTS:
            ours, answer = run([str(program()), "hook", "run", "claude-code"], env, event(name, session, transcript))
            start, _nothing = run([sys.executable, "-c", "pass"], env, b"")
            if number:  # the first round fills the caches
                taken[name].append(ours)
                bare.append(start)
                ratios[name].append(ours / start)
                answered[name] += bool(answer)
        shutil.rmtree(user_home / ".warmstart" / "queue")  # or the next start would read it in the background
    events = {
        name: {
            "p50_ms": round(statistics.median(taken[name]), 1),
            "p90_ms": round(quantile(taken[name], 0.9), 1),
            "over_bare": round(statistics.median(ratios[name]), 2),
        }
        for name in EVENTS
    }
    return {
        "bare_ms": round(statistics.median(bare), 1),
        "events": events,
        "worst_over_bare": max(row["over_bare"] for row in events.values()),
        "worst_call_over_bare": max(events[name]["over_bare"] for name in CALLS),
        "answered": {name: round(n / rounds, 2) for name, n in answered.items()},
    }


def write_notes(home: Path) -> None:
    """Write the index that `learn` would write for a project with many notes."""
    notes = [
        Note(
            id=f"{number:012x}",
            project=PROJECT,
            kind="command",
            subject=f"--flag{number}",
            key=f"command:--flag{number}",
            trigger="fresh:Edit" if not number else f"with:make --flag{number}",
            text=f"`make --flag{number}` fails; `make flag` works",
            fix="make flag",
            support=5,
            failures=6,
            status="active",
        )
        for number in range(NOTES)
    ]
    write_folders(home, {PROJECT: write_index(home, PROJECT, notes, roots=(PROJECT,))})


def program() -> Path:
    """Return the console script beside this interpreter."""
    script = Path(sys.executable).with_name("warmstart")
    if not script.exists():
        raise SystemExit("install the package first: pip install -e .")
    return script


def event(name: str, session: str, transcript: Path) -> bytes:
    """Return an event as Claude Code writes it."""
    common = {"session_id": session, "transcript_path": str(transcript), "cwd": PROJECT, "permission_mode": "default"}
    more: dict[str, dict[str, Any]] = {
        "start": {"hook_event_name": "SessionStart", "source": "startup", "model": MODEL},
        "first_prompt": {"hook_event_name": "UserPromptSubmit", "prompt": PROMPT},
        "call": {"hook_event_name": "PreToolUse"} | call("Bash", command="git status && ls -la src | head -20"),
        "call_matched": {"hook_event_name": "PreToolUse"} | call("Bash", command="make --flag7 -j4 2>&1 | tail -5"),
        "call_done": {
            "hook_event_name": "PostToolUse",
            "tool_response": {"type": "text", "file": {"content": "x = 1\n" * 300}},
        }
        | call("Read", file_path=f"{PROJECT}/src/app.py"),
        "call_failed": {
            "hook_event_name": "PostToolUseFailure",
            "error": "Exit code 2\nmake: unrecognized option '--flag9'",
        }
        | call("Bash", command="make --flag9"),
        "later_prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "and now the other one"},
        "stop": {"hook_event_name": "Stop", "stop_hook_active": False},
    }
    return json.dumps(common | more[name]).encode()


def call(tool: str, **arguments: str) -> dict[str, Any]:
    return {"tool_name": tool, "tool_input": arguments, "tool_use_id": f"toolu_{uuid.uuid4().hex}"}


def run(words: list[str], env: dict[str, str], data: bytes) -> tuple[float, bytes]:
    """Return the milliseconds that a process took, and its output."""
    started = time.perf_counter()
    done = subprocess.run(words, input=data, env=env, check=True, capture_output=True)
    return (time.perf_counter() - started) * 1e3, done.stdout


def show(report: dict[str, Any]) -> None:
    print(f"a bare interpreter start takes {report['bare_ms']} ms")
    print(f"{'event':<14}{'p50 ms':>9}{'p90 ms':>9}{'bare starts':>13}{'answered':>10}")
    for name, row in report["events"].items():
        print(f"{name:<14}{row['p50_ms']:>9}{row['p90_ms']:>9}{row['over_bare']:>13}{report['answered'][name]:>10}")


if __name__ == "__main__":
    main()
