"""Check the statistics by simulation, with a look after every single session.

    python bench/stats.py [--json] [--quick]

Each simulated session has its own error probability (beta), a heavy-tailed number of calls (lognormal), and a task or user
whose level it shares. The questions:

- `false_alarms`: 2,000 experiments (1,000 in the later worlds) without any effect, 2,000 sessions each, a look after every
  session. In how many does some look's interval exclude 0? The always-valid interval may do so in at most 5 %; the plain
  95 % interval is shown beside it, from the same first look on.
- `coverage`: a true drop of 40 %. In how many experiments do all intervals, and the last one, contain the true difference?
- `power`: `sessions_needed` predicts, from 4,000 sessions of history without any seed, after how many sessions an effect is
  found with chance 0.8. How often is it found by then?
- `covariates`: the variance of the adjusted difference over that of the bare one, measured and as each experiment estimates.
- `past`: the same for the rate that `expected_rate` takes from earlier sessions, in a team of 6 people and 4 projects: from the
  project alone, and from the person and the person in the project too.
- `occurrences`: trials of notes; see `bench/occurrences.py`, which lists its keys.

JSON keys: `false_alarms` {scenario: {runs, sessions, ours, plain, design_effect, at_most}} (`at_most` is an upper bound of
`ours` at this number of runs), `worst_false_alarms`, `coverage` {scenario: {runs, always, last, plain_always, plain_last}},
`worst_coverage`, `power` {case: {runs, sessions, promised, found, ratio}}, `worst_power_ratio`, `covariates`
{variance_ratio, said}, `past` {project, person} (variance ratios), `occurrences`, `seconds`. Shares are fractions of 1.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec

from occurrences import show as show_occurrences
from occurrences import simulate as simulate_occurrences
from warmstart.stats.compare import Comparison, Estimate, plain_interval
from warmstart.stats.power import measure_baseline, sessions_needed
from warmstart.trials.expected import expected_rate

DROP = 0.4


class World(msgspec.Struct, frozen=True):
    """How sessions are generated and assigned to arms."""

    rate: float = 0.08  # errors per call, overall
    likeness: float = 6.0  # concentration of the beta distribution within a task
    calls: float = 2.2  # mean of the logarithm of calls
    tail: float = 0.8  # standard deviation of the logarithm of calls
    most: int = 80  # calls in the first 30 turns
    tasks: int = 0  # 0: each session is a task of its own
    task_likeness: float = 6.0  # concentration of the beta distribution between tasks
    by_task: bool = False  # a task (a user) has one arm; otherwise each session is assigned on its own
    share_cold: float = 0.5
    covariates: bool = False


class Task(NamedTuple):
    rate: float
    length: float  # logarithm of its sessions' length relative to other tasks


class Drawn(NamedTuple):
    treated: bool
    errors: int
    calls: int
    task: int
    known: tuple[float, ...]  # covariates known before the session


ALONE = World()
KNOWN = World(tasks=100, likeness=20.0, task_likeness=3.0, covariates=True)
WORLDS = {
    "independent": (ALONE, 2_000),
    "clustered": (World(tasks=400, by_task=True), 2_000),
    "heavy-tailed": (World(likeness=2.0, calls=2.0, tail=1.3, most=100_000), 1_000),
    "cold 10 %": (World(share_cold=0.1), 1_000),
    "within tasks": (World(tasks=100), 1_000),
    "within tasks, covariates": (KNOWN, 1_000),
}
COVERED = {
    "clustered, heavy-tailed": World(tasks=400, by_task=True, tail=1.3, calls=2.0, most=100_000),
    "within tasks, heavy-tailed, cold 25 %": World(tasks=100, tail=1.3, calls=2.0, most=100_000, share_cold=0.25),
}
POWERED = {
    "rate 8 %, drop 40 %": (ALONE, 0.4),
    "rate 8 %, drop 40 %, within tasks": (World(tasks=400), 0.4),
    "rate 25 %, drop 30 %": (World(rate=0.25), 0.3),
    "rate 15 %, drop 50 %, by user": (World(rate=0.15, tasks=1_500, by_task=True), 0.5),
    "rate 15 %, drop 50 %, cold 20 %": (World(rate=0.15, share_cold=0.2), 0.5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--quick", action="store_true", help="run a tenth of the experiments, but at least 120 per power case"
    )
    options = parser.parse_args()
    part = 10 if options.quick else 1
    began = time.perf_counter()
    with Pool(os.cpu_count()) as pool:
        alarms = {name: count_alarms(pool, world, runs // part) for name, (world, runs) in WORLDS.items()}
        coverage = {name: count_covered(pool, world, 400 // part) for name, world in COVERED.items()}
        power = {name: count_found(pool, *case, runs=max(400 // part, 120)) for name, case in POWERED.items()}
        covariates = compare_variances(pool, KNOWN, max(400 // part, 120))
        past = compare_pasts(pool, max(300 // part, 60))
        occurrences = simulate_occurrences(pool, part)
    report = {
        "false_alarms": alarms,
        "worst_false_alarms": max(row["ours"] for row in alarms.values()),
        "coverage": coverage,
        "worst_coverage": min(row["always"] for row in coverage.values()),
        "power": power,
        "worst_power_ratio": max((row["ratio"] for row in power.values()), key=lambda ratio: abs(ratio - 1)),
        "covariates": covariates,
        "past": past,
        "occurrences": occurrences,
        "seconds": round(time.perf_counter() - began),
    }
    print(json.dumps(report)) if options.json else show(report)


def draw(world: World, drop: float, chance: random.Random) -> Iterator[Drawn]:
    """Yield sessions without end. A drop lowers each call's error probability, so the rate falls by as much."""
    tasks = draw_tasks(world, chance)
    cold = [chance.random() < world.share_cold for _ in tasks]
    for number in itertools.count():
        place = chance.randrange(world.tasks) if world.tasks else 0
        rate, length = tasks[place]
        treated = not cold[place] if world.by_task else chance.random() >= world.share_cold
        calls = min(world.most, 1 + int(chance.lognormvariate(world.calls + length, world.tail)))
        error = chance.betavariate(rate * world.likeness, (1 - rate) * world.likeness)
        errors = count_errors(calls, error * (1 - drop if treated else 1), chance)
        known = (rate + chance.gauss(0, 0.03), float(length > 0)) if world.covariates else ()
        yield Drawn(treated, errors, calls, place if world.tasks else number, known)


