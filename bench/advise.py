"""Measure advice at a call in one process: how long an answer takes at few and at many notes.

    python bench/advise.py [--json] [--calls N]

A made-up project has 100 notes, then 10,000, of every kind; a file of it is missing on disk for every note about a path.
Of the calls, half concern no note, and the others match one: commands, reads and edits, each of its own session, so that
nothing is left out because it was told before. Every answer checks the real disk.

JSON keys: `calls`, `notes` {"100", "10000": {p50_ms, p90_ms, told}} (`told`: share of the calls that got advice),
`p50_ms` (at 10,000), `ratio` (p50 at 10,000 over p50 at 100), `index_p50_ms` {"100", "10000"} (the same by a hook's way:
the index file is opened, searched by offset and closed for every call), `index_ratio`. Bars: `p50_ms` <= 0.2, `ratio` <= 2.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from provision import quantile
from warmstart.notes.advise import advise_before
from warmstart.notes.adviser import Adviser
from warmstart.notes.index import find_index, open_index
from warmstart.notes.index_files import write_folders, write_index
from warmstart.notes.session_state import SessionMemory
from warmstart.notes.types import CallEvent, Note, NoteKind

SIZES = (100, 10_000)
Advise = Callable[[CallEvent], object]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--calls", type=int, default=2_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder:
        report = measure(Path(folder), options.calls)
    print(json.dumps(report)) if options.json else show(report)


def measure(folder: Path, calls: int) -> dict[str, Any]:
    project = folder / "shop"
    project.mkdir()
    (project / "here.go").write_text("package main\n")
    desks, hooks, events = {}, {}, {}
    for size in SIZES:
        home = folder / str(size)
        index = write_index(home, "shop", (make_note(number) for number in range(size)), roots=(str(project),))
        write_folders(home, {str(project): index})
        desks[str(size)], hooks[str(size)] = Adviser(home).advise, HookLike(home).advise
        events[str(size)] = [make_call(number, size, project) for number in range(calls)]
        desks[str(size)](events[str(size)][-1])  # reads the index
    taken, told = run(desks, events)
    rows = {
        size: {
            "p50_ms": round(statistics.median(taken[size]), 4),
            "p90_ms": round(quantile(taken[size], 0.9), 4),
            "told": round(told[size] / calls, 3),
        }
        for size in desks
    }
    taken, _told = run(hooks, {size: some[: calls // 4] for size, some in events.items()})
    by_file = {size: round(statistics.median(some), 4) for size, some in taken.items()}
    few, many = (str(size) for size in SIZES)
    return {
        "calls": calls,
        "notes": rows,
        "p50_ms": rows[many]["p50_ms"],
        "ratio": round(rows[many]["p50_ms"] / rows[few]["p50_ms"], 2),
        "index_p50_ms": by_file,
        "index_ratio": round(by_file[many] / by_file[few], 2),
    }


class HookLike:
    """Answers as a hook does, without its process: from the file, anew for every call."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)

    def advise(self, event: CallEvent) -> object:
        known = find_index(self._home, event.cwd)
        index = open_index(*known) if known else None
        assert index is not None
        call = {"tool": event.tool, "arguments": event.arguments, "cwd": event.cwd}
        advice = advise_before(call, index, {}, SessionMemory())
        index.close()
        return advice


def run(
    desks: Mapping[str, Advise], events: Mapping[str, list[CallEvent]]
) -> tuple[dict[str, list[float]], Counter[str]]:
    """Return the milliseconds of every answer, and how many of them were advice. The sizes take turns, call by call."""
    taken: dict[str, list[float]] = {size: [] for size in desks}
    told: Counter[str] = Counter()
    for turn in zip(*events.values(), strict=True):
        for size, event in zip(desks, turn, strict=True):
            started = time.perf_counter()
            advice = desks[size](event)
            taken[size].append((time.perf_counter() - started) * 1e3)
            told[size] += bool(advice) and getattr(advice, "action", "tell") != "none"
    return taken, told


def make_note(number: int) -> Note:
    kinds: tuple[tuple[NoteKind, str, str], ...] = (
        ("path", f"src/part{number}/old.go", f"path:src/part{number}/old.go"),
        ("command", f"--flag{number}", f"with:make --flag{number}"),
        ("environment", f"tool{number}", f"run:tool{number}"),
        ("slow", f"suite{number}", f"run:make suite{number}"),
        ("tool", f"message {number}", "tool:Edit" if number % 500 == 4 else f"arg:Search.team={number}"),
    )
    kind, subject, trigger = kinds[number % len(kinds)]
    return Note(
        id=f"{number:012x}",
        project="shop",
        kind=kind,
        subject=subject,
        key=f"{kind}:{subject}",
        trigger=trigger,
        text=f"`{subject}` is not what it seems here",
        fix="here.go" if kind == "path" else "",
        support=2 + number % 9,
        failures=5,
        status="active",
    )


def make_call(number: int, size: int, project: Path) -> CallEvent:
    """Return a call: of every two, one that matches a note, and one like those that agents make all day."""
    known = number * 7_919 % size // 5 * 5
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("Bash", {"command": f"cd {project} && cat src/part{known}/old.go | head -20"}),
        ("Bash", {"command": f"git status && go test ./pkg{number}/... 2>&1 | tail -40"}),
        ("Bash", {"command": f"make --flag{known + 1} -j4"}),
        ("Read", {"file_path": str(project / "here.go")}),
        ("Bash", {"command": f"tool{known + 2} --version"}),
        ("Edit", {"file_path": str(project / "here.go"), "old_string": "a", "new_string": "b"}),
        ("Read", {"file_path": str(project / f"src/part{known}/old.go")}),
        ("Grep", {"pattern": "func main", "path": str(project / "src"), "output_mode": "content"}),
    )
    tool, arguments = calls[number % len(calls)]
    return CallEvent(tool=tool, arguments=arguments, session=str(number), agent="claude-code", cwd=str(project))


def show(report: dict[str, Any]) -> None:
    print(f"{'notes':>8}{'p50 ms':>10}{'p90 ms':>10}{'told':>8}{'p50 ms from the file':>23}")
    for size, row in report["notes"].items():
        print(f"{size:>8}{row['p50_ms']:>10}{row['p90_ms']:>10}{row['told']:>8}{report['index_p50_ms'][size]:>23}")
    print(f"10,000 notes take {report['ratio']} times as long as 100 (from the file: {report['index_ratio']})")


if __name__ == "__main__":
    main()
