"""More cores and more machines: the speed of `--jobs`, the same lake from a cluster whose workers die, the cost of one session.

    python bench/engine.py [--part jobs|cluster|session|all] [--sessions 4000] [--stored 100000] [--json]

`jobs`: the time of reading transcripts into a lake with one process over that with two. `cluster`: a local Dask cluster of
three workers reads the same transcripts while one worker is killed with SIGKILL; every file must have the bytes that one
process wrote. `session`: the time to ingest one transcript and make its digest in a store with `--stored` sessions, over that
in an empty store; medians of 9.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from lake import make_session, open_home, time_it, write_transcripts
from warmstart.notes.merging import MergedDigests, WantedSessions
from warmstart.pipeline import Warmstart

_REPEATS = 9


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


def measure_cluster(scratch: Path, sessions: int, runs: int = 3) -> dict[str, Any]:
    from distributed import LocalCluster

    write_transcripts(scratch / "c", 0, sessions)
    found: dict[str, Any] = {"runs": [], "sessions": sessions}
    with open_home(scratch) as ws:
        plain, _report = time_it(lambda: ws.lake(str(scratch / "plain")).ingest([scratch / "c"]))
        expected = hash_files(scratch / "plain")
        for run in range(runs):
            url = scratch / f"cluster{run}"
            start: Any = LocalCluster
            with start(
                n_workers=3, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
            ) as cluster:
                victim = list(cluster.workers.values())[run % 3].pid
                killer = threading.Timer(min(4.0, plain / 6) + run, os.kill, (victim, signal.SIGKILL))
                killer.start()
                lake = ws.lake(str(url), engine=cluster.scheduler_address)
                seconds, report = time_it(partial(lake.ingest, [scratch / "c"]))
                killer.join()
                lake.close()
            found["runs"].append(
                {"seconds": seconds, "same_bytes": hash_files(url) == expected, "problems": len(report.problems)}
            )
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


def measure_session(scratch: Path, stored: int) -> dict[str, Any]:
    write_transcripts(scratch / "s", 0, stored)
    with open_home(scratch) as ws:
        add_sessions(ws, scratch / "warm", 900_000_000, 2)
        empty = statistics.median(add_sessions(ws, scratch / "first", 900_000_010, _REPEATS))
        filling, _report = time_it(lambda: ws.ingest(scratch / "s"))
        add_sessions(ws, scratch / "again", 900_001_000, 2)
        full = statistics.median(add_sessions(ws, scratch / "later", 900_002_000, _REPEATS))
        first, _counts = time_it(lambda: MergedDigests(ws.store).count_insights(WantedSessions()))
        add_sessions(ws, scratch / "more", 900_003_000, 1)
        again, counts = time_it(lambda: MergedDigests(ws.store).count_insights(WantedSessions()))
    return {
        "stored": stored,
        "empty": empty,
        "full": full,
        "ratio": full / empty,
        "filling": filling,
        "insights_first": first,
        "insights_again": again,
        "calls": counts.calls,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--part", choices=("jobs", "cluster", "session", "all"), default="all")
    parser.add_argument("--sessions", type=int, default=4_000)
    parser.add_argument("--stored", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: dict[str, Any] = {"load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as name:
        if options.part in ("jobs", "all"):
            found["jobs"] = measure_jobs(Path(name), options.sessions)
        if options.part in ("cluster", "all"):
            found["cluster"] = measure_cluster(Path(name), options.sessions)
        if options.part in ("session", "all"):
            found["session"] = measure_session(Path(name), options.stored)
    print(json.dumps(found) if options.json else "\n".join(f"{name}: {value}" for name, value in found.items()))


if __name__ == "__main__":
    main()
