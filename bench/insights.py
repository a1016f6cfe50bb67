"""Measure how long `insights` takes, as a ratio to the time of ingesting the same history in the same run.

    python bench/insights.py [DIR] [--json] [--rounds N]

DIR (default: the shared corpus beside the project, else the sample transcripts of the package) is ingested into a new
store; then insights are gathered, and gathered and written as a page, in each round. The median round counts. The ratio must
be well below 1: insights must not take longer than reading the transcripts.

JSON keys: `sessions`, `calls`, `errors`, `ingest_seconds`, `insights_ratio` and `page_ratio` (medians; 1.0 = ingest),
`calls_per_second` (of insights with the page), `page_kb`, `peak_extra_mb` (additional memory while gathering),
`made_up` (true if the samples stood in for the corpus).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import warmstart
from warmstart.doors.pages.insights.page import render_page, write_page
from warmstart.pipeline import Warmstart

CORPUS = ROOT.parent / "shared" / "corpus"
SAMPLES = ROOT / "src" / "warmstart" / "samples"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    made_up = not options.dir.exists()
    report = measure(SAMPLES if made_up else options.dir, options.rounds) | {"made_up": made_up}
    print(json.dumps(report)) if options.json else show(report)


def measure(folder: Path, rounds: int) -> dict[str, Any]:
    turns: dict[str, list[float]] = {"ingest": [], "insights": [], "page": []}
    facts: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch:
        for number in range(rounds):
            page = Path(scratch) / f"page-{number}.html"
            with warmstart.open(Path(scratch) / f"home-{number}") as ws:
                ws.sessions(limit=1)  # creates the store before the clock starts
                turns["ingest"].append(timed(lambda ws=ws: ws.ingest(folder)))  # type: ignore[misc]
                turns["insights"].append(timed(ws.insights))
                turns["page"].append(timed(lambda ws=ws, page=page: make_page(ws, page)))  # type: ignore[misc]
                facts = facts or describe_history(ws, page)
    ratios = {
        name: statistics.median(spent / base for base, spent in zip(turns["ingest"], turns[name], strict=True))
        for name in ("insights", "page")
    }
    return facts | {
        "ingest_seconds": round(statistics.median(turns["ingest"]), 2),
        "insights_ratio": round(ratios["insights"], 3),
        "page_ratio": round(ratios["page"], 3),
        "calls_per_second": round(facts["calls"] / statistics.median(turns["page"])),
    }


def make_page(ws: Warmstart, page: Path) -> None:
    write_page(page, render_page(ws.insights(), made=time.time()))


def describe_history(ws: Warmstart, page: Path) -> dict[str, Any]:
    """Count the history and measure memory, outside the timed rounds because tracing memory takes time."""
    tracemalloc.start()
    insights = ws.insights()
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return {
        "sessions": insights.sessions,
        "calls": insights.calls,
        "errors": insights.overall.errors,
        "page_kb": round(page.stat().st_size / 1000),
        "peak_extra_mb": round(peak / 1e6, 1),
    }


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def show(report: dict[str, Any]) -> None:
    source = "sample transcripts" if report["made_up"] else "the corpus"
    print(f"{report['sessions']} sessions with {report['calls']} calls from {source}")
    print(f"ingest              {report['ingest_seconds']} s = 1.0x")
    print(f"insights            {report['insights_ratio']:.2f}x")
    print(f"insights with page  {report['page_ratio']:.2f}x, {report['calls_per_second']} calls a second")
    print(f"page {report['page_kb']} kB; additional memory {report['peak_extra_mb']} MB")


if __name__ == "__main__":
    main()
