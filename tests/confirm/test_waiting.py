"""Waiters are woken at once: long polls, events, and changes by other processes."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from confirm.houses import on_both_databases
from confirm.serving import WORK, Answer, House
from warmstart.confirm.audit import feed
from warmstart.confirm.desk.decide import DecisionRequest
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.model import Identity
from warmstart.confirm.tokens import access
from warmstart.doors.web import routes

pytestmark = pytest.mark.slow

SOON = 5.0  # seconds; the figure itself (250 ms) is bench/confirm.py's: other work may share this machine
PATIENCE = 10.0


class Events:
    """A stream of server-sent events. Reading gives up if only pings come."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def next(self, name: str = "request") -> tuple[str, Any]:
        """Return the id and data of the next event of that name."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            fields: dict[str, str] = {}
            while line := self.answer.readline().decode().rstrip("\n"):
                key, _, value = line.partition(": ")
                fields[key] = value
            assert fields, "the stream ended"
            if fields["event"] == name:
                return fields.get("id", ""), json.loads(fields["data"])
        raise AssertionError("nothing but pings")

    def rest(self) -> bytes:
        """Read until the stream ends."""
        end = time.monotonic() + PATIENCE
        rest = b""
        while piece := self.answer.read1():
            rest += piece
            assert time.monotonic() < end, "the stream goes on"
        return rest


@contextmanager
def follow(url: str, path: str, headers: dict[str, str]) -> Iterator[Events]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=20)
    connection.request("GET", path, headers={"Accept": "text/event-stream"} | headers)
    answer = connection.getresponse()
    assert answer.status == 200
    assert answer.getheader("Content-Type", "").startswith("text/event-stream")
    try:
        yield Events(answer)
    finally:
        connection.close()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def wait_in_thread(house: House, id: str, seconds: int = 20) -> tuple[threading.Thread, list[tuple[float, Any]]]:
    answers: list[tuple[float, Any]] = []

    def wait() -> None:
        found = house.get(id, wait=seconds)
        answers.append((time.monotonic(), found))

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    return thread, answers


@on_both_databases
def test_a_long_poll_ends_with_the_decision(house: House) -> None:
    id = house.submit().body["id"]
    thread, answers = wait_in_thread(house, id)
    decided = time.monotonic()
    house.deny(id)
    thread.join()
    assert answers[0][1]["status"] == "denied"
    assert answers[0][0] - decided < SOON


def test_a_long_poll_ends_with_its_time(house: House) -> None:
    id = house.submit().body["id"]
    began = time.monotonic()
    assert house.get(id, wait=1)["status"] == "pending"
    assert 0.9 < time.monotonic() - began < 1 + SOON


def test_a_long_poll_hears_of_the_deadline(house: House) -> None:
    id = house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    thread, answers = wait_in_thread(house, id)
    house.clock.ahead += 30
    moved = time.monotonic()
    thread.join()
    assert answers[0][1]["status"] == "expired"
    assert answers[0][0] - moved < SOON


@on_both_databases
def test_what_another_process_decides_is_heard_too(house: House) -> None:
    """A second desk on the same file acts as another process."""
    id = house.submit().body["id"]
    thread, answers = wait_in_thread(house, id)
    other = Desk(house.database)
    try:
        boss = Identity("boss", "boss", frozenset(["approver:decide"]), "x")
        other.decide(boss, id, DecisionRequest("approved")).result()
        decided = time.monotonic()
    finally:
        other.close()
    thread.join()
    assert answers[0][1]["status"] == "approved"
    assert answers[0][0] - decided < SOON


def test_stopping_lets_nobody_hang(house: House) -> None:
    id = house.submit().body["id"]
    thread, answers = wait_in_thread(house, id, 60)
    began = time.monotonic()
    house.stop()
    thread.join()
    assert answers[0][1]["status"] == "pending"
    assert time.monotonic() - began < 3 + SOON
    house.start()


def test_many_waiters_are_all_woken(house: House) -> None:
    ids = [house.submit().body["id"] for _ in range(40)]
    waiting = [wait_in_thread_quickly(house, id) for id in ids]
    time.sleep(0.5)
    for id in ids:
        house.approve(id)
    for thread, answers in waiting:
        thread.join()
        assert answers[0]["status"] == "approved"


def wait_in_thread_quickly(house: House, id: str) -> tuple[threading.Thread, list[Any]]:
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(house.get(id, wait=30)))
    thread.start()
    return thread, answers


# Events


def test_a_request_can_be_followed_to_its_end(house: House) -> None:
    id = house.submit().body["id"]
    with follow(house.api, f"/confirm/{id}", bearer(house.agent)) as events:
        assert events.next()[1]["status"] == "pending"
        house.approve(id)
        _, found = events.next()
        assert found["status"] == "approved"
        assert found["execution"]["token"]
        assert events.rest() == b""


@on_both_databases
def test_people_see_everything_live(house: House) -> None:
    person = house.log_in()
    with follow(house.page, "/events", person.secrets) as events:
        events.next("ping")
        id = house.submit().body["id"]
        first, found = events.next()
        assert (found["id"], found["status"], found["execution"]) == (id, "pending", None)
        house.approve(id)
        second, found = events.next()
        assert (found["id"], found["status"]) == (id, "approved")
        assert int(second) > int(first)


@on_both_databases
def test_who_comes_back_gets_what_was_missed(house: House) -> None:
    admin = bearer(house.admin)
    with follow(house.api, "/events", admin) as events:
        events.next("ping")
        house.submit()
        last, _ = events.next()
    ids = [house.submit().body["id"] for _ in range(3)]
    house.deny(ids[0])
    with follow(house.api, "/events", admin | {"Last-Event-ID": last}) as events:
        seen = [events.next()[1]["id"] for _ in range(4)]
    assert seen == [*ids, ids[0]]
    with follow(house.api, "/events", admin | {"Last-Event-ID": "nonsense"}) as events:
        events.next("ping")


def test_who_comes_back_late_gets_all_of_it(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """More changes than are read at a time, and new ones meanwhile."""
    monkeypatch.setattr(feed, "_AT_ONCE", 10)
    ids = [house.submit().body["id"] for _ in range(35)]
    with follow(house.api, "/events", bearer(house.admin) | {"Last-Event-ID": "0"}) as events:
        seen = [events.next() for _ in ids]
        late = house.submit().body["id"]
        seen.append(events.next())
    assert [found["id"] for _, found in seen] == [*ids, late]
    sequences = [int(sequence) for sequence, _ in seen]
    assert sequences == sorted(set(sequences))


def test_catching_up_holds_nobody_else_up(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast reader does not keep the daemon from other requests."""
    show, shown = routes._show_change, []
    monkeypatch.setattr(routes, "_show_change", lambda *given: shown.append(given) or show(*given))
    for _ in range(200):
        house.submit()
    with follow(house.api, "/events", bearer(house.admin) | {"Last-Event-ID": "0"}) as events:
        events.next()
        assert house.call("GET", "/health").status == 200
        assert len(shown) < 200
        assert len([events.next() for _ in range(199)]) == 199


