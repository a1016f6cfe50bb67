"""The confirmation daemon: durable submits beside bare commits, wake-up, start, races, tampering, kill -9, floods.

    python bench/confirm.py [--json] [--full] [--seconds S] [--kills N] [--seed S] [--only PART ...]

Everything goes over HTTP to a daemon in a process of its own, clients in another. Durable submits a second are taken
twice: from 16 and from 64 clients, while 1,000 requests are pending and 200 long polls wait. They are given as ratios
to what this disk does in the same run: bare SQLite commits one after the other (WAL, synchronous=FULL), and commits of
16 rows each. Figures of a shared machine: only the ratios say much. `--only` runs single parts; each but the kills of
--full takes under ten minutes, and those can be split (--kills 250 --seed 2).

JSON keys, by part. `load`: `bare_commits_per_s`, `grouped_rows_per_s` (16 a commit); `submits_per_s` {16, 64 clients},
`submit_ratio` (the best to bare commits), `grouped_ratio`, `submit_p50_ms`, `submit_p99_ms` (64 clients); `idle_p50_ms`
(one client, nothing else going on); `pending`, `waiters`, `waiters_woken`, `wake_p50_ms`, `wake_p99_ms`, `wake_worst_ms`
(from when a decision is sent, through its commit, to the waiter's answer), `wake_alone_p50_ms` (the same with a single
waiter); `start_s` (from the command to the first answer, after kill -9), `start_worst_s`. `race` {requests, clients,
exactly_one, wrong}. `tampering` {changes, found (share)}. `kills` {points, acknowledged, submitted, decided, expired,
executed, wrong {what: n}, ready_worst}. With --full 1,000 requests in the race and 1,000 kills.

`postgres` (a real server on the same disk, by the tests' wheel; null where that is missing), with two daemons on one
database: `bare_commits_per_s` (of that server), `submits_per_s` (64 clients at one daemon), `submit_ratio`,
`sqlite_submits_per_s` and `to_sqlite` (the same clients at a daemon on SQLite, in turns; medians of three),
`wake_p50_ms`, `wake_p99_ms`, `wake_worst_ms` (200 wait at one daemon, the other decides), `race` (the clients at both
daemons), `kills` (10; with --full 100).

`flood` is a person at the page of a daemon with the usual limits, quiet and while an agent floods it: for each flood
{page_ratio, decision_ratio, page_ms, decision_ms, quiet_page_ms, quiet_decision_ms, load}: `large` (400 requests of 200
KB, again and again over 8 connections), `dense` (380 tokens in one body, over 8 connections), `half_open` (1,100
half-open connections to each port), `all` (these together); `large_unlimited` and `dense_unlimited` are the same at a
daemon that refuses nothing. Three rounds, each with a token of its own: quiet, half a second into the flood, and three
seconds into it. Medians of all rounds; the ratios are the worse of the two. A page is the document, the list of waiting
requests and one request; the requests that are decided are another agent's.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import apsw

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from warmstart.confirm.desk.offline import change_database
from warmstart.confirm.store.open import locate
from warmstart.confirm.store.protocol import ServerAddress
from warmstart.confirm.tokens.access import create_login, create_token
from warmstart.confirm.tokens.identity import split_token

STRESS: Any = importlib.import_module("confirm.stress")
TAMPERING: Any = importlib.import_module("confirm.tampering")
SERVING: Any = importlib.import_module("confirm.serving")
REDTEAM: Any = importlib.import_module("confirm.redteam")
POSTGRES: Any = importlib.import_module("postgres_server")

PENDING, WAITERS = 1_000, 200
BODY = {
    "action": "send_mail",
    "description": "Tell the customers about the outage of last night",
    "details": {
        "to": "customers",
        "template": "outage",
        "count": 250,
        "options": {"dry_run": False, "tags": ["a", "b"]},
    },
    "session_key": "bench",
    "timeout_seconds": 3600,
}
POLICY = """
[defaults]
rate_limit = 1000000000
submit_limit = 0
pending_limit = 1000000
pending_bytes = 1000000000
cool_down_seconds = 0
"""


def measure_disk(folder: Path, seconds: float) -> tuple[float, float]:
    """Rows a second that SQLite makes durable here: one a commit, and 16."""
    rates = []
    for rows in (1, 16):
        db = apsw.Connection(str(folder / f"bare-{rows}.db"))
        db.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS t (id INTEGER, body TEXT)"
        ).fetchall()
        text, count, began = json.dumps(BODY), 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            with db:
                for n in range(rows):
                    db.execute("INSERT INTO t VALUES (?, ?)", (n, text))
            count += rows
        rates.append(count / (time.perf_counter() - began))
        db.close()
    return rates[0], rates[1]


class Daemon:
    """`warmstart confirm serve` in a process of its own."""

    def __init__(self, folder: Path, url: str = "", policy_text: str = POLICY) -> None:
        self.database: Path | ServerAddress = locate(url, folder) if url else folder / "confirm.db"
        policy = folder / "policy.toml"
        policy.write_text(policy_text)
        self.command = [sys.executable, "-m", "warmstart", "--home", str(folder), "confirm", "serve", "--port", "0"]
        self.command += ["--ui-port", "0", "--policy", str(policy), "--json"]
        self.command += ["--db", url] if url else []
        self.agent = self.make_token("agent", "agent:submit")
        self.approver = self.make_token("boss", "approver:decide")
        self.start()

    def make_token(self, subject: str, scope: str) -> str:
        return change_database(self.database, lambda turn: create_token(turn, subject, [scope], by="bench")).secret

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> float:
        """Seconds until the first answer."""
        began = time.perf_counter()
        source = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True, env=source)
        assert self.process.stdout
        facts = json.loads(self.process.stdout.readline())
        self.url, self.page = facts["api_url"], facts["page_url"]
        STRESS.Caller(self.url, "").call("GET", "/health")
        return time.perf_counter() - began

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stdout
        self.process.stdout.close()


LOAD = """
import importlib, json, sys, threading, time
sys.path[:0] = json.loads(sys.argv[1])
stress = importlib.import_module("confirm.stress")
url, token, body, clients, seconds = json.loads(sys.argv[2])
times, lock = [], threading.Lock()
end = time.perf_counter() + seconds
def submit(number):
    caller, mine, n = stress.Caller(url, token), [], 0
    while (began := time.perf_counter()) < end:
        n += 1
        status, told = caller.call("POST", "/confirm", body | {"action": f"bench_{(number * 7 + n) % 200}"})
        assert status == 202, told
        mine.append(time.perf_counter() - began)
    with lock:
        times.extend(mine)
