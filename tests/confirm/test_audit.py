"""The audit chain: every manipulation is found, and the state after a crash is not mistaken for one."""

from __future__ import annotations

import os
import random
from pathlib import Path

import apsw
import pytest

from confirm.serving import House, check
from confirm.tampering import GUARDS, anchor_of, copy_database, make_history, tamper
from warmstart.confirm.audit.chain import ZERO, ChainHead, read_head
from warmstart.confirm.audit.verify import verify
from warmstart.confirm.desk.offline import accept_audit, change_database, verify_database
from warmstart.confirm.store.open import open_store
from warmstart.errors import StoreError

FULL = os.environ.get("WARMSTART_FULL") == "1"


@pytest.mark.slow
def test_every_tampering_is_found(tmp_path: Path) -> None:
    history, copy = tmp_path / "history.db", tmp_path / "copy.db"
    make_history(history)
    assert check(history).ok
    dice = random.Random(7)
    unseen = []
    for _ in range(1_000 if FULL else 150):
        copy_database(history, copy)
        what = tamper(copy, dice)
        if all("trigger" in flaw.problem for flaw in check(copy).problems):
            unseen.append(what)
    assert not unseen


def test_problems_name_the_entry(tmp_path: Path) -> None:
    history = tmp_path / "history.db"
    make_history(history, 5)
    db = apsw.Connection(str(history))
    for guard in GUARDS:
        db.execute(f"DROP TRIGGER {guard}")
    db.execute("UPDATE audit SET actor = 'somebody else' WHERE sequence = 5")
    db.close()
    verdict = check(history)
    assert [flaw.sequence for flaw in verdict.problems] == [5, None, None, None, None, None]
    assert "changed" in verdict.problems[0].problem
    assert "subject is agent, but the audit says somebody else" in verdict.problems[1].problem
    assert "trigger" in verdict.problems[3].problem


@pytest.fixture
def history(tmp_path: Path) -> Path:
    make_history(tmp_path / "history.db", 8)
    return tmp_path / "history.db"


def test_an_anchor_that_lags_is_what_a_crash_leaves(history: Path) -> None:
    anchor = anchor_of(history)
    with open_store(history) as store:
        head = read_head(store)
        older = ChainHead(head.sequence - 3, store.row("hash_at", {"sequence": head.sequence - 3})[0])
    anchor.write(older)
    verdict = check(history)
    assert (verdict.ok, verdict.lag) == (True, 3)
    with open_store(history) as store:
        anchor.advance(store)
    assert anchor.read() == head


def test_an_anchor_never_leads_and_is_never_set_back(history: Path) -> None:
    anchor = anchor_of(history)
    before = anchor.read()
    assert before is not None
    anchor.write(ChainHead(before.sequence + 1, "f" * 64))
    assert not check(history).ok
    with open_store(history) as store, pytest.raises(StoreError, match="cut or changed"):
        anchor.advance(store)
    assert anchor.read() == ChainHead(before.sequence + 1, "f" * 64), "the evidence stays"


def test_a_missing_or_broken_anchor_is_told(history: Path) -> None:
    anchor = anchor_of(history)
    anchor.path.unlink()
    verdict = check(history)
    assert not verdict.ok
    assert "missing" in verdict.problems[0].problem
    with pytest.raises(StoreError, match="is gone"):
        change_database(history, lambda tx: tx.log("x", "test"))
    anchor.path.write_text("{}")
    assert "cannot be read" in verify_database(history).problems[0].problem
    with pytest.raises(StoreError, match=r"cannot be read.*See: warmstart confirm verify"):
        change_database(history, lambda tx: tx.log("x", "test"))


def test_a_person_can_go_on_after_looking(history: Path) -> None:
    anchor_of(history).path.unlink()
    accept_audit(history)
    assert check(history).ok
    with open_store(history) as store:
        assert store.rows("latest_entries", {"limit": 1})[0][2] == "audit_accepted"


def test_a_copy_of_the_anchor_kept_elsewhere_sees_more(history: Path) -> None:
    """An attacker who can write the database can also write the anchor beside it."""
    elsewhere = anchor_of(history).read()
    db = apsw.Connection(str(history))
    for guard in GUARDS:
        db.execute(f"DROP TRIGGER {guard}")
    db.execute("DELETE FROM audit; DELETE FROM votes; DELETE FROM requests").fetchall()
    db.close()
    anchor_of(history).write(ChainHead(0, ZERO))
    with open_store(history) as store:
        assert not verify(store, elsewhere).ok


def test_a_new_database_is_anchored_before_its_first_entry(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    with open_store(path) as store:
        anchor_of(path).create(store)
    assert anchor_of(path).read() == ChainHead(0, ZERO)
    assert anchor_of(path).path.stat().st_mode & 0o077 == 0
    assert check(path).ok


def test_what_a_killed_process_left_is_swept_up(history: Path) -> None:
    old, new = (history.with_name(f".history.db.anchor.{n * 16}.part") for n in "12")
    for file in (old, new):
        file.write_text("half")
    os.utime(old, (0, 0))
    change_database(history, lambda tx: tx.log("x", "test"))
    assert (old.exists(), new.exists()) == (False, True), "the other may be at work"


@pytest.mark.slow
def test_verify_while_the_daemon_writes(house: House) -> None:
    import threading

    ending = threading.Event()

    def write() -> None:
        while not ending.is_set():
            house.submit()

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(20):
            verdict = check(house.database)
            assert verdict.ok, verdict.problems
    finally:
        ending.set()
        for writer in writers:
            writer.join()


def test_files_are_for_their_owner_only(house: House) -> None:
    house.submit()
    for file in house.database.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_a_database_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    from warmstart.store import open_store as open_other

    path = tmp_path / "warmstart.db"
    open_other(path).close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(path)
    assert path.read_bytes() == before
    (tmp_path / "text.db").write_text("no database at all, but some text\n" * 100)
    with pytest.raises(StoreError, match="damaged"):
        open_store(tmp_path / "text.db")


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "confirm.db"
    open_store(path).close()
    db = apsw.Connection(str(path))
    db.pragma("user_version", 99)
    db.close()
    with pytest.raises(StoreError, match="newer Warmstart"):
        open_store(path)
