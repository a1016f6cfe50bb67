"""`verify` compares every row with the audit and finds whatever was written into a table by hand."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from confirm.commands import run, run_apart, run_json
from confirm.serving import RISK, WORK, House, check
from confirm.tampering import GUARDS, anchor_of, copy_database, drop_guards, run_sql
from rights import let_in
from warmstart.confirm.audit.chain import ZERO, ChainHead, hash_entry
from warmstart.confirm.audit.verify import AuditVerdict, verify
from warmstart.confirm.desk.offline import accept_audit, change_database, verify_database
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.store.open import open_store, open_to_read
from warmstart.confirm.tokens import access
from warmstart.confirm.tokens.keys import renew_identity
from warmstart.errors import Refused, StoreError

pytestmark = pytest.mark.slow

POLICY = '[[rule]]\naction = "delete_data"\nquorum = 2\n[[rule]]\naction = "read_*"\ndecision = "allow"'
FULL = os.environ.get("WARMSTART_FULL") == "1"
SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4"  # gitleaks:allow
FORGED = hashlib.sha256(b"mine").hexdigest()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with rows in every table."""
    house = House(tmp_path_factory.mktemp("written"), policy=parse_policy(POLICY))
    deed = {"action": WORK["action"], "details": WORK["details"]}
    house.submit(WORK | {"session_key": "s-9", "requester": "someone"})
    for n in range(2):
        house.submit(WORK | {"details": {"header": f"Authorization: Bearer {SECRET}{n}"}})
    done = house.submit().body["id"]
    house.approve(done, body={"reason": "go on"})
    assert house.execute(done, deed | {"token": house.get(done)["execution"]["token"]}).status == 200
    house.deny(house.submit().body["id"], body={"reason": "no"})
    for approvers in ([house.approver], [house.approver, house.second]):
        id = house.submit(RISK).body["id"]
        for token in approvers:
            house.approve(id, token)
    assert house.submit(WORK | {"action": "read_mail"}).body["status"] == "auto_approved"
    for session in ("s-1", "s-2"):
        body = {"action": "send_mail", "session_key": session, "requester": "agent-1"}
        entry = house.call("POST", "/whitelist", body, house.admin).body
    house.call("DELETE", f"/whitelist/{entry['id']}", token=house.admin)
    assert house.submit(WORK | {"session_key": "s-1"}).body["status"] == "auto_approved"
    dora, _ = house.log_in(), [house.log_in("erin") for _ in range(2)]
    assert dora.call("POST", f"/confirm/{house.submit().body['id']}/approve", {"reason": "from the page"}).status == 200
    dora.call("POST", "/logout")
    house.desk.change(lambda tx: access.end_sessions(tx, "ERIN", by="test")).result()
    house.desk.change(lambda tx: access.create_login(tx, "unused", by="test")).result()
    gone = house.desk.change(lambda tx: access.create_token(tx, "gone", ["admin"], by="t", seconds=99)).result()
    house.desk.change(lambda tx: access.revoke_token(tx, gone.record.id, by="test")).result()
    late = house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    house.clock.ahead += 31
    assert house.get(late)["status"] == "expired"
    house.stop()
    return house.database


@pytest.fixture
def copied(written: Path, tmp_path: Path) -> Path:
    copy_database(written, tmp_path / "copy.db")
    return tmp_path / "copy.db"


def problems(verdict: AuditVerdict) -> str:
    return "\n".join(flaw.problem for flaw in verdict.problems)


def test_what_nobody_touched_is_sound(copied: Path) -> None:
    assert check(copied).problems == []
    assert verify_database(copied).problems == []


TEXTS = {
    "requests": "action action_key digest subject subject_key credential description details claimed session_key "
    "decided_by reason",
    "votes": "subject subject_key credential reason",
    "tokens": "digest subject subject_key scopes created_by",
    "logins": "digest subject scopes",
    "sessions": "digest subject subject_key scopes",
    "whitelist": "action action_key session_key requester_key digest created_by",
}
NUMBERS = {
    "requests": "sequence masked high_risk quorum created timeout deadline decided executed",
    "votes": "at",
    "tokens": "created expires revoked",
    "logins": "created expires used",
    "sessions": "created expires ended",
    "whitelist": "created expires removed",
}
CHANGES = [
    *((table, f"{column} = {column} || 'x'") for table, columns in TEXTS.items() for column in columns.split()),
    *(
        (table, f"{column} = coalesce({column}, 0) + 7")
        for table, columns in NUMBERS.items()
        for column in columns.split()
    ),
    *(("requests", f"status = '{status}'") for status in ("pending", "approved", "auto_approved", "denied", "expired")),
    *((table, f"{column} = NULL") for table, column in (("tokens", "revoked"), ("whitelist", "removed"))),
]


