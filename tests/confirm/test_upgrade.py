"""Databases of every earlier schema are upgraded with what they hold, on SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from confirm.houses import on_both_databases
from confirm.old_schemas import open_at, put_old_request
from confirm.serving import check
from warmstart.confirm.audit.transaction import load_request
from warmstart.confirm.store.open import locate, open_store
from warmstart.confirm.store.protocol import find_migrations
from warmstart.errors import StoreError


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
