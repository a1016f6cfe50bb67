"""Commands on a damaged database: one can always verify it, revoke access and accept its flaws."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from confirm.commands import run, run_json
from confirm.serving import House, check
from confirm.tampering import anchor_of, drop_guards, run_sql
from warmstart.confirm.desk.offline import change_database
from warmstart.confirm.store.open import open_store
from warmstart.confirm.tokens.access import create_login, list_tokens
from warmstart.errors import StoreError


@pytest.fixture
def stopped(house: House) -> Path:
    """The database of a stopped daemon, with a login."""
    house.log_in("dora")
    house.stop()
    return house.database


def spoil_anchor(database: Path) -> None:
    anchor_of(database).path.write_text('{"sequence":1')


def take_anchor(database: Path) -> None:
    anchor_of(database).path.unlink()


def cut_audit(database: Path) -> None:
    run_sql(database, drop_guards(), "DELETE FROM audit WHERE sequence > 7")


TROUBLES = [spoil_anchor, take_anchor, cut_audit]


def test_an_anchor_that_cannot_be_read_is_no_dead_end(stopped: Path, house: House) -> None:
    spoil_anchor(stopped)
    where = ["--db", str(stopped)]
    done = run("verify", *where)
    assert (done.exit_code, "cannot be read" in done.output, "NOT SOUND" in done.output) == (1, True, True)
    for refused in (["login"], ["token", "create", "--scope", "admin", "--subject", "x"]):
        done = run(*refused, *where)
        assert (done.exit_code, "See: warmstart confirm verify" in done.output) == (1, True)
    with pytest.raises(StoreError, match="See: warmstart confirm verify"):
        house.start()
    assert run("verify", "--accept", "--yes", *where).exit_code == 0
    assert run("verify", *where).exit_code == 0
    assert run("login", "--unchecked", *where).exit_code == 0
    house.start()


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLES)
def test_somebody_can_always_be_shut_out(stopped: Path, house: House, trouble) -> None:
    with open_store(stopped) as store:
        token = next(one for one in list_tokens(store) if one.subject == "alice")
    trouble(stopped)
    before = anchor_of(stopped).path.read_bytes() if anchor_of(stopped).path.exists() else None
    where = ["--db", str(stopped)]
    assert run_json("token", "revoke", token.id, *where)["good"] is False
    assert run_json("logout", "dora", *where) == {"ended": 1}
    after = anchor_of(stopped).path.read_bytes() if anchor_of(stopped).path.exists() else None
    assert after == before, "the evidence stays"
    with pytest.raises(StoreError):
        change_database(stopped, lambda tx: create_login(tx, "x", by="test"))
    assert run("verify", "--accept", "--yes", *where).exit_code == 0
    house.start()
    assert house.approve(house.submit().body["id"]).status == 401


def test_a_copy_of_the_anchor_that_cannot_be_read_is_a_flaw(stopped: Path) -> None:
    copy = stopped.with_name("elsewhere")
    copy.write_text("{")
    verdict = json.loads(run("verify", "--json", "--anchor", str(copy), "--db", str(stopped)).stdout)
    assert (verdict["ok"], verdict["flaws"]) == (False, 1)
    assert check(stopped).ok