@pytest.mark.parametrize(("table", "change"), CHANGES)
def test_no_column_can_be_changed_unseen(copied: Path, table: str, change: str) -> None:
    """Change the first matching row, and the last."""
    column, _, value = change.partition(" = ")
    key = {"votes": "subject_key", "logins": "digest"}.get(table, "id")
    for order in ("min", "max"):
        copy = copied.with_name(f"{order}.db")
        copy_database(copied, copy)
        one = f"SELECT {order}({key}) FROM {table} WHERE {column} IS NOT {value}"
        run_sql(copy, f"UPDATE OR REPLACE {table} SET {change} WHERE {key} = ({one})")
        assert not check(copy).ok, order


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE keys SET value = hex(randomblob(32)) WHERE name = 'identity'", "the daemon's key for identity is not"),
        ("UPDATE keys SET value = hex(randomblob(32)) WHERE name = 'masks'", "the daemon's key for masks is not"),
        ("DELETE FROM keys WHERE name = 'csrf'", "the daemon's key for csrf is in the audit, but no longer there"),
        ("INSERT INTO keys (name, value) VALUES ('other', 'x')", "the daemon's key for other is not"),
        ("UPDATE masked_values SET fingerprint = fingerprint || 'x'", "its masked values are not those"),
        ("UPDATE masked_values SET mask = mask || 'x'", "its masked values are not those"),
        ("DELETE FROM masked_values", "its masked values are not those"),
        (
            "INSERT INTO masked_values SELECT id, 'token#9', 'x' FROM requests WHERE status = 'denied'",
            "its masked values",
        ),
    ],
)
def test_redteam_keys_and_masked_values_are_compared(copied: Path, change: str, named: str) -> None:
    """Other masked values would make a new secret look like one that was approved many times."""
    run_sql(copied, change)
    assert named in problems(check(copied))


def test_redteam_a_key_that_was_taken_away_is_not_made_anew_unseen(copied: Path) -> None:
    run_sql(copied, "DELETE FROM keys WHERE name = 'identity'")
    house = House(copied.parent, database=copied)
    house.stop()
    assert "creates the key for identity a second time" in problems(check(copied))


def test_a_renewed_identity_is_sound(copied: Path) -> None:
    change_database(copied, lambda tx: renew_identity(tx, "test"))
    assert check(copied).problems == []


@pytest.mark.parametrize("table", TEXTS)
def test_rows_cannot_be_removed_unseen(copied: Path, table: str) -> None:
    run_sql(copied, f"DELETE FROM {table} WHERE rowid = 1" if table != "votes" else "DELETE FROM votes")
    found = check(copied)
    assert "is in the audit, but no longer in the table" in problems(found)


@pytest.mark.parametrize(
    "row",
    [
        f"tokens SELECT 'dead', '{FORGED}', 'mallory', 'mallory', 'admin', created, created_by, NULL, NULL FROM tokens LIMIT 1",
        f"logins VALUES ('{FORGED}', 'owner', 'approver:decide', 0, 9999999999999, NULL)",
        f"sessions VALUES ('dead', '{FORGED}', 'owner', 'owner', 'approver:decide', 0, 9999999999999, NULL)",
        f"whitelist VALUES ('{'b' * 32}', 'run', 'run', 's', '', '', 0, 'owner', 9999999999999, NULL, NULL, 0)",
        "votes SELECT id, 'bob', 'bob', credential, '', 0 FROM requests WHERE status = 'pending'",
        "requests SELECT 'dead', 9999, action, action_key, description, masked, digest, subject, subject_key, "
        "credential, claimed, session_key, high_risk, quorum, created, timeout, deadline, status, decided, decided_by, "
        "reason, execute_by, executed, size, details FROM requests LIMIT 1",
    ],
)
def test_rows_cannot_be_put_in_unseen(copied: Path, row: str) -> None:
    run_sql(copied, f"INSERT INTO {row}")
    assert "the audit does not record it" in problems(check(copied))