def test_events_carry_no_execution_token_but_to_the_asker(house: House) -> None:
    id = house.submit().body["id"]
    house.approve(id)
    with follow(house.api, f"/confirm/{id}", bearer(house.approver)) as events:
        assert events.next()[1]["execution"] is None


def test_a_stream_ends_with_the_login(house: House) -> None:
    person = house.log_in()
    with follow(house.page, "/events", person.secrets) as events:
        events.next("ping")
        person.call("POST", "/logout")
        house.submit()
        assert events.rest() == b""


# Who is no longer known


def revoke(house: House, subject: str) -> None:
    found = next(record for record in access.list_tokens(house.desk.store) if record.subject == subject)
    house.desk.change(lambda tx: access.revoke_token(tx, found.id, by="test")).result()


@pytest.mark.parametrize("subject", ["agent-1", "bob"])
def test_a_revoked_token_hears_no_decision_in_its_stream(house: House, subject: str) -> None:
    id = house.submit().body["id"]
    with follow(house.api, f"/confirm/{id}", bearer(house.agent if subject == "agent-1" else house.second)) as events:
        assert events.next()[1]["status"] == "pending"
        revoke(house, subject)
        assert house.approve(id).status == 200
        assert events.rest() == b"", "nor the agent its execution token"


def test_a_revoked_token_hears_no_decision_in_its_long_poll(house: House) -> None:
    id = house.submit().body["id"]
    answers: list[Answer] = []
    path = f"/confirm/{id}?wait=20"
    waiting = [
        threading.Thread(target=lambda token=token: answers.append(house.call("GET", path, token=token)))
        for token in (house.agent, house.second)
    ]
    for thread in waiting:
        thread.start()
    time.sleep(0.3)
    revoke(house, "agent-1")
    revoke(house, "bob")
    assert house.approve(id).status == 200
    for thread in waiting:
        thread.join()
    assert [(answer.status, answer.code) for answer in answers] == [(401, "unauthorized")] * 2
    assert "approved" not in str(answers)


def test_a_login_that_ended_hears_no_decision(house: House) -> None:
    id, person = house.submit().body["id"], house.log_in()
    answers: list[Answer] = []
    waiting = threading.Thread(target=lambda: answers.append(person.call("GET", f"/confirm/{id}?wait=20")))
    waiting.start()
    with follow(house.page, f"/confirm/{id}", person.secrets) as events:
        assert events.next()[1]["status"] == "pending"
        time.sleep(0.3)
        assert person.call("POST", "/logout").status == 204
        house.approve(id)
        assert events.rest() == b""
    waiting.join()
    assert answers[0].status == 401


def test_nobody_unknown_is_pinged_for_long(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "PING_EVERY", 0.2)
    id = house.submit().body["id"]
    with follow(house.api, f"/confirm/{id}", bearer(house.second)) as events:
        events.next("ping")
        revoke(house, "bob")
        assert events.rest().count(b"event: ping") <= 2, "one may be on its way"


def test_catching_up_ends_with_the_token(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [house.submit().body["id"] for _ in range(3)]
    show = routes._show_change

    def show_and_revoke(*given: Any) -> bytes:
        event = show(*given)
        if given[2].request == ids[1]:
            revoke(house, "bob")
        return event

    monkeypatch.setattr(routes, "_show_change", show_and_revoke)
    with follow(house.api, "/events", bearer(house.second) | {"Last-Event-ID": "0"}) as events:
        sent = events.rest().decode()
    assert [id in sent for id in ids] == [True, True, False]
