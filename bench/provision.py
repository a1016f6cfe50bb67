"""Measure the time of provisioning as templates grow, compared with a naive implementation.

    python bench/provision.py [--json] [--most N]

The stores hold 10, 1,000 and --most (default 10,000) active templates with five examples each, of generated work of many
kinds. Two things are measured in-process: a preview (choose and compose for a task's text), and a provision for a new
session (which also commits the trial to disk). The naive implementation uses the same templates: it reads one JSON file of
all templates, scores each by the words it shares with the task, counts the use and writes the file back. Last, a cold
`warmstart provision` process is compared with a bare start of the interpreter.

JSON keys: `sizes` {n: {p50_ms, p99_ms, session_p50_ms, session_p99_ms, naive_p50_ms, naive_over_ours}}, `growth` (p50 at
the largest size / p50 at 1,000), `cold_ms`, `bare_ms`, `cold_over_bare`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import msgspec
from msgspec import structs

from warmstart import config
from warmstart.dialects.compose import cost
from warmstart.dialects.tokens import estimate
from warmstart.model import DIALECTS, Example, Provenance, Task, Template
from warmstart.names import name_key
from warmstart.pipeline import Warmstart
from warmstart.store import TemplateRow, TemplateStore
from warmstart.templates.search import index_weights

VERBS = "add fix remove rename test deploy migrate inspect profile document translate import export merge split".split()
THINGS = "order invoice user session report cache queue index schema parser cursor token widget payment refund".split()
PLACES = "api worker database frontend scheduler gateway console mailer archive billing search storage".split()
SYLLABLES = "ka lo mi ren tas vu pel dor sin gra bo ti zan qu el".split()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--most", type=int, default=10_000)
    options = parser.parse_args()
    sizes: dict[str, Any] = {}
    cold: dict[str, float] = {}
    for size in sorted({10, 1_000, options.most}):
        with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as home:
            sizes[str(size)] = measure(Path(home), size)
            if size == 1_000:
                cold = cold_start(Path(home))
    growth = sizes[str(options.most)]["p50_ms"] / sizes["1000"]["p50_ms"]
    report = {"sizes": sizes, "growth": round(growth, 2), **cold}
    print(json.dumps(report)) if options.json else show(report)


def make_template(number: int) -> Template:
    """Return a template of one kind of work, with words of its own and words that many share."""
    chance = random.Random(number)
    verb, thing, place = chance.choice(VERBS), chance.choice(THINGS), chance.choice(PLACES)
    own = ["".join(chance.choice(SYLLABLES) for _ in range(3)) for _ in range(3)]
    task = f"{verb} the {thing} in the {place}, the part called {own[0]} {own[1]}"
    examples = tuple(
        Example(
            tool=chance.choice(("terminal", "read_file", "patch", "search_files", "write_file")),
            arguments={"command": f"{verb} --{thing} {own[n % 3]} {n}", "path": f"src/{place}/{own[0]}.py"},
            result=f"{thing} {own[n % 3]} done in {n} ms\n" * 6,
            intent=f"{verb} {thing} {own[n % 3]} before the {place} is checked",
            task=task,
            session=f"s{number}",
            support=1 + n,
        )
        for n in range(5)
    )
    return Template(
        name=f"{place}-{verb}-{thing}-{number}",
        category="coding",
        description=task,
        tags=(verb, thing),
        examples=examples,
        source_sessions=(f"s{number}", f"r{number}"),
        provenance=Provenance(origin="learned", agent="hermes"),
    )


def fill(ws: Warmstart, templates: list[Template]) -> None:
    """Store the templates as learning does, without its limit of active templates per category."""
    store = TemplateStore(ws.store)
    for start in range(0, len(templates), 500):
        with ws.store.writing():
            for template in templates[start : start + 500]:
                row = TemplateRow(
                    name=template.name,
                    version=1,
                    name_key=name_key(template.name),
                    status="active",
                    reason="generated",
                    category=template.category,
                    task_type=template.task_type,
                    project="",
                    strength=1.0,
                    body=msgspec.json.encode(structs.replace(template, examples=())).decode(),
                    digest=template.name,
                    created=0.0,
                )
                costs: list[dict[str, int]] = [{d: cost(e, d, estimate) for d in DIALECTS} for e in template.examples]
                store.put(row, list(zip(template.examples, costs, strict=True)))
                store.index(row, [index_weights(e, template) for e in template.examples])


def measure(home: Path, size: int) -> dict[str, float]:
    templates = [make_template(number) for number in range(size)]
    chance = random.Random(1)
    texts = [chance.choice(templates).description for _ in range(300)]
    with Warmstart(config.load(home)) as ws:
        fill(ws, templates)
        for text in texts[:20]:
            ws.provision(Task(text=text, project="*"))
        preview = [timed(lambda text=text: ws.provision(Task(text=text, project="*"))) for text in texts]  # type: ignore[misc]
        assert ws.provision(Task(text=texts[0], project="*")), "a generated task must find something"
        given = [
            timed(lambda text=text, n=n: ws.provision(Task(text=text, project="*", session=f"session-{n}")))  # type: ignore[misc]
            for n, text in enumerate(texts)
        ]
    file = home / "naive.json"
    file.write_bytes(
        msgspec.json.encode(
            [structs.asdict(t) | {"examples": [structs.asdict(e) for e in t.examples]} for t in templates]
        )
    )
    naive = [timed(lambda text=text: provision_naively(file, text)) for text in texts[: 100 if size < 5_000 else 7]]  # type: ignore[misc]
    ours = statistics.median(preview)
    return {
        "p50_ms": round(ours, 3),
        "p99_ms": round(quantile(preview, 0.99), 3),
        "session_p50_ms": round(statistics.median(given), 3),
        "session_p99_ms": round(quantile(given, 0.99), 3),
        "naive_p50_ms": round(statistics.median(naive), 3),
        "naive_over_ours": round(statistics.median(naive) / ours, 1),
    }


def provision_naively(file: Path, text: str) -> list[dict[str, Any]]:
    """Read, score and write back every template on every call."""
    templates = json.loads(file.read_text())
    words = set(text.lower().split())

    def overlap(template: dict[str, Any]) -> int:
        text = f"{template['name']} {template['description']} {' '.join(template['tags'])}"
        return len(words & set(text.lower().split()))

    best = max(templates, key=overlap)
    best["used"] += 1
    file.write_text(json.dumps(templates))
    return [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "type": "function", "function": example}]}
        for example in best["examples"]
    ]


def timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1e3


def quantile(values: list[float], q: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * q))]


def cold_start(home: Path) -> dict[str, float]:
    """Compare a new `warmstart provision` process with a start of the interpreter that does nothing."""
    env = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    bare = [sys.executable, "-c", "pass"]
    ours = [sys.executable, "-m", "warmstart", "--home", str(home), "provision", make_template(3).description, "--json"]

    def run(words: list[str]) -> float:
        return timed(lambda: subprocess.run(words, env=env, check=True, stdout=subprocess.DEVNULL))

    run(ours)
    pairs = [(run(ours), run(bare)) for _ in range(15)]
    cold, start = (statistics.median(values) for values in zip(*pairs, strict=True))
    return {
        "cold_ms": round(cold, 1),
        "bare_ms": round(start, 1),
        "cold_over_bare": round(statistics.median(c / b for c, b in pairs), 2),
    }


def show(report: dict[str, Any]) -> None:
    print(
        f"{'templates':>10}{'p50 ms':>9}{'p99 ms':>9}{'with session p50':>18}{'p99':>9}{'naive p50':>12}{'naive / ours':>14}"
    )
    for size, row in report["sizes"].items():
        print(
            f"{size:>10}{row['p50_ms']:>9}{row['p99_ms']:>9}{row['session_p50_ms']:>18}{row['session_p99_ms']:>9}"
            f"{row['naive_p50_ms']:>12}{row['naive_over_ours']:>14}"
        )
    print(f"p50 grows by a factor of {report['growth']} from 1,000 templates to the largest size")
    print(
        f"a cold process takes {report['cold_over_bare']} bare starts of Python ({report['cold_ms']} / {report['bare_ms']} ms)"
    )


if __name__ == "__main__":
    main()
