"""The commands, as a person or a program calls them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from command_line import run
from places import DATA, SRC
from transcripts import claude_lines, write_jsonl
from warmstart.doors.cli.main import COMMANDS, main


@pytest.fixture
def transcript(tmp_path: Path) -> Path:
    lines = claude_lines("5e551011-aaaa", calls=3)
    lines[-1]["message"]["content"][0] |= {"is_error": True, "content": "Exit code 1\nbash: x: command not found"}
    return write_jsonl(tmp_path / "in" / "a.jsonl", lines)


def test_inspect_json_has_the_promised_fields(transcript):
    (line,) = run("inspect", transcript, "--json").stdout.splitlines()
    told = json.loads(line)
    assert (
        list(told)
        == (
            "id source_uri format agent model started messages calls category task_type verdict quality "
            "error_rate is_proficient is_successful label usage"
        ).split()
    )
    assert told["calls"][2] == {
        "id": "toolu_5e551011-aaaa_2",
        "tool": "Bash",
        "outcome": "error",
        "basis": "flag",
        "error_kind": "environment",
    }
    assert told["started"] == "2026-10-01T10:00:00+00:00"
    assert not (transcript.parent / ".warmstart").exists()


def test_inspect_stores_nothing(transcript):
    run("inspect", transcript)
    assert not Path(os.environ["WARMSTART_HOME"]).exists()


def test_problems_go_to_standard_error(tmp_path, transcript):
    bad = tmp_path / "in" / "b.jsonl"
    bad.write_text(transcript.read_text() + '{"type": "user", "broken')
    done = run("inspect", transcript.parent, "--json")
    assert len(done.stdout.splitlines()) == 2
    problem = json.loads(done.stderr)["problem"]
    assert (problem["path"], problem["line"], problem["reason"]) == (str(bad), 8, "the JSON is cut off")
    assert f"{bad}:8: the JSON is cut off" in run("inspect", bad).stderr


def test_ingest_json(transcript):
    told = json.loads(run("ingest", transcript, "--json").stdout)
    assert {k: told[k] for k in ("sessions", "new", "updated", "messages", "calls", "errors", "problems")} == {
        "sessions": 1, "new": 1, "updated": 0, "messages": 1, "calls": 3, "errors": 1, "problems": []}  # fmt: skip
    again = json.loads(run("ingest", transcript, "--json").stdout)
    assert (again["sessions"], again["unchanged"]) == (0, 1)


def test_ingest_finds_the_usual_places():
    home = Path(os.environ["HOME"])
    write_jsonl(home / ".claude/projects/-home-dev/a.jsonl", claude_lines("s-claude"))
    data = DATA
    for place, case in {
        ".codex/sessions/2026/10/01/rollout-x.jsonl": "codex/case.jsonl",
        ".gemini/tmp/p/chats/session-1.json": "gemini_cli/case.json",
        ".qwen/projects/-p/chats/1.jsonl": "qwen_code/case.jsonl",
        ".qwen/projects/-p/subagents/1/agent-a.jsonl": "qwen_code/case-subagent.jsonl",
    }.items():
        (home / place).parent.mkdir(parents=True)
        (home / place).write_bytes((data / case).read_bytes())
    use = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "a"}}
    history = [{"role": "user", "content": "<task>read a</task>"}, {"role": "assistant", "content": [use]}]
    for extension in ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline"):
        task = home / ".config/Code/User/globalStorage" / extension / "tasks/17"
        task.mkdir(parents=True)
        (task / "api_conversation_history.json").write_text(json.dumps(history))
        (task / "ui_messages.json").write_text("[]")
    told = json.loads(run("ingest", "--json").stdout)
    agents = {s["agent"] for s in json.loads(run("sessions", "list", "--json").stdout)}
    assert told["new"] == 7 and told["problems"] == []
    assert agents == {"claude-code", "codex", "gemini-cli", "qwen-code", "cline", "roo-code"}
    places = {p["agent"] for p in json.loads(run("doctor", "--json").stdout)["places"]}
    assert places == agents


def test_ingest_without_anything_says_what_to_do():
    assert "name a file or folder" in run("ingest", code=1).stderr


def test_sessions(transcript):
    assert "warmstart ingest" in run("sessions", "list").stdout
    run("ingest", transcript)
    assert "5e551011" in run("sessions", "list").stdout
    assert "5e551011" in run("sessions", "list", "--since", "2026-10-01").stdout
    assert "5e551011" not in run("sessions", "list", "--since", "2026-10-02").stdout
    told = json.loads(run("sessions", "show", "5e55", "--json").stdout)
    assert [c["outcome"] for c in told["tool_calls"]] == ["ok", "ok", "error"]
    assert told["tool_calls"][0]["arguments"] == {"command": "echo 0"}
    assert run("sessions", "show", "nonsense", code=1).stderr.startswith("Error: ")


def test_doctor(transcript):
    told = json.loads(run("doctor", "--json").stdout)
    assert told["healthy"]
    assert told["versions"]["apsw"]
    Path(os.environ["WARMSTART_HOME"], "warmstart.db").write_bytes(b"rubbish" * 1000)
    sick = json.loads(run("doctor", "--json", code=1).stdout)
    assert not sick["healthy"]
    assert "not a SQLite database" in sick["store"]["error"]


def test_doctor_prints_no_empty_table_heads():
    lines = run("doctor").stdout.splitlines()
    titles = [
        place
        for place, line in enumerate(lines)
        if line.strip() in ("versions", "agents", "store", "templates", "notes")
    ]
    assert len(titles) == 5
    assert "notes" in lines[titles[-1]] and "none" in "".join(lines[titles[-1] :])
    rules = [line for line in lines if line.strip() and not line.strip(" ─")]
    assert len(rules) == 1, "only the agents' table has a head"


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("doctor",),
        pytest.param(("doctor", "--json"), marks=pytest.mark.slow),
        pytest.param(("sessions", "list"), marks=pytest.mark.slow),
        pytest.param(("usage",), marks=pytest.mark.slow),
    ],
)
def test_a_reader_that_goes_away_is_no_error(transcript, words):
    """`warmstart ... | head -1` ends like other programs: silently, with 128 + SIGPIPE."""
    run("ingest", transcript)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "warmstart", *words],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(SRC)},
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no device is always full")
@pytest.mark.parametrize("words", [("--help",), ("sessions", "list"), ("sessions", "list", "--json")])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_output_to_a_full_disk_is_one_line_and_exit_1(words, unbuffered):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "warmstart", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(SRC), "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.returncode == 1
    assert re.fullmatch(rb"Error: cannot write: No space left on device; .*\n", done.stderr)


def test_usage_errors_exit_2(transcript):
    assert run("inspect", code=2).stderr
    assert run("nonsense", code=2).stderr
    Path(os.environ["WARMSTART_HOME"]).mkdir()
    Path(os.environ["WARMSTART_HOME"], "config.toml").write_text("stor = 1")
    assert "config.toml" in run("sessions", "list", code=2).stderr
    assert "Traceback" not in run("--store", "postgres://x", "sessions", "list", code=2).stderr


def test_hostile_text_cannot_drive_the_terminal(tmp_path):
    lines = claude_lines("s\x1b[31m-\x07‮x")
    lines[0]["message"]["content"] = "\x1b]0;owned\x07 task"
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    run("ingest", path)
    shown = run("inspect", path).stdout + run("sessions", "list").stdout + run("sessions", "show", "s").stdout
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f‮]", shown)


def test_every_command_has_help():
    for name in COMMANDS:
        assert len(run(name, "--help").stdout) > 80
    assert set(main.list_commands(None)) == set(COMMANDS)  # type: ignore[arg-type]


def test_settings_extend_the_tools(transcript):
    home = Path(os.environ["WARMSTART_HOME"])
    home.mkdir()
    (home / "config.toml").write_text('[tools]\nBash = "web_search"\n')
    assert json.loads(run("inspect", transcript, "--json").stdout)["category"] == "research"


def test_the_version_is_printed_without_loading_the_command_line() -> None:
    """The shortcut prints what the command line prints: `warmstart --version` took five bare interpreter starts."""
    code = "import sys; sys.argv[1:] = ['--version']; from warmstart.__main__ import main; main(); assert 'click' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": SRC})
    assert done.stdout == CliRunner().invoke(main, ["--version"]).output, done.stderr
    assert done.returncode == 0, done.stderr
