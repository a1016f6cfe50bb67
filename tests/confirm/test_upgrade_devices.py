"""A database of the second schema gets passkeys, alerts and withdrawals, with what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from confirm.houses import on_both_databases
from confirm.old_schemas import NOW, open_at, put_old_request
from confirm.serving import check
from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.decide import withdraw
from warmstart.confirm.model import Identity, Request
from warmstart.confirm.passkeys.records import need_passkeys
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store.open import locate, open_store
from warmstart.confirm.tokens.access import list_allowances

AGENT = Identity("agent", "agent", frozenset(["agent:submit"]), "credential-1")
OLD_ENTRY = {
    "id": "w" * 32,
    "action": "run",
    "action_key": "run",
    "session_key": "s",
    "requester_key": "",
    "digest": "",
    "created": NOW,
    "created_by": "root",
    "expires": NOW + 600_000,
}


def put_old_entry(store: Any) -> None:
    """Record a whitelist entry as the second schema's program did."""
    mark = "%({})s" if "Postgres" in type(store).__name__ else ":{}"
    marks = ", ".join(mark.format(name) for name in OLD_ENTRY)
    with store.writing():
        Transaction(store, NOW, Policy()).log(
            "whitelisted",
            "root",
            action="run",
            entry="w" * 32,
            session="s",
            requester="",
            digest="",
            expires=NOW + 600_000,
        )
        store._db.execute(f"INSERT INTO whitelist ({', '.join(OLD_ENTRY)}) VALUES ({marks})", OLD_ENTRY)


@pytest.mark.slow
@on_both_databases
def test_the_second_schema_is_upgraded_with_what_it_holds(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    place: Any = tmp_path / "confirm.db"
    if engine == "postgres":
        place = locate(request.getfixturevalue("postgres").make_database())
    with open_at(place, 2) as old:
        put_old_request(old)
        put_old_entry(old)
        Anchor.of(old).write(read_head(old))
    with open_store(place) as new:
        assert not need_passkeys(new)
        assert new.row("mark", {"name": "alerts"}) == (2,), "nobody is alerted of what happened before"
        (entry,) = list_allowances(new, NOW)
        assert (entry.times, entry.used) == (None, 0)
        with new.writing():
            gone = withdraw(Transaction(new, NOW + 1000, Policy()), AGENT, "r" * 32)
        assert isinstance(gone, Request) and gone.status == "withdrawn"
        Anchor.of(new).advance(new)
    verdict = check(place)
    assert verdict.ok, verdict.problems
    if engine == "postgres":
        request.getfixturevalue("postgres").recycle(place.url)
