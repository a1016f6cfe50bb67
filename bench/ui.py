"""Measure the first byte of every page of `warmstart ui` on a large store, with the ratio to the bare query behind it.

    python bench/ui.py [--sessions N] [--rounds N] [--home DIR] [--patience S] [--json]

A store of N sessions (default 100,000) with 50 calls each is made up, straight into the schema; with --home it is kept there
and used again. The server runs in a process of its own. Every page is asked for --rounds times (default 15), and the median
counts. Pages whose figures need the whole history are asked for twice: `computing`, while the figures are computed in the
background and the page says so, and afterwards, when they are ready; --patience says how many seconds are waited for them.
Search is included, for a word of nearly every session, for a rare one, and with filters.

`cpu_ms` is the server's own time on a processor per request, from Linux's accounts: other programs that keep the machine
busy lengthen the median, but not this.

JSON keys: `sessions`, `calls`, `megabytes`, `load`, `pages` [{page, computing_ms, median_ms, cpu_ms, bare_ms, ratio}], `figures`
{name: how long they took}, `worst_ms`, `limit_ms`. A page above the limit makes the exit code 1.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import apsw

from warmstart import config
from warmstart.model import Verdict
from warmstart.pipeline import Warmstart
from warmstart.store import SessionRow
from warmstart.store.sqlite import make_match
from warmstart.store.words import SessionWords

LIMIT = 300.0  # milliseconds
CALLS = 50  # of a session
START, STEP = 1_730_000_000.0, 300.0  # seconds: the first session, and from one to the next
AGENTS = ("claude-code", "codex", "hermes", "gemini-cli")
TOOLS = ("Bash", "Read", "Edit", "Grep", "shell", "apply_patch", "terminal", "read_file")
WORDS = (
    "order total refund export invoice login session cache queue worker deploy staging schema migration index report "
    "button form theme locale parser lexer token stream buffer socket retry timeout backoff ledger audit policy scope"
).split()
RARE = "zanzibar"
CAUSES = (
    "No such file or directory: src/{0}.py",
    "error: unrecognized arguments: --{0}",
    "{0}: command not found",
    "AssertionError: {0} is not {1}",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--home", type=Path)
    parser.add_argument("--patience", type=float, default=60.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server ends too
    if options.home is not None:
        report = measure(options.home, options)
    else:
        with tempfile.TemporaryDirectory(prefix="warmstart-ui-") as home:
            report = measure(Path(home), options)
    print(json.dumps(report)) if options.json else show(report)
    sys.exit(report["worst_ms"] > LIMIT)


# The store


def make_store(home: Path, sessions: int) -> None:
    """Make up a store: real notes and templates of the samples, and sessions straight into the tables."""
    with Warmstart(config.load(home)) as ws:
        if ws.count_sessions() >= sessions:
            return
        ws.ingest(ROOT / "src" / "warmstart" / "samples")
        ws.learn()
        path = Path(ws.store.place)
    began = time.monotonic()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = OFF; PRAGMA cache_size = -400000; PRAGMA foreign_keys = OFF").fetchall()
    dropped = [
        (name, sql)
        for name, sql in db.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name IN ('sessions', 'calls')"
        )
    ]
    for name, _sql in dropped:
        db.execute(f"DROP INDEX {name}")
    chance = random.Random(20261117)
    for first in range(0, sessions, 2_000):
        with db:
            numbers = range(first, min(first + 2_000, sessions))
            _insert(db, "sessions", [_session(n, chance) for n in numbers])
            _insert(db, "calls", [row for n in numbers for row in _calls(n, chance)])
            _insert(db, "spent", [_spent(n, chance) for n in numbers])
        _report(f"{numbers[-1] + 1:,} of {sessions:,} sessions made up, {time.monotonic() - began:.0f} s")
    for _name, sql in dropped:
        db.execute(sql)
    db.close()
    with Warmstart(config.load(home)) as ws:
        SessionWords(ws.store).complete(lambda done, total, _key: _report(f"{done:,} of {total or 0:,} indexed"))
        # What `learn` does with every new session: its counts are made once, and the figures merge them.
        ws.insights(progress=lambda done, total, _key: _report(f"{done:,} of {total or 0:,} counted"))
    _report(f"the store is made, {time.monotonic() - began:.0f} s\n")


def _insert(db: apsw.Connection, table: str, rows: list[tuple[Any, ...]]) -> None:
    db.executemany(f"INSERT INTO {table} VALUES ({','.join('?' * len(rows[0]))})", rows)


def _key(number: int) -> str:
    return f"{number:032x}"


def _session(number: int, chance: random.Random) -> tuple[Any, ...]:
    started = START + number * STEP
    task = f"{RARE if number % 20_000 == 7 else 'fix'} the {' '.join(chance.sample(WORDS, 6))}"
    project = f"/home/dev/project-{number % 200:03}"
    verdicts: tuple[Verdict, ...] = ("success", "failure", "unknown")
    score = (
        '{"verdict":"success","quality":0.7,"confidence":0.6,"evidence":[{"sign":"effort","weight":1.0,"step":null}]}'
    )
    row = SessionRow(
        key=_key(number),
        id=f"session-{number:08}",
        format="claude_code",
        agent=AGENTS[number % len(AGENTS)],
        model=f"model-{number % 5}",
        project=project,
        source_uri=f"file:///transcripts/{number}.jsonl",
        task=task,
        started=started,
        ended=started + 200,
        messages=20,
        calls=CALLS,
        results=CALLS,
        errors=4,
        verdict=verdicts[number % 3],
        quality=0.7,
        confidence=0.6,
        category="coding",
        task_type="code",
        score=score,
        usage='{"input":1000,"output":200}',
        digest=f"d{number}",
        first_seen=started,
        updated=started,
        turns=30,
        folder=project,
        root=project,
    )
    return row.to_columns()


def _calls(number: int, chance: random.Random) -> Iterator[tuple[Any, ...]]:
    key, started = _key(number), START + number * STEP
    for ordinal in range(CALLS):
        one, other = WORDS[(number + ordinal) % len(WORDS)], chance.choice(WORDS)
        failed = ordinal % 12 == 5
        command = f"pytest -q tests/test_{one}.py -k {other} --number {ordinal}"
        cause = CAUSES[ordinal % 4].format(one, other) if failed else None
        yield (
            *(key, ordinal, f"call-{number}-{ordinal}", TOOLS[ordinal % len(TOOLS)]),
            json.dumps({"command": command, "path": f"src/{one}/{other}.py"}),
            f"see whether {one} works",
            f"{cause or 'all fine'}\n{other} " * 3,
            "error" if failed else "ok",
            *(
                "exit_code",
                "environment" if failed else None,
                started + ordinal * 4,
                ordinal // 2 + 1,
                started + ordinal * 4 + 2,
            ),
            *(None, cause, None, None),  # flagged, cause, findings, words
            *(None, None, None),  # request, asked, closing
        )


def _spent(number: int, chance: random.Random) -> tuple[Any, ...]:
    day = time.strftime("%Y-%m-%d", time.gmtime(START + number * STEP))
    return (_key(number), f"model-{number % 5}", day, chance.randrange(5_000), 400, 9_000, 100, 0, 0.02, "reported")


def _report(text: str) -> None:
    print(f"\r{text}    ", end="", file=sys.stderr, flush=True)


# The pages


def list_pages(sessions: int, note: str, template: str) -> dict[str, tuple[str, str, tuple[Any, ...]]]:
    """Return by name the address of each page, the query behind it, and the query's values."""
    key = _key(sessions // 2)
    common, rare = make_match(["order", "total"]), make_match([RARE])
    none = (None, None, None, None, None)
    filtered = ("codex", "success", "/home/dev/project-001", None, None)
    return {
        "home": ("/", "list_sessions", (*none, 8, 0)),
        "sessions": ("/sessions", "list_sessions", (*none, 50, 0)),
        "sessions, far": (f"/sessions?offset={sessions // 2}", "list_sessions", (*none, 50, sessions // 2)),
        "sessions, filtered": (
            "/sessions?agent=codex&verdict=success&project=/home/dev/project-001",
            "list_sessions",
            (*filtered, 50, 0),
        ),
        "search, common": ("/sessions?q=order+total", "worded_keys", (common, 50, 0)),
        "search, far": (f"/sessions?q=order+total&offset={sessions // 2}", "worded_keys", (common, 50, sessions // 2)),
        "search, rare": (f"/sessions?q={RARE}", "worded_keys", (rare, 50, 0)),
        "search, filtered": (
            "/sessions?q=order+total&agent=codex&verdict=success",
            "filtered_worded_keys",
            (common, "codex", "success", None, None, None, None, 1_001),
        ),
        "search, one project": (
            "/sessions?q=order+total&project=/home/dev/project-001",
            "project_worded_keys",
            (common, None, None, "/home/dev/project-001", None, None, None, 1_001),
        ),
        "session": (f"/sessions/{key}", "calls_of", (key,)),
        "errors": ("/errors", "session_keys", none),
        "notes": ("/notes", "notes", (None, None, None, None)),
        "note": (f"/notes/{note}", "notes_by_prefix", (note,)),
        "templates": ("/templates", "list_templates", (None, None, None)),
        "template": (f"/templates/{template}", "list_templates", (None, None, None)),
        "effect": ("/effect", "experiments", ()),
        "usage": ("/usage", "agent_list", ()),
        "projects": ("/projects", "project_list", ()),
        "review": ("/review", "proposals", ("waiting", None)),
        "settings": ("/settings", "agent_list", ()),
        "live": ("/live", "changed_sessions", (time.time() - 3600,)),
    }


class Visitor:
    """A browser that is logged in, and reads as far as the first byte."""

    def __init__(self, link: str, process: int) -> None:
        self._process = process
        address, _, code = link.removeprefix("http://").partition("/")
        self._address = address
        connection = http.client.HTTPConnection(address)
        connection.request("GET", f"/{code}")
        answer = connection.getresponse()
        self._cookie = str(answer.getheader("set-cookie")).partition(";")[0]
        self._connection = http.client.HTTPConnection(address, timeout=3_600)

    def time(self, path: str) -> tuple[float, bytes]:
        """Return the milliseconds until the first byte, and the page."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        first = answer.read(1)
        took = (time.perf_counter() - began) * 1_000
        body = first + answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {body[:300]!r}")
        return took, body

    def read_cpu(self) -> float:
        """Return the milliseconds that the server's threads have had a processor; 0 where that is not known."""
        accounts = Path(f"/proc/{self._process}/task").glob("*/schedstat")
        return sum(int(account.read_text().split()[0]) for account in accounts) / 1e6


def measure(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Make the store, start the server, and ask for every page."""
    sessions = int(options.sessions)
    make_store(home, sessions)
    with Warmstart(config.load(home)) as ws:
        note, template = ws.notes.list()[0].id, ws.templates.find()[0][0].name
        megabytes = Path(ws.store.place).stat().st_size / 1e6
    words = [sys.executable, "-m", "warmstart", "--home", str(home), "ui", "--json", "--no-open", "--port", "0"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT / "src"), "HOME": str(home)})
    try:
        assert server.stdout is not None
        visitor = Visitor(json.loads(server.stdout.readline())["link"], server.pid)
        pages, figures = [], {}
        for name, (path, query, values) in list_pages(sessions, note, template).items():
            page, seconds = measure_page(visitor, home, (name, path, query, values), options)
            pages.append(page)
            if seconds is not None:
                figures[name] = seconds
            _report(f"{name}: {page['median_ms']} ms")
    finally:
        server.terminate()
        server.wait()
    worst = max(max(page["median_ms"], page["computing_ms"] or 0) for page in pages)
    return {
        "sessions": sessions,
        "calls": sessions * CALLS,
        "megabytes": round(megabytes),
        "load": round(os.getloadavg()[0], 1),
        "pages": pages,
        "figures": figures,
        "worst_ms": worst,
        "limit_ms": LIMIT,
    }


def measure_page(
    visitor: Visitor, home: Path, wanted: tuple[str, str, str, tuple[Any, ...]], options: argparse.Namespace
) -> tuple[dict[str, Any], str | None]:
    """Return the times of one page, and how long its figures took if they were computed meanwhile."""
    name, path, query, values = wanted
    rounds = int(options.rounds)
    first, body = visitor.time(path)
    computing, seconds = [first], None
    if b"data-pending" in body:
        began = time.monotonic()
        while b"data-pending" in body and time.monotonic() - began < options.patience:
            took, body = visitor.time(path)
            computing.append(took)
            time.sleep(0.3)
        took_long = f"{time.monotonic() - began:.1f} s"
        seconds = f"more than {took_long}" if b"data-pending" in body else took_long
    cpu = visitor.read_cpu()
    times = [visitor.time(path)[0] for _round in range(rounds)]
    cpu = (visitor.read_cpu() - cpu) / rounds
    with Warmstart(config.load(home)) as ws:
        bare = []
        for _round in range(rounds):
            began_bare = time.perf_counter()
            ws.store.rows(query, values)
            bare.append((time.perf_counter() - began_bare) * 1_000)
    median, median_bare = statistics.median(times), statistics.median(bare)
    page = {
        "page": name,
        "computing_ms": round(statistics.median(computing), 1) if seconds is not None else None,
        "median_ms": round(median, 1),
        "cpu_ms": round(cpu, 1),
        "bare_ms": round(median_bare, 2),
        "ratio": round(median / max(median_bare, 0.01), 1),
    }
    return page, seconds


def show(report: dict[str, Any]) -> None:
    print(
        f"\n{report['sessions']:,} sessions, {report['calls']:,} calls, {report['megabytes']:,} MB; load {report['load']}"
    )
    print(f"{'page':<20}{'computing':>11}{'median':>10}{'cpu':>10}{'bare query':>12}{'ratio':>8}")
    for page in report["pages"]:
        computing = "" if page["computing_ms"] is None else f"{page['computing_ms']:.0f} ms"
        times = f"{page['median_ms']:>7.0f} ms{page['cpu_ms']:>7.0f} ms{page['bare_ms']:>9.1f} ms"
        print(f"{page['page']:<20}{computing:>11}{times}{page['ratio']:>8.1f}")
    for name, seconds in report["figures"].items():
        print(f"the figures of {name} took {seconds} in the background")
    print(f"the slowest page: {report['worst_ms']:.0f} ms at the median (limit {report['limit_ms']:.0f} ms)")


if __name__ == "__main__":
    main()
