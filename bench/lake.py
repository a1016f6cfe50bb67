"""Cost of a lake against the number of sessions, and its answers against the store's.

    python bench/lake.py [--sizes 1000,10000,100000] [--calls 8] [--from-digests 1000000] [--jobs 2] [--json]
    python bench/lake.py --equal PATH... [--json]

Every size is that many synthetic sessions of `--calls` calls (10 projects, 12 months, 40 kinds of error), written as transcripts,
read into a lake, counted and mined. `exponent` is the slope of log processor time over log sessions between the smallest and the
largest size; 1 is linear. Processor time is that of this process and its children: other work on the machine does not count.
Seconds of the clock are beside it. Insights, mining and usage are the cheapest of three. `--from-digests N` measures insights and
mining at N sessions whose digests are copies, with other keys, of those of the largest size read: reading N transcripts takes
longer than a bench may. Memory is the peak of this process and of its largest child. `--equal` reads transcripts into a lake and
a store and compares insights, usage and notes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec

from warmstart import config
from warmstart.lake.tables import DIGESTS, encode_digests
from warmstart.lake.tables import DigestRow as Row
from warmstart.notes.learning import find_rules
from warmstart.notes.mine import ProjectHistory
from warmstart.pipeline import Warmstart
from warmstart.scopes import KEY_FILE
from warmstart.usage.report import UsageQuery

_IN_FILE = 1_000  # sessions of one transcript file
CALLS = 8  # of a session
_REPEATS = 3
_MONTHS, _PROJECTS, _KINDS = 12, 10, 40
_START = 1_770_000_000.0


def make_session(number: int, random: random.Random, calls: int = CALLS) -> dict[str, Any]:
    """Return a conversation in OpenAI's form."""
    project = f"/home/dev/project{number % _PROJECTS}"
    started = _START + random.randrange(_MONTHS) * 2_600_000 + number % 100_000
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"change module {random.randrange(500)} of the shop"}]
    for at in range(calls):
        failed = random.random() < 0.08
        kind = random.randrange(_KINDS)
        command = f"tool{kind} run --task{kind} src/file{random.randrange(300)}.py"
        call = f"call_{number:012}{at:04}"
        arguments = json.dumps({"command": command})
        messages.append(
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": call, "type": "function", "function": {"name": "bash", "arguments": arguments}}],
            }
        )
        said = f"Exit code 2\nerror: unknown option --task{kind}" if failed else "Exit code 0\nfine"
        messages.append({"role": "tool", "tool_call_id": call, "content": said})
    messages.append({"role": "assistant", "content": "It is done."})
    return {"id": f"s{number:09}", "project": project, "created_at": started, "model": "m", "messages": messages}


def write_transcripts(folder: Path, first: int, last: int, in_file: int = _IN_FILE, calls: int = CALLS) -> None:
    folder.mkdir(exist_ok=True, parents=True)
    for start in range(first, last, in_file):
        random_numbers = random.Random(start)
        lines = [
            json.dumps(make_session(number, random_numbers, calls))
            for number in range(start, min(start + in_file, last))
        ]
        (folder / f"{start:09}.jsonl").write_text("\n".join(lines) + "\n")


