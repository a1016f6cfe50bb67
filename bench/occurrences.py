"""Simulate trials of notes, with a look after every occurrence. `bench/stats.py` runs it with the rest.

    python bench/occurrences.py [--json] [--quick]

- `false_alarms`: trials of notes that change nothing, 300 occurrences each. In how many does some look give a verdict?
  The failure rate stays, drifts from 95 % to 30 %, or differs from occurrence to occurrence; half or a tenth is withheld;
  history expects the right rate, a wrong one or none. At most 5 %.
- `power`: a note that spares half of its failures, by the failure rate without it. How often is it shown to work within 40
  occurrences, and after how many with chance 0.8? Half is withheld; history expects the rate of ten earlier occurrences.
- `promises`: `occurrences_needed` says after how many occurrences (or sessions) a drop is shown with chance 0.8. How often is
  it shown by then?
- `pooled`: ten notes with four occurrences each, all of which spare half of their failures, and none of which does.
- `discoveries`: 40 notes with 60 occurrences, 8 of which spare half. The share of false ones among those that e-BH finds, and
  of true ones found.
- `coverage`: the interval of the difference, looked at after every fifth of 150 occurrences. In how many trials do all looks
  contain the truth?
- `pooling`: squared error of partially pooled differences over that of the bare ones, 12 notes of 5 projects.

JSON keys: `false_alarms` {scenario: {runs, occurrences, share, at_most}}, `worst_false_alarms`, `power` {rate: {runs, within_40,
needed}}, `promises` {case: {units, promised, found}}, `pooled` {alike: found, nothing: found}, `discoveries` {false, found},
`coverage` {case: share}, `pooling` {error_ratio}.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import sys
from collections.abc import Iterator
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from warmstart.notes.note_trials import RATE, estimate_difference
from warmstart.stats.many_arms import e_bh
from warmstart.stats.occurrences import (
    ArmTally,
    Drawn,
    OccurrenceTest,
    difference_interval,
    judge_evidence,
    occurrences_needed,
    pool_evidence,
    tally,
    weigh_occurrences,
)
from warmstart.stats.pooling import pool_partially


class World(NamedTuple):
    """How occurrences fail without the note."""

    rate: float = 0.9
    last: float | None = None  # the rate at the end, where it drifts
    mixed: float = 0.0  # concentration of a beta distribution from which each occurrence takes its rate; 0: none
    share: float = 0.5
    expected: float | None = None  # by history
    left: float = 1.0  # share of the failures that is left with the note


ALARMS = {
    "rate 95 %": World(0.95, expected=0.95),
    "rate 80 %, no history": World(0.8),
    "rate 50 %, history wrong": World(0.5, expected=0.95),
    "rate 10 %, tenth withheld": World(0.1, share=0.1, expected=0.1),
    "rate 90 %, tenth withheld": World(0.9, share=0.1, expected=0.9),
    "drifts from 95 % to 30 %": World(0.95, last=0.3, expected=0.95),
    "differs by occurrence": World(0.7, mixed=1.0, expected=0.7),
}
RATES = (0.99, 0.95, 0.9, 0.8, 0.6)
PROMISES = {
    "occurrence, rate 90 %, drop 50 %": World(0.9, left=0.5, expected=0.9),
    "occurrence, rate 60 %, drop 50 %": World(0.6, left=0.5, expected=0.6),
    "occurrence, rate 90 %, drop 30 %": World(0.9, left=0.7, expected=0.9),
    "occurrence, rate 90 %, drop 50 %, tenth withheld": World(0.9, share=0.1, left=0.5, expected=0.9),
    "recurrence, rate 30 %, drop 50 %": World(0.3, left=0.5),
    "recurrence, rate 30 %, drop 50 %, tenth cold": World(0.3, share=0.1, left=0.5),
}
COVERED = {"rate 90 %, drop 50 %": World(0.9, left=0.5), "rate 20 %, no drop": World(0.2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="run a tenth of the trials")
    options = parser.parse_args()
    with Pool(os.cpu_count()) as pool:
        report = simulate(pool, 10 if options.quick else 1)
    print(json.dumps(report)) if options.json else show(report)


def simulate(pool: Any, part: int = 1) -> dict[str, Any]:
    """Run everything; `part` divides the number of trials."""
    alarms = {name: count_alarms(pool, world, max(1_000 // part, 300)) for name, world in ALARMS.items()}
    return {
        "false_alarms": alarms,
        "worst_false_alarms": max(row["share"] for row in alarms.values()),
        "power": {f"{rate:.2f}": measure_power(pool, rate, 2_000 // part) for rate in RATES},
        "promises": {name: count_kept(pool, world, max(1_000 // part, 200)) for name, world in PROMISES.items()},
        "pooled": {
            name: round(share_of(pool, find_pooled, [(left, f"{name} {n}") for n in range(1_000 // part)]), 3)
            for name, left in (("alike", 0.5), ("nothing", 1.0))
        },
        "discoveries": count_discoveries(pool, max(200 // part, 20)),
        "coverage": {
            name: round(share_of(pool, is_covered, [(world, f"cover {n}") for n in range(400 // part)]), 4)
            for name, world in COVERED.items()
        },
        "pooling": compare_errors(pool, 400 // part),
    }


def draw(world: World, number: int, chance: random.Random) -> Iterator[Drawn]:
    for at in range(number):
        rate = world.rate if world.last is None else world.rate + (world.last - world.rate) * at / number
        if world.mixed:
            rate = chance.betavariate(rate * world.mixed, (1 - rate) * world.mixed)
        withheld = chance.random() < world.share
        yield Drawn(world.share, withheld, chance.random() < (rate if withheld else rate * world.left))


def find_verdict(world: World, number: int, seed: str) -> tuple[int, str]:
    """Return the first look with a verdict, and the verdict; 0 without one."""
    test = OccurrenceTest(world.expected)
    for at, one in enumerate(draw(world, number, random.Random(seed)), 1):
        test.add(one)
        if test.may_decide() and (verdict := judge_evidence(test.weigh())) != "inconclusive":
            return at, verdict
    return 0, "inconclusive"


def share_of(pool: Any, function: Any, cases: list[tuple[Any, ...]]) -> float:
    return float(statistics.mean(pool.starmap(function, cases, chunksize=5)))


def count_alarms(pool: Any, world: World, runs: int) -> dict[str, float]:
    found = pool.starmap(find_verdict, [(world, 300, f"alarm {world} {run}") for run in range(runs)], chunksize=5)
    share = statistics.mean(at > 0 for at, _verdict in found)
    at_most = share + 1.645 * math.sqrt(max(share, 1 / runs) * (1 - share) / runs)
    return {"runs": runs, "occurrences": 300, "share": round(share, 4), "at_most": round(at_most, 4)}


def measure_power(pool: Any, rate: float, runs: int) -> dict[str, float]:
    found = pool.starmap(find_half, [(rate, f"power {run}") for run in range(runs)], chunksize=5)
    times = sorted(at or 10**9 for at in found)
    return {
        "runs": runs,
        "within_40": round(sum(at <= 40 for at in times) / runs, 3),
        "needed": times[math.ceil(0.8 * runs) - 1],
    }


def find_half(rate: float, seed: str) -> int:
    """Return after how many occurrences a note that spares half is shown to work, with a history of ten occurrences."""
    chance = random.Random(f"history {seed}")
    expected = sum(chance.random() < rate for _ in range(10)) / 10.5
    at, verdict = find_verdict(World(rate, left=0.5, expected=expected), 400, seed)
    return at if verdict == "works" else 0


def count_kept(pool: Any, world: World, runs: int) -> dict[str, float]:
    units = occurrences_needed(world.rate, 1 - world.left, share=world.share, known=world.expected is not None)
    if units is None:
        sys.exit("occurrences_needed predicted no number")
    found = pool.starmap(find_verdict, [(world, units, f"promise {run}") for run in range(runs)], chunksize=5)
    share = statistics.mean(verdict == "works" for _at, verdict in found)
    return {"units": units, "promised": 0.8, "found": round(share, 3)}


def find_pooled(left: float, seed: str) -> bool:
    """Return whether ten notes together get a verdict at some look, with occurrences in turn."""
    chance = random.Random(seed)
    worlds = [World(chance.uniform(0.8, 0.99), left=left) for _ in range(10)]
    tests = [OccurrenceTest(world.rate) for world in worlds]
    trials = [list(draw(world, 4, chance)) for world in worlds]
    for turn in range(4):
        for test, trial in zip(tests, trials, strict=True):
            test.add(trial[turn])
            if judge_evidence(pool_evidence(one.weigh() for one in tests)) != "inconclusive":
                return True
    return False


def count_discoveries(pool: Any, runs: int) -> dict[str, float]:
    rows = pool.starmap(discover, [(f"many {run}",) for run in range(runs)], chunksize=5)
    false, found = zip(*rows, strict=True)
    return {"false": round(statistics.mean(false), 4), "found": round(statistics.mean(found), 3)}


def discover(seed: str) -> tuple[float, float]:
    chance = random.Random(seed)
    values = {}
    for number in range(40):
        world = World(chance.uniform(0.8, 0.99), left=0.5 if number < 8 else 1.0)
        values[str(number)] = weigh_occurrences(draw(world, 60, chance), world.rate).works
    found = e_bh(values, RATE)
    false = sum(int(name) >= 8 for name in found)
    return false / max(1, len(found)), (len(found) - false) / 8


def is_covered(world: World, seed: str) -> bool:
    truth = world.rate * (world.left - 1)
    drawn: list[Drawn] = []
    for one in draw(world, 150, random.Random(seed)):
        drawn.append(one)
        if len(drawn) % 5 == 0 and (interval := difference_interval(tally(drawn))):
            low, high = interval
            if not low <= truth <= high:
                return False
    return True


def compare_errors(pool: Any, runs: int) -> dict[str, float]:
    rows = pool.starmap(measure_errors, [(f"pool {run}",) for run in range(runs)], chunksize=5)
    bare, pooled = zip(*rows, strict=True)
    return {"error_ratio": round(math.fsum(pooled) / math.fsum(bare), 3)}


def measure_errors(seed: str) -> tuple[float, float]:
    """Return the squared errors of bare and of pooled differences, for notes whose effects scatter around a half."""
    chance = random.Random(seed)
    truths, known = {}, {}
    for number in range(12):
        world = World(chance.uniform(0.7, 0.99), left=min(1.0, max(0.0, chance.gauss(0.5, 0.2))))
        counts: ArmTally = tally(draw(world, chance.randrange(4, 40), chance))
        if (estimate := estimate_difference(counts)) is not None:
            truths[str(number)], known[str(number)] = world.rate * (world.left - 1), estimate
    pooled = pool_partially(known)
    members = pooled.members if pooled else {}
    bare = math.fsum((known[name][0] - truths[name]) ** 2 for name in known)
    return bare, math.fsum((members[name][0] - truths[name]) ** 2 for name in known)


def show(report: dict[str, Any]) -> None:
    """Print the report for people."""
    print("Trials of notes that change nothing: a verdict at some look, with a look after every occurrence")
    for name, row in report["false_alarms"].items():
        print(f"  {name:52} {row['share']:6.1%}")
    print("A note that spares half of its failures is shown to work")
    for rate, row in report["power"].items():
        within = f"within 40 occurrences in {row['within_40']:.1%} of the trials"
        print(f"  failing {float(rate):4.0%} without it   {within}, {row['needed']} occurrences for 80 %")
    print("Promises: shown within the number promised")
    for name, row in report["promises"].items():
        print(f"  {name:52} {row['units']:5,}   promised {row['promised']:.0%}   found {row['found']:.1%}")
    pooled, many = report["pooled"], report["discoveries"]
    print(
        f"Ten notes of four occurrences: {pooled['alike']:.1%} shown to work together, {pooled['nothing']:.1%} falsely"
    )
    print(f"Of 40 notes with 60 occurrences e-BH finds {many['found']:.1%} of 8 that work, {many['false']:.1%} falsely")
    for name, share in report["coverage"].items():
        print(f"Interval of the difference, {name}: all looks contain the truth in {share:.1%}")
    print(f"Partial pooling: squared error {report['pooling']['error_ratio']:.2f} of that of the bare differences")


if __name__ == "__main__":
    main()