@pytest.mark.parametrize(
    "trick",
    [
        "DROP TRIGGER audit_only_grows",
        "DROP TRIGGER audit_only_grows; CREATE TRIGGER audit_only_grows BEFORE INSERT ON audit BEGIN SELECT 1; END",
        "CREATE TRIGGER helper AFTER INSERT ON requests BEGIN UPDATE requests SET high_risk = 0; END",
    ],
)
def test_triggers_are_what_they_were(copied: Path, trick: str) -> None:
    run_sql(copied, trick)
    assert "the trigger" in problems(check(copied))
    accept_audit(copied)
    assert check(copied).ok
    db = apsw.Connection(str(copied))
    assert {name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")} == set(GUARDS)
    with pytest.raises(apsw.ConstraintError, match="append-only"):
        db.execute("UPDATE audit SET actor = 'x'")
    db.close()


# Forged entries with correct hashes


def forge(path: Path, event: str, id: str, actor: str, credential: str, details: dict[str, Any]) -> None:
    db = apsw.Connection(str(path))
    sequence, previous = db.execute("SELECT sequence, hash FROM audit ORDER BY sequence DESC LIMIT 1").fetchall()[0]
    action = db.execute("SELECT action FROM requests WHERE id = ?", (id,)).get
    text = json.dumps(details, separators=(",", ":"), sort_keys=True)
    entry = AuditEntry(sequence + 1, 1, event, id, action, actor, credential, text, previous, "")
    row = (*(getattr(entry, name) for name in AuditEntry.__struct_fields__[:-1]), hash_entry(entry))
    db.execute(f"INSERT INTO audit VALUES ({','.join('?' * 10)})", row)
    db.close()


def find(path: Path, status: str, column: str = "id", more: str = "") -> Any:
    db = apsw.Connection(str(path))
    found = db.execute(
        f"SELECT {column} FROM requests WHERE status = ? {more} ORDER BY sequence LIMIT 1", (status,)
    ).get
    db.close()
    return found


def test_a_decision_after_a_decision_is_found(copied: Path) -> None:
    """The row was changed to match the forged entry."""
    id, digest = find(copied, "denied"), find(copied, "denied", "digest")
    forge(copied, "approved", id, "alice", "t", {"digest": digest, "reason": ""})
    run_sql(copied, f"UPDATE requests SET status = 'approved', decided_by = 'alice', reason = '' WHERE id = '{id}'")
    assert "already denied" in problems(check(copied))


def test_an_approval_of_something_else_or_by_too_few_is_found(copied: Path) -> None:
    id = find(copied, "pending", more="AND quorum = 2")
    forge(copied, "approved", id, "alice", "t", {"digest": "0" * 64, "reason": ""})
    found = problems(check(copied))
    assert "decides other details than were submitted" in found
    assert "approves with 1 of 2 votes" in found


def test_an_approval_of_ones_own_request_is_found(copied: Path) -> None:
    id, digest = find(copied, "pending"), find(copied, "pending", "digest")
    forge(copied, "approved", id, "Agent-1", "t", {"digest": digest, "reason": ""})
    assert "is a decision by the requester" in problems(check(copied))


@pytest.mark.parametrize("status", ["pending", "denied", "approved"])
def test_what_was_not_approved_was_not_taken_up(copied: Path, status: str) -> None:
    id, digest = find(copied, status), find(copied, status, "digest")
    forge(copied, "executed", id, "agent-1", "t", {"digest": digest})
    found = problems(check(copied))
    assert ("a second time" if status == "approved" else "that was not approved") in found


@pytest.mark.parametrize(
    "details",
    ["{", "[]", "null", '{"timeout": 1e999}', '{"timeout": ' + "9" * 40 + "}", '{"quorum": [1], "digest": {"a": 1}}'],
)
@pytest.mark.parametrize(
    "event", ["submitted", "approved", "token_created", "sessions_ended", "audit_accepted", "login"]
)
def test_entries_that_make_no_sense_are_no_way_out(copied: Path, event: str, details: str) -> None:
    run_sql(
        copied,
        drop_guards(),
        f"UPDATE audit SET event = '{event}', details = '{details}' WHERE sequence IN (3, 8, 9)",
    )
    assert not check(copied).ok


# Accepted flaws


def spoil(path: Path) -> None:
    run_sql(path, drop_guards(), "UPDATE audit SET actor = 'x' WHERE sequence = 5", "UPDATE requests SET reason = 'y'")


def test_what_was_accepted_is_told_apart_from_what_is_new(copied: Path) -> None:
    spoil(copied)
    before = check(copied)
    assert not before.ok
    accept_audit(copied, verify_database(copied))
    after = check(copied)
    assert (after.ok, after.flaws, after.accepted, after.lag) == (True, 0, before.lasting, 0)
    assert [(one.sequence, one.flaws) for one in after.acceptances] == [(after.entries, before.lasting)]
    done = run("verify", "--db", str(copied))
    assert done.exit_code == 0
    assert f"{before.lasting} flaws were accepted by local:" in done.output
    for again in (
        f"{drop_guards()}; UPDATE audit SET actor = 'z' WHERE sequence = 5",
        "UPDATE requests SET reason = 'z' WHERE status = 'denied'",
        "UPDATE tokens SET scopes = 'admin' WHERE subject = 'agent-1'",
        drop_guards(),
    ):
        copy = copied.with_name("again.db")
        copy_database(copied, copy)
        run_sql(copy, again)
        found = check(copy)
        assert not found.ok, again
        assert found.flaws < before.flaws, "only what is new"


def test_a_daemon_goes_on_after_accepting_and_what_it_does_is_sound(copied: Path) -> None:
    """An accepted token without an entry can be revoked."""
    run_sql(
        copied,
        f"INSERT INTO tokens VALUES ('dead', '{FORGED}', 'mallory', 'mallory', 'admin', 1, 'x', NULL, NULL)",
        "UPDATE requests SET reason = 'y' WHERE status = 'pending'",
    )
    accept_audit(copied)
    assert run_json("token", "revoke", "dead", "--db", str(copied))["good"] is False
    house = House(copied.parent, database=copied)
    pending = find(copied, "pending")
    assert house.deny(pending).status == 200
    house.stop()
    found = check(copied)
    assert (found.ok, found.accepted) == (True, 4), found.problems


def test_only_what_was_shown_is_accepted(copied: Path) -> None:
    spoil(copied)
    shown = verify_database(copied)
    run_sql(copied, "UPDATE tokens SET scopes = 'admin' WHERE subject = 'agent-1'")
    with pytest.raises(Refused, match="Look again"):
        accept_audit(copied, shown)
    assert check(copied).acceptances == []


def test_more_flaws_than_can_be_named_are_accepted_as_they_are(tmp_path: Path) -> None:
    copied = tmp_path / "many.db"
    write_history(copied, 700)
    run_sql(copied, "UPDATE requests SET reason = 'because', claimed = 'x'")
    accept_audit(copied, verify_database(copied))
    found = check(copied)
    assert (found.ok, found.accepted) == (True, 700)
    run_sql(copied, "UPDATE requests SET reason = 'why' WHERE sequence = 5")
    assert check(copied).flaws == 700, "there is no telling which one is new"


def test_a_taken_anchor_is_never_accepted_for_good(copied: Path) -> None:
    anchor_of(copied).path.unlink()
    accept_audit(copied)
    assert check(copied).ok
    anchor_of(copied).path.unlink()
    assert not check(copied).ok


# Reading only


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in folder.iterdir()}


