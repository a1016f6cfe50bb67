"""Measure what our hooks cost a real agent: requests, tokens, processes left behind, and time at calls and at the start.

    python bench/agents.py [--json] [--rounds N] [--calls N] [--agent NAME]

The real Claude Code and Codex (`make agents` installs them) run the same session with and without our hooks, in turn,
against a scripted model on this machine that answers at once. The store has learned from two sessions, so there is a
brief; no note concerns the calls, which list a folder. Times are taken where requests arrive: from the start of the agent's
process to its first request, and from one request to the next, which is the time of one call. A ratio is the median of
the rounds' ratios, each of two sessions that ran right after each other.

JSON keys: `agents` {name: {`version`, `rounds`, `calls` (per session), `requests` {with, without} (of every kind, per
session, median), `more_requests` (largest excess of a round; bar: 0), `tokens_added` (in the last request of a session,
an upper estimate, median), `brief_tokens` (of these, the brief's; the others are examples for the prompt),
`processes_left` (the agent's or ours, when the background reading is over; bar: 0), `background_s` (how long after
the session's end something of ours still runs, median and worst), `start_ms`, `call_ms`, `session_ms` {with, without,
added, ratio}}}, `missing` (agents that are not installed).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from warmstart.dialects.tokens import estimate

PROGRAMS: Any = importlib.import_module("agents.programs")
SERVER: Any = importlib.import_module("agents.server")
TEACHING: Any = importlib.import_module("agents.conftest")

NAMES = ("claude-code", "codex")
ARMS = ("without", "with")
TIMES = ("start_ms", "call_ms", "session_ms")
BRIEF = "Known in this project from earlier sessions"
_LONGEST = 60.0  # seconds to wait for the background process


class Measured(NamedTuple):
    """One session of the agent."""

    requests: int
    tokens: int  # of its last request
    brief: int
    background_s: float
    left: list[str]  # command lines of processes that did not end
    start_ms: float
    call_ms: float  # median of its calls
    session_ms: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=12)
    parser.add_argument("--agent", choices=NAMES, action="append")
    options = parser.parse_args()
    programs = [program for program in PROGRAMS.PROGRAMS if program.name in (options.agent or NAMES)]
    missing = [program.name for program in programs if not program.is_here]
    report: dict[str, Any] = {"agents": {}, "missing": missing}
    for program in programs:
        if program.is_here:
            report["agents"][program.name] = measure(program, options.rounds, options.calls)
    print(json.dumps(report)) if options.json else show(report)
    if not report["agents"]:
        raise SystemExit("no agent is installed: run `make agents`")


def measure(program: Any, rounds: int, calls: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder, SERVER.run_model() as model:
        machine = TEACHING.make_machine(program, Path(folder), model)
        settings = teach(machine)
        pairs: list[dict[str, Measured]] = []
        for number in range(rounds + 1):
            order = ARMS if number % 2 else ARMS[::-1]
            pair = {arm: run_session(machine, settings[arm], calls) for arm in order}
            if number:  # the first round fills the caches
                pairs.append(pair)
    return summarise(program, pairs, calls)


def teach(machine: Any) -> dict[str, str]:
    """Let two sessions make a mistake and learn from them; return the agent's settings with and without our hooks."""
    read, project = machine.program.make_read, machine.project
    for _session in range(2):
        machine.run(read(project / "settings.yml"), read(project / "settings.yaml"))
    machine.warmstart("ingest")
    machine.warmstart("learn")
    without = machine.settings.read_text()
    machine.warmstart("hook", "install", machine.program.name)
    return {"without": without, "with": machine.settings.read_text()}


