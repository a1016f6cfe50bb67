"""Show where the time of reading goes: read, decode, build, judge, score, record (intents), redact, write.

    python bench/profile.py [DIR] [--json] [--rounds N]

DIR (default: the Claude Code folder of the shared corpus) holds transcripts of any format. Each stage is measured by
leaving it out: the stages before it run with and without it, in turns, on one core and by CPU time; the best round of
each counts, because other programs on the machine can only add time. Redaction is the difference between recording
with and without it. `json.loads` over the same bytes is the unit.

JSON keys: `bytes`, `json_loads_mb_s`, `stages` {name: {ms, ratio}}, where ratio is the time relative to json.loads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from ingest import CORPUS, clear_caches, list_documents, load_all, time_cpu
from warmstart import formats
from warmstart.formats import claude_code
from warmstart.formats.source import Source
from warmstart.ingest.read import Scored, scan
from warmstart.ingest.records import Record, Recorder
from warmstart.judging.outcome import judge_result
from warmstart.model import Outcome, Signal, ToolCall
from warmstart.redact import Redactor, Scope
from warmstart.store import open_store

_OK = Outcome("ok")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS / "claude_code")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; give one with transcripts")
    report = profile(options.dir, options.rounds)
    print(json.dumps(report)) if options.json else show(report)


def profile(folder: Path, rounds: int) -> dict[str, Any]:
    files, documents = list_documents(folder)
    size = sum(map(len, documents))
    scored = [one for file in files for one in scan(Source(file))]
    records = record_all(scored)
    works: dict[str, Callable[[], object]] = {
        "json.loads": lambda: load_all(documents),
        "read": lambda: read_all(files),
        "decode": lambda: decode_all(files),
        "build": lambda: build_all(files, judge=False),
        "judge": lambda: build_all(files, judge=True),
        "inspect": lambda: [one for file in files for one in scan(Source(file))],
        "record": lambda: record_plainly(scored),
        "redact": lambda: record_all(scored),
    }
    best = dict.fromkeys((*works, "write"), float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            clear_caches()
            best[name] = min(best[name], time_cpu(work))
        best["write"] = min(best["write"], time_write(records))
    unit = best["json.loads"]
    spans = {
        "read": best["read"],
        "decode": best["decode"] - best["read"],
        "build": best["build"] - best["decode"],
        "judge": best["judge"] - best["build"],
        "score": best["inspect"] - best["judge"],
        "record": best["record"],
        "redact": best["redact"] - best["record"],
        "write": best["write"],
    }
    return {
        "bytes": size,
        "json_loads_mb_s": round(size / 1e6 / unit, 1),
        "stages": {name: {"ms": round(span * 1e3, 1), "ratio": round(span / unit, 2)} for name, span in spans.items()},
    }


def read_all(files: list[Path]) -> None:
    for file in files:
        for _block in Source(file)._blocks():
            pass


def decode_all(files: list[Path]) -> None:
    """Decode the lines of files as Claude Code's; other formats are close enough for a share."""
    for file in files:
        for _line in Source(file).records(claude_code._decoder):
            pass


def build_all(files: list[Path], *, judge: bool) -> None:
    for file in files:
        for _session in formats.read(Source(file), judge_result if judge else judge_nothing):
            pass


def judge_nothing(call: ToolCall | None, text: str, signal: Signal | None) -> Outcome:
    return _OK


def record_all(scored: list[Scored]) -> list[Record]:
    recorder = Recorder({})
    return [recorder.record(one.session, one.score, 0.0) for one in scored]


def record_plainly(scored: list[Scored]) -> None:
    """Record sessions without the search for secrets, to see what it costs. Nothing of this is stored."""
    recorder = Recorder({})
    recorder._redactor = BlindRedactor()
    for one in scored:
        recorder.record(one.session, one.score, 0.0)


class BlindRedactor(Redactor):
    """Finds nothing."""

    def scope(self) -> Scope:
        return Scope(lambda _text, _opaque: [], lambda texts: [[] for _text in texts])


def time_write(records: list[Record]) -> float:
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch, open_store(Path(scratch) / "db") as store:
        started = time.process_time()
        store.put_sessions([(record.session, record.calls, record.spent) for record in records])
        return time.process_time() - started


def show(report: dict[str, Any]) -> None:
    print(f"{report['bytes'] / 1e6:.1f} MB; json.loads {report['json_loads_mb_s']} MB/s = 1.00")
    for name, stage in report["stages"].items():
        print(f"{name:8} {stage['ms']:8.1f} ms {stage['ratio']:6.2f}")


if __name__ == "__main__":
    main()
