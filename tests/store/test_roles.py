"""Who sees what in a team's store, with real roles: ann and bob are members, builds is a hook's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner
from msgspec import structs

from postgres_server import Postgres
from store.rows import make_calls, make_session
from warmstart.doors.cli.main import main as run_cli
from warmstart.errors import NotFound, Refused, StoreDenied
from warmstart.model import Example
from warmstart.store import ProjectStore, SourceRow, Store, TemplateRow, TemplateStore, TrialRow, TrialStore, open_store
from warmstart.store.copying import StoreCopy
from warmstart.store.notes import NoteRow, NoteStore
from warmstart.store.roles import read_roles
from warmstart.store.rows import ProjectNameRow
from warmstart.store.words import SessionFilter, SessionWords

SHOP = "github.com/acme/shop"
SECRET = "github.com/acme/secret"
OPEN_TO_ALL = {
    "migrations",
    "experiments",
    "weighings",
    "project_access",
}  # tables that hold nothing of a person or project


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> Iterator[str]:
    """The address of a store with roles, for {role}."""
    address = postgres.make_store()
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(read_roles())
        db.execute(read_roles())  # again after an upgrade
        db.execute("CREATE ROLE ann LOGIN; CREATE ROLE bob LOGIN; CREATE ROLE builds LOGIN; CREATE ROLE eve LOGIN")
        db.execute("GRANT warmstart_member TO ann, bob; GRANT warmstart_hook TO builds")
        db.execute(
            "INSERT INTO warmstart.project_access VALUES ('ann', %s), ('bob', %s), ('builds', '*'), ('ann', %s)",
            (SHOP, SHOP, SECRET),
        )
    yield address.replace("postgres:@", "{role}:@")
    with psycopg.connect(address, autocommit=True) as db:
        for role in ("ann", "bob", "builds", "eve", "warmstart_member", "warmstart_hook"):
            db.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.fixture
def database(server: str, sealed: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A database that these tests have for themselves."""
    monkeypatch.setenv("WARMSTART_STORE", server.format(role="postgres"))
    yield "postgres"
    with psycopg.connect(server.format(role="postgres"), autocommit=True) as db:
        tables = db.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart' AND tablename NOT IN ('migrations', 'project_access')"
        ).fetchall()
        db.execute("TRUNCATE " + ", ".join(f"warmstart.{name}" for (name,) in tables))


@pytest.fixture
def ann(server: str, database: str) -> Iterator[Store]:
    with open_store(server.format(role="ann")) as opened:
        yield opened


@pytest.fixture
def bob(server: str, database: str) -> Iterator[Store]:
    with open_store(server.format(role="bob")) as opened:
        yield opened


@pytest.fixture
def builds(server: str, database: str) -> Iterator[Store]:
    with open_store(server.format(role="builds")) as opened:
        yield opened


def put(store: Store, key: str, task: str = "fix it", **facts: Any) -> None:
    store.put_session(make_session(key, task=task, **facts), make_calls(key))


def keys(store: Store) -> set[str]:
    return {row.key for row in store.list_sessions(None)}


def make_template(name: str, **facts: Any) -> TemplateRow:
    body = b"{}".decode()
    columns: dict[str, Any] = {
        "version": 1, "name_key": name, "status": "active", "reason": "", "category": "coding", "task_type": "code",
        "project": SHOP, "strength": 1.0, "body": body, "digest": "d", "created": 1.0,
    }  # fmt: skip
    return TemplateRow(name=name, **(columns | facts))


def test_members_see_shared_projects_and_their_own(ann: Store, bob: Store) -> None:
    put(ann, "shared", project=SHOP)
    put(ann, "hers", project=SHOP, scope="telegram:3fa94c0d17b2e865")
    put(ann, "folder", project="/home/ann/diary", folder="/home/ann/diary")
    put(ann, "nowhere", project=None)
    put(ann, "closed", project=SECRET)
    put(ann, "given", project=SECRET, scope="*")
    assert keys(ann) == {"shared", "hers", "folder", "nowhere", "closed", "given"}
    assert keys(bob) == {"shared", "given"}
    assert len(bob.calls_of("shared")) == 2 and bob.calls_of("hers") == [] and bob.calls_of("closed") == []
    with pytest.raises(NotFound):
        bob.find_session("hers")
    for text, expected in (("fix", {"shared", "given"}),):
        found = SessionWords(bob).find(text, SessionFilter(), limit=9, offset=0)
        assert {row.key for row in found.sessions} == expected and found.total == 2


