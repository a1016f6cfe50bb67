"""Measure whether seeds show the tools that a task needs, and the forms of a coding session's own calls.

    python bench/choose.py [DIR] [--json] [--splits N] [--projects A,B] [--only tools|own]

**Tools**: the labelled tau-bench and tau2 sessions in DIR (default: the shared corpus beside the project) are split by task into
halves, in several random ways. Templates are learned from one half. Each task of the other half is given as text (the
user's first message); the figure is the share of the tools needed by its successful run that the seed shows, within 1,500
tokens and eight examples, the defaults. Two baselines use the same budget and composer: "highest score wins" (the examples of the
strongest template, whatever the task) and random examples. Then the halves change roles. The figures of a task are means
over the splits; differences are paired by task, with a bootstrap interval over tasks.

**Own calls**: the corpus' projects (`DIR/projects`), in order of time; see `bench/own_calls.py` for the rules. The figure of a
later session is the share of the forms of its own calls (those that are neither commonplace nor in the request's words)
that the seed shows, with the same budget. "old" mines and chooses without the rule that commonplace calls teach nothing.

JSON keys: `tasks`, `ours`, `highest`, `random` (mean shares), `minus_highest` and `minus_random` {mean, low, high},
`empty` (tasks without a seed), `by_set` {name: the same figures}; `own`: `sessions`, `ours`, `old`, `random` (mean shares),
`minus_old` and `minus_random` {mean, low, high}, `plain` {way: [examples that are uncorrected plain reads, edits, searches and
the like, examples shown]}, `empty` and `tokens` {way: sessions without an example, mean tokens}, `by_project` {name: the same}.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec

import own_calls
import warmstart
from corpus_projects import NAMES
from warmstart.dialects.compose import compose
from warmstart.dialects.tokens import estimate
from warmstart.formats import find_files
from warmstart.formats.source import Source
from warmstart.ingest.records import Recorder
from warmstart.judging.score import score
from warmstart.model import Pick, Session, Task
from warmstart.pipeline import Warmstart

CORPUS = ROOT.parent / "shared" / "corpus"
BUDGET, EXAMPLES = 1_500, 8  # the defaults


class TestTask(NamedTuple):
    name: str
    text: str
    needed: frozenset[str]  # tools


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--projects", default=",".join(NAMES))
    parser.add_argument("--only", choices=("tools", "own"))
    options = parser.parse_args()
    report: dict[str, Any] = measure_tools(options.dir, options.splits) if options.only != "own" else {}
    if options.only != "tools":
        report["own"] = measure_own_calls(options.dir / "projects", options.projects.split(","))
    print(json.dumps(report)) if options.json else show(report)


def measure_tools(folder: Path, splits: int) -> dict[str, Any]:
    sets = {name: read(folder / path) for name, path in (("tau_bench", "openai_chat"), ("tau2", "tau2"))}
    if not any(sets.values()):
        sys.exit(f"{folder}: no labelled tau-bench or tau2 sessions")
    rows = {name: run(tasks, splits) for name, tasks in sets.items() if tasks}
    return figures([row for set_rows in rows.values() for row in set_rows]) | {
        "by_set": {name: figures(set_rows) for name, set_rows in rows.items()}
    }


def measure_own_calls(folder: Path, names: list[str]) -> dict[str, Any]:
    shown = {name: own_calls.measure_project(folder, name, BUDGET, EXAMPLES) for name in names}
    return own_calls.summarise(own_calls.join(list(shown.values())), interval) | {
        "by_project": {name: own_calls.summarise(result, interval) for name, result in shown.items()}
    }


def read(folder: Path) -> dict[str, list[Session]]:
    """Return the labelled sessions by task. tau-bench names the task in the id; tau2 ran each task once."""
    tasks: dict[str, list[Session]] = {}
    for file in find_files(folder) if folder.exists() else ():
        for scored in warmstart.scan(Source(file)):
            session = scored.session
            if session.label is not None:
                task = session.id.split("-")[0] if session.format == "openai_chat" else session.id
                tasks.setdefault(f"{file.name}:{task}", []).append(session)
    return tasks


def run(tasks: dict[str, list[Session]], splits: int) -> list[dict[str, float]]:
    """Return one row per task: the means over the splits."""
    rows: dict[str, list[dict[str, float]]] = {}
    for seed in range(splits):
        chance = random.Random(seed)
        names = sorted(tasks)
        chance.shuffle(names)
        half = len(names) // 2
        for learned, tested in ((names[:half], names[half:]), (names[half:], names[:half])):
            with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as home, warmstart.open(home) as ws:
                put_sessions(ws, [session for name in learned for session in tasks[name]])
                ws.learn()
                for name in tested:
                    if task := make_task(name, tasks[name]):
                        rows.setdefault(name, []).append(compare(ws, task, chance))
    return [{key: statistics.fmean(row[key] for row in splits) for key in splits[0]} for splits in rows.values()]


def put_sessions(ws: Warmstart, sessions: list[Session]) -> None:
    recorder = Recorder({})
    with ws.store.writing():
        for session in sessions:
            bare = msgspec.structs.replace(session, project=None)
            record = recorder.record(bare, score(bare), 0.0)
            ws.store.put_session(record.session, record.calls)


def make_task(name: str, sessions: list[Session]) -> TestTask | None:
    """Return a task that succeeded at least once, with the tools that the run needed."""
    for session in sessions:
        needed = frozenset(call.tool for call, answer in session.calls() if answer and answer.outcome.status != "error")
        if session.label and session.task and needed:
            return TestTask(name, session.task, needed)
    return None


def compare(ws: Warmstart, task: TestTask, chance: random.Random) -> dict[str, float]:
    """Return the shares of needed tools shown by Warmstart's seed and by the baselines."""
    seed = ws.provision(Task(text=task.text, project="*", budget=BUDGET, examples=EXAMPLES))
    ours = {c["function"]["name"] for m in seed.messages for c in m.get("tool_calls") or ()}
    templates = [t for _row, t in ws.templates.find("active")]
    strongest = max(ws.templates.find("active"), key=lambda pair: pair[0].strength)[1]
    everything = [(t, e) for t in templates for e in t.examples]
    return {
        "ours": share(ours, task),
        "highest": share(tools_shown([(strongest, e) for e in strongest.examples]), task),
        "random": statistics.mean(
            share(tools_shown(chance.sample(everything, len(everything))), task) for _ in range(5)
        ),
        "empty": float(not seed),
    }


