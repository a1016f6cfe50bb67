"""A store on a server takes the projects that its user allows, and nothing else of the machine."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bundles.team import git
from command_line import run, run_json, start_python
from postgres_server import Postgres
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.doors.hooks.catch_up import catch_up
from warmstart.doors.hooks.log import log_trouble
from warmstart.ingest.queue import Queue
from warmstart.model import LiveUsage, Task, Usage
from warmstart.pipeline import Warmstart

SECRET = "secret-side-project"


@pytest.fixture
def server(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An empty store on a server, of a person who has allowed it nothing yet."""
    address = postgres.make_store()
    monkeypatch.setenv("WARMSTART_STORE", address)
    monkeypatch.delenv("WARMSTART_STORE_PROJECTS")
    yield address
    postgres.recycle_store(address)


@pytest.fixture
def folders(sealed: None) -> dict[str, Path]:
    """Two checkouts, one of them private, with two sessions each; and one in a folder that is no repository."""
    home = config.load().user_home
    places = {name: home / "src" / name for name in ("orders-api", SECRET, "diary")}
    git("init", "--quiet", places["orders-api"])
    git("remote", "add", "origin", "git@github.com:acme/orders-api.git", folder=places["orders-api"])
    git("init", "--quiet", places[SECRET])
    for name, place in places.items():
        for number in range(1 if name == "diary" else 2):
            lines = claude_lines(f"{name}-{number}", cwd=str(place), text=f"in {name}")
            write_jsonl(home / ".claude" / "projects" / f"-src-{name}" / f"{name}-{number}.jsonl", lines)
    return places


def find_rows(server: str, text: str) -> dict[str, int]:
    """Return the tables with rows that contain a text."""
    with psycopg.connect(server, autocommit=True, options="-c search_path=warmstart") as db:
        tables = db.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart'").fetchall()
        counts = {
            name: (db.execute(f"SELECT count(*) FROM {name} AS t WHERE t::text LIKE %s", (f"%{text}%",)).fetchone())
            for (name,) in tables
        }
    return {name: row[0] for name, row in counts.items() if row and row[0]}


def test_nothing_leaves_before_a_project_is_allowed(server: str, folders: dict[str, Path]) -> None:
    done = run("ingest", code=1)
    assert "nothing was stored" in done.stderr and "warmstart store allow github.com/acme/orders-api" in done.stderr
    assert f"/src/{SECRET} (2 sessions)" in done.stderr and "--all-projects" in done.stderr
    assert find_rows(server, "src") == {} == find_rows(server, "orders-api")
    run("store", "allow", "orders-api")
    assert run_json("ingest")["new"] == 2
    assert run_json("ingest")["unchanged"] == 2
    done = run("ingest")
    assert f"/src/{SECRET} (2 sessions)" in done.stderr and "nothing was stored" not in done.stderr
    assert find_rows(server, SECRET) == {} == find_rows(server, "diary")
    assert find_rows(server, "orders-api")["sessions"] == 2
    assert run_json("ingest", "--project", str(folders["diary"]))["new"] == 1
    assert find_rows(server, SECRET) == {}
    assert run_json("ingest", "--all-projects")["new"] == 2
    assert find_rows(server, SECRET)["sessions"] == 2


def test_sessions_that_agents_run_leave_nothing_of_other_projects(server: str, folders: dict[str, Path]) -> None:
    """Hooks open sessions, queue transcripts and read them, and callers report usage: none of it asks a person."""
    run("store", "allow", "github.com/acme/*")
    settings = config.load()
    for path in settings.user_home.rglob("*.jsonl"):
        Queue(settings.home).add(path)
    catch_up(settings)
    with Warmstart(settings) as ws:
        for name, place in folders.items():
            seed = ws.provision(Task(session=f"new-{name}", project=str(place)))
            assert ("not seeded" in seed.reason) == (name != "orders-api")
            ws.place_session(f"new-{name}", "hermes", str(place))
            ws.usage.set(LiveUsage(session=f"new-{name}", usage=Usage(input=9), project=str(place)))
            ws.reviews.review(next(settings.user_home.rglob(f"{name}-0.jsonl")), model=False)
        ws.place_session("chat", "hermes", str(folders["orders-api"]), "telegram:3fa94c0d17b2e865")
    assert find_rows(server, SECRET) == {} == find_rows(server, "diary") == find_rows(server, "telegram")
    found = find_rows(server, "orders-api")
    assert found["sessions"] == 2 and {"trials", "session_places", "live_spent", "reviews"} <= {*found, "reviews"}


def test_a_copy_of_an_unknown_project_is_an_error(sealed: None, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "s.jsonl", claude_lines(cwd="/home/dev/shop"))
    run("ingest", tmp_path / "s.jsonl")
    source, target = config.load().store_url, tmp_path / "copy.db"
    error = run("store", "copy", source, target, "--project", "nosuch", code=1).stderr
    assert "no project nosuch" in error and "/home/dev/shop" in error and not target.exists()


def test_doctor_says_that_hooks_gave_up_and_that_nothing_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = config.load()
    monkeypatch.setenv("WARMSTART_STORE", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("WARMSTART_STORE_PROJECTS")
    log_trouble(settings.home, "claude-code", "gave up after 3 seconds, 0.4 of them of processor time, in a test")
    report = run_json("doctor", code=1)
    assert "gave up 1 time in the last week" in report["silent_hooks"][0] and "in a test" in report["silent_hooks"][0]
    assert "store allow" in report["sharing"][0]


def test_psycopg_prints_nothing_itself() -> None:
    code = "import logging, warmstart.store.postgres; logging.getLogger('psycopg').warning('error ignored terminating')"
    process = start_python(code)
    assert process.communicate() == ("", "") and process.returncode == 0


def test_the_list_in_the_settings_keeps_its_file(sealed: None) -> None:
    home = config.load().home
    home.mkdir(parents=True)
    file = home / "config.toml"
    file.write_text("# mine\nbudget = 900\n\n[advice]\nlevel = 'off'\n")
    run("store", "allow", "shop")
    run("store", "allow", "shop", "github.com/acme/*")
    assert file.read_text().endswith("# mine\nbudget = 900\n\n[advice]\nlevel = 'off'\n")
    assert tomllib.loads(file.read_text())["store_projects"] == ["shop", "github.com/acme/*"]
    file.write_text("store_projects = [\n  'shop',\n]\n")
    assert "write yourself" in run("store", "allow", "other", code=1).stderr
    assert file.read_text() == "store_projects = [\n  'shop',\n]\n"