def draw_tasks(world: World, chance: random.Random) -> list[Task]:
    if not world.tasks:
        return [Task(world.rate, 0.0)]
    likeness = world.task_likeness
    rates = [chance.betavariate(world.rate * likeness, (1 - world.rate) * likeness) for _ in range(world.tasks)]
    return [Task(min(max(rate, 1e-4), 1 - 1e-4), chance.gauss(0, 0.3)) for rate in rates]


def count_errors(calls: int, probability: float, chance: random.Random) -> int:
    """Draw a binomial count by jumping from one error to the next."""
    if probability < 1e-12:
        return 0
    if probability > 1 - 1e-12:
        return calls
    errors, at, scale = -1, 0, math.log1p(-probability)
    while at <= calls:
        errors += 1
        at += 1 + int(math.log(1 - chance.random()) / scale)
    return errors


class Watched(NamedTuple):
    """Whether the intervals of one experiment missed the truth."""

    missed: bool  # the always-valid interval missed it at some look
    plain_missed: bool
    last_missed: bool
    plain_last_missed: bool
    design_effect: float


def watch(world: World, drop: float, sessions: int, seed: str) -> Watched:
    chance = random.Random(seed)
    truth = -drop * world.rate
    comparison = Comparison(2 if world.covariates else 0)
    missed = plain_missed = last = plain_last = False
    estimate: Estimate | None = None
    for session in itertools.islice(draw(world, drop, chance), sessions):
        add(comparison, session)
        estimate = comparison.estimate()
        if estimate.low is None or estimate.high is None:
            continue
        low, high = plain_interval(estimate) or (-math.inf, math.inf)
        last, plain_last = not estimate.low <= truth <= estimate.high, not low <= truth <= high
        missed, plain_missed = missed or last, plain_missed or plain_last
    design = estimate.design_effect if estimate else None
    return Watched(missed, plain_missed, last, plain_last, design or math.nan)


def add(comparison: Comparison, session: Drawn) -> None:
    comparison.add(session.treated, session.errors, session.calls, cluster=session.task, covariates=session.known)


def count_alarms(pool: Any, world: World, runs: int) -> dict[str, float]:
    sessions = 2_000
    found = pool.starmap(watch, [(world, 0.0, sessions, f"alarm {run}") for run in range(runs)], chunksize=5)
    ours = statistics.mean(run.missed for run in found)
    return {
        "runs": runs,
        "sessions": sessions,
        "ours": round(ours, 4),
        "plain": round(statistics.mean(run.plain_missed for run in found), 3),
        "design_effect": round(statistics.median(run.design_effect for run in found), 2),
        "at_most": round(ours + 1.645 * math.sqrt(max(ours, 1 / runs) * (1 - ours) / runs), 4),
    }


def count_covered(pool: Any, world: World, runs: int) -> dict[str, float]:
    found = pool.starmap(watch, [(world, DROP, 2_000, f"cover {run}") for run in range(runs)], chunksize=5)
    return {
        "runs": runs,
        "always": round(1 - statistics.mean(run.missed for run in found), 4),
        "last": round(1 - statistics.mean(run.last_missed for run in found), 4),
        "plain_always": round(1 - statistics.mean(run.plain_missed for run in found), 3),
        "plain_last": round(1 - statistics.mean(run.plain_last_missed for run in found), 3),
    }


