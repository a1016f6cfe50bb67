"""A full disk, a busy file or a bug approves nothing, and afterwards everything works."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import apsw
import pytest

from confirm.commands import run_apart
from confirm.serving import WORK, House, wait_until
from rights import take_writing
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.memory import WriterMemory
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.writer import Writer
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.problems import OpenProblems
from warmstart.confirm.store.open import open_store
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.confirm.store.sqlite import ConfirmSqliteStore
from warmstart.errors import Refused, StoreError

pytestmark = pytest.mark.slow


def put(store: ConfirmStore, name: str) -> None:
    store.rows("put_key", {"name": name, "value": "x"})


def has(store: ConfirmStore, name: str) -> bool:
    return any(key == name for key, *_ in store.rows("all_keys"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ConfirmSqliteStore]:
    with open_store(tmp_path / "confirm.db") as opened:
        assert isinstance(opened, ConfirmSqliteStore)
        yield opened


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
    wait_until(lambda: house.desk.anchor.read() == read_head(house.desk.store))
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


@pytest.mark.parametrize("harm", ["remove", "spoil"])
def test_the_log_says_once_what_is_wrong_and_when_it_is_over(
    house: House, harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "warmstart.confirm")
    anchor = house.desk.anchor.path
    wait_until(lambda: house.desk.anchor.read() == read_head(house.desk.store))
    kept = anchor.read_bytes()
    anchor.unlink()
    if harm == "spoil":
        anchor.write_text("{")
    for _ in range(3):
        house.submit()
        time.sleep(0.2)
    wait_until(lambda: house.call("GET", "/health").body["trouble"] == "see the daemon's log")
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 1
    assert str(anchor) in logged[0]
    assert ("is gone" if harm == "remove" else "cannot be read") in logged[0]
    assert "anchor" in house.desk.trouble
    assert str(anchor) not in house.desk.trouble, "the page shows no paths"
    anchor.write_bytes(kept)
    anchor.chmod(0o600)
    wait_until(lambda: house.desk.trouble == "")
    assert [record.getMessage() for record in caplog.records][1:] == [
        "over: the audit's anchor does not follow the audit: a cut end could not be detected"
    ]


def test_health_says_that_nothing_can_be_written_until_it_can(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "warmstart.confirm")
    db = house.desk._writing_store._db
    most = db.pragma("max_page_count")
    db.pragma("max_page_count", db.pragma("page_count"))
    while house.submit(WORK | {"details": "some words " * 2000}).status == 202:
        pass
    assert house.call("GET", "/health").body["trouble"]
    assert "refused" in house.desk.trouble
    assert sum("cannot write" in record.getMessage() for record in caplog.records) >= 1
    db.pragma("max_page_count", most)
    wait_until(lambda: house.call("GET", "/health").body["trouble"] == "")
    assert "writing_again" in house.events()


def test_nobody_can_fill_the_log(house: House) -> None:
    """Run in a process without logging configuration."""
    code = r"""
import socket
from urllib.parse import urlsplit
from warmstart.doors.web import ConfirmationServer
with ConfirmationServer(database=path, port=0, ui_port=0) as server:
    for url in (server.api_url, server.page_url):
        port = urlsplit(url).port
        for head in ("Upgrade: websocket\r\nConnection: Upgrade\r\n", "Upgrade: x\r\n", "nonsense"):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(f"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n{head}\r\n".encode())
                assert connection.recv(20).startswith(b"HTTP/1.1")
