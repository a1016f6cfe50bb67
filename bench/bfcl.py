"""Measure seeds on a benchmark that others wrote: BFCL v4, multi-turn, the first turns of its tasks with odd numbers.

    python bench/bfcl.py --coverage [--out DIR] [--json]
    python bench/bfcl.py [--gguf FILE] [--tasks N] [--arms A,B] [--out DIR] [--report] [--json]

It needs BFCL's data, classes and checker (`pip install --no-deps bfcl-eval && pip install mpmath`), and for the second form
`warmstart[lab]` with a model (docs/howto/lab.md). The tasks are in five folds. The ground-truth sessions of the tasks in
the other folds are the history: written as transcripts, ingested and learned as a user would, nothing approved by hand.
Nothing here looks at the requests of tasks with even numbers; they are history only.

**--coverage** needs no model: the share of the tools of a task's first turn that its seed shows at the default settings, and
the share of tasks all of whose tools it shows; also how often the nearest example has exactly the needed tools, and how many
other tools are shown. Beside it: two whole turns of the nearest requests by TF-IDF, the same among
turns that the task's tools can do, as many of those as the budget holds, and two random ones. If a model's run in DIR has cold
sessions, `own` is the seed out of these alone (those of the other folds): what a user gets whose agent had no better teacher.

**With a model**, every task runs in these arms: `cold`; `warm`, the seed of `provision`; `nearest`, two whole turns by TF-IDF;
`random`, up to four random turns; and, if asked for by `--arms own` after `cold`, `own`: the seed out of the cold sessions.
BFCL's own checker judges; see `bench/bfcl_run.py` for when a session ends. `--tasks N` plays the first N of a fixed shuffle,
`--arms` some arms. A stopped run goes on in the same DIR, and `--report` prints what is there.

JSON keys: `coverage`: `tasks`, `templates`, `waiting`, `ours`, `own`, `tfidf`, `tfidf_same_tools`, `tfidf_same_budget`, `random`
{needed_tools, all_tools, nearest_exact, other_tools, examples, tokens}, `minus_tfidf` {mean, low, high}; the model's run:
`model`, `tasks`, `solved`, `parroted` (sessions that ended with words out of their seed), `placeholders` (calls with a value
that the seed made up), `invalid`, `calls` {arm: n}, `minus` {"arm - arm": {mean, low, high, tasks}, paired}, `ended` and
`reasons` {arm: {why: n}}, `by_task` {number: {arm: how it went}}.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import bfcl_coverage
import bfcl_run
from bfcl_data import BfclTask, load_tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--coverage", action="store_true")
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--arms", default=",".join(bfcl_run.ARMS[:-1]))
    parser.add_argument("--out", type=Path, default=Path("bfcl-run"))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        played = bfcl_run.played(options.out, "cold")
        coverage = bfcl_coverage.measure(load_tasks(), is_tested, approve=False, played=played)
        print(json.dumps(coverage)) if options.json else show_coverage(coverage)
        return
    if not options.report:
        run(options.gguf, options.tasks, options.arms.split(","), options.out)
    report = summarise(options.out)
    print(json.dumps(report)) if options.json else show(report)


def is_tested(task: BfclTask) -> bool:
    return task.number % 2 == 1


def run(gguf: Path | None, most: int, arms: list[str], folder: Path) -> None:
    from warmstart.lab.models.local import LocalLLM, describe_weights, find_weights

    weights = gguf or find_weights()
    folder.mkdir(parents=True, exist_ok=True)
    facts = describe_weights(weights, weights.stem)
    (folder / "model.json").write_text(
        json.dumps({"name": facts.name, "digest": facts.digest, "runtime": facts.runtime})
    )
    tasks = load_tasks()
    tested = bfcl_run.order_tasks([task for task in tasks if is_tested(task) and task.turns[0].calls], most)
    llm = LocalLLM(weights, threads=1)
    report = bfcl_run.RunOptions(arms, lambda text: print(text, file=sys.stderr, flush=True))
    bfcl_run.run(tasks, tested, llm, folder, report)


def summarise(folder: Path) -> dict[str, Any]:
    """Return the figures of a run. An arm is compared with another on the tasks that both have finished."""
    notes = bfcl_run.read_results(folder)
    by_arm = {arm: {note["task"]: note for note in notes if note["arm"] == arm} for arm in bfcl_run.ARMS}
    by_arm = {arm: of_arm for arm, of_arm in by_arm.items() if of_arm}
    model = json.loads((folder / "model.json").read_text()) if (folder / "model.json").exists() else {}
    rows = {arm: list(of_arm.values()) for arm, of_arm in by_arm.items()}
    return {
        "model": model,
        "tasks": {arm: len(of_arm) for arm, of_arm in rows.items()},
        "solved": {arm: sum(row["solved"] for row in of_arm) for arm, of_arm in rows.items()},
        "minus": {
            f"{arm} - {other}": compare(by_arm[arm], by_arm[other])
            for arm, other in itertools.combinations(reversed(rows), 2)
            if by_arm[arm].keys() & by_arm[other].keys()
        },
        **{
            name: {arm: sum(row[name] for row in of_arm) for arm, of_arm in rows.items()}
            for name in ("parroted", "placeholders", "invalid")
        },
        "calls": {arm: sum(len(row["calls"]) for row in of_arm) for arm, of_arm in rows.items()},
        "ended": {arm: dict(Counter(row["why"] for row in of_arm)) for arm, of_arm in rows.items()},
        "reasons": {
            arm: dict(Counter(bfcl_run.explain(row) for row in of_arm if not row["solved"]))
            for arm, of_arm in rows.items()
        },
        "by_task": {
            number: {arm: describe(of_arm[number]) for arm, of_arm in by_arm.items() if number in of_arm}
            for number in sorted({note["task"] for note in notes})
        },
    }


def compare(ours: dict[int, dict[str, Any]], others: dict[int, dict[str, Any]]) -> dict[str, float]:
    """Return the difference of the solved shares on the tasks that both arms have, with its interval."""
    both = sorted(ours.keys() & others.keys())
    differences = [ours[number]["solved"] - others[number]["solved"] for number in both]
    return bfcl_coverage.interval(differences) | {"tasks": len(both)}


def describe(note: dict[str, Any]) -> dict[str, Any]:
    """Return how a session went, with its calls beside those of the ground truth where it failed."""
    if note["solved"]:
        return {"result": "solved"}
    return {"result": bfcl_run.explain(note), "ended": note["why"], "needed": note["needed"]} | {
        name: note[name] for name in ("shown", "calls", "words")
    }


def show_coverage(coverage: dict[str, Any]) -> None:
    print(
        f"{coverage['tasks']} tasks; {coverage['templates']} templates in use, {coverage['waiting']} waiting (means of folds)"
    )
    for way in (way for way in bfcl_coverage.WAYS if way in coverage):
        row = coverage[way]
        print(
            f"{way:17} needed tools {row['needed_tools']:.1%}, all of a task's {row['all_tools']:.1%}, exactly these in the "
            f"nearest example {row['nearest_exact']:.1%}, {row['other_tools']} other tools, {row['examples']} examples"
        )
    difference = coverage["minus_tfidf"]
    print(f"ours minus tfidf: {difference['mean']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]")
    print(f"tokens of a seed: {coverage['ours']['tokens']}")


def show(report: dict[str, Any]) -> None:
    print(report["model"].get("name", "no model"))
    for arm, tasks in report["tasks"].items():
        print(
            f"{arm:8} solved {report['solved'][arm]} of {tasks}; ended by {report['ended'][arm]}; unsolved: "
            f"{report['reasons'][arm]}; invalid {report['invalid'][arm]} of {report['calls'][arm]} calls; "
            f"parroted {report['parroted'][arm]}; placeholders {report['placeholders'][arm]}"
        )
    for name, difference in report["minus"].items():
        interval = f"{difference['mean']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]"
        print(f"{name}: {interval} on {difference['tasks']} tasks")
    for number, arms in report["by_task"].items():
        results = ", ".join(f"{arm}: {row['result']}" for arm, row in arms.items())
        print(f"task {number}: {results}")


if __name__ == "__main__":
    main()
