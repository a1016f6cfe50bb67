"""OpenCode and Pi: where their plugins and transcripts are, and one session of a database."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from command_line import run_json
from warmstart import config
from warmstart.doors.hooks.agents import OPENCODE, PI, find_transcripts
from warmstart.formats.places import usual_places
from warmstart.ingest.queue import split_session

SESSION = "ses_0a1b2c3d4e5fAbCdEfGhIjKlMn"


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def opencode_file(home: Path) -> Path:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SQLite format 3\0")
    return path


def test_a_session_of_the_database_is_named(opencode_file: Path):
    settings = config.load()
    assert find_transcripts(OPENCODE, settings, str(opencode_file)) == [opencode_file]
    named = find_transcripts(OPENCODE, settings, f"{opencode_file}#{SESSION}")
    assert named == [opencode_file.with_name(f"opencode.db#{SESSION}")]
    assert split_session(str(named[0])) == (str(opencode_file), SESSION)


@pytest.mark.parametrize("session", ["", "../x", "a/b", "a' OR 1", "a#b", "a b", "\0", "x" * 5_000 + "/"])
def test_a_strange_session_is_refused(opencode_file: Path, session: str):
    assert find_transcripts(OPENCODE, config.load(), f"{opencode_file}#{session}") == []


def test_a_database_elsewhere_is_refused(opencode_file: Path, tmp_path: Path, home: Path):
    elsewhere = tmp_path / "opencode.db"
    elsewhere.write_bytes(b"SQLite format 3\0")
    link = opencode_file.with_name("linked.db")
    link.symlink_to(elsewhere)
    for path in (elsewhere, link, home / ".config" / "opencode" / "opencode.db"):
        assert find_transcripts(OPENCODE, config.load(), f"{path}#{SESSION}") == []


def test_other_folders_are_named_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "PI_CODING_AGENT_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    database = tmp_path / "XDG_DATA_HOME" / "opencode" / "opencode.db"
    session = tmp_path / "PI_CODING_AGENT_DIR" / "sessions" / "--srv--" / "a.jsonl"
    for path in (database, session):
        path.parent.mkdir(parents=True)
        path.touch()
    settings = config.load()
    assert find_transcripts(OPENCODE, settings, str(database)) == [database]
    assert find_transcripts(PI, settings, str(session)) == [session]
    places = dict(usual_places(settings.user_home, settings.places))
    assert (places["opencode"], places["pi"]) == (database, session.parent.parent)
    plugin = run_json("hook", "install", "opencode")["path"]
    assert plugin == str(tmp_path / "XDG_CONFIG_HOME" / "opencode" / "plugins" / "warmstart.js")
    extension = run_json("hook", "install", "pi")["path"]
    assert extension == str(tmp_path / "PI_CODING_AGENT_DIR" / "extensions" / "warmstart.ts")


@pytest.mark.parametrize("agent", [OPENCODE, PI], ids=lambda agent: agent.name)
@pytest.mark.parametrize("scope", [[], ["--project"]], ids=["user", "project"])
def test_the_file_is_whole_and_goes_away_again(agent, scope: list[str], home: Path, tmp_path: Path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    before = sorted(home.rglob("*"))
    installed = run_json("hook", "install", agent.name, *scope)
    assert (installed["changed"], installed["events"]) == (True, list(agent.timeouts))
    text = Path(installed["path"]).read_text()
    assert not re.findall("__[A-Z]+__", text)
    command = json.loads(re.findall(r"COMMAND\b.* = (\[.*\])", text)[0])
    assert command[-3 - 2 * len(scope) :][:3] == ["hook", "run", agent.name]
    rows = [row for row in run_json("hook", "status")["hooks"] if row["agent"] == agent.name and row["events"]]
    assert [row["scope"] for row in rows] == ["project" if scope else "user"]
    assert run_json("hook", "uninstall", agent.name, *scope)["changed"]
    left = [path for path in sorted(home.rglob("*")) if path not in before and ".warmstart" not in path.parts]
    assert (left, list(project.iterdir())) == ([], [])
