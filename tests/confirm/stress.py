"""Stress: races, and a daemon that is killed at random moments. Used by the tests and by bench/confirm.py."""

from __future__ import annotations

import http.client
import json
import os
import random
import select
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.verify import verify
from warmstart.confirm.desk.offline import change_database
from warmstart.confirm.model import ALLOWED
from warmstart.confirm.store.open import open_store
from warmstart.confirm.tokens.access import create_token

FASTER = 60  # the killed daemon's clock: a timeout of 30 seconds is over in half a second
DETAILS = {"table": "orders", "rows": [1, 2, 3]}
FINAL = ("approved", "auto_approved", "denied", "expired")


class Caller:
    """A kept-alive connection with a token."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body)
        headers = self._headers if body is not None else {"Authorization": self._headers["Authorization"]}
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else None

    def close(self) -> None:
        self._connection.close()


# A race: many clients want to decide the same requests


def run_race(urls: list[str], agent: str, approvers: list[str], requests: int, clients: int = 64) -> dict[str, Any]:
    """Let every client decide every request, in an order of its own, at one of several daemons on the same database. Count
    the winners of each request."""
    asking = Caller(urls[0], agent)
    ids = [
        asking.call("POST", "/confirm", {"action": f"race_{n % 50}", "description": "d", "timeout_seconds": 3600})[1][
            "id"
        ]
        for n in range(requests)
    ]
    won: Counter[str] = Counter()
    refused: Counter[int] = Counter()
    wrong: list[Any] = []
    counting = threading.Lock()

    def decide(number: int) -> None:
        dice = random.Random(number)
        caller = Caller(urls[number % len(urls)], approvers[number % len(approvers)])
        for id in dice.sample(ids, len(ids)):
            answer = dice.choice(("approve", "deny"))
            status, body = caller.call("POST", f"/confirm/{id}/{answer}", {"reason": f"{answer} by {number}"})
            with counting:
                if status == 200:
                    won[id] += 1
                else:
                    refused[status] += 1
                if status not in (200, 409) or (status == 409 and not body.get("decision")):
                    wrong.append((status, body))
        caller.close()

    threads = [threading.Thread(target=decide, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asking.close()
    winners = Counter(won[id] for id in ids)
    return {
        "requests": requests,
        "clients": clients,
        "exactly_one": winners[1],
        "wrong": wrong[:5],
        "refused": dict(refused),
    }


# Killed at any moment

HERD = """
import os, sys, time
from warmstart.doors.web import ConfirmationServer
from warmstart.confirm.policy.policy import parse_policy
from warmstart.redact import Redactor
database, faster, epoch = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
policy = parse_policy("[defaults]\\nrate_limit = 1000000000\\nsubmit_limit = 0\\npending_limit = 1000000\\ncool_down_seconds = 0\\nexecute_seconds = 86400")
clock = lambda: epoch + (time.time() - epoch) * faster
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        began = time.perf_counter()
        server = ConfirmationServer(database=database, port=0, ui_port=0, policy=policy, clock=clock).start_background()
        print(os.getpid(), server.api_url, time.perf_counter() - began, flush=True)
        time.sleep(3600)
    print("gone", os.waitpid(child, 0)[1], flush=True)
"""


class Herd:
    """Runs daemons one after the other, each forked from a process with everything imported, so that a start is fast."""

    def __init__(self, database: Path | str) -> None:
        source = str(Path(__file__).resolve().parents[2] / "src")
        self._epoch = time.time()
        self._process = subprocess.Popen(
            [sys.executable, "-c", HERD, str(database), str(FASTER), str(self._epoch)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": source},
        )

    def now(self) -> int:
        """Return the daemons' time in milliseconds."""
        return int((self._epoch + (time.time() - self._epoch) * FASTER) * 1000)

    def start(self) -> tuple[int, str, float]:
        assert self._process.stdin
        self._process.stdin.write("start\n")
        self._process.stdin.flush()
        pid, url, took = self._read().split()
        return int(pid), url, float(took)

    def kill(self, pid: int) -> bool:
        """Kill a daemon and return whether it was still alive."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return self._read() == f"gone {int(signal.SIGKILL)}"

    def _read(self) -> str:
        assert self._process.stdout
        ready, _, _ = select.select([self._process.stdout], [], [], 30)
        assert ready, "the daemon does not answer"
        return self._process.stdout.readline().strip()

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Ledger:
    """What the daemon has acknowledged, which must last, and what clients have tried, which nothing may exceed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.submitted: dict[str, str] = {}  # id -> digest
        self.tried: set[tuple[str, str]] = set()  # (id, approve / deny / execute)
        self.settled: dict[str, str] = {}  # id -> acknowledged status
        self.executed: Counter[str] = Counter()
        self.left: list[str] = []  # to expire

    def settle(self, id: str, status: str) -> None:
        with self.lock:
            self.settled.setdefault(id, status)


