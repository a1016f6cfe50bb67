"""Databases of every earlier schema are upgraded with what they hold, on SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from confirm.houses import on_both_databases
from confirm.serving import check
from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.transaction import Transaction, load_request
from warmstart.confirm.model import Identity, Request
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store import sqlite
from warmstart.confirm.store.open import locate, open_store
from warmstart.confirm.store.protocol import ServerAddress, find_migrations
from warmstart.errors import StoreError

NOW = 1_800_000_000_000
OLD_COLUMNS = Request.__struct_fields__[: Request.__struct_fields__.index("size")]


def open_at(place: Any, number: int) -> Any:
    """Open a database as a program with only the first `number` migrations would."""
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store import postgres
        from warmstart.confirm.store.postgres_address import read_address

        store = postgres.ConfirmPostgresStore(read_address(place), 5.0, postgres.MIGRATIONS[:number])
        store.migrate()
        return store
    migrations = sqlite.MIGRATIONS[:number]
    sqlite.create_file(place)
    kind = sqlite.KIND._replace(schema=number, load_migrations=lambda: migrations)
    return sqlite.ConfirmSqliteStore(place, kind, 5.0)


def put_old_request(store: Any) -> Request:
    """Record a request as the first schema's program did."""
    agent = Identity("agent", "agent", frozenset(["agent:submit"]), "credential-1")
    request = Request("r" * 32, 0, "send_mail", "send_mail", "Größe", '{"to":"me"}', 0, "d" * 64, agent.subject,
                      agent.key, agent.credential, "", "", False, 1, NOW, 300, NOW + 300_000, "pending", None, "", "",
                      None, None)  # fmt: skip
    with store.writing():
        tx = Transaction(store, NOW, Policy())
        known = {name: getattr(request, name) for name in ("digest", "high_risk", "quorum", "shown", "timeout")}
        sequence = tx.log("submitted", agent, request, **known)
        values = {name: getattr(request, name) for name in OLD_COLUMNS} | {"sequence": sequence, "high_risk": 0}
        mark = "%({})s" if "Postgres" in type(store).__name__ else ":{}"
        marks = ", ".join(mark.format(name) for name in OLD_COLUMNS)
        store._db.execute(f"INSERT INTO requests ({', '.join(OLD_COLUMNS)}) VALUES ({marks})", values)
    store.anchor_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    Anchor.of(store).write(read_head(store))
    return request


@on_both_databases
def test_the_first_schema_is_upgraded_with_its_requests(
    request: pytest.FixtureRequest, tmp_path: Path, engine: str
) -> None:
    place: Any = tmp_path / "confirm.db"
    if engine == "postgres":
        place = locate(request.getfixturevalue("postgres").make_database())
    with open_at(place, 1) as old:
        put_old_request(old)
    with open_store(place) as new:
        row = load_request(new.row("request", {"id": "r" * 32}))
        assert row.size == len("Größe".encode()) + len('{"to":"me"}')
        assert new.rows("masks_of", {"request": row.id}) == []
    verdict = check(place)
    assert verdict.ok, verdict.problems
    if engine == "postgres":
        request.getfixturevalue("postgres").recycle(place.url)


def test_both_databases_have_the_same_migrations() -> None:
    files, servers = find_migrations(), find_migrations(postgres=True)
    assert [f"{one.name}_postgres" for one in files] == [one.name for one in servers]
    assert [one.number for one in files] == list(range(1, len(files) + 1))


def test_a_gap_between_migrations_is_refused(tmp_path: Path) -> None:
    for name in ("0001_a", "0003_c"):
        (tmp_path / f"{name}.sql").write_text("SELECT 1;")
    with pytest.raises(StoreError, match="0002 is missing before 0003_c"):
        find_migrations(tmp_path)