def test_looking_leaves_nothing_behind(copied: Path) -> None:
    before = listing(copied.parent)
    assert run("verify", "--db", str(copied)).exit_code == 0
    assert listing(copied.parent) == before


@pytest.mark.skipif(os.getuid() != 0, reason="needs root, to become somebody whom rights keep out")
@pytest.mark.parametrize("live", [False, True])
def test_a_read_only_copy_can_be_verified(copied: Path, live: bool) -> None:
    folder = copied.parent / "copy"
    folder.mkdir()
    keeper = open_store(copied) if live else None  # leaves a WAL beside the file
    for file in copied.parent.glob("copy.db*"):
        shutil.copy(file, folder)
    if keeper:
        keeper.close()
        (folder / "copy.db-shm").unlink()
    let_in(folder)
    folder.chmod(0o555)
    for file in folder.iterdir():
        file.chmod(0o444)
    code = """
os.setuid(65534)
try:
    print(verify_database(Path(path)).problems)
except StoreError as error:
    print(error)
"""
    printed = run_apart(code, folder / "copy.db")
    assert ("copy both files to a writable" in printed) if live else printed == "[]\n"
    folder.chmod(0o755)


@pytest.mark.parametrize("content", [b"", b"some text that is no database\n" * 99])
def test_what_is_no_database_is_told_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "confirm.db"
    path.write_bytes(content)
    done = run("verify", "--db", str(path))
    assert done.exit_code == 1
    assert ("damaged" if content else "an empty file") in done.output
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.is_file()} == {"confirm.db": content}


