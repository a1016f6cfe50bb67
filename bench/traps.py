"""Try to fool the measured effect: every known trap, and plain A/A and A/B, through the public library.

    python bench/traps.py [--json] [--quick] [--runs N] [--only NAME ...]

Each run opens an empty store, starts an experiment (or leaves the standing holdout), and then plays sessions: `provision`,
a transcript of synthetic calls, `ingest`, and `report` after every few sessions. A trap spoils one thing on the way: it loses
transcripts, steers ids, resumes old sessions, and so on. Without a trap sessions of both arms have the same error rate, except
in the A/B worlds. A run is "better" or "worse" if any of its looks said so. `ab, 2 % missing` loses sessions of both arms at
random; `templates` has null templates only and counts those that were promoted or retired.

JSON keys: `traps` {name: {runs, sessions, found, wrong, low, high, alarms, median_sessions, promoted, templates}}: `found` is
the number of runs with a verdict (in A/A worlds each is wrong), `wrong` the share of runs with a false verdict (in A/B worlds:
with the opposite one), `low` and `high` Wilson's 95 % interval of `wrong`, `alarms` the runs in which a check refused every
verdict at some look, `median_sessions` the sessions at which half of the true effects had been found, `promoted` the templates
that were promoted or retired out of `templates`; `worst_wrong`; `found_share` {A/B world: share of runs that found the effect};
`promoted_share`; `seconds`. The cost of closing trials is in `bench/closing.py`.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec

import warmstart
from warmstart.arms import assign
from warmstart.errors import Refused
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.stats.rates import share_interval
from warmstart.templates.register import MEASURED

HALVES = {"cold": 0.5, "warm": 0.5}
MEMORY = Path("/dev/shm")
NOUNS = (
    "orders users invoices carts parcels reviews coupons labels images pages quotas events tables queues tokens "
    "ledgers vouchers stickers captions chapters budgets meetings shelves pipes badges drivers letters bridges wallets lanes"
).split()
KNOWN = [f"{noun} {noun[::-1]} {noun}{noun[::-1]}" for noun in NOUNS]  # a request for each template; none share a word
WORKERS = 2


class Played(NamedTuple):
    """One session before and after it was run."""

    name: str
    number: int
    project: str
    text: str
    arm: str
    errors: int
    calls: int


class World(msgspec.Struct, frozen=True, kw_only=True):
    """How sessions are made, and what is spoiled."""

    sessions: int = 300
    looks: int = 20  # sessions between two looks
    rate: float = 0.2  # errors per call
    likeness: float = 4.0  # concentration of the beta distribution of sessions' rates
    drop: float = 0.0  # share by which a seed lowers the errors
    holdout: bool = False  # the standing holdout instead of an experiment with halves
    projects: tuple[float, ...] = (1.0, 1.0)  # factor of the error rate
    steer: tuple[float, ...] = ()  # share of warm ids that the host picks, by project
    loses: str = ""  # which transcripts get lost
    spoils: str = ""  # what else is done
    metric: str = "error_rate"
    templates: int = 1
    seeded: bool = True


WORLDS = {
    "aa": World(),
    "aa, holdout 10 %": World(holdout=True),
    "ab, drop 50 %": World(drop=0.5),
    "ab, drop 50 %, holdout 20 %": World(drop=0.5, holdout=True, sessions=400),
    "ab, 2 % missing": World(drop=0.5, loses="some"),
    "calls less": World(spoils="calls less"),
    "template loses errors": World(templates=3, loses="first template"),
    "templates, all null": World(templates=6),
    "work before": World(spoils="work before"),
    "old transcript": World(spoils="old transcript"),
    "cold after the outcome": World(spoils="cold later"),
    "crashes, 8 errors": World(loses="8 errors"),
    "crashes, 8 errors, holdout 20 %": World(loses="8 errors", holdout=True),
    "cold crashes, 8 errors": World(loses="8 errors cold"),
    "steered by project": World(projects=(0.5, 1.5), steer=(0.85, 0.15)),
    "token basis": World(spoils="token basis", metric="tokens"),
    "shared transcripts": World(spoils="shared"),
    "no seeds": World(seeded=False),
    "forks": World(spoils="forks"),
}


class Result(NamedTuple):
    """What the looks of one run said."""

    better: bool
    worse: bool
    at: int | None  # sessions at the first verdict
    alarm: bool
    decided: int  # templates promoted or retired
    sessions: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="4 runs per trap")
    parser.add_argument("--runs", type=int, default=24, help="runs per trap (24)")
    parser.add_argument("--only", nargs="*", choices=WORLDS, help="these traps alone")
    options = parser.parse_args()
    runs = 4 if options.quick else options.runs
    names = options.only or list(WORLDS)
    began = time.perf_counter()
    with Pool(WORKERS) as pool:
        jobs = [(name, run) for run in range(runs) for name in names]
        results = []
        for done, result in enumerate(pool.imap(play_job, jobs), start=1):
            results.append(result)
            print(f"\r{done} of {len(jobs)} runs", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
    by_name = {name: [r for (n, _run), r in zip(jobs, results, strict=True) if n == name] for name in names}
    traps = {name: summarise(WORLDS[name], found) for name, found in by_name.items()}
    report = {
        "traps": traps,
        "worst_wrong": max(row["wrong"] for row in traps.values()),
        "found_share": {n: row["found"] / row["runs"] for n, row in traps.items() if WORLDS[n].drop},
        "promoted_share": find_promoted_share(traps),
        "seconds": round(time.perf_counter() - began),
    }
    print(json.dumps(report)) if options.json else show(report)


def summarise(world: World, results: Sequence[Result]) -> dict[str, Any]:
    found = sum(r.better or r.worse for r in results)
    wrong = sum(r.worse if world.drop else r.better or r.worse for r in results)
    low, high = share_interval(wrong, len(results)) or (0.0, 1.0)
    times = sorted(r.at for r in results if r.at is not None)
    return {
        "runs": len(results),
        "sessions": world.sessions,
        "found": found,
        "wrong": round(wrong / len(results), 3),
        "low": round(low, 3),
        "high": round(high, 3),
        "alarms": sum(r.alarm for r in results),
        "median_sessions": times[len(times) // 2] if world.drop and times else None,
        "promoted": 0 if world.drop else sum(r.decided for r in results),
        "templates": 0 if world.drop else world.templates * len(results),
    }


def find_promoted_share(traps: dict[str, Any]) -> float | None:
    templates = sum(row["templates"] for row in traps.values())
    return sum(row["promoted"] for row in traps.values()) / templates if templates else None


# One run


def play_job(job: tuple[str, int]) -> Result:
    return play(*job)


def play(name: str, run: int) -> Result:
    """Play one experiment and look at it after every few sessions."""
    world = WORLDS[name]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as place:
        folder = Path(place)
        write_settings(folder, holdout=0.2 if "20 %" in name else 0.1)
        with warmstart.open(folder / "home") as ws:
            prepare(ws, world, folder)
            return watch(ws, Host(ws, world, folder, random.Random(f"{name} {run}")), world)


def write_settings(folder: Path, holdout: float = 0.1) -> None:
    (folder / "home").mkdir(parents=True)
    (folder / "home" / "config.toml").write_text(f"holdout = {holdout}\nmax_active = {len(KNOWN)}\n")


def prepare(ws: Warmstart, world: World, folder: Path) -> None:
    lessons = [
        {
            "name": f"lesson {n}",
            "category": "ops",
            "examples": [
                {
                    "tool_name": "Bash",
                    "arguments": {"command": f"shop {text}"},
                    "result": "done",
                    "success": True,
                    "context_hint": text,
                }
            ],
        }
        for n, text in enumerate(KNOWN[: world.templates])
    ]
    (folder / "lessons.json").write_text(json.dumps(lessons))
    if world.seeded:
        ws.templates.import_(folder / "lessons.json", approve=True)
    if not world.holdout:
        ws.experiments.start("trap", "cold=.5,warm=.5", metric=world.metric)


def watch(ws: Warmstart, host: Host, world: World) -> Result:
    better = worse = alarm = False
    at: int | None = None
    for number in range(1, world.sessions + 1):
        host.run_session(number)
        if number % world.looks:
            continue
        ws.ingest(host.folder / "out")
        shutil.rmtree(host.folder / "out")
        host.spoil_later()
        report = ws.report()
        verdicts = {effect.verdict for effect in report.effects}
        better, worse = better or "better" in verdicts, worse or "worse" in verdicts
        at = number if at is None and verdicts & {"better", "worse"} else at
        alarm = alarm or report.blocked is not None
        if better or worse:
            break
    decided = [
        row.name
        for row, _template in ws.templates.find()
        if any(decision.by == MEASURED for decision in ws.templates.show(row.name)[2])
    ]
    return Result(better, worse, at, alarm, len(set(decided)), number)


class Host:
    """An agent's program with a fault: asks for a seed, works, and leaves a transcript, or does not."""

    def __init__(self, ws: Warmstart, world: World, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self._ws = ws
        self._world = world
        self._chance = chance
        self._names = 0
        self._ended: list[Played] = []
        self._spare: list[Played] = []

    def run_session(self, number: int) -> None:
        world, chance = self._world, self._chance
        place = chance.randrange(len(world.projects))
        name = self._pick_name(place)
        text = KNOWN[number % world.templates]
        project = f"/work/shop-{place}"
        before = self._begin_before(name, project, number)
        seed = self._ws.provision(Task(text=text, session=name, agent="claude-code", project=project, tools=("Bash",)))
        arm = seed.arm or "cold"
        rate = chance.betavariate(world.rate * world.likeness, (1 - world.rate) * world.likeness)
        rate *= world.projects[place] * (1 - world.drop if seed else 1)
        calls = min(40, 2 + int(chance.lognormvariate(2.3, 0.5)))
        if world.spoils == "calls less" and arm == "warm":
            calls, rate = max(1, calls // 5), rate * 0.5
        outcomes = [chance.random() >= min(1.0, rate) for _ in range(calls)]
        played = Played(name, number, project, text, arm, outcomes.count(False), calls)
        self._ended.append(played)
        if not self._is_lost(played):
            self._write(played, [*before, *self._make_lines(played, outcomes)])

    def _pick_name(self, place: int) -> str:
        """Return a session id. A steering host tries ids until one is drawn into the arm that it wants."""
        wanted = None
        if self._world.steer:
            wanted = "warm" if self._chance.random() < self._world.steer[place] else "cold"
        while True:
            self._names += 1
            name = f"{self._chance.getrandbits(64):016x}-{self._names}"
            if wanted is None or assign(name, HALVES, "trap") == wanted:
                return name

    def _is_lost(self, played: Played) -> bool:
        match self._world.loses:
            case "some":
                return self._chance.random() < 0.02
            case "8 errors":
                return played.arm == "warm" and played.errors >= 8
            case "8 errors cold":
                return played.arm == "cold" and played.errors >= 8
            case "first template":
                return played.arm == "warm" and played.text == KNOWN[0] and played.errors > 2
        return False

    def _begin_before(self, name: str, project: str, number: int) -> list[dict[str, Any]]:
        """Return what an unknown session had done before it was resumed: many errors, if it will be cold."""
        if self._world.spoils == "old transcript" and number % 5 == 0:
            is_cold = assign(name, HALVES, "trap") == "cold"
            return make_lines(name, project, [not is_cold] * 10, at=time.time() - 7 * 86_400, first=1_000)
        if self._world.spoils == "work before":
            is_cold = assign(name, HALVES, "trap") == "cold"
            return make_lines(name, project, [not is_cold] * 29, at=time.time() - 900, first=1_000)
        return []

    def _make_lines(self, played: Played, outcomes: Sequence[bool]) -> list[dict[str, Any]]:
        usage = None
        copied: list[dict[str, Any]] = []
        match self._world.spoils:
            case "old transcript" if played.number % 5 == 0:
                return []
            case "token basis" if played.arm == "warm":
                usage = {"input_tokens": 12_000 + self._chance.randrange(4_000), "output_tokens": 200}
            case "forks" if played.arm == "cold" and (parent := self._find_parent(played)):
                copied = make_lines(played.name, played.project, [False] * parent.calls, own=parent.name)
        return [*copied, *make_lines(played.name, played.project, outcomes, usage=usage)]

    def _find_parent(self, played: Played) -> Played | None:
        """Return a warm session with many errors, which a cold fork copies."""
        bad = [other for other in self._ended[-60:] if other.arm == "warm" and other.errors > 3 and other.calls < 30]
        return self._chance.choice(bad) if bad else None

    def _write(self, played: Played, lines: Sequence[dict[str, Any]]) -> None:
        if self._world.spoils == "shared" and played.arm == "warm" and played.errors > 2:
            self._spare.append(played)
            return
        out = self.folder / "out"
        out.mkdir(exist_ok=True)
        (out / f"{played.name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if self._world.spoils == "shared" and played.arm == "warm" and not played.errors:
            self._share(out / f"{played.name}.jsonl")

    def _share(self, path: Path) -> None:
        """Record a good transcript for a bad session too."""
        if self._spare:
            try:
                self._ws.record(self._spare[-1].name, path)
            except Refused:
                return
            self._spare.pop()

    def spoil_later(self) -> None:
        """Switch warm sessions that went badly to cold, after their outcome is known."""
        if self._world.spoils == "cold later":
            for played in self._ended:
                if played.arm == "warm" and played.errors > 2:
                    try:
                        self._ws.provision(Task(text=played.text, session=played.name, agent="claude-code", cold=True))
                    except Refused:
                        continue
        self._ended = self._ended[-60:]


def make_lines(
    session: str,
    project: str,
    outcomes: Sequence[bool],
    *,
    at: float | None = None,
    first: int = 0,
    own: str = "",
    usage: dict[str, int] | None = None,
) -> list[dict[str, Any]]:
    """Return the lines of a Claude Code session whose calls had these outcomes. `own` names whose calls they are."""
    moment = datetime.fromtimestamp(time.time() if at is None else at, UTC).isoformat().replace("+00:00", "Z")
    common = {"sessionId": session, "cwd": project, "version": "2.1.0", "timestamp": moment}
    whose = own or session
    lines: list[dict[str, Any]] = [
        common | {"type": "user", "uuid": f"{session}-u{first}", "message": {"role": "user", "content": "list them"}}
    ]
    for n, worked in enumerate(outcomes, first):
        use = {"type": "tool_use", "id": f"toolu_{whose}_{n}", "name": "Bash", "input": {"command": f"shop list {n}"}}
        answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": use["id"], "content": f"fine {n}"}
        if not worked:
            answer |= {"is_error": True, "content": "Exit code 1\nboom"}
        message: dict[str, Any] = {"id": f"m-{whose}-{n}", "role": "assistant", "model": "m", "content": [use]}
        if usage:
            message["usage"] = usage
        lines.append(common | {"type": "assistant", "uuid": f"{session}-a{n}", "message": message})
        answered = {"role": "user", "content": [answer]}
        lines.append(common | {"type": "user", "uuid": f"{session}-r{n}", "message": answered})
    return lines


def show(report: dict[str, Any]) -> None:
    heads = ("runs", "found", "wrong", "interval", "alarms", "median", "promoted")
    print(f"{'trap':34}" + "".join(f"{head:>14}" for head in heads))
    for name, row in report["traps"].items():
        median = row["median_sessions"] or "-"
        promoted = f"{row['promoted']} of {row['templates']}" if row["templates"] else "-"
        cells = (
            row["runs"],
            row["found"],
            f"{row['wrong']:.1%}",
            f"{row['low']:.0%} to {row['high']:.0%}",
            row["alarms"],
            median,
            promoted,
        )
        print(f"{name:34}" + "".join(f"{cell:>14}" for cell in cells))
    print(f"wrong at most {report['worst_wrong']:.1%}; templates decided {report['promoted_share'] or 0:.1%}")
    print(f"{report['seconds']} s")


if __name__ == "__main__":
    main()
