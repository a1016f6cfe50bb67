"""The usual places of every agent on Linux, macOS and Windows, and the sessions that `ingest` finds there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from formats.samples import find_case
from places import DATA, SRC
from rights import let_in
from warmstart import config
from warmstart.formats.places import usual_places
from warmstart.pipeline import Warmstart

SAME = {  # agents that use the same place on every system
    "claude-code": ".claude/projects/-home-dev/s.jsonl",
    "codex": ".codex/sessions/2026/10/01/rollout-x.jsonl",
    "gemini-cli": ".gemini/tmp/p/chats/session-1.json",
    "copilot-cli": ".copilot/session-state/7f/events.jsonl",
    "droid": ".factory/sessions/s.jsonl",
    "kimi": ".kimi-code/sessions/wd/session_7f/agents/main/wire.jsonl",
    "hermes": ".hermes/state.db",
    "opencode": ".local/share/opencode/opencode.db",
    "pi": ".pi/agent/sessions/--home-dev--/s.jsonl",
    "qwen-code": ".qwen/projects/p/chats/s.jsonl",
    "continue": ".continue/sessions/c0c0c0c0-1.json",
    "cline": ".cline/data/sessions/1790000000000_abcde/1790000000000_abcde.messages.json",
    "openhands": ".openhands/conversations/7f/base_state.json",
    "specstory": ".specstory/history/2026-07-13_13-40-49Z-clock.md",
    "aider": ".aider.chat.history.md",
}
STORAGES = {
    "linux": ".config/Code/User/globalStorage",
    "macos": "Library/Application Support/Code/User/globalStorage",
    "windows": "AppData/Roaming/Code/User/globalStorage",
    "remote": ".vscode-server/data/User/globalStorage",
}


@pytest.mark.parametrize(("agent", "place"), SAME.items())
def test_places_that_are_the_same_everywhere(agent: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("{}")
    ((found, path),) = usual_places(tmp_path, {})
    assert found == agent
    assert file == path or path in file.parents


@pytest.mark.parametrize("system", STORAGES)
@pytest.mark.parametrize(
    ("agent", "extension"), [("cline", "saoudrizwan.claude-dev"), ("roo-code", "rooveterinaryinc.roo-cline")]
)
def test_places_of_editors(system: str, agent: str, extension: str, tmp_path: Path) -> None:
    folder = tmp_path / STORAGES[system] / extension / "tasks"
    folder.mkdir(parents=True)
    assert list(usual_places(tmp_path, {})) == [(agent, folder)]


def test_variables_of_the_agents_and_the_current_folder(tmp_path: Path) -> None:
    named = {"CONTINUE_GLOBAL_DIR": tmp_path / "c", "INSPECT_LOG_DIR": tmp_path / "logs"}
    here = tmp_path / "work"
    for folder in (tmp_path / "c/sessions", tmp_path / "logs", here / ".specstory/history"):
        folder.mkdir(parents=True)
    (here / ".aider.chat.history.md").write_text("")
    found = dict(usual_places(tmp_path / "home", named, here))
    assert found == {
        "continue": tmp_path / "c/sessions",
        "inspect": tmp_path / "logs",
        "specstory": here / ".specstory/history",
        "aider": here / ".aider.chat.history.md",
    }


def test_ingest_reads_what_it_finds_and_says_why_it_skipped(tmp_path: Path) -> None:
    home = tmp_path / "user"
    fixtures = {
        SAME["continue"]: DATA / "continue/case.json",
        SAME["cline"]: find_case(DATA / "cline_cli/case.expected.json"),
        SAME["specstory"]: DATA / "specstory/case.md",
        SAME["aider"]: DATA / "aider/case.md",
    }
    for place, case in fixtures.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_bytes(case.read_bytes())
    (home / ".continue/sessions/sessions.json").write_text(
        '[{"sessionId": "c0c0c0c0-1", "dateCreated": "1790000000000"}]'
    )
    (home / ".continue/sessions/empty.json").write_text("")
    (home / ".specstory/history/notes.md").write_text("# Notes\n")
    with Warmstart(config.load(tmp_path / "home", environ={"HOME": str(home)})) as ws:
        report = ws.ingest()
    assert report.sessions == 6 and report.skipped == 3
    assert {(skip.reason, skip.files, Path(skip.example).name) for skip in report.skips} == {
        ("no reader knows this format", 1, "sessions.json"),
        ("the file is empty", 1, "empty.json"),
        ("no reader knows this format; it begins with no JSON record", 1, "notes.md"),
    }


def test_folders_that_cannot_be_listed_are_counted(tmp_path: Path) -> None:
    closed = tmp_path / "in/closed"
    closed.mkdir(parents=True)
    (tmp_path / "in/a.jsonl").write_bytes((DATA / "claude_code/case.jsonl").read_bytes())
    closed.chmod(0)
    let_in(closed.parent / "a.jsonl")
    code = (
        "import os, sys\nfrom warmstart.ingest.sources import find_places\n"
        "list(find_places(sys.argv[1], print))\n"  # load everything first
        "if os.getuid() == 0: os.setuid(65534)\n"
        "print(len(list(find_places(sys.argv[1], lambda name, reason: print(reason, name)))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "in")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    assert done.stdout.splitlines()[-2:] == [f"permission denied {closed}", "1"], done.stderr
