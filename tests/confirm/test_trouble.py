"""When the disk is full, the file is busy or the code is wrong: nothing is approved, and afterwards everything works."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import apsw
import pytest

from confirm.serving import WORK, House
from warmstart.confirm.desk import Desk
from warmstart.confirm.policy import Policy
from warmstart.confirm.store import open_store
from warmstart.confirm.writing import Writer
from warmstart.errors import Refused, StoreError


def test_a_full_disk_approves_nothing(house: House) -> None:
    id = house.submit().body["id"]
    db = house.desk._writing_store._db
    most = db.pragma("max_page_count")
    db.pragma("max_page_count", db.pragma("page_count"))
    try:
        answers = [house.submit(WORK | {"details": "some words " * 2000}) for _ in range(5)]
        assert {answer.status for answer in answers} <= {202, 503}
        assert (answers[-1].status, answers[-1].code) == (503, "store")
        assert "page_count" not in str(answers[-1].body)
    finally:
        db.pragma("max_page_count", most)
    assert house.submit().status == 202
    assert house.approve(id).status == 200


def test_a_busy_database_is_waited_for(house: House) -> None:
    other = apsw.Connection(str(house.database))
    other.set_busy_timeout(5_000)
    other.execute("BEGIN IMMEDIATE")
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(house.submit().status))
    thread.start()
    time.sleep(0.5)
    assert answers == []
    assert house.call("GET", "/confirm", token=house.approver).status == 200, "readers do not wait"
    other.execute("ROLLBACK")
    thread.join()
    other.close()
    assert answers == [202]


def test_an_anchor_that_cannot_follow_is_told(house: House) -> None:
    anchor = house.desk.anchor.path
    kept = anchor.read_bytes()
    anchor.unlink()
    anchor.mkdir()
    house.submit()
    end = time.monotonic() + 5
    while not house.call("GET", "/health").body["trouble"] and time.monotonic() < end:
        time.sleep(0.05)
    assert house.call("GET", "/health").body["trouble"]
    anchor.rmdir()
    anchor.write_bytes(kept)
    anchor.chmod(0o600)
    while house.call("GET", "/health").body["trouble"] and time.monotonic() < end:
        time.sleep(0.05)
    assert not house.call("GET", "/health").body["trouble"]


def test_one_broken_change_does_not_take_the_others_along(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "confirm.db", Policy())
    gate = threading.Event()
    first = desk.change(lambda turn: gate.wait(5))  # the rest queues up behind it and shares one transaction
    before = desk.log("before", "test")
    broken = desk.change(lambda turn: (turn.log("broken", "test"), 1 / 0))
    refused = desk.change(lambda turn: turn.log("refused", "test") and Refused("no"))
    after = desk.log("after", "test")
    gate.set()
    assert first.result()
    with pytest.raises(ZeroDivisionError):
        broken.result()
    with pytest.raises(Refused):
        refused.result()
    assert after.result() == before.result() + 2
    assert [entry.event for entry in desk.audit(10, 0)] == ["before", "refused", "after"], "what is returned is kept"
    desk.close()
    with pytest.raises(StoreError, match="stopping"):
        desk.log("late", "test")


def test_what_is_queued_is_written_before_the_end(tmp_path: Path) -> None:
    with open_store(tmp_path / "confirm.db") as store:
        done: list[int] = []
        writer = Writer(store, lambda: None)
        futures = [writer.put(lambda n=n: done.append(n)) for n in range(500)]
        writer.stop()
        assert all(future.done() for future in futures)
        assert done == list(range(500))
        writer.stop()


def test_a_server_starts_once_and_can_start_again(house: House) -> None:
    with pytest.raises(Refused, match="running already"):
        house.server.start_background()
    house.server.stop()
    house.server.stop()
    house.start()


def test_two_daemons_on_one_database_agree(open_house, tmp_path: Path) -> None:
    from warmstart.doors.confirm_http import ConfirmationServer

    house = open_house()
    with ConfirmationServer(database=house.database, port=0, ui_port=0) as other:
        from confirm.serving import send

        id = house.submit().body["id"]
        answer = send(other.api_url, "POST", f"/confirm/{id}/approve", token=house.approver)
        assert answer.status == 200
        assert house.approve(id, house.second).status == 409
        assert house.get(id)["execution"]["token"] == house.desk.execution_token(id)