def test_nobody_sees_words_notes_or_trials_of_anothers_personal_scope(ann: Store, bob: Store, server: str) -> None:
    personal = "telegram:3fa94c0d17b2e865"
    put(ann, "hers", "quetzalcoatl", project=SHOP, scope=personal)
    with ann.writing():
        notes = NoteStore(ann)
        notes.put(NoteRow("n1", SHOP, personal, "path", "active", '{"text": "quetzalcoatl"}', 1.0))
        notes.put(NoteRow("n2", SHOP, "", "path", "active", '{"text": "shared"}', 1.0))
        TrialStore(ann).put_trial(
            TrialRow(
                session="t1", arm="warm", picks="[]", task=f'{{"scope": "{personal}", "project": "{SHOP}"}}', at=1.0
            ),
            [],
        )
        TrialStore(ann).put_trial(
            TrialRow(session="t2", arm="warm", picks="[]", task=f'{{"project": "{SHOP}"}}', at=1.0), []
        )
        TrialStore(ann).put_seed("t1", "text", '{"text": "quetzalcoatl"}')
        templates = TemplateStore(ann)
        row = make_template("hers", scope=personal)
        templates.put(row, [(Example(tool="Bash", arguments={}, result="quetzalcoatl"), {})])
        templates.index(row, [{"quetzalcoatl": 1.0}])
    assert [note for note, _body in NoteStore(bob).bodies()] == ["n2"]
    assert TrialStore(bob).trial("t1") is None and TrialStore(bob).trial("t2") is not None
    assert TemplateStore(bob).find() == [] and len(TemplateStore(ann).find()) == 1
    with psycopg.connect(server.format(role="bob"), autocommit=True, options="-c search_path=warmstart") as db:
        for (table,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart'").fetchall():
            (found,) = db.execute(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE '%quetzal%'").fetchone() or (
                0,
            )
            assert found == 0, table


def test_a_role_that_was_given_nothing_sees_nothing(ann: Store, server: str) -> None:
    put(ann, "shared", project=SHOP)
    with pytest.raises(StoreDenied, match="may not do that"):
        open_store(server.format(role="eve"))


def test_members_cannot_change_what_is_anothers(ann: Store, bob: Store, server: str) -> None:
    put(ann, "shared", project=SHOP, folder="/work/app")
    with pytest.raises(NotFound):
        bob.forget_session("shared", 1.0)
    assert bob.put_session(make_session("shared", project=SHOP, digest="other", messages=99), []) == "foreign"
    put(ann, "hers", project="/home/ann/diary")
    assert bob.put_session(make_session("hers", project=SHOP, digest="other"), []) == "foreign", (
        "not seen, and not taken"
    )
    assert len(ann.calls_of("shared")) == 2 and ann.find_session("shared").digest == "d1"
    with bob.writing():
        bob.run("place_sessions", ("github.com/bob/other", "/work/app", "/work/app"))
    assert ann.find_session("shared").project == SHOP, "the same path on another disk"
    with psycopg.connect(server.format(role="bob"), autocommit=True, options="-c search_path=warmstart") as db:
        for statement in (
            "INSERT INTO project_access VALUES ('bob', '*')",
            "DELETE FROM migrations",
            "ALTER TABLE sessions DISABLE ROW LEVEL SECURITY",
            "DROP POLICY seen ON sessions",
            "UPDATE decisions SET by = 'person'",
            "SET ROLE ann",
            'INSERT INTO sessions SELECT (jsonb_populate_record(s, \'{"key": "k", "owner": "ann"}\')).* FROM sessions AS s',
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(statement)


def test_places_on_a_disk_are_everybodys_own(ann: Store, bob: Store) -> None:
    """The same path is another file on another machine."""
    for store, project, size in ((ann, SHOP, 1), (bob, SECRET, 2)):
        store.put_source(SourceRow(uri="/work/state.db", size=size, mtime_ns=1, read_at=1.0))
        ProjectStore(store).name(ProjectNameRow(name="/work/app", project=project, by="remote", at=1.0))
    assert [row.size for row in ann.sources()] == [1] and [row.size for row in bob.sources()] == [2]
    assert ProjectStore(ann).names()["/work/app"].project == SHOP


def test_a_hook_opens_sessions_and_deletes_nothing(ann: Store, builds: Store, server: str) -> None:
    put(ann, "shared", project=SHOP)
    with ann.writing():
        row = make_template("hers")
        TemplateStore(ann).put(row, [(Example(tool="Bash", arguments={}, result="ok"), {})])
    with builds.writing():
        TrialStore(builds).put_trial(
            TrialRow(session="t1", arm="warm", picks="[]", task=f'{{"project": "{SHOP}"}}', at=1.0), [("hers", 1)]
        )
        TrialStore(builds).put_seed("t1", "text", "{}")
    assert TemplateStore(ann).find()[0].used == 1 and keys(builds) == {"shared"}
    assert TrialStore(ann).trial("t1") is not None
    with pytest.raises(StoreDenied), builds.writing():
        put(builds, "more", project=SHOP)
    with psycopg.connect(server.format(role="builds"), autocommit=True, options="-c search_path=warmstart") as db:
        for (table,) in db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart'").fetchall():
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                db.execute(f"DELETE FROM {table}")


def test_templates_of_two_members_may_have_one_name(ann: Store, bob: Store) -> None:
    for store, expected in ((ann, 1), (bob, 2)):
        with store.writing():
            templates = TemplateStore(store)
            version = templates.next_version("fix")
            assert version == expected
            templates.put(structs.replace(make_template("fix", project=f"/home/{expected}"), version=version), [])
    assert [row.version for row in TemplateStore(ann).find()] == [1]


def test_two_members_may_have_one_folder(ann: Store, bob: Store) -> None:
    """A folder that is no named project is personal; whoever was first keeps its notes."""
    for store, text in ((ann, "hers"), (bob, "his")):
        with store.writing():
            NoteStore(store).put(NoteRow("n", "/workspace", "", "path", "active", text, 1.0))
    assert [body for _note, body in NoteStore(ann).bodies()] == ["hers"]
    assert NoteStore(bob).bodies() == []


def test_a_member_copies_what_she_sees_and_nothing_into_the_store(
    ann: Store, bob: Store, server: str, tmp_path: Path
) -> None:
    """What she does not see may be there, so that the store only looks empty."""
    put(bob, "private", project="/home/bob/diary", task="canary")
    with open_store(tmp_path / "hers.db") as hers:
        put(hers, "k1", project=SHOP)
        for target in (ann, bob):
            with pytest.raises(Refused, match="sees only a part"):
                StoreCopy(hers, target).run()
    assert (keys(ann), keys(bob)) == (set(), {"private"})
    put(bob, "k2", project=SHOP)
    put(ann, "k3", project=SECRET)
    done = CliRunner().invoke(run_cli, ["store", "copy", server.format(role="ann"), str(tmp_path / "a.db")])
    assert done.exit_code == 0 and "your role sees only a part" in done.output
    with open_store(tmp_path / "a.db") as copied:
        assert keys(copied) == {"k2", "k3"}
    assert b"canary" not in (tmp_path / "a.db").read_bytes()


def test_every_table_has_a_policy_or_is_open_on_purpose(server: str, database: str) -> None:
    """A new table with rows of a person or project needs a policy in roles.sql."""
    with psycopg.connect(server.format(role="postgres"), autocommit=True) as db:
        loose = db.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = 'warmstart'::regnamespace AND relkind = 'r' AND NOT relrowsecurity"
        ).fetchall()
    assert {name for (name,) in loose} == OPEN_TO_ALL


def test_the_command_prints_the_sql() -> None:
    result = CliRunner().invoke(run_cli, ["store", "roles"])
    assert result.exit_code == 0 and result.output.endswith(read_roles())