def make_load(ledger: Ledger, url: str, agent: str, approver: str, seed: int) -> None:
    """Submit, decide, wait, execute, until the daemon is gone."""
    dice = random.Random(seed)
    asking, deciding = Caller(url, agent), Caller(url, approver)
    body = {"action": f"act_{seed % 7}", "description": "stress", "details": DETAILS, "timeout_seconds": 30}
    try:
        while True:
            status, receipt = asking.call("POST", "/confirm", body)
            assert status == 202, receipt
            id = receipt["id"]
            with ledger.lock:
                ledger.submitted[id] = receipt["digest"]
            work_on(ledger, asking, deciding, id, body, dice)
    except (OSError, http.client.HTTPException):
        return
    finally:
        asking.close()
        deciding.close()


def work_on(
    ledger: Ledger, asking: Caller, deciding: Caller, id: str, body: dict[str, Any], dice: random.Random
) -> None:
    fate = dice.random()
    if fate < 0.25:
        ledger.left.append(id)
        return
    if fate < 0.4 and ledger.left:
        id = dice.choice(ledger.left)  # perhaps too late by now
    answer = "approve" if fate < 0.8 else "deny"
    ledger.tried.add((id, answer))
    status, decided = deciding.call("POST", f"/confirm/{id}/{answer}", {})
    if status == 200:
        ledger.settle(id, decided["status"])
    elif status in (409, 410):
        ledger.settle(id, decided["decision"]["status"])
    _, found = asking.call("GET", f"/confirm/{id}")
    if found["status"] in FINAL:
        ledger.settle(id, found["status"])
    if found["execution"] and dice.random() < 0.7:
        ledger.tried.add((id, "execute"))
        deed = {"token": found["execution"]["token"], "action": body["action"], "details": DETAILS}
        status, _ = asking.call("POST", f"/confirm/{id}/execute", deed)
        ledger.executed[id] += status == 200


def find_losses(database: Path | str, ledger: Ledger, now: int) -> Counter[str]:
    """Count what the daemon has lost or invented."""
    wrong: Counter[str] = Counter()
    with open_store(database) as store:
        verdict = verify(store, Anchor.of(store).read())
        rows = {row[0]: row for row in store._db.execute(
            "SELECT id, digest, status, decided, deadline, executed, decided_by FROM requests").fetchall()}  # fmt: skip
        finals = Counter(
            id for (id,) in store._db.execute(
                "SELECT request FROM audit WHERE event IN ('approved', 'denied', 'expired', 'auto_approved')")
        )  # fmt: skip
    if not verdict.ok:
        wrong["audit"] += 1
        wrong[f"audit: {verdict.problems[0]}"] += 1
    for id, digest in ledger.submitted.items():
        wrong["lost"] += id not in rows or rows[id][1] != digest
    for id, status in ledger.settled.items():
        wrong["changed"] += id in rows and rows[id][2] != status
    for id, count in ledger.executed.items():
        wrong["executed twice"] += count > 1
        wrong["execution lost"] += count == 1 and rows[id][5] is None
    for id, (_, _, status, decided, deadline, executed, _) in rows.items():
        wrong["spurious"] += status in ALLOWED and (id, "approve") not in ledger.tried
        wrong["denied by nobody"] += status == "denied" and (id, "deny") not in ledger.tried
        wrong["late"] += status in ("approved", "denied") and decided >= deadline
        wrong["expired early"] += status == "expired" and (decided < deadline or now < deadline)
        wrong["executed by nobody"] += executed is not None and (id, "execute") not in ledger.tried
        wrong["double"] += finals[id] > 1
    return +wrong


def run_kills(database: Path | str, points: int, clients: int = 6, seed: int = 1) -> dict[str, Any]:
    """Kill the daemon at random moments under load; everything it acknowledged must last."""
    agent = change_database(database, lambda tx: create_token(tx, "agent", ["agent:submit"], by="t")).secret
    approver = change_database(database, lambda tx: create_token(tx, "boss", ["approver:decide"], by="t")).secret
    dice, ledger, herd = random.Random(seed), Ledger(), Herd(database)
    wrong: Counter[str] = Counter()
    ready: list[float] = []
    try:
        for point in range(points):
            pid, url, took = herd.start()
            ready.append(took)
            threads = [
                threading.Thread(target=make_load, args=(ledger, url, agent, approver, point * clients + n))
                for n in range(clients)
            ]
            for thread in threads:
                thread.start()
            before, until = len(ledger.submitted), time.monotonic() + 10
            while point % 3 and len(ledger.submitted) < before + 2 and time.monotonic() < until:
                time.sleep(
                    0.005
                )  # a busy machine acknowledges nothing for a while; every third daemon dies early all the same
            time.sleep(dice.uniform(0.0, 0.35))
            wrong["died by itself"] += not herd.kill(pid)
            for thread in threads:
                thread.join()
            if point % 25 == 24 or point == points - 1:
                wrong += find_losses(database, ledger, herd.now())
    finally:
        herd.close()
    return {
        "points": points,
        "acknowledged": len(ledger.submitted) + len(ledger.settled) + sum(ledger.executed.values()),
        "submitted": len(ledger.submitted),
        "decided": len(ledger.settled),
        "expired": sum(status == "expired" for status in ledger.settled.values()),
        "executed": sum(ledger.executed.values()),
        "wrong": dict(+wrong),
        "ready_worst": max(ready),
    }
