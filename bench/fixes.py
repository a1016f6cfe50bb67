"""Draw fixes at random, to be read against their transcripts.

    python bench/fixes.py [PATH...] [--home DIR] [--count N] [--seed S] [--json]

PATHs (default: the shared corpus beside the project, else the sample transcripts of the package) are ingested into a new
store; `--home` reads an existing one instead. For each of N fixes (default 30): the session's id and the number of the failed
call, that call, its cause, what `insights` says about its fix, and the calls up to the one that fixed it. A reader judges
each: right, wrong or misleading. The same seed draws the same fixes from the same history.

JSON: one object with `errors`, `fixes` (all that were found), `kinds` (their number by kind) and `drawn`: `session`, `call`,
`tool`, `cause`, `how`, `what`, `example`, `steps` (`call`, `status`, `tool`, `arguments`).
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import warmstart
from warmstart.doors.render.terminal import clean
from warmstart.excerpt import first
from warmstart.insights.errors import Failure, find_message
from warmstart.insights.gather import find_failures
from warmstart.model import PastCall, PastSession
from warmstart.pipeline import Warmstart
from warmstart.store.history import read_history

CORPUS = ROOT.parent / "shared" / "corpus"
SAMPLES = ROOT / "src" / "warmstart" / "samples"
SHOWN = 300  # characters of a call


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    scratch = tempfile.TemporaryDirectory(prefix="warmstart-bench-")
    with scratch as folder, warmstart.open(options.home or Path(folder)) as ws:
        if options.home is None:
            for path in options.paths or [CORPUS if CORPUS.exists() else SAMPLES]:
                ws.ingest(path)
        report = draw(ws, options.count, options.seed)
    print(json.dumps(report)) if options.json else show(report)


def draw(ws: Warmstart, count: int, seed: int) -> dict[str, Any]:
    """Find all fixes and describe some of them."""
    errors, fixes = 0, []
    for session in read_history(ws.store):
        for failure in find_failures(session) if session is not None else ():
            errors += 1
            if session is not None and failure.ending is not None:
                fixes.append((session, failure))
    drawn = random.Random(seed).sample(fixes, min(count, len(fixes)))
    return {
        "errors": errors,
        "fixes": len(fixes),
        "kinds": dict(Counter(failure.ending.how for _session, failure in fixes if failure.ending).most_common()),
        "drawn": [describe(session, failure) for session, failure in drawn],
    }


def describe(session: PastSession, failure: Failure) -> dict[str, Any]:
    failed, ending = session.calls[failure.index], failure.ending
    assert ending is not None
    return {
        "session": session.id,
        "call": failure.index + 1,
        "tool": failed.tool,
        "cause": find_message(failed),
        "how": ending.how,
        "what": ending.what,
        "example": ending.example,
        "steps": [
            {"call": at + 1, "status": step.outcome.status, "tool": step.tool, "arguments": show_arguments(step)}
            for at, step in enumerate(session.calls[failure.index : ending.index + 1], failure.index)
        ],
    }


def show_arguments(call: PastCall) -> str:
    """Return the arguments in one line, the long ones shortened."""
    if not isinstance(call.arguments, dict):
        return first(call.arguments, SHOWN)
    return ", ".join(f"{name}={first(str(value), SHOWN)}" for name, value in call.arguments.items())


def show(report: dict[str, Any]) -> None:
    print(f"{report['fixes']} fixes of {report['errors']} errors: {report['kinds']}")
    for number, fix in enumerate(report["drawn"], 1):
        print(f"\n{number}. {fix['session']} call {fix['call']}, {clean(fix['tool'])}: {clean(fix['cause'])}")
        print(f"   {fix['how']}: {clean(fix['what'])}" + (f": {clean(fix['example'])}" if fix["example"] else ""))
        for step in fix["steps"]:
            line = " ".join(clean(f"{step['tool']} {step['arguments']}").split())
            print(f"     {step['call']} {step['status']}: {line}")


if __name__ == "__main__":
    main()