def test_others_databases_and_older_schemas_are_only_looked_at(copied: Path, tmp_path: Path) -> None:
    for pragma, problem in (("user_version = 99", "newer Warmstart"), ("user_version = 0", "older Warmstart")):
        run_sql(copied, f"PRAGMA {pragma}")
        with pytest.raises(StoreError, match=problem):
            open_to_read(copied)
    run_sql(copied, "PRAGMA application_id = 77")
    with pytest.raises(StoreError, match="another program"):
        open_to_read(copied)
    with pytest.raises(StoreError, match="cannot be read"):
        open_to_read(tmp_path / "none.db")


def test_a_running_daemon_is_verified_with_what_it_has_just_written(house: House) -> None:
    for _ in range(5):
        house.submit()
        assert run("verify", "--db", str(house.database)).exit_code == 0


# Large audits


def write_history(path: Path, requests: int) -> None:
    """Write requests that were submitted and denied, two entries each, with raw SQL for speed."""
    open_store(path).close()
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous = OFF; BEGIN").fetchall()
    previous, entries = ZERO, []

    def add(sequence: int, event: str, id: str, actor: str, credential: str, details: str) -> None:
        nonlocal previous
        entry = AuditEntry(sequence, sequence, event, id, "act", actor, credential, details, previous, "")
        hashed = hash_entry(entry)
        entries.append((sequence, sequence, event, id, "act", actor, credential, details, previous, hashed))
        previous = hashed

    for n in range(requests):
        id = hashlib.md5(str(n).encode()).hexdigest()
        add(2 * n + 1, "submitted", id, "agent", "t", '{"digest":"d","high_risk":false,"timeout":30}')
        add(2 * n + 2, "denied", id, "boss", "t", '{"digest":"d","reason":""}')
        row = (id, 2 * n + 1, "act", "act", "what", 0, "d", "agent", "agent", "t", "", "", 0, 1, 2 * n + 1, 30)
        row += (2 * n + 1 + 30_000, "denied", 2 * n + 2, "boss", "", None, None, 6, "{}")
        db.execute(f"INSERT INTO requests VALUES ({','.join('?' * len(row))})", row)
        for entry in entries:
            db.execute(f"INSERT INTO audit VALUES ({','.join('?' * 10)})", entry)
        entries.clear()
    db.execute("COMMIT")
    db.close()
    anchor_of(path).write(ChainHead(2 * requests, previous))


def test_a_large_audit_is_read_in_a_line_and_not_into_memory(tmp_path: Path) -> None:
    """Ten times as many entries take about ten times as long, in a constant amount of memory."""
    import tracemalloc

    small, large = (5_000, 50_000) if FULL else (400, 4_000)
    took = {}
    for requests in (small, large):
        write_history(tmp_path / f"{requests}.db", requests)
        began = time.perf_counter()
        with open_to_read(tmp_path / f"{requests}.db") as store:
            verdict = verify(store, anchor_of(tmp_path / f"{requests}.db").read())
        took[requests] = time.perf_counter() - began
        assert (verdict.ok, verdict.entries) == (True, 2 * requests)
    assert took[large] < 40 * took[small], "quadratic time would be a hundred times as long"
    tracemalloc.start()
    with open_to_read(tmp_path / f"{large if not FULL else small}.db") as store:
        verify(store, None)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 << 20