threads = [threading.Thread(target=submit, args=(n,)) for n in range(clients)]
began = time.perf_counter()
for thread in threads: thread.start()
for thread in threads: thread.join()
took = time.perf_counter() - began
times.sort()
print(json.dumps([len(times) / took, times[len(times) // 2], times[int(len(times) * 0.99)]]))
"""


def measure_submits(daemon: Daemon, clients: int, seconds: float) -> tuple[float, float, float]:
    """`(a second, p50 s, p99 s)`, from a process of its own: clients and daemon must not share an interpreter."""
    paths = json.dumps([str(ROOT / "src"), str(ROOT / "tests")])
    work = json.dumps([daemon.url, daemon.agent, BODY, clients, seconds])
    done = subprocess.run([sys.executable, "-c", LOAD, paths, work], capture_output=True, text=True, check=True)
    rate, p50, p99 = json.loads(done.stdout)
    return rate, p50, p99


def submit_many(daemon: Daemon, count: int) -> list[str]:
    """Pending requests, from several threads."""
    ids: list[str] = []

    def submit(number: int) -> None:
        caller = STRESS.Caller(daemon.url, daemon.agent)
        for n in range(count // 20):
            _, told = caller.call("POST", "/confirm", BODY | {"action": f"wait_{number}_{n % 20}"})
            ids.append(told["id"])
        caller.close()

    threads = [threading.Thread(target=submit, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ids


WAIT = """
import asyncio, json, sys, time
url, token, ids = json.loads(sys.stdin.readline())
host, port = url.removeprefix("http://").split(":")
async def wait(id):
    reader, writer = await asyncio.open_connection(host, int(port))
    while True:
        head = f"GET /confirm/{id}?wait=60 HTTP/1.1\\r\\nHost: {host}\\r\\nAuthorization: Bearer {token}\\r\\n\\r\\n"
        writer.write(head.encode())
        headers = await reader.readuntil(b"\\r\\n\\r\\n")
        length = int(headers.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0])
        body = await reader.readexactly(length)
        if b'"status":"pending"' not in body:
            print(id, time.time(), flush=True)
            writer.close()
            return
async def main():
    tasks = [asyncio.create_task(wait(id)) for id in ids]
    print("ready", flush=True)
    await asyncio.gather(*tasks)
asyncio.run(main())
"""


def measure_wake(
    daemon: Daemon, ids: list[str], during: Any = None, deciding: Daemon | None = None
) -> tuple[list[float], Any]:
    """Milliseconds from when a decision is sent to its waiter's answer, all of them waiting at once; and what `during`
    gave while they waited. `deciding`: another daemon on the same database."""
    waiter = subprocess.Popen([sys.executable, "-c", WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert waiter.stdin
    assert waiter.stdout
    waiter.stdin.write(json.dumps([daemon.url, daemon.agent, ids]) + "\n")
    waiter.stdin.flush()
    assert waiter.stdout.readline() == "ready\n"
    time.sleep(1.0)  # until all of them have asked
    result = during() if during else None
    decided: dict[str, float] = {}
    caller = STRESS.Caller((deciding or daemon).url, daemon.approver)
    for id in random.Random(1).sample(ids, len(ids)):
        decided[id] = time.time()
        status, _ = caller.call("POST", f"/confirm/{id}/approve", {})
        assert status == 200
    woken = dict(line.split() for line in waiter.stdout.read().splitlines())
    waiter.stdin.close()
    waiter.wait()
    return [(float(woken[id]) - at) * 1000 for id, at in decided.items() if id in woken], result


def measure_tampering(folder: Path, count: int) -> float:
    """The share of tamperings that `verify` finds."""
    history, copy = folder / "history.db", folder / "copy.db"
    TAMPERING.make_history(history)
    dice, found = random.Random(11), 0
    for _ in range(count):
        TAMPERING.copy_database(history, copy)
        TAMPERING.tamper(copy, dice)
        found += not SERVING.check(copy).ok
    return found / count


def measure_starts(daemon: Daemon, count: int) -> list[float]:
    """Killed and started again, with everything that is pending."""
    times = []
    for _ in range(count):
        daemon.kill()
        times.append(daemon.start())
    return times


DECIDED = 9  # pages and decisions in each state
ROUNDS = 3
USUAL = "[defaults]\nrate_limit = 100000\nsubmit_limit = 100000\n"  # those that keep requests from waiting stay
Times = dict[str, list[float]]


class PersonAtPage:
    """A person who is logged in, and the requests that wait for a decision."""

    def __init__(self, daemon: Daemon) -> None:
        code = change_database(daemon.database, lambda tx: create_login(tx, "boss", by="bench"))
        answer = SERVING.send(daemon.page, "POST", "/login", {"code": code})
        self._person = SERVING.Person(
            daemon.page, answer.headers["set-cookie"].split(";")[0], answer.body["csrf_token"]
        )
        self._daemon = daemon
        self._ids: list[str] = []

    def prepare(self) -> None:
        """Let another agent submit what is decided in a round."""
        other = self._daemon.make_token("other", "agent:submit")
        for n in range(3 * DECIDED + 1):
            body = BODY | {"timeout_seconds": 3600, "action": f"a{n}"}
            self._ids.append(SERVING.send(self._daemon.url, "POST", "/confirm", body, token=other).body["id"])

    def measure(self) -> Times:
        """Milliseconds of each page and each decision."""
        pages, decisions = [], []
        for _ in range(DECIDED):
            began = time.perf_counter()
            SERVING.send(self._daemon.page, "GET", "/", timeout=120)
            assert self._person.call("GET", "/confirm?status=pending&limit=50").status == 200
            assert self._person.call("GET", f"/confirm/{self._ids[-1]}").status == 200
            pages.append((time.perf_counter() - began) * 1000)
            began = time.perf_counter()
            assert self._person.call("POST", f"/confirm/{self._ids.pop()}/approve", {}).status == 200
            decisions.append((time.perf_counter() - began) * 1000)
        return {"page": pages, "decision": decisions}


def list_attacks(daemon: Daemon, secret: str) -> dict[str, list[tuple[Any, ...]]]:
    dice = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    dense = ["".join(dice.choices(letters, k=40)) for _ in range(380)]
    body = {"action": "a", "description": "d"}
    large = (REDTEAM.FLOOD, daemon.url, secret, json.dumps(body | {"details": "@200000"}))
    tokens = (REDTEAM.FLOOD, daemon.url, secret, json.dumps(body | {"details": dense}))
    half_open = [(REDTEAM.HALF_OPEN, url, 1_100, secret) for url in (daemon.url, daemon.page)]
    return {
        "large": [large],
        "dense": [tokens],
        "half_open": half_open,
        "all": [large, tokens, *half_open],
    }


def measure_one_flood(daemon: Daemon, person: PersonAtPage, name: str) -> dict[str, float]:
    """Rounds of quiet, filling and filled: on a shared machine one round says little."""
    states: list[Times] = [{"page": [], "decision": []} for _ in range(3)]

    def note(state: Times) -> None:
        for kind, times in person.measure().items():
            state[kind] += times

    for number in range(ROUNDS):
        person.prepare()
        note(states[0])
        secret = split_token(daemon.make_token(f"flood-{name}-{number}", "agent:submit")).secret
        with ExitStack() as running:
            for attack in list_attacks(daemon, secret)[name]:
                running.enter_context(REDTEAM.attack(*attack))
            for state in states[1:]:
                time.sleep(0.5 if state is states[1] else 2.5)
                note(state)
        time.sleep(1.0)
    result: dict[str, float] = {}
    for kind in ("page", "decision"):
        quiet, *flooded = (statistics.median(state[kind]) for state in states)
        result |= {f"{kind}_ratio": max(flooded) / quiet, f"{kind}_ms": max(flooded), f"quiet_{kind}_ms": quiet}
    return result | {"load": os.getloadavg()[0]}


def measure_flood(folder: Path) -> dict[str, Any]:
    """A person's times while an agent floods a daemon, to the quiet ones right before."""
    result: dict[str, Any] = {}
    for policy, names, mark in (
        (USUAL, ("large", "dense", "half_open", "all"), ""),
        (POLICY, ("large", "dense"), "_unlimited"),
    ):
        part = folder / f"flood{mark}"
        part.mkdir()
        with Daemon(part, policy_text=policy) as daemon:
            person = PersonAtPage(daemon)
            person.prepare()
            person.measure()  # everything is loaded
            for name in names:
                result[name + mark] = measure_one_flood(daemon, person, name)
    return result


def measure_postgres(folder: Path, seconds: float, full: bool) -> dict[str, Any] | None:
    """Two daemons on one PostgreSQL database; None where there is no PostgreSQL."""
    with ExitStack() as running:
        try:
            server = running.enter_context(POSTGRES.start_postgres(durable=True))
        except ImportError:
            return None
        url = server.make_database()
        with ExitStack() as daemons:
            beside = folder / "beside"
            beside.mkdir()
            on_file = daemons.enter_context(Daemon(beside))
            one = daemons.enter_context(Daemon(folder, url))
            bare = measure_bare_postgres(url, seconds / 2)
            rates: dict[Daemon, list[float]] = {on_file: [], one: []}
            for _ in range(3):
                for daemon, measured in rates.items():
                    measured.append(measure_submits(daemon, 64, seconds)[0])
            rate, sqlite = statistics.median(rates[one]), statistics.median(rates[on_file])
            other = daemons.enter_context(Daemon(folder, url))
            wakes, _ = measure_wake(one, submit_many(one, WAITERS), deciding=other)
            race = STRESS.run_race([one.url, other.url], one.agent, [one.approver], 1_000 if full else 50)
        return {
            "bare_commits_per_s": bare,
            "submits_per_s": rate,
            "submit_ratio": rate / bare,
            "sqlite_submits_per_s": sqlite,
            "to_sqlite": rate / sqlite,
            "wake_p50_ms": statistics.median(wakes),
            "wake_p99_ms": percentile(wakes, 0.99),
            "wake_worst_ms": max(wakes),
            "race": show_race(race),
            "kills": STRESS.run_kills(server.make_database(), 100 if full else 10),
        }


def measure_bare_postgres(url: str, seconds: float) -> float:
    """Commits of one row a second."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TABLE bare (id INTEGER, body TEXT)")
        text, count, began = json.dumps(BODY), 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            db.execute("INSERT INTO bare VALUES (%s, %s)", (count, text))
            count += 1
        return count / (time.perf_counter() - began)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def show_race(race: dict[str, Any]) -> dict[str, Any]:
    return {name: race[name] for name in ("requests", "clients", "exactly_one", "wrong")}


def measure_race(folder: Path, full: bool) -> dict[str, Any]:
    with Daemon(folder) as daemon:
        return show_race(STRESS.run_race([daemon.url], daemon.agent, [daemon.approver], 1_000 if full else 100))


def measure_load(folder: Path, seconds: float) -> dict[str, Any]:
    """Submits, wake-up and starts with many requests pending."""
    with Daemon(folder) as daemon:
        idle = measure_submits(daemon, 1, seconds)
        ids = submit_many(daemon, PENDING)
        few: dict[int, tuple[float, float, float]] = {}
        disk: list[tuple[float, float]] = []

        def load() -> None:
            """The disk before, between and after: on a shared one it is another from minute to minute."""
            for clients in (16, 64):
                disk.append(measure_disk(folder, seconds / 2))
                few[clients] = measure_submits(daemon, clients, seconds)
            disk.append(measure_disk(folder, seconds / 2))

        wakes, _ = measure_wake(daemon, ids[:WAITERS], load)
        alone = [measure_wake(daemon, [id])[0][0] for id in ids[WAITERS : WAITERS + 5]]
        starts = measure_starts(daemon, 5)
    bare, grouped = (statistics.mean(rates) for rates in zip(*disk, strict=True))
    best = max(rate for rate, _, _ in few.values())
    return {
        "bare_commits_per_s": bare,
        "grouped_rows_per_s": grouped,
        "submits_per_s": {clients: rate for clients, (rate, _, _) in few.items()},
        "submit_ratio": best / bare,
        "grouped_ratio": best / grouped,
        "submit_p50_ms": few[64][1] * 1000,
        "submit_p99_ms": few[64][2] * 1000,
        "idle_p50_ms": idle[1] * 1000,
        "pending": PENDING,
        "waiters": WAITERS,
        "waiters_woken": len(wakes),
        "wake_p50_ms": statistics.median(wakes),
        "wake_p99_ms": percentile(wakes, 0.99),
        "wake_worst_ms": max(wakes),
        "wake_alone_p50_ms": statistics.median(alone),
        "start_s": statistics.median(starts),
        "start_worst_s": max(starts),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--full", action="store_true", help="1,000 kills and 1,000 requests in the race")
    parser.add_argument("--seconds", type=float, default=4.0, help="for each rate")
    parser.add_argument("--kills", type=int, help="kills of the SQLite daemon; default 30, with --full 1,000")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    parts: dict[str, Callable[[Path], Any]] = {
        "load": lambda folder: measure_load(folder, arguments.seconds),
        "race": lambda folder: measure_race(folder, arguments.full),
        "tampering": lambda folder: {"changes": 1_000, "found": measure_tampering(folder, 1_000)},
        "kills": lambda folder: STRESS.run_kills(
            folder / "confirm.db", arguments.kills or (1_000 if arguments.full else 30), seed=arguments.seed
        ),
        "postgres": lambda folder: measure_postgres(folder, arguments.seconds, arguments.full),
        "flood": measure_flood,
    }
    parser.add_argument("--only", choices=[*parts], action="append", help="only this part; may be given again")
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    for name in arguments.only or parts:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["WARMSTART_HOME"] = folder
            found[name] = parts[name](Path(folder))
        if not arguments.json:
            show(name, found[name])
    if arguments.json:
        print(json.dumps(found))


def show(name: str, values: Any) -> None:
    """Print a part as soon as it is measured."""
    print(name)
    for key, value in (values or {"-": None}).items():
        shown: Any = value
        if isinstance(value, float):
            shown = f"{value:.3g}"
        elif isinstance(value, dict):
            shown = ", ".join(
                f"{at} {one:.3g}" if isinstance(one, float) else f"{at} {one}" for at, one in value.items()
            )
        print(f"  {key:<22} {shown}", flush=True)


if __name__ == "__main__":
    main()