class Cost(NamedTuple):
    """What a piece of work took."""

    seconds: float
    processor: float  # seconds, of this process and its children


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that ended."""
    used = [resource.getrusage(kind) for kind in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def cost_of(work: Callable[[], Any], repeats: int = 1) -> tuple[Cost, Any]:
    """Return the least cost of some repetitions of a piece of work, and its result."""
    costs = []
    result: Any = None
    for _repeat in range(repeats):
        before = processor_seconds()
        seconds, result = time_it(work)
        costs.append(Cost(seconds, processor_seconds() - before))
    return min(costs, key=lambda cost: cost.processor), result


def time_it(work: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def mine_notes(lake: Any) -> int:
    """Mine the notes of every project, as `learn --lake` does, without storing them."""
    merged = lake.count_notes()
    notes = 0
    agents: dict[str, dict[str, Any]] = {}
    for (project, scope), by_agent in merged.items():
        history = ProjectHistory(project, scope)
        for agent, counts in by_agent.items():
            history.counts.merge(counts)
            agents.setdefault(agent, {})[project] = counts
        notes += len(history.make_notes())
    return notes + sum(len(find_rules(agent, projects)) for agent, projects in agents.items())


def peak_mb() -> float:
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(kind).ru_maxrss for kind in kinds) / 1024


def copy_digests(lake: Any, wanted: int) -> int:
    """Copy digests under other keys until there are `wanted`; return how many there are."""
    from warmstart.lake.tables import read_table

    files = lake.lake.list_files("digests")
    rows = [Row(**row) for file in files for row in read_table(lake.lake, file, DIGESTS.names).to_pylist()]
    copies = wanted // len(rows)
    for copy in range(1, copies):
        by_project: dict[str, list[Row]] = {}
        for row in rows:
            key = f"{copy:04x}{row.key[4:]}"
            notes = row.notes.replace(row.key, key).replace('"session":"', f'"session":"{copy}-', 1)
            by_project.setdefault(row.project, []).append(msgspec.structs.replace(row, key=key, notes=notes))
        for project, own in by_project.items():
            lake.lake.write("digests", f"{project}", f"copy-{copy:04}", encode_digests(own), f"{copy:032x}")
    return copies * len(rows)


def count_copies(lake: Any) -> dict[str, float]:
    """Time insights and mining over every file with digests, as LakeHistory merges them."""
    from warmstart.engines import FailedUnit
    from warmstart.insights.gather import InsightCounts, decode_counts
    from warmstart.lake.history import MergingUnit, merge_unit
    from warmstart.notes.counts import NoteCounts, decode_note_counts

    files = lake.lake.list_files("digests")
    shares = [tuple(files[start : start + 64]) for start in range(0, len(files), 64)]

    def merge(kind: str) -> Iterator[Any]:
        units = [MergingUnit(lake=lake.lake.url, files=share, kind=kind) for share in shares]
        for part in lake._engine.map(merge_unit, units):
            assert not isinstance(part, FailedUnit), part
            yield part

    def insights() -> int:
        total = InsightCounts()
        for part in merge("insights"):
            total.merge(decode_counts(part.insights))
        return total.freeze().sessions

    def mining() -> int:
        places: dict[tuple[str, str], NoteCounts] = {}
        for part in merge("notes"):
            for project, scope, _agent, body in part.notes:
                places.setdefault((project, scope), NoteCounts()).merge(decode_note_counts(body))
        return sum(len(ProjectHistory(*place, counts=counts).make_notes()) for place, counts in places.items())

    counted, sessions = cost_of(insights)
    mined, notes = cost_of(mining)
    return {"sessions": sessions, "insights": counted.processor, "mining": mined.processor, "notes": notes}


def open_home(scratch: Path) -> Warmstart:
    home = scratch / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / KEY_FILE).write_bytes(bytes(32))
    return Warmstart(config.load(home, environ={"HOME": str(scratch)}), clock=lambda: 1_800_000_000.0)


def measure(sizes: list[int], jobs: int, from_digests: int, calls: int) -> dict[str, Any]:
    found: dict[str, Any] = {"sizes": {}, "jobs": jobs, "calls": calls, "load": os.getloadavg()[0]}
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as name:
        scratch = Path(name)
        for size in sizes:
            transcripts, url = scratch / f"t{size}", scratch / f"lake{size}"
            write_transcripts(transcripts, 0, size, calls=calls)
            with open_home(scratch) as ws:
                lake = ws.lake(str(url), jobs=jobs)
                ingest, report = cost_of(partial(lake.ingest, [transcripts]))
                assert report.new == size, report
                insights, counted = cost_of(lake.insights, _REPEATS)
                assert counted.sessions == size
                mining, notes = cost_of(partial(mine_notes, lake), _REPEATS)
                usage, _report = cost_of(partial(lake.usage, UsageQuery()), _REPEATS)
            size_on_disk = sum(file.stat().st_size for file in url.rglob("*.parquet"))
            found["sizes"][size] = {
                "ingest": ingest.processor,
                "insights": insights.processor,
                "mining": mining.processor,
                "usage": usage.processor,
                "seconds": {
                    "ingest": ingest.seconds,
                    "insights": insights.seconds,
                    "mining": mining.seconds,
                    "usage": usage.seconds,
                },
                "notes": notes,
                "calls": counted.calls,
                "bytes": size_on_disk,
                "transcript_bytes": sum(file.stat().st_size for file in transcripts.iterdir()),
                "peak_mb": peak_mb(),
            }
            print(f"{size:>9,} sessions: {found['sizes'][size]}", file=sys.stderr)
        found["exponents"] = find_exponents(found["sizes"], ("ingest", "insights", "mining", "usage"))
        if from_digests:
            with open_home(scratch) as ws:
                lake = ws.lake(str(scratch / f"lake{sizes[-1]}"), jobs=jobs)
                before = count_copies(lake)
                copies = copy_digests(lake, from_digests)
                after = count_copies(lake)
            found["from_digests"] = {
                "sessions": copies,
                "before": before,
                "after": after,
                "exponents": find_exponents(
                    {before["sessions"]: before, after["sessions"]: after}, ("insights", "mining")
                ),
                "peak_mb": peak_mb(),
            }
    found["peak_mb"] = peak_mb()
    return found


def find_exponents(sizes: dict[Any, dict[str, float]], names: tuple[str, ...]) -> dict[str, float]:
    """Return the slope of log processor time over log sessions, from the smallest size to the largest."""
    small, large = min(sizes), max(sizes)
    if small == large:
        return {}
    return {name: math.log(sizes[large][name] / sizes[small][name]) / math.log(large / small) for name in names}


def compare(paths: list[Path]) -> dict[str, Any]:
    """Return which answers of a lake and of a store differ for the same transcripts."""
    differ = []
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as name, open_home(Path(name)) as ws:
        ws.ingest(*paths)
        ws.learn()
        lake = ws.lake(str(Path(name) / "lake"))
        lake.ingest(paths, personal=True)
        stored, held = ws.insights(top=100_000), ws.insights_of(lake, top=100_000)
        for field in stored.__struct_fields__:
            if getattr(stored, field) != getattr(held, field):
                differ.append(f"insights.{field}")
        by: Any
        for by in ("day", "agent", "model", "project", "session"):
            if lake.usage(UsageQuery(by=by)) != ws.usage.report(by):
                differ.append(f"usage by {by}")
        notes = ws.notes.list()
        ws.learn_from(lake)
        if ws.notes.list() != notes:
            differ.append("notes")
        return {"sessions": stored.sessions, "calls": stored.calls, "notes": len(notes), "differ": differ}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--from-digests", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--equal", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.equal:
        found = compare(options.equal)
        print(
            json.dumps(found)
            if options.json
            else f"{found['sessions']} sessions; differences: {found['differ'] or 'none'}"
        )
        return
    found = measure([int(size) for size in options.sizes.split(",")], options.jobs, options.from_digests, options.calls)
    if options.json:
        print(json.dumps(found))
        return
    for name, exponent in found["exponents"].items():
        print(f"{name}: exponent {exponent:.2f}")
    if "from_digests" in found:
        print(f"at {found['from_digests']['sessions']:,} sessions: {found['from_digests']['exponents']}")
    print(f"peak memory {found['peak_mb']:.0f} MB")


if __name__ == "__main__":
    main()