def tools_shown(examples: list[Any]) -> set[str]:
    """Return the tools of the examples that fit into a seed."""
    picks = [Pick(template=t.name, version=t.version, example=e) for t, e in examples[:EXAMPLES]]
    composed = compose(picks, dialect="openai", budget=BUDGET, count=estimate)
    return {call.tool for pick in composed.used for call in pick.example.shown}


def share(tools: set[str], task: TestTask) -> float:
    return len(tools & task.needed) / len(task.needed)


def figures(rows: list[dict[str, float]]) -> dict[str, Any]:
    return {
        "tasks": len(rows),
        **{name: round(statistics.mean(row[name] for row in rows), 3) for name in ("ours", "highest", "random")},
        "minus_highest": interval([row["ours"] - row["highest"] for row in rows]),
        "minus_random": interval([row["ours"] - row["random"] for row in rows]),
        "empty": round(sum(row["empty"] for row in rows), 2),
    }


def interval(differences: list[float], rounds: int = 4_000) -> dict[str, float]:
    """Return the mean of paired differences with a 95 % bootstrap interval; zeros where there is nothing to compare."""
    if not differences:
        return {"mean": 0.0, "low": 0.0, "high": 0.0}
    chance = random.Random(7)
    means = sorted(statistics.fmean(chance.choices(differences, k=len(differences))) for _ in range(rounds))
    return {
        "mean": round(statistics.fmean(differences), 3),
        "low": round(means[int(rounds * 0.025)], 3),
        "high": round(means[int(rounds * 0.975)], 3),
    }


def show(report: dict[str, Any]) -> None:
    if "tasks" in report:
        for name, row in {"all": report, **report["by_set"]}.items():
            print(f"{name}: {row['tasks']} tasks, share of needed tools shown: {list_shares(row, 'highest')}")
            print_differences(row, "highest")
            print(f"    {row['empty']} tasks got an empty seed")
    if own := report.get("own"):
        for name, row in {"all projects": own, **own["by_project"]}.items():
            print(f"{name}: {row['sessions']} sessions, share of own forms shown: {list_shares(row, 'old')}")
            print_differences(row, "old")
            plain = ", ".join(f"{way} {part} of {whole}" for way, (part, whole) in row["plain"].items())
            print(f"    plain reads, edits and searches among the examples: {plain}")


def list_shares(row: dict[str, Any], other: str) -> str:
    return ", ".join(f"{way} {row[way]}" for way in ("ours", other, "random"))


def print_differences(row: dict[str, Any], other: str) -> None:
    for way in (other, "random"):
        d = row[f"minus_{way}"]
        print(f"    ours minus {way}: {d['mean']:+.3f} [{d['low']:+.3f}, {d['high']:+.3f}]")


if __name__ == "__main__":
    main()
