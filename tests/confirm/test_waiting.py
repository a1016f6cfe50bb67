"""Who waits hears at once: long polls, events, and changes that another process makes."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from confirm.serving import WORK, House
from warmstart.confirm.deciding import Wish
from warmstart.confirm.desk import Desk
from warmstart.confirm.model import Identity

SOON = 5.0  # seconds; the figure itself (250 ms) is bench/confirm.py's: other work may share this machine


class Events:
    """A stream of server-sent events."""

    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.answer = answer

    def next(self, name: str = "request") -> tuple[str, Any]:
        """The id and data of the next event of that name."""
        while True:
            fields: dict[str, str] = {}
            while line := self.answer.readline().decode().rstrip("\n"):
                key, _, value = line.partition(": ")
                fields[key] = value
            assert fields, "the stream ended"
            if fields["event"] == name:
                return fields.get("id", ""), json.loads(fields["data"])

    def rest(self) -> bytes:
        return self.answer.read()


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


def test_what_another_process_decides_is_heard_too(house: House) -> None:
    """A second desk on the same file stands for another process: nothing is shared but the database."""
    id = house.submit().body["id"]
    thread, answers = wait_in_thread(house, id)
    other = Desk(house.database)
    try:
        boss = Identity("boss", "boss", frozenset(["approver:decide"]), "x")
        other.decide(boss, id, Wish("approved")).result()
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


def test_people_see_everything_live(house: House) -> None:
    person = house.log_in()
    with follow(house.page, "/events", {"Cookie": person.cookie}) as events:
        events.next("ping")
        id = house.submit().body["id"]
        first, found = events.next()
        assert (found["id"], found["status"], found["execution"]) == (id, "pending", None)
        house.approve(id)
        second, found = events.next()
        assert (found["id"], found["status"]) == (id, "approved")
        assert int(second) > int(first)


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


def test_events_carry_no_execution_token_but_to_the_asker(house: House) -> None:
    id = house.submit().body["id"]
    house.approve(id)
    with follow(house.api, f"/confirm/{id}", bearer(house.approver)) as events:
        assert events.next()[1]["execution"] is None


def test_a_stream_ends_with_the_login(house: House) -> None:
    person = house.log_in()
    with follow(house.page, "/events", {"Cookie": person.cookie}) as events:
        events.next("ping")
        person.call("POST", "/logout")
        house.submit()
        assert events.rest() == b""