"""
    assert run_apart(code, house.database.with_name("other.db")) == ""


def test_one_broken_change_does_not_take_the_others_along(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "confirm.db", Policy())
    gate = threading.Event()
    first = desk.change(lambda tx: gate.wait(5))  # the rest queues up behind it and shares one transaction
    before = desk.log("before", "test")
    broken = desk.change(lambda tx: (tx.log("broken", "test"), 1 / 0))
    refused = desk.change(lambda tx: tx.log("refused", "test") and Refused("no"))
    after = desk.log("after", "test")
    gate.set()
    assert first.result()
    with pytest.raises(ZeroDivisionError):
        broken.result()
    with pytest.raises(Refused):
        refused.result()
    assert after.result() == before.result() + 2
    events = [entry.event for entry in desk.audit(10, 0)]
    assert events == ["keys_created", "before", "refused", "after"], "what is returned is kept"
    desk.close()
    with pytest.raises(StoreError, match="stopping"):
        desk.log("late", "test")


def test_large_changes_wait_for_the_others_and_not_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    with open_store(tmp_path / "confirm.db") as store:
        held = threading.Event()
        writer = Writer(store, lambda: None, OpenProblems())
        first = writer.put(lambda _: held.wait(10))
        wait_until(first.running)
        for n in range(3):
            writer.put(lambda _, n=n: done.append(f"large {n}"), is_large=True)
        small = [writer.put(lambda _, n=n: done.append(f"small {n}")) for n in range(3)]
        held.set()
        small[-1].result(10)
        writer.stop()
        assert done == ["small 0", "small 1", "small 2", "large 0", "large 1", "large 2"]
        monkeypatch.setattr("warmstart.confirm.desk.writer._LONGEST_WAIT", 0.0)
        held.clear()
        done.clear()
        writer = Writer(store, lambda: None, OpenProblems())
        wait_until(writer.put(lambda _: held.wait(10)).running)
        writer.put(lambda _: done.append("large"), is_large=True)
        writer.put(lambda _: done.append("small"))
        held.set()
        writer.stop()
        assert done == ["large", "small"]


def test_a_change_that_should_have_been_sure_undoes_only_itself(tmp_path: Path) -> None:
    """Without a savepoint its writes cannot be undone alone, so the others are made again."""
    with open_store(tmp_path / "confirm.db") as store:
        held = threading.Event()
        writer = Writer(store, lambda: None, OpenProblems())

        def append(memory: WriterMemory, event: str) -> int:
            return Transaction(store, 1, Policy(), memory).log(event, "test")

        def fail(memory: WriterMemory) -> int:
            append(memory, "failed")
            raise ValueError("not so sure")

        wait_until(writer.put(lambda _: held.wait(10)).running)
        before = writer.put(lambda memory: append(memory, "before"), is_sure=True)
        failing = writer.put(fail, is_sure=True)
        after = writer.put(lambda memory: append(memory, "after"), is_sure=True)
        held.set()
        writer.stop()
        assert (before.result(), after.result()) == (1, 2)
        with pytest.raises(ValueError, match="not so sure"):
            failing.result()
        entries = [AuditEntry(*row) for row in store.rows("entries", {"since": 0, "limit": 9})]
        assert [entry.event for entry in entries] == ["before", "after"]


def test_what_is_queued_is_written_before_the_end(tmp_path: Path) -> None:
    with open_store(tmp_path / "confirm.db") as store:
        done: list[int] = []
        writer = Writer(store, lambda: None, OpenProblems())
        futures = [writer.put(lambda _, n=n: done.append(n)) for n in range(500)]
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
    from warmstart.doors.web import ConfirmationServer

    house = open_house()
    with ConfirmationServer(database=house.database, port=0, ui_port=0) as other:
        from confirm.serving import send

        id = house.submit().body["id"]
        answer = send(other.api_url, "POST", f"/confirm/{id}/approve", token=house.approver)
        assert answer.status == 200
        assert house.approve(id, house.second).status == 409
        assert house.get(id)["execution"]["token"] == house.desk.execution_token(id)


# The file


def test_a_store_opened_before_a_fork_says_so(tmp_path: Path) -> None:
    code = """
store = open_store(path)
child = os.fork()
if child == 0:
    for use in (store.version, store.close, lambda: store.rows("tokens"), lambda: store.writing().__enter__()):
        try:
            use()
            print("went through", flush=True)
        except StoreError as error:
            print(error, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
with store, store.writing():
    store.rows("put_key", {"name": "later", "value": "x"})
"""
    said = run_apart(code, tmp_path / "confirm.db").splitlines()
    assert len(said) == 4
    assert all("opened before a fork; open it again in the new process" in line for line in said), said


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_file_that_is_read_only_is_refused_at_once(tmp_path: Path, what: Literal["file", "folder"]) -> None:
    """Run as another user than root, for whom permissions count. Opening must not leave a WAL that the daemon's user
    cannot write."""
    path = tmp_path / "home" / "confirm.db"
    open_store(path).close()
    take_writing(path, what)
    code = """
if os.getuid() == 0:
    os.setuid(65534)
try:
    open_store(path)
except StoreError as error:
    print(error)
"""
    said = run_apart(code, path)
    assert "cannot be opened for writing" in said
    assert "Check the permissions" in said
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize(
    "settings", ["CREATE TABLE theirs (x)", "PRAGMA user_version = 1", "PRAGMA application_id = 77"]
)
def test_a_database_of_another_program_is_left_byte_for_byte(tmp_path: Path, mode: str, settings: str) -> None:
    path = tmp_path / "confirm.db"
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", mode)
    db.execute(settings)
    db.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert path.read_bytes() == before


def test_writing_stops_when_the_file_becomes_another_programs(store: ConfirmSqliteStore) -> None:
    db = apsw.Connection(str(store.path))
    db.pragma("application_id", 77)
    db.close()
    with pytest.raises(StoreError, match="another program"), store.writing():
        put(store, "late")
    assert not has(store, "late")


def test_no_part_is_kept_without_its_transaction(store: ConfirmSqliteStore) -> None:
    """A full disk ends the transaction; a later savepoint would start one of its own."""
    with pytest.raises(StoreError), store.writing():
        store._db.execute("ROLLBACK")
        with pytest.raises(StoreError, match="already undone"), store.part():
            put(store, "part")
    assert not has(store, "part")


def test_a_transaction_inside_another_leaves_that_one_whole(store: ConfirmSqliteStore) -> None:
    with store.writing():
        put(store, "before")
        for begin in (store.writing, store.alone, store.snapshot):
            with pytest.raises(StoreError, match="inside another"), begin():
                raise AssertionError("began")
        put(store, "after")
    assert has(store, "before")
    assert has(store, "after")


def test_a_damaged_file_has_advice_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "confirm.db"
    path.write_bytes(b"no database at all, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match=r"damaged .* Stop the daemon, keep a copy of the file, and restore a backup"):
        open_store(path)
