"""More cores and more machines: the speed of `--jobs`, the same lake from a cluster whose workers die, the cost of one session.

    python bench/engine.py [--part jobs|store_jobs|cluster|session|all] [--sessions N] [--stored 100000]
        [--transcripts PATH...] [--json]

`jobs`: the time of reading 6,000 sessions into a lake with one process over that with two. `store_jobs`: the same into a store,
by `ingest --jobs`, with the processor time of the writing process (`parent`) and of those that read (`children`, with their
start). `parent_share` is the writer's processor time over that of the whole work by one process; no number of jobs is faster than
its inverse, `bound`. Where another program holds a core, the ratio of seconds says more about that program. `--transcripts`
names others than those made for this. `cluster`: a local Dask cluster of
three workers reads 1,500 sessions, in units of 50, three times; each time another worker is killed with SIGKILL when the first
files are written. Every file must have the bytes that one process wrote, and the kill must come before the work ends. `session`:
the time to ingest one transcript and make its digest in a store with `--stored` sessions, over that in an empty store; medians
of 9. The store is filled with copies, under other ids, of 500 sessions that were read; filling ends after 120 seconds, and
`stored` is what was reached. A part takes less than 4 minutes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import signal
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))

from msgspec import structs

from lake import make_session, open_home, time_it, write_transcripts
from warmstart.lake import units
from warmstart.notes.merging import MergedDigests, WantedSessions
from warmstart.notes.register import RULES
from warmstart.pipeline import Warmstart
from warmstart.store import SpentRow
from warmstart.store.notes import NoteStore

_REPEATS = 9
_SESSIONS = {"jobs": 6_000, "store_jobs": 6_000, "cluster": 1_500}
_IN_UNIT = 50  # sessions of a file: of a unit of the cluster
_BASE, _BATCH, _FILLING = 500, 250, 120.0  # sessions that are copied, per transaction; seconds


def hash_files(lake: Path) -> dict[str, str]:
    return {
        str(file.relative_to(lake)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(lake.rglob("*.parquet"))
    }


def measure_jobs(scratch: Path, sessions: int) -> dict[str, Any]:
    write_transcripts(scratch / "t", 0, sessions)
    seconds: dict[int, float] = {}
    hashes = []
    with open_home(scratch) as ws:
        for jobs in (1, 2):
            url = scratch / f"jobs{jobs}"
            seconds[jobs], report = time_it(partial(ws.lake(str(url), jobs=jobs).ingest, [scratch / "t"]))
            assert report.new == sessions, report
            hashes.append(hash_files(url))
    return {
        "one": seconds[1],
        "two": seconds[2],
        "ratio": seconds[1] / seconds[2],
        "same_bytes": hashes[0] == hashes[1],
    }


def use_processor() -> list[float]:
    """Return the processor seconds of this process, and of its children that ended."""
    used = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [one.ru_utime + one.ru_stime for one in used]


def list_rows(ws: Warmstart) -> list[Any]:
    """Return what a store holds, without the times of reading."""
    rows = sorted(ws.sessions(limit=None), key=lambda row: row.key)
    return [(structs.replace(row, first_seen=0, updated=0), ws.store.calls_of(row.key)) for row in rows]


def measure_store_jobs(scratch: Path, sessions: int, paths: list[Path]) -> dict[str, Any]:
    write_transcripts(scratch / "warm", 0, 2)
    with open_home(scratch / "warm") as ws:
        ws.ingest(scratch / "warm")
    if not paths:
        write_transcripts(scratch / "p", 0, sessions, _IN_UNIT)
        paths = [scratch / "p"]
    found: dict[str, Any] = {}
    stored = []
    for name, jobs in (("one", 1), ("two", 2)):
        (scratch / name).mkdir()
        with open_home(scratch / name) as ws:
            before = use_processor()
            seconds, report = time_it(partial(ws.ingest, *paths, jobs=jobs))
            parent, children = (end - begin for begin, end in zip(before, use_processor(), strict=True))
            found[name] = {"seconds": seconds, "parent": parent, "children": children}
            stored.append((report, list_rows(ws)))
    found["sessions"] = stored[0][0].sessions
    found["ratio"] = found["one"]["seconds"] / found["two"]["seconds"]
    found["parent_share"] = found["two"]["parent"] / found["one"]["parent"]
    found["bound"] = 1 / found["parent_share"]
    found["same_rows"] = stored[0] == stored[1]
    return found


class Killer(threading.Thread):
    """Kills a process as soon as a lake holds its first file of sessions."""

    def __init__(self, victim: int, lake: Path) -> None:
        super().__init__(daemon=True)
        self._victim = victim
        self._lake = lake
        self.killed: float | None = None  # when

    def run(self) -> None:
        while not any(self._lake.glob("sessions/*/*/*.parquet")):
            time.sleep(0.01)
        os.kill(self._victim, signal.SIGKILL)
        self.killed = time.perf_counter()


def measure_cluster(scratch: Path, sessions: int, runs: int = 3) -> dict[str, Any]:
    from distributed import LocalCluster

    write_transcripts(scratch / "c", 0, sessions, _IN_UNIT)
    found: dict[str, Any] = {"runs": [], "sessions": sessions}
    with open_home(scratch) as ws, mock.patch.object(units, "UNIT_FILES", 1):
        plain, _report = time_it(lambda: ws.lake(str(scratch / "plain")).ingest([scratch / "c"]))
        expected = hash_files(scratch / "plain")
        for run in range(runs):
            url = scratch / f"cluster{run}"
            start: Any = LocalCluster
            with start(
                n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            ) as cluster:
                killer = Killer(list(cluster.workers.values())[run % 3].pid, url)
                lake = ws.lake(str(url), engine=cluster.scheduler_address)
                killer.start()
                began = time.perf_counter()
                report = lake.ingest([scratch / "c"])
                ended = time.perf_counter()
                lake.close()
            assert killer.killed is not None and killer.killed < ended, (
                "the worker was not killed before the work ended"
            )
            found["runs"].append(
                {
                    "seconds": ended - began,
                    "killed_after": killer.killed - began,
                    "same_bytes": hash_files(url) == expected,
                    "problems": len(report.problems),
                }
            )
    found["one_process"] = plain
    found["files"] = len(expected)
    found["same_bytes"] = all(run["same_bytes"] for run in found["runs"])
    return found


def add_sessions(ws: Warmstart, folder: Path, first: int, number: int) -> list[float]:
    """Ingest sessions one by one, and make the digest of each as `learn` and `insights` do; return the seconds of each."""
    import random

    folder.mkdir(exist_ok=True)
    merged = MergedDigests(ws.store)
    seconds = []
    for at in range(first, first + number):
        path = folder / f"{at}.jsonl"
        path.write_text(json.dumps(make_session(at, random.Random(at))) + "\n")
        began = time.perf_counter()
        ws.ingest(path)
        (row,) = ws.store.rows("keys_by_id", (f"s{at:09}",))
        with ws.store.writing():
            merged._make(row[0], ())
        seconds.append(time.perf_counter() - began)
    return seconds


def fill_store(ws: Warmstart, wanted: int) -> int:
    """Copy the stored sessions and their digests under other ids until there are `wanted`, or time is up; return how many."""
    notes = NoteStore(ws.store)
    base = []
    for row in ws.sessions(limit=None):
        spent = [SpentRow.from_columns(columns) for columns in ws.store.rows("spent_of", (row.key,))]
        digest = notes.digest_body(row.key) or ""
        base.append((row, ws.store.calls_of(row.key), spent, digest, notes.digest_figures(row.key) or b""))
    until = time.perf_counter() + _FILLING
    stored = copy = len(base)
    while stored < wanted and time.perf_counter() < until:
        for start in range(0, len(base), _BATCH):
            batch = base[start : start + _BATCH]
            names = [f"{copy + at:08x}{row.key[8:]}" for at, (row, *_facts) in enumerate(batch, start)]
            with ws.store.writing():
                ws.store.put_sessions(
                    [
                        (
                            structs.replace(
                                row, key=key, id=f"c{copy}-{row.id}", started=(row.started or 0.0) + copy / 97
                            ),
                            [
                                structs.replace(call, session_key=key, call_id=f"c{copy}-{call.call_id}")
                                for call in calls
                            ],
                            [structs.replace(part, session_key=key) for part in spent],
                        )
                        for key, (row, calls, spent, _digest, _figures) in zip(names, batch, strict=True)
                    ]
                )
                for key, (row, _calls, _spent, digest, figures) in zip(names, batch, strict=True):
                    copied = figures.replace(row.key.encode(), key.encode())
                    notes.put_digest(key, RULES, row.digest, digest.replace(row.key, key), copied)
            stored += len(batch)
        copy += len(base)
    return stored


def measure_session(scratch: Path, wanted: int) -> dict[str, Any]:
    write_transcripts(scratch / "s", 0, _BASE)
    with open_home(scratch) as ws:
        merged = MergedDigests(ws.store)
        add_sessions(ws, scratch / "warm", 900_000_000, 2)
        empty = statistics.median(add_sessions(ws, scratch / "first", 900_000_010, _REPEATS))
        ws.ingest(scratch / "s")
        digesting, _counts = time_it(lambda: merged.count_insights(WantedSessions()))
        filling, stored = time_it(lambda: fill_store(ws, wanted))
        add_sessions(ws, scratch / "again", 900_001_000, 2)
        full = statistics.median(add_sessions(ws, scratch / "later", 900_002_000, _REPEATS))
        first, _counts = time_it(lambda: merged.count_insights(WantedSessions()))
        add_sessions(ws, scratch / "more", 900_003_000, 1)
        again, counts = time_it(lambda: merged.count_insights(WantedSessions()))
    return {
        "wanted": wanted,
        "stored": stored,
        "empty": empty,
        "full": full,
        "ratio": full / empty,
        "filling": filling,
        "digesting": digesting / _BASE,  # seconds per session, once
        "insights_first": first,  # digests exist, merged parts do not
        "insights_again": again,
        "counted": counts.sessions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=("jobs", "store_jobs", "cluster", "session", "all"), default="all")
    parser.add_argument("--sessions", type=int, help="of the parts jobs, store_jobs and cluster")
    parser.add_argument("--transcripts", type=Path, nargs="+", default=[], help="of the part store_jobs")
    parser.add_argument("--stored", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = {"load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as name:
        if options.part in ("jobs", "all"):
            found["jobs"] = measure_jobs(Path(name), options.sessions or _SESSIONS["jobs"])
        if options.part in ("store_jobs", "all"):
            number = options.sessions or _SESSIONS["store_jobs"]
            found["store_jobs"] = measure_store_jobs(Path(name), number, options.transcripts)
        if options.part in ("cluster", "all"):
            found["cluster"] = measure_cluster(Path(name), options.sessions or _SESSIONS["cluster"])
        if options.part in ("session", "all"):
            found["session"] = measure_session(Path(name), options.stored)
    print(json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