def run_session(machine: Any, settings: str, calls: int) -> Measured:
    machine.settings.write_text(settings)
    with compiled_modules():
        began = time.monotonic()
        ran = machine.run(*[machine.program.make_shell("ls")] * calls)
        ended = time.monotonic()
    left = wait_for_processes(machine)
    background = time.monotonic() - ended
    arrivals = [request.at for request in ran.requests]
    gaps = [(later - earlier) * 1e3 for earlier, later in pairwise(arrivals)]
    assert len(gaps) == calls, f"{len(arrivals)} requests for {calls} calls"
    strings = list(list_strings(ran.requests[-1].body))
    return Measured(
        requests=machine.model.hits,
        tokens=sum(map(estimate, strings)),
        brief=sum(estimate(cut_brief(text)) for text in strings if BRIEF in text),
        background_s=background,
        left=left,
        start_ms=(arrivals[0] - began) * 1e3,
        call_ms=statistics.median(gaps),
        session_ms=(ended - began) * 1e3,
    )


@contextmanager
def compiled_modules() -> Iterator[None]:
    """Let our program keep its compiled modules, as an installed program does."""
    kept = os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    yield
    if kept is not None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = kept


def wait_for_processes(machine: Any) -> list[str]:
    until = time.monotonic() + _LONGEST
    while (left := machine.list_processes()) and time.monotonic() < until:
        time.sleep(0.02)
    return list(left)


def list_strings(value: Any) -> Iterator[str]:
    """Yield every text that the model reads."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from list_strings(inner)


def cut_brief(text: str) -> str:
    """Return the brief without what the agent puts around it: it ends with its last line."""
    return text[text.index(BRIEF) :].partition("\n\n")[0].partition("</system-reminder>")[0].strip()


def summarise(program: Any, pairs: list[dict[str, Measured]], calls: int) -> dict[str, Any]:
    by_arm = {arm: [pair[arm] for pair in pairs] for arm in ARMS}
    report: dict[str, Any] = {
        "version": program.version,
        "rounds": len(pairs),
        "calls": calls,
        "requests": {arm: statistics.median(each.requests for each in by_arm[arm]) for arm in reversed(ARMS)},
        "more_requests": max(pair["with"].requests - pair["without"].requests for pair in pairs),
        "tokens_added": round(statistics.median(pair["with"].tokens - pair["without"].tokens for pair in pairs)),
        "brief_tokens": round(statistics.median(each.brief for each in by_arm["with"])),
        "processes_left": sum(len(each.left) for each in by_arm["with"]),
        "background_s": {
            "median": round(statistics.median(each.background_s for each in by_arm["with"]), 2),
            "worst": round(max(each.background_s for each in by_arm["with"]), 2),
        },
    }
    return report | {name: compare_times(name, pairs) for name in TIMES}


def compare_times(name: str, pairs: list[dict[str, Measured]]) -> dict[str, float]:
    times = {arm: [getattr(pair[arm], name) for pair in pairs] for arm in ARMS}
    both = list(zip(times["with"], times["without"], strict=True))
    return {
        "with": round(statistics.median(times["with"]), 1),
        "without": round(statistics.median(times["without"]), 1),
        "added": round(statistics.median(ours - theirs for ours, theirs in both), 1),
        "ratio": round(statistics.median(ours / theirs for ours, theirs in both), 3),
    }


def show(report: dict[str, Any]) -> None:
    for name in report["missing"]:
        print(f"{name} is not installed: run `make agents`")
    for name, figures in report["agents"].items():
        print(f"{name} {figures['version']}: {figures['rounds']} rounds of {figures['calls']} calls")
        requests = figures["requests"]
        print(f"  requests per session: {requests['with']:g} with, {requests['without']:g} without our hooks")
        print(f"  tokens added to a request: {figures['tokens_added']} (the brief's: {figures['brief_tokens']})")
        background = figures["background_s"]
        print(
            f"  processes left: {figures['processes_left']}; the last one ended {background['median']} s after", end=""
        )
        print(f" the session (worst {background['worst']} s)")
        print(f"  {'':<12}{'with':>10}{'without':>10}{'added':>10}{'ratio':>8}")
        for time_name in TIMES:
            row = figures[time_name]
            print(f"  {time_name:<12}{row['with']:>10}{row['without']:>10}{row['added']:>10}{row['ratio']:>8}")


if __name__ == "__main__":
    main()
