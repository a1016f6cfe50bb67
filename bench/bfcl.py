"""Measure seeds on a benchmark that others wrote: BFCL v4, multi-turn, the first turns of its tasks with odd numbers.

    python bench/bfcl.py --coverage [--json]
    python bench/bfcl.py [--gguf FILE] [--tasks N] [--out DIR] [--report] [--json]

It needs BFCL's data, classes and checker (`pip install --no-deps bfcl-eval && pip install mpmath`), and for the second form
`warmstart[lab]` with a model (docs/howto/lab.md). The tasks are in five folds. The ground-truth sessions of the tasks in
the other folds are the history: written as transcripts, ingested and learned as a user would, nothing approved by hand.
Nothing here looks at the requests of tasks with even numbers; they are history only.

**--coverage** needs no model: the share of the tools of a task's first turn that its seed shows at the default settings, and
the share of tasks all of whose tools it shows. Beside it: two whole turns of the nearest requests by TF-IDF, the same among
turns that the task's tools can do, as many of those as the budget holds, and two random ones.

**With a model**, every task runs in four arms: `cold`; `warm`, the seed of `provision`; `nearest`, two whole turns by TF-IDF;
`random`, up to four random turns. BFCL's own checker judges; see `bench/bfcl_run.py` for when a session ends. A stopped run
goes on in the same DIR, and `--report` prints what is there.

JSON keys: `coverage`: `tasks`, `templates`, `waiting`, `ours`, `tfidf`, `tfidf_same_tools`, `tfidf_same_budget`, `random`
{needed_tools, all_tools, examples, tokens}, `minus_tfidf` {mean, low, high}; the model's run: `model`, `tasks` (those
finished in every arm), `solved` {arm: share}, `minus_cold` {arm: {mean, low, high}}, `parroted`, `placeholders`, `invalid`,
`calls` {arm: n}, `ended` {arm: {why: n}}.
"""

from __future__ import annotations

import argparse
import json
import statistics
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
    parser.add_argument("--arms", default=",".join(bfcl_run.ARMS))
    parser.add_argument("--out", type=Path, default=Path("bfcl-run"))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.coverage:
        coverage = bfcl_coverage.measure(load_tasks(), is_tested, approve=False)
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
    """Return the figures of the tasks that are finished in every arm."""
    notes = bfcl_run.read_results(folder)
    by_task: dict[int, dict[str, dict[str, Any]]] = {}
    for note in notes:
        by_task.setdefault(note["task"], {})[note["arm"]] = note
    whole = {number: arms for number, arms in sorted(by_task.items()) if len(arms) == len(bfcl_run.ARMS)}
    model = json.loads((folder / "model.json").read_text()) if (folder / "model.json").exists() else {}
    if not whole:
        return {"model": model, "tasks": 0}
    rows = {arm: [arms[arm] for arms in whole.values()] for arm in bfcl_run.ARMS}
    return {
        "model": model,
        "tasks": len(whole),
        "solved": {arm: round(statistics.fmean(row["solved"] for row in rows[arm]), 3) for arm in rows},
        "minus_cold": {
            arm: bfcl_coverage.interval(
                [a["solved"] - b["solved"] for a, b in zip(rows[arm], rows["cold"], strict=True)]
            )
            for arm in rows
            if arm != "cold"
        },
        "parroted": {arm: sum(row["parroted"] for row in rows[arm]) for arm in rows},
        "placeholders": {arm: sum(row["placeholders"] for row in rows[arm]) for arm in rows},
        "invalid": {arm: sum(row["invalid"] for row in rows[arm]) for arm in rows},
        "calls": {arm: sum(len(row["calls"]) for row in rows[arm]) for arm in rows},
        "ended": {arm: dict(Counter(row["why"] for row in rows[arm])) for arm in rows},
    }


def show_coverage(coverage: dict[str, Any]) -> None:
    print(
        f"{coverage['tasks']} tasks; {coverage['templates']} templates in use, {coverage['waiting']} waiting (means of folds)"
    )
    for way in bfcl_coverage.WAYS:
        row = coverage[way]
        print(
            f"{way:17} needed tools {row['needed_tools']:.1%}, all of a task's {row['all_tools']:.1%}, {row['examples']} examples"
        )
    difference = coverage["minus_tfidf"]
    print(f"ours minus tfidf: {difference['mean']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]")
    print(f"tokens of a seed: {coverage['ours']['tokens']}")


def show(report: dict[str, Any]) -> None:
    print(f"{report['model'].get('name', 'no model')}: {report['tasks']} tasks finished in every arm")
    for arm, share in report.get("solved", {}).items():
        difference = report["minus_cold"].get(arm)
        against = (
            f", minus cold {difference['mean']:+.3f} [{difference['low']:+.3f}, {difference['high']:+.3f}]"
            if difference
            else ""
        )
        print(
            f"{arm:8} solved {share:.1%}{against}; ended by {report['ended'][arm]}; invalid {report['invalid'][arm]} of "
            f"{report['calls'][arm]} calls; parroted {report['parroted'][arm]}; placeholders {report['placeholders'][arm]}"
        )


if __name__ == "__main__":
    main()
