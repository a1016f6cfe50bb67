"""Compare `provision` with examples picked by someone who knows the answer.

    python bench/lab.py [--tasks N] [--random-seed S] [--gguf FILE] [--out DIR] [--json]

The bench runs the lab's tasks with a local model (it needs `warmstart[lab]` and the weights, see docs/howto/lab.md): cold,
warm, and "picked", the yardstick of `warm`. "Picked" knows each task's family, takes the four of its training calls whose
requests are nearest to the task, and composes them like any seed, without `learn` and `choose`. Cold and warm are an ordinary
run of the lab (`warmstart lab run --arms cold,warm`), kept in DIR; a stopped one goes on there.

JSON keys: `model`, `tasks`, `cold`, `warm`, `picked` (tasks solved), `warm_over_picked` (their ratio), `relevant` (the share
of warm's examples that are of the task's family), `first_turn` {arm: solved by the first answer}, `difference` {mean of warm
minus picked, low, high: paired, by family}, `minutes`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec

from warmstart.dialects.compose import compose, inject
from warmstart.dialects.tokens import estimate
from warmstart.doors.render.terminal import progress_bar
from warmstart.lab.chores.make import make_sessions
from warmstart.lab.chores.tasks import LabTask
from warmstart.lab.models.local import LocalLLM, describe_weights, find_weights
from warmstart.lab.run.agent import LabAgent, Transcript
from warmstart.lab.run.lab import EXPERIMENT, Lab, Plan, keep
from warmstart.lab.sandbox.workshop import Workshop
from warmstart.model import Example, Pick
from warmstart.ports import Progress
from warmstart.stats.paired import Paired, compare_paired
from warmstart.store import TrialStore
from warmstart.templates.search import search_words

EXAMPLES, BUDGET = 4, 1_000


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tasks", type=int, default=30)
    parser.add_argument("--random-seed", type=int, default=1)
    parser.add_argument("--gguf", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    began = time.time()
    weights = options.gguf or find_weights()
    plan = Plan(
        tasks=options.tasks,
        random_seed=options.random_seed,
        model=describe_weights(weights, options.gguf.stem if options.gguf else "smollm2"),
        examples=EXAMPLES,
        budget=BUDGET,
    )
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as spare:
        folder = options.out or Path(spare)
        lab = Lab(folder, plan, llm := LocalLLM(weights))
        with progress_bar("lab") as progress:
            lab.run(progress)
            picked = play_picked(lab, llm, progress)
        results = compare_arms(lab, picked)
        lab.close()
    results["minutes"] = round((time.time() - began) / 60, 1)
    print(json.dumps(results)) if options.json else show(results)


def play_picked(lab: Lab, llm: LocalLLM, progress: Progress) -> dict[str, Transcript]:
    """Run every task once with the examples picked for it."""
    training: dict[str, list[LabTask]] = {}
    for session in make_sessions(lab.plan.random_seed):
        training.setdefault(session.family, []).extend(session.tasks)
    agent = LabAgent(llm, lab.plan.model.name, lab.plan.limits, time.time)
    transcripts = {}
    tasks = lab.tasks()
    for number, task in enumerate(tasks):
        progress(number, len(tasks), f"picked: {task.id}")
        path = lab.folder / "picked" / f"{task.id}.json"
        if not path.exists():
            seed = pick(task, training[task.family])
            made = agent.run(task, f"picked-{task.id}", partial(inject, seed))
            keep(path, msgspec.json.encode(made))
        transcripts[task.id] = msgspec.json.decode(path.read_bytes(), type=Transcript)
    return transcripts


def pick(task: LabTask, training: list[LabTask]) -> tuple[dict[str, Any], ...]:
    """Compose the calls of the nearest requests, the nearest last."""
    asked = set(search_words(task.request))

    def near(other: LabTask) -> float:
        others = set(search_words(other.request))
        return len(asked & others) / len(asked | others)

    picks = []
    for other in sorted(training, key=lambda one: (-near(one), one.id))[:EXAMPLES]:
        with Workshop(other.files) as workshop:
            results = [workshop.run(call) for call in other.solution]
        for call, result in zip(other.solution, results, strict=True):
            example = Example(tool=call.tool, arguments=call.arguments, result=result, intent=other.request)
            picks.append(Pick(template="picked", version=1, example=example))
    return compose(picks[:EXAMPLES], dialect="openai", budget=BUDGET, count=estimate).messages


def compare_arms(lab: Lab, picked: dict[str, Transcript]) -> dict[str, Any]:
    lab.ws.ingest(lab.folder / "sessions")
    trials = {trial.session: trial for trial in TrialStore(lab.ws.store).trials(EXPERIMENT)}
    solved: dict[str, dict[str, bool]] = {"picked": {name: one.label for name, one in picked.items()}}
    first: dict[str, int] = {"picked": sum(one.label and count_answers(one) == 1 for one in picked.values())}
    for arm in lab.plan.arms:
        measured = {
            task.id: lab.ws.experiments.measures(trials[lab.session_id(task, arm)])
            for task in lab.tasks()
            if lab.session_id(task, arm) in trials
        }
        solved[arm] = {name: bool(one and one.label) for name, one in measured.items()}
        first[arm] = sum(bool(one and one.label and one.all_calls == 1) for one in measured.values())
    family = {task.id: task.family for task in lab.tasks()}
    pairs = [
        Paired((float(solved["warm"][name]), 1.0), (float(done), 1.0), family[name])
        for name, done in solved["picked"].items()
    ]
    estimate_ = compare_paired(pairs, is_rate=True)
    counts = {arm: sum(tasks.values()) for arm, tasks in solved.items()}
    return {
        "model": lab.plan.model.name,
        "tasks": len(family),
        **counts,
        "warm_over_picked": round(counts["warm"] / counts["picked"], 2) if counts["picked"] else None,
        "relevant": round(count_relevant(lab, trials), 3),
        "first_turn": first,
        "difference": {"mean": estimate_.difference, "low": estimate_.low, "high": estimate_.high},
    }


def count_answers(made: Transcript) -> int:
    return sum(message["role"] == "tool" for message in made.messages)


def count_relevant(lab: Lab, trials: dict[str, Any]) -> float:
    """Return the share of the examples in warm seeds that are of the task's own family."""
    family = {row.key: row.id.rpartition("-train-")[0] for row in lab.ws.sessions(limit=100_000)}
    shown = right = 0
    for task in lab.tasks():
        picks = TrialStore(lab.ws.store).picks(trials[lab.session_id(task, "warm")]) or []
        shown += len(picks)
        right += sum(family.get(one.example.session) == task.family for one in picks)
    return right / shown if shown else 0.0


def show(results: dict[str, Any]) -> None:
    print(f"{results['model']}, {results['tasks']} tasks, {results['minutes']} minutes")
    for arm in ("cold", "warm", "picked"):
        print(f"  {arm:<8} {results[arm]:>3} solved, {results['first_turn'][arm]:>3} of them by the first answer")
    gap = results["difference"]
    interval = "" if gap["low"] is None else f" [{gap['low']:+.2f}, {gap['high']:+.2f}]"
    print(f"  warm over picked: {results['warm_over_picked']}; difference per task {gap['mean']:+.2f}{interval}")
    print(f"  {results['relevant']:.0%} of warm's examples are of the task's family")


if __name__ == "__main__":
    main()
