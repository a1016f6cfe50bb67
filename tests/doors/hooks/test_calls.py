"""Hooks at tool calls: the protocol's answers, once a session, without a store, and silence on any trouble."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from doors.hooks.events import PROGRAM, SESSION, answer, call, event, read_log, start
from notes.making import make_note, write_notes
from warmstart.arms import STANDING, assign, holdout_shares
from warmstart.doors.hooks.calls import CallHook
from warmstart.judging.stops import stopped_by
from warmstart.notes.index_files import write_folders, write_index
from warmstart.notes.session_state import SessionFile, find_state, hash_text
from warmstart.notes.showings import read_showings, sweep_states
from warmstart.notes.withholding import draw_number
from warmstart.store import TrialStore

NOTE = make_note(fix=".golangci.yaml", text="`.golangci.yml` is not here; `.golangci.yaml` is")
TEXT = "[warmstart] `.golangci.yml` is not here; `.golangci.yaml` is (7 sessions)"
FAILURE = "Exit code 1\ncat: .golangci.yml: No such file or directory"


def home() -> Path:
    return Path(os.environ["WARMSTART_HOME"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with a note about a path that is missing, and its fix."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / ".golangci.yaml").write_text("linters: {}\n")
    (folder / "main.go").write_text("package main\n")
    write_notes(home(), NOTE, folder=folder)
    return folder


def open_session(session: str = SESSION, *, advises: bool = True) -> None:
    """Do what the start of a session does for its calls."""
    with SessionFile(str(home()), session) as state:
        state.start(advises=advises, knows_files=True)


def choose(text: str) -> None:
    (home() / "config.toml").write_text(f"[advice]\n{text}\n")


def at_call(
    project: Path, name: str = "PreToolUse", tool: str = "Bash", session: str = SESSION, **more: Any
) -> dict[str, Any]:
    """Return an event at a tool call as Claude Code's documentation shows it."""
    facts = {
        key: more.pop(key)
        for key in ("error", "tool_response", "permission_mode", "agent_id", "is_interrupt", "tool_use_id")
        if key in more
    }
    return event(
        name, session, cwd=str(project), tool_name=tool, tool_input=more, **({"tool_use_id": str(uuid.uuid4())} | facts)
    )


def ask(said: dict[str, Any], agent: str = "claude-code") -> dict[str, Any] | None:
    """Answer an event in this process."""
    text = CallHook(str(home()), agent).answer(said)
    if text is None:
        return None
    output = json.loads(text)
    assert list(output) == ["hookSpecificOutput"]
    assert output["hookSpecificOutput"].pop("hookEventName") == said["hook_event_name"]
    return dict(output["hookSpecificOutput"])


HEAVY = {"re", "json", "msgspec", "pathlib", "typing", "sqlite3", "apsw", "click", "rich", "threading", "subprocess"}


