"""Every question of docs/howto/lake.md runs on a real lake, and the commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import warmstart
from lake.making import write_sessions

ROOT = Path(__file__).resolve().parents[2]
QUERIES = re.findall(r"```sql\n(.*?)```", (ROOT / "docs/howto/lake.md").read_text(), re.S)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("lake")
    with warmstart.open(place / "home") as ws:
        ws.lake(str(place / "lake")).ingest([write_sessions(place / "t", 3)])
    return place / "lake"


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query[7:40])
def test_the_questions_have_answers(lake: Path, query: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = duckdb.sql(query.replace("LAKE", str(lake))).fetchall()
    assert rows and len(QUERIES) >= 6


def test_tables_join_by_project(lake: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    tables = (f"'{lake}/{table}/*/*/*.parquet'" for table in ("sessions", "digests"))
    query = "SELECT count(*), min(project) FROM {} AS s JOIN {} AS d USING (project, key)".format(*tables)
    assert duckdb.sql(query).fetchall() == [(3, "/home/dev/shop")]
