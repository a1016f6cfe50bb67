"""Measure the cost of ingesting one session into a store with many closed trials, against the same in an empty store.

    python bench/closing.py [--json] [--quick] [--trials N] [--folders N] [--repeats N]

Two stores have the same 30 templates and the same running experiment. One is empty; in the other, every one of N (9,000)
sessions has been provisioned, a note has been shown or withheld in it, and its transcript has been ingested and has closed
both trials. Then sessions of the same length are provisioned and ingested one by one, in turns in either store. Only
`ingest` is measured, by the CPU time of the process. Both stores are opened once and lie in memory where the system has
/dev/shm. The sessions of the full store ran in `--folders` working folders (2), those of the empty store in one.

Templates and notes are weighed only when their measured trials have grown by 2 %. In a full store that is rare, so the
median does not show it: `weigh_ms` is the cost of weighing both once, and `amortised_ms` adds its share per session. The
empty store weighs the few sessions that it has got so far at every ingest.

JSON keys: `trials`, `templates`, `folders`, `repeats`, `empty_ms` and `full_ms` (medians), `ratio` (full / empty; at most 2
is the bar), `full_mean_ms`, `weigh_ms`, `amortised_ms`, `amortised_ratio` (amortised / empty), `seconds`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import warmstart
from traps import KNOWN, MEMORY, World, make_lines, prepare, write_settings
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store.occurrences import NoteOccurrence, OccurrenceStore
from warmstart.store.weighings import DUE

CALLS = [True, False, True, True]  # outcomes of a session's calls
BATCH = 1_000  # sessions provisioned in one transaction


class Sessions:
    """Provisions sessions in one store and writes their transcripts."""

    def __init__(self, ws: Warmstart, folder: Path, folders: int) -> None:
        self.ws = ws
        self._folders = folders
        self.out = folder / "out"
        self._number = 0

    def run(self, count: int) -> None:
        """Provision sessions and leave their transcripts."""
        self.out.mkdir()
        with self.ws.store.writing():
            OccurrenceStore(self.ws.store).put([self._run_one() for _ in range(count)])

    def _run_one(self) -> NoteOccurrence:
        self._number += 1
        name, project = f"session-{self._number:07}", f"/work/shop-{self._number % self._folders}"
        text = KNOWN[self._number % len(KNOWN)]
        self.ws.provision(Task(text=text, session=name, agent="claude-code", project=project, tools=("Bash",)))
        lines = make_lines(name, project, CALLS)
        (self.out / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        withheld = self._number % 2 == 0
        return NoteOccurrence(note="n", session=name, withheld=withheld, share=0.5, action="tell", at=time.time())

    def ingest(self) -> float:
        """Ingest the transcripts. Returns the CPU time in seconds."""
        began = time.process_time()
        ingested = self.ws.ingest(self.out)
        spent = time.process_time() - began
        assert ingested.trials == ingested.new > 0, ingested
        shutil.rmtree(self.out)
        return spent


@contextmanager
def open_sessions(folder: Path, trials: int, folders: int) -> Iterator[Sessions]:
    """Open a store with closed trials."""
    write_settings(folder)
    with warmstart.open(folder / "home") as ws:
        prepare(ws, World(templates=len(KNOWN)), folder)
        sessions = Sessions(ws, folder, folders)
        for done in range(0, trials, BATCH):
            sessions.run(min(BATCH, trials - done))
            sessions.ingest()
            print(f"\r{min(done + BATCH, trials)} of {trials} trials", end="", file=sys.stderr, flush=True)
        yield sessions


def measure(trials: int, folders: int, repeats: int) -> dict[str, Any]:
    """Return the costs of one ingest in an empty and in a full store."""
    costs: dict[str, list[float]] = {"empty": [], "full": []}
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place, ExitStack() as opened:
        stores = {
            name: opened.enter_context(open_sessions(Path(place) / name, *size))
            for name, size in (("empty", (0, 1)), ("full", (trials, folders)))
        }
        for repeat in range(repeats + 1):
            for name, sessions in stores.items():
                sessions.run(1)
                spent = sessions.ingest()
                if repeat:  # the first one imports modules
                    costs[name].append(spent * 1e3)
        began = time.process_time()
        stores["full"].ws.experiments.weigh()
        stores["full"].ws.notes.weigh_occurrences()
        weigh = (time.process_time() - began) * 1e3
    empty, full = statistics.median(costs["empty"]), statistics.median(costs["full"])
    amortised = full + weigh / (DUE * trials)
    return {
        "trials": trials,
        "templates": len(KNOWN),
        "folders": folders,
        "repeats": repeats,
        "empty_ms": round(empty, 2),
        "full_ms": round(full, 2),
        "ratio": round(full / empty, 2),
        "full_mean_ms": round(statistics.mean(costs["full"]), 2),
        "weigh_ms": round(weigh, 1),
        "amortised_ms": round(amortised, 2),
        "amortised_ratio": round(amortised / empty, 2),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="300 trials, 10 repeats")
    parser.add_argument("--trials", type=int, default=9_000, help="closed trials in the full store (9,000)")
    parser.add_argument("--folders", type=int, default=2, help="working folders of their sessions (2)")
    parser.add_argument("--repeats", type=int, default=40, help="ingests measured per store (40)")
    options = parser.parse_args()
    trials, repeats = (300, 10) if options.quick else (options.trials, options.repeats)
    began = time.perf_counter()
    report = measure(trials, options.folders, repeats) | {"seconds": round(time.perf_counter() - began)}
    print(file=sys.stderr)
    print(json.dumps(report)) if options.json else show(report)


def show(report: dict[str, Any]) -> None:
    """Print the report for a person."""
    print(
        "ingest of one session, CPU time: {empty_ms} ms into an empty store, {full_ms} ms with {trials:,} trials: "
        "{ratio} times\nwith its share of a weighing ({weigh_ms} ms): {amortised_ms} ms, {amortised_ratio} times; "
        "{seconds} s".format(**report)
    )


if __name__ == "__main__":
    main()
