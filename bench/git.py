"""Compare two ways to read a checkpoint branch: `git cat-file --batch`, as `ingest` does, and pygit2.

    python bench/git.py [--json] [--rounds N]

The repository is made: 200 sessions in three growing copies each, packed. Both ways list the branch, choose the largest
copy of each session and read it. pygit2 is no dependency of ours: without it, only our own way is measured.

JSON keys: `sessions`, `bytes`, `git_ms`, `pygit2_ms` (null without pygit2), `git_over_pygit2`, `unchanged_ms` (a branch at
a known commit: its ref is read, and nothing else).
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from warmstart.ingest.git_branches import find_branches

BRANCH = "entire/checkpoints/v1"
SESSIONS, COPIES, LINES = 200, 3, 400


def make_repository(folder: Path) -> None:
    """Write a packed repository with checkpoints."""
    stream = [f"commit refs/heads/{BRANCH}\ncommitter a <a@example.com> 1790000000 +0000\ndata 1\nx\n".encode()]
    for session in range(SESSIONS):
        for copy in range(1, COPIES + 1):
            lines = (
                json.dumps({"session": session, "line": n, "text": f"{n * 7919 % 10007} " * 20})
                for n in range(LINES * copy)
            )
            place = f"{session % 256:02x}/{session:08x}{copy}/0"
            for name, text in (
                ("full.jsonl", "\n".join(lines)),
                ("metadata.json", json.dumps({"session_id": f"s-{session}"})),
            ):
                content = text.encode()
                stream.append(
                    b"M 100644 inline %s\ndata %d\n%s\n" % (f"{place}/{name}".encode(), len(content), content)
                )
    run = ["git", "-C", str(folder)]
    subprocess.run([*run, "init", "-q"], check=True)
    subprocess.run([*run, "fast-import", "--quiet"], input=b"".join(stream), check=True)
    subprocess.run([*run, "gc", "-q"], check=True)


def read_by_git(folder: Path) -> int:
    """Read the largest copies as `ingest` does; return their bytes."""
    size = 0
    for branch in find_branches(folder):
        for source in branch.sources(lambda _name, _reason: None):
            with source.open() as stream:
                while chunk := stream.read(1 << 18):
                    size += len(chunk)
    return size


def read_by_pygit2(folder: Path) -> int:
    """Read the largest copies with pygit2; return their bytes."""
    pygit2: Any = importlib.import_module("pygit2")
    repository = pygit2.Repository(str(folder))
    largest: dict[str, Any] = {}

    def visit(tree: Any) -> None:
        entries = {entry.name: entry for entry in tree}
        for entry in entries.values():
            if entry.type_str == "tree":
                visit(entry)
        if "full.jsonl" in entries:
            session = json.loads(entries["metadata.json"].data)["session_id"]
            if session not in largest or largest[session].size < entries["full.jsonl"].size:
                largest[session] = entries["full.jsonl"]

    visit(repository.references[f"refs/heads/{BRANCH}"].peel().tree)
    return sum(len(blob.data) for blob in largest.values())


def measure(work: Callable[[Path], int], folder: Path, rounds: int) -> tuple[float, int]:
    """Return the median milliseconds of a way, and the bytes that it read."""
    times, size = [], 0
    for _ in range(rounds):
        began = time.perf_counter()
        size = work(folder)
        times.append((time.perf_counter() - began) * 1_000)
    return statistics.median(times), size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    os.environ |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder)
        git_ms, size = measure(read_by_git, folder, options.rounds)
        known = importlib.util.find_spec("pygit2") is not None
        pygit2_ms, other = measure(read_by_pygit2, folder, options.rounds) if known else (None, size)
        unchanged_ms, _ = measure(
            lambda place: len([branch.look() for branch in find_branches(place)]), folder, options.rounds
        )
    if other != size:
        raise SystemExit(f"the two ways read different bytes: {size} and {other}")
    figures = {
        "sessions": SESSIONS,
        "bytes": size,
        "git_ms": round(git_ms, 1),
        "pygit2_ms": round(pygit2_ms, 1) if pygit2_ms else None,
        "git_over_pygit2": round(git_ms / pygit2_ms, 2) if pygit2_ms else None,
        "unchanged_ms": round(unchanged_ms, 2),
    }
    if options.json:
        print(json.dumps(figures))
    else:
        for key, value in figures.items():
            print(f"{key:16} {value}")


if __name__ == "__main__":
    main()
