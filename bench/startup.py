"""Measure how long commands take to start: whole processes of the installed program, in bare interpreter starts.

    python bench/startup.py [--json] [--rounds N]

The store holds the sessions, templates and notes learned from the sample transcripts. Each command runs in its own
process, alternating with the same interpreter doing nothing (`python -c pass`), as in bench/hook.py: `--version`, a hook
at a tool call that no note concerns, a preview of a seed and the brief of a project. Modules are counted by
`-X importtime`, which also names the slowest.

JSON keys: `bare_ms`, `commands` {name: {p50_ms, over_bare, cpu_over_bare, bound, modules, slowest [[module, own ms]]}}
(`over_bare` is the median of the pairs' ratios; `cpu_over_bare` that of processor time, which other programs on the machine
distort less), `within` (whether all keep their bounds).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from hook import PROJECT, event, program, run
from warmstart import config
from warmstart.pipeline import Warmstart

BOUNDS = {"version": 1.5, "hook": 3.0, "provision": 4.0, "brief": 4.0}
SHOWN = 5  # of the slowest modules


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder:
        report = measure(Path(folder), options.rounds)
    print(json.dumps(report)) if options.json else show(report)


def measure(user_home: Path, rounds: int) -> dict[str, Any]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WARMSTART_", "CLAUDE_CONFIG", "PYTHONDONTWRITE"))}
    env |= {"HOME": str(user_home), "WARMSTART_HOLDOUT": "0"}
    with Warmstart(config.load(environ=env)) as ws:
        ws.ingest(ROOT / "src" / "warmstart" / "samples")
        ws.learn()
    transcript = user_home / "session.jsonl"
    transcript.write_text("{}\n")
    commands: dict[str, tuple[list[str], bytes]] = {
        "version": (["--version"], b""),
        "hook": (["hook", "run", "claude-code"], event("call", str(uuid.uuid4()), transcript)),
        "provision": (["provision", "fix the order total test", "--project", PROJECT, "--json"], b""),
        "brief": (["notes", "brief", "--project", PROJECT], b""),
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    ratios: dict[str, list[float]] = {name: [] for name in commands}
    cpu_ratios: dict[str, list[float]] = {name: [] for name in commands}
    bare: list[float] = []
    for number in range(rounds + 1):
        for name, (words, data) in commands.items():
            before = cpu_seconds()
            ours, _answer = run([str(program()), *words], env, data)
            between = cpu_seconds()
            start, _nothing = run([sys.executable, "-c", "pass"], env, b"")
            if number:  # the first round fills the caches
                taken[name].append(ours)
                ratios[name].append(ours / start)
                cpu_ratios[name].append((between - before) / (cpu_seconds() - between))
                bare.append(start)
    rows: dict[str, dict[str, Any]] = {}
    for name, (words, data) in commands.items():
        modules = list_modules(words, env, data)
        rows[name] = {
            "p50_ms": round(statistics.median(taken[name]), 1),
            "over_bare": round(statistics.median(ratios[name]), 2),
            "cpu_over_bare": round(statistics.median(cpu_ratios[name]), 2),
            "bound": BOUNDS[name],
            "modules": len(modules),
            "slowest": sorted(modules, key=lambda row: -row[1])[:SHOWN],
        }
    return {
        "bare_ms": round(statistics.median(bare), 1),
        "commands": rows,
        "within": all(row["over_bare"] <= row["bound"] for row in rows.values()),
    }


def cpu_seconds() -> float:
    """Return the processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def list_modules(words: list[str], env: dict[str, str], data: bytes) -> list[tuple[str, float]]:
    """Return the modules that a command loads, each with its own milliseconds."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", str(program()), *words],
        input=data,
        env=env,
        check=True,
        capture_output=True,
    )
    modules = []
    for line in done.stderr.decode("utf-8", "replace").splitlines():
        own, _, rest = line.removeprefix("import time:").partition("|")
        if line.startswith("import time:") and own.strip().isdigit():
            modules.append((rest.split("|")[-1].strip(), int(own) / 1e3))
    return modules


def show(report: dict[str, Any]) -> None:
    print(f"a bare interpreter start takes {report['bare_ms']} ms")
    print(
        f"{'command':<12}{'p50 ms':>9}{'bare starts':>13}{'by CPU':>8}{'bound':>7}{'modules':>9}  slowest modules (own ms)"
    )
    for name, row in report["commands"].items():
        slowest = ", ".join(f"{module} {own:.1f}" for module, own in row["slowest"])
        starts = f"{row['over_bare']:>13}{row['cpu_over_bare']:>8}{row['bound']:>7}"
        print(f"{name:<12}{row['p50_ms']:>9}{starts}{row['modules']:>9}  {slowest}")
    print("within the bounds" if report["within"] else "NOT within the bounds")


if __name__ == "__main__":
    main()