def run_and_list_modules(said: bytes) -> tuple[bool, set[str]]:
    """Return whether the program answers an event, and the modules that it has loaded when it ends."""
    code = (
        "import os, sys\n"
        "def leave(code): print(*sys.modules, file=sys.stderr, flush=True); sys.exit(code)\n"
        "os._exit = leave; sys.argv[1:] = ['hook', 'run', 'claude-code']\n"
        "from warmstart.__main__ import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], input=said, capture_output=True, check=True)
    return bool(done.stdout), set(done.stderr.decode().split())


class TestAnswers:
    def test_a_note_is_told_with_the_result_once(self, project):
        open_session()
        assert ask(at_call(project, command="cat .golangci.yml")) == {"additionalContext": TEXT}
        assert ask(at_call(project, command="cat .golangci.yml")) is None
        assert ask(at_call(project, command="ls")) is None
        assert [(shown.note, shown.session, shown.how) for shown in read_showings(home())] == [
            (NOTE.id, SESSION, "tell")
        ]

    def test_a_call_is_corrected_where_the_user_chose_it(self, project):
        open_session()
        choose('path = "correct"')
        given = ask(at_call(project, command="cat .golangci.yml", description="look"))
        assert given == {
            "permissionDecision": "allow",
            "updatedInput": {"command": "cat .golangci.yaml", "description": "look"},
            "additionalContext": TEXT.replace("] ", "] corrected the call: ", 1),
        }
        assert [shown.how for shown in read_showings(home())] == ["correct"]

    def test_a_call_is_stopped_once_where_the_user_chose_it(self, project):
        open_session()
        choose('level = "stop"')
        given = ask(at_call(project, "PreToolUse", "Read", file_path=str(project / ".golangci.yml")))
        assert given is not None and given["permissionDecision"] == "deny" and len(given) == 2
        assert stopped_by(given["permissionDecisionReason"]) == "denied"
        assert ask(at_call(project, "PreToolUse", "Read", file_path=str(project / ".golangci.yml"))) is None
        assert [shown.how for shown in read_showings(home())] == ["stop"]

    def test_a_level_counts_from_the_moment_it_is_chosen(self, project):
        choose('path = "off"')
        open_session()
        assert ask(at_call(project, command="cat .golangci.yml")) is None
        choose('path = "tell" # again')
        assert ask(at_call(project, command="cat .golangci.yml")) == {"additionalContext": TEXT}

    def test_allow_never_goes_without_a_corrected_call_that_reads(self, project):
        """Else our hook would answer a question that the agent asks a person."""
        open_session()
        choose('level = "correct"')
        for command in (
            "rm .golangci.yml",
            "cat .golangci.yml > x",
            "./run .golangci.yml",
            "npm install .golangci.yml",
        ):
            given = ask(at_call(project, session=command, command=command))
            assert given is None or set(given) == {"additionalContext"}

    def test_tests_are_corrected_only_where_the_agent_asks_nobody(self, project, monkeypatch):
        (project / "bin").mkdir()
        (project / "bin" / "python3").write_text("")
        (project / "bin" / "python3").chmod(0o755)
        monkeypatch.setenv("PATH", str(project / "bin"))
        write_notes(
            home(), make_note("environment", "python", trigger="run:python", fix="python3 -m pytest"), folder=project
        )
        choose('environment = "correct"')
        for session, mode, keys in (
            ("a", "default", {"additionalContext"}),
            ("b", "bypassPermissions", {"permissionDecision", "updatedInput", "additionalContext"}),
        ):
            open_session(session)
            given = ask(at_call(project, session=session, command="python -m pytest", permission_mode=mode))
            assert given is not None and set(given) == keys

    def test_what_the_disk_contradicts_is_not_shown_and_is_counted(self, project):
        open_session()
        (project / ".golangci.yml").write_text("")
        for _ in range(3):
            assert ask(at_call(project, command="cat .golangci.yml")) is None
        assert [(shown.note, shown.how) for shown in read_showings(home())] == [(NOTE.id, "wrong")]

    def test_after_a_failure_the_fix_is_told(self, project):
        open_session()
        said = at_call(project, "PostToolUseFailure", command="cat .golangci.yml", error=FAILURE)
        assert ask(said) == {"additionalContext": TEXT}
        assert ask(said) is None
        assert ask(said | {"session_id": "other", "is_interrupt": True}) is None
        assert [shown.how for shown in read_showings(home())] == ["after"]

    def test_a_failure_that_no_note_can_answer_costs_no_judge(self, project):
        write_notes(home(), make_note(), folder=project)
        open_session()
        said = json.dumps(at_call(project, "PostToolUseFailure", command="cat .golangci.yml", error=FAILURE)).encode()
        answered, loaded = run_and_list_modules(said)
        assert not answered and not loaded & HEAVY
        write_notes(home(), NOTE, folder=project)
        answered, loaded = run_and_list_modules(said)
        assert answered and "msgspec" in loaded

    def test_what_was_told_before_a_call_is_not_told_after_it_again(self, project):
        open_session()
        before = at_call(project, command="cat .golangci.yml", tool_use_id="toolu_1")
        assert ask(before)
        assert ask(before | {"hook_event_name": "PostToolUseFailure", "error": FAILURE}) is None

    def test_codex_reports_failures_as_results(self, project):
        open_session()
        said = at_call(
            project,
            "PostToolUse",
            command="cat .golangci.yml",
            tool_response="cat: .golangci.yml: No such file or directory",
        )
        assert ask(said, "codex") == {"additionalContext": TEXT}
        fine = at_call(project, "PostToolUse", session="b", command="cat README", tool_response="all is well")
        assert ask(fine, "codex") is None and read_log() == ""

    def test_an_edit_without_a_read_is_told_and_a_subagent_reads_for_itself(self, project):
        rule = make_note("tool", "x", trigger="fresh:Edit", agent="claude-code", text="Edit needs a Read first")
        write_notes(home(), rule, folder=project)
        open_session()
        edit = {"tool": "Edit", "file_path": str(project / "main.go"), "old_string": "a", "new_string": "b"}
        assert (
            ask(
                at_call(
                    project, "PostToolUse", "Read", file_path=str(project / "main.go"), tool_response={"type": "text"}
                )
            )
            is None
        )
        assert ask(at_call(project, **edit)) is None
        assert ask(at_call(project, agent_id="a1", **edit)) is not None
        assert answer(start(source="compact")) is None
        assert ask(at_call(project, **edit)) is not None, "after a compaction it must be read again"


class TestArms:
    def test_a_cold_session_gets_nothing(self, project, monkeypatch):
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        shares = holdout_shares(0.5)
        names = [str(uuid.uuid4()) for _ in range(40)]
        cold = next(name for name in names if assign(name, shares) == "cold")
        fact = hash_text("path:.golangci.yml")
        warm = next(
            name
            for name in names
            if assign(name, shares) == "warm" and draw_number("warmstart withheld", name, fact) >= STANDING
        )
        for name, gets in ((cold, False), (warm, True)):
            assert answer(start(name, cwd=str(project))) is None
            assert (ask(at_call(project, session=name, command="cat .golangci.yml")) is not None) == gets
            assert (
                ask(at_call(project, "PostToolUseFailure", session=name, command="cat .golangci.yml", error=FAILURE))
                is not None
            ) == gets
        assert {shown.session for shown in read_showings(home())} == {warm}

    def test_a_session_that_is_met_in_the_middle_is_drawn_then(self, project):
        assert ask(at_call(project, command="ls")) is None
        assert not (home() / "warmstart.db").exists(), "a call without a match touches no store"
        assert ask(at_call(project, command="cat .golangci.yml"))
        with warmstart.open() as ws:
            trial = TrialStore(ws.store).trial(SESSION)
        assert trial is not None and trial.assignment == "random"

    def test_it_can_be_switched_off(self, project, monkeypatch):
        open_session()
        monkeypatch.setenv("WARMSTART_OFF", "1")
        assert call(json.dumps(at_call(project, command="cat .golangci.yml")).encode()).stdout == b""

    def test_the_state_of_old_sessions_is_deleted(self, project):
        open_session("old")
        os.utime(find_state(str(home()), "old"), (1, 1))
        open_session("new")
        assert sweep_states(home(), 10_000_000.0) == 1


def test_learning_takes_up_what_was_shown(project):
    with warmstart.open() as ws:
        (note,) = ws.notes.import_([NOTE], "a test")
        ws.notes.approve(note.id)
        write_notes(home(), ws.notes.show(note.id).note, folder=project)
        for session in ("told", "contradicted"):
            open_session(session)
        assert ask(at_call(project, session="told", command="cat .golangci.yml"))
        (project / ".golangci.yml").write_text("")
        assert ask(at_call(project, session="contradicted", command="cat .golangci.yml")) is None
        ws.notes.learn(project="another")
        assert ws.notes.show(note.id).sessions == ("told",)
    assert read_showings(home()) == []


class TestPlaces:
    def test_a_fresh_clone_gets_the_notes_of_its_repository(self, project, tmp_path):
        """Its remote says which project it is; `learn` has never seen this folder."""
        clone = tmp_path / "elsewhere" / "shop"
        (clone / ".git").mkdir(parents=True)
        (clone / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
        (clone / ".git" / "config").write_text('[remote "origin"]\n\turl = https://github.com/acme/shop.git\n')
        (clone / ".golangci.yaml").write_text("")
        (clone / "sub").mkdir()
        index = write_index(home(), "github.com/acme/shop", [NOTE], roots=(str(project),))
        write_folders(home(), {str(project): index})
        said = at_call(clone / "sub", "PreToolUse", "Read", file_path=str(clone / ".golangci.yml"))
        assert ask(said) is None
        answer(start(cwd=str(clone / "sub")))
        assert ask(said) == {"additionalContext": TEXT}


class TestTheProgram:
    def test_it_answers_as_in_this_process(self, project):
        open_session()
        said = json.dumps(at_call(project, command="cat .golangci.yml")).encode()
        given = json.loads(call(said).stdout)["hookSpecificOutput"]
        assert given == {"hookEventName": "PreToolUse", "additionalContext": TEXT}
        assert call(said).stdout == b""
        assert read_log() == ""

    @pytest.mark.parametrize("command", ["ls -la", "cat .golangci.yml"])
    def test_it_loads_nothing_heavy(self, project, command):
        open_session()
        answered, loaded = run_and_list_modules(json.dumps(at_call(project, command=command)).encode())
        assert answered == (command != "ls -la")
        assert not loaded & HEAVY

    def test_a_store_locked_by_another_process_is_not_even_noticed(self, project):
        open_session()
        connection = apsw.Connection(str(home() / "warmstart.db"))
        connection.execute("create table x(y); begin exclusive")
        assert call(json.dumps(at_call(project, command="cat .golangci.yml")).encode()).stdout
        said = at_call(project, session=str(uuid.uuid4()), command="cat .golangci.yml")
        assert call(json.dumps(said).encode()).stdout == b"", (
            "a session that has to be drawn first gets nothing, in time"
        )
        connection.close()

    def test_of_parallel_calls_one_is_stopped(self, project):
        open_session()
        choose('path = "stop"')
        said = json.dumps(at_call(project, command="cat .golangci.yml")).encode()
        hooks = []
        for _ in range(4):
            hook = subprocess.Popen(
                [PROGRAM, "hook", "run", "claude-code"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert hook.stdin is not None
            hook.stdin.write(said)
            hook.stdin.close()
            hooks.append(hook)
        answers = []
        for hook in hooks:
            assert hook.stdout is not None
            answers.append(hook.stdout.read())
            hook.stdout.close()
            assert hook.wait() == 0
        assert sum(bool(given) for given in answers) == 1

    @pytest.mark.parametrize(
        "damage",
        [
            lambda folder: [path.write_bytes(path.read_bytes()[:-5]) for path in folder.glob("*.index")],
            lambda folder: [
                path.write_bytes(path.read_bytes().replace(b'_notes": 1', b'_notes": 7'))
                for path in folder.glob("*.index")
            ],
            lambda folder: [path.unlink() for path in folder.glob("*.index")],
            lambda folder: (folder / "folders").write_bytes(b"\xff\x00" * 50),
            lambda folder: [(path.unlink(), path.mkdir()) for path in folder.glob("*.index")],
        ],
    )
    def test_a_damaged_index_gives_nothing_until_it_is_written_again(self, project, damage):
        open_session()
        damage(home() / "notes")
        said = json.dumps(at_call(project, command="cat .golangci.yml")).encode()
        assert call(said).stdout == b""
        assert read_log() == ""
        for path in (home() / "notes").glob("*.index"):
            if path.is_dir():
                path.rmdir()
        write_notes(home(), NOTE, folder=project)
        assert call(said).stdout

    @pytest.mark.parametrize(
        "change",
        [
            {"tool_input": None},
            {"tool_input": [1]},
            {"tool_name": 7},
            {"session_id": ""},
            {"session_id": "x" * 5_000},
            {"session_id": {"a": 1}},
            {"cwd": None},
            {"cwd": "relative"},
            {"cwd": "/\x00"},
            {"tool_input": {"command": "cat 'unclosed .golangci"}},
            {"tool_input": {"command": "x" * 3_000_000}},
            {"tool_input": {"command": ["cat", None]}},
            {"tool_input": {"file_path": "a\nb\x1b[2J", "\ud800": "\ud800"}},
        ],
    )
    def test_odd_events_are_answered_with_silence(self, project, change):
        open_session()
        assert call(json.dumps(at_call(project, command="cat x") | change).encode()).stdout == b""
        assert read_log() == ""

    def test_a_fault_of_ours_is_logged_and_the_call_goes_on(self, project):
        open_session()
        choose('path = "nonsense"')
        assert call(json.dumps(at_call(project, command="cat .golangci.yml")).encode()).stdout == b""
        assert "ConfigError" in read_log()

    def test_a_home_that_cannot_be_written_gives_nothing(self, project):
        (home() / "notes" / "sessions").write_text("not a folder")
        assert call(json.dumps(at_call(project, command="cat .golangci.yml")).encode()).stdout == b""