def count_found(pool: Any, world: World, drop: float, runs: int) -> dict[str, float]:
    """Count how often the drop is found within the number of sessions predicted from a history without seeds."""
    history = itertools.islice(draw(world, 0.0, random.Random("history")), 4_000)
    rows = [(session.errors, session.calls, session.task) for session in history]
    baseline = measure_baseline(rows, by_cluster=world.by_task)
    promised = 0.8
    sessions = sessions_needed(baseline, drop, power=promised, share_cold=world.share_cold) if baseline else None
    if sessions is None:
        sys.exit("sessions_needed predicted no number of sessions")
    found = pool.starmap(find, [(world, drop, sessions, f"power {run}") for run in range(runs)], chunksize=5)
    share = statistics.mean(found)
    return {
        "runs": runs,
        "sessions": sessions,
        "promised": promised,
        "found": round(share, 3),
        "ratio": round(share / promised, 3),
    }


def find(world: World, drop: float, sessions: int, seed: str) -> bool:
    comparison = Comparison()
    for session in itertools.islice(draw(world, drop, random.Random(seed)), sessions):
        add(comparison, session)
        if (high := comparison.estimate().high) is not None and high < 0:
            return True
    return False


def compare_variances(pool: Any, world: World, runs: int) -> dict[str, float]:
    rows = pool.starmap(adjust, [(world, f"adjust {run}") for run in range(runs)], chunksize=5)
    bare, adjusted, reductions = zip(*rows, strict=True)
    ratio = statistics.variance(adjusted) / statistics.variance(bare)
    return {"variance_ratio": round(ratio, 3), "said": round(1 - statistics.mean(reductions), 3)}


def adjust(world: World, seed: str) -> tuple[float, float, float]:
    comparison = Comparison(2)
    for session in itertools.islice(draw(world, 0.0, random.Random(seed)), 2_000):
        add(comparison, session)
    estimate = comparison.estimate()
    bare = (estimate.value_treatment or 0.0) - (estimate.value_control or 0.0)
    return bare, estimate.difference or 0.0, estimate.variance_reduction or 0.0


def compare_pasts(pool: Any, runs: int) -> dict[str, float]:
    """Return the variance with the past as a covariate over that without, for two ways to look back."""
    rows = pool.starmap(look_back, [(f"past {run}",) for run in range(runs)], chunksize=2)
    bare, project, person = (statistics.variance(column) for column in zip(*rows, strict=True))
    return {"project": round(project / bare, 3), "person": round(person / bare, 3)}


def look_back(seed: str) -> tuple[float, float, float]:
    """Return the differences of one experiment without effect: bare, and adjusted by two expected rates."""
    chance = random.Random(seed)
    level = {(project, person): chance.betavariate(0.08 * 8, 0.92 * 8) for project in range(4) for person in range(6)}
    sessions = []
    for at in range(1_200):
        place = chance.randrange(4), chance.randrange(6)
        rate = min(max(level[place], 0.002), 0.9)
        calls = min(80, 1 + int(chance.lognormvariate(2.2, 0.8)))
        error = chance.betavariate(rate * 6, (1 - rate) * 6)
        sessions.append(
            (float(at), f"project {place[0]}", f"person {place[1]}", count_errors(calls, error, chance), calls)
        )
    rates = []
    for keep in (False, True):
        past = [(at, project, None, "", person if keep else None, y, n) for at, project, person, y, n in sessions]
        wanted = [(at - 0.5, (project, None, "", person if keep else None)) for at, project, person, _y, _n in sessions]
        rates.append(expected_rate(past, wanted))
    treated = [chance.random() < 0.5 for _ in sessions]
    differences = []
    for known in (None, *rates):
        comparison = Comparison(0 if known is None else 1)
        for at, (_time, _project, _person, errors, calls) in enumerate(sessions):
            covariates = () if known is None else (known[at] or 0.08,)
            comparison.add(treated[at], errors, calls, cluster=at, covariates=covariates)
        differences.append(comparison.estimate().difference or 0.0)
    return differences[0], differences[1], differences[2]


def show(report: dict[str, Any]) -> None:
    print("False alarms in experiments without an effect, a look after every session")
    for name, row in report["false_alarms"].items():
        print(
            f"  {name:42} ours {row['ours']:6.1%}   plain {row['plain']:6.1%}   design effect {row['design_effect']:.2f}"
        )
    print(f"Coverage of a true drop of {DROP:.0%}")
    for name, row in report["coverage"].items():
        print(
            f"  {name:42} ours always {row['always']:6.1%}, last {row['last']:6.1%}"
            f"   plain always {row['plain_always']:6.1%}, last {row['plain_last']:6.1%}"
        )
    print("Power: found within the sessions promised")
    for name, row in report["power"].items():
        print(f"  {name:42} {row['sessions']:6,} sessions   promised {row['promised']:.0%}   found {row['found']:.1%}")
    print("Covariates")
    print(
        "  variance with / without: measured {variance_ratio:.2f}, estimated {said:.2f}".format(**report["covariates"])
    )
    print(
        "  a team's past: variance {project:.2f} by project, {person:.2f} by person and project too".format(
            **report["past"]
        )
    )
    show_occurrences(report["occurrences"])
    print(f"{report['seconds']} s")


if __name__ == "__main__":
    main()
