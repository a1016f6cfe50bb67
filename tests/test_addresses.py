"""The password in a store's address reaches no agent's file, no store, no output, no log and no command's words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from databases import on_postgres
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.addresses import drop_passwords, find_passwords
from warmstart.doors.cli.main import main
from warmstart.doors.hooks import catch_up
from warmstart.store import open_store

PASSWORD = "tulip/Harbour7@night"
WRITTEN = "tulip%2FHarbour7%40night"
ADDRESS = f"postgresql://anna:{WRITTEN}@db.example.com:5432/team"


def run(*words: object) -> Result:
    return CliRunner().invoke(main, list(map(str, words)))


def assert_hidden(text: str) -> None:
    assert not any(form in text for form in (PASSWORD, WRITTEN, "Harbour7")), text


@pytest.mark.parametrize(
    ("address", "passwords", "bare"),
    [
        ("postgresql://anna@db:5432/team", [], "postgresql://anna@db:5432/team"),
        ("postgresql://postgres:@/d?host=/tmp/x", [], "postgresql://postgres@/d?host=/tmp/x"),
        ("postgresql://db:5432/team?options=a@b", [], "postgresql://db:5432/team?options=a@b"),
        ("postgres://a:secret1@db/team", ["secret1"], "postgres://a@db/team"),
        (ADDRESS, [WRITTEN, PASSWORD], "postgresql://anna@db.example.com:5432/team"),
        ("postgresql://a:p/q@r@db/team", ["p/q@r"], "postgresql://a@db/team"),
        ("postgresql://a:p?q#r@db/team", ["p?q#r"], "postgresql://a@db/team"),
        ("postgresql://db/t?user=a&password=x1&sslpassword=y", ["x1", "y"], "postgresql://db/t?user=a"),
        ("postgresql://db/t?password=x1&sslmode=require", ["x1"], "postgresql://db/t?sslmode=require"),
        ("/home/a:b@c/warmstart.db", [], "/home/a:b@c/warmstart.db"),
    ],
)
def test_passwords_are_found_and_dropped(address: str, passwords: list[str], bare: str) -> None:
    assert find_passwords(address) == passwords
    assert drop_passwords(address) == bare


@pytest.mark.parametrize(
    "words",
    [
        ("mcp", "install", "claude-code"),
        ("mcp", "install", "codex", "--project"),
        ("hook", "install", "claude-code"),
        ("hook", "install", "opencode"),
        ("hook", "install", "--all"),
    ],
)
def test_no_password_is_written_into_agents_files(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user-home" / ".claude").mkdir()
    done = run("--store", ADDRESS, *words)
    assert done.exit_code == 2
    assert "~/.pgpass" in done.stderr and "--store postgresql://anna@db.example.com:5432/team" in done.stderr
    assert_hidden(done.output)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [], "nothing was written"
    done = run("--store", drop_passwords(ADDRESS), *words)
    assert done.exit_code == 0, done.output


def test_a_damaged_file_of_an_agent_shows_no_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What to add by hand is printed; what cannot be added is not. Uninstalling needs no store."""
    monkeypatch.setenv("WARMSTART_STORE", ADDRESS)
    (tmp_path / "user-home" / ".claude.json").write_text("{")
    for action in ("install", "uninstall"):
        done = run("mcp", action, "claude-code")
        assert done.exit_code != 0
        assert_hidden(done.output)
    (tmp_path / "user-home" / ".claude.json").write_text("{}")
    assert run("mcp", "uninstall", "claude-code").exit_code == 0


def test_passwords_of_all_addresses_are_secrets(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('store = "postgresql://a:in-the-file@db/t"\n')
    settings = config.load(
        tmp_path, ADDRESS, {"WARMSTART_STORE": "postgresql://a:in-the-env@db/t", "PGPASSWORD": "in-libpq"}
    )
    assert {PASSWORD, WRITTEN, "in-the-file", "in-the-env", "in-libpq"} <= set(settings.secrets.values())
    assert_hidden(repr(settings))


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/a:Harbour7@db/t",
        "postgresql:a:Harbour7@db/t",
        "host=db password=Harbour7",
        "mysql://a:Harbour7@db/t",
    ],
)
def test_an_address_in_another_notation_is_no_path(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a path it would become a file whose name holds the password."""
    monkeypatch.chdir(tmp_path)
    done = run("--store", address, "doctor", "--json")
    assert done.exit_code != 0 and "postgresql://" in done.output
    assert_hidden(done.output)
    assert not any("Harbour7" in str(path) for path in tmp_path.rglob("*"))


def test_the_background_process_has_no_password_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[list[str], dict[str, Any]]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda words, **options: started.append((words, options)))
    catch_up.start_catching_up(tmp_path, ADDRESS)
    ((words, options),) = started
    assert_hidden(" ".join(words))
    assert config.load(environ=options["env"]).store == ADDRESS


def test_a_server_that_does_not_answer_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARMSTART_STORE", f"postgresql://anna:{WRITTEN}@127.0.0.1:1/team")
    for words in (("doctor",), ("doctor", "--json"), ("ingest",), ("notes", "list"), ("hook", "status")):
        assert_hidden(run(*words).output)


@on_postgres
def test_sessions_that_saw_the_password_are_stored_without_it(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server trusts everybody here, so any password will do."""
    address = os.environ["WARMSTART_STORE"]
    monkeypatch.setenv("WARMSTART_STORE", address.replace("postgres:@", f"postgres:{WRITTEN}@"))
    said = f"the store is at postgresql://anna:{WRITTEN}@db/team, and marigold {PASSWORD} ended"
    file = write_jsonl(tmp_path / "s-1.jsonl", claude_lines(text=said))
    shown = [
        run(*words).output
        for words in (
            ("ingest", file),
            ("learn",),
            ("doctor", "--json"),
            ("sessions", "list"),
            ("sessions", "show", "s-1"),
        )
    ]
    assert_hidden("\n".join(shown))
    with open_store(address) as store:
        assert store.health()["sessions"] == 1
        tables = [name for (name,) in store.ask("SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart'")]
        stored = "\n".join(str(store.ask(f"SELECT * FROM {name}")) for name in tables)
    assert "marigold" in stored
    assert_hidden(stored)
    home = tmp_path / "user-home"
    assert_hidden("\n".join(path.read_text("utf-8", "replace") for path in home.rglob("*") if path.is_file()))
