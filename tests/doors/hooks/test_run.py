"""Agents' hooks through the installed program: the documented JSON in, the protocol's JSON out, and nothing else ever."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from doors.hooks.events import (
    PROGRAM,
    PROJECT,
    PROMPT,
    SESSION,
    answer,
    answer_by_program,
    call,
    event,
    prompt,
    read_log,
    start,
    user_home,
    wait_for_quiet,
)
from template_files import example, template, write_bundle
from transcripts import claude_lines, write_jsonl
from warmstart.arms import assign, holdout_shares
from warmstart.dialects.compose import TEXT_HEADER
from warmstart.ingest.queue import Queue
from warmstart.model import Task
from warmstart.store import TrialStore


@pytest.fixture
def transcript() -> Path:
    return write_jsonl(user_home() / f".claude/projects/-home-dev-shop/{SESSION}.jsonl", claude_lines(SESSION))


class TestGiving:
    def test_the_start_gives_the_best_of_this_project(self, taught):
        given = answer(start())
        assert given is not None and given.startswith(TEXT_HEADER)
        assert "uv run pytest" in given or "helm upgrade" in given
        assert "terraform" not in given and "bar ship" not in given
        assert answer(start(cwd="/home/dev/unknown", session=str(uuid.uuid4()))) is None
        assert read_log() == ""

    def test_the_first_prompt_adds_what_fits_it(self, taught):
        opening = answer(start())
        added = answer(prompt("run the cart tests, then deploy the shop to the cluster"))
        assert opening is not None and added is not None
        assert "uv run pytest" in opening and "helm upgrade" in added
        assert (opening + added).count("uv run pytest") == 1, "nothing is shown twice"
        assert answer(prompt("deploy the shop to the cluster again")) is None, "only the first prompt"
        assert answer(prompt()) is None

    def test_one_trial_is_drawn_and_the_rest_belongs_to_it(self, taught):
        answer(start())
        answer(prompt())
        with warmstart.open() as ws:
            trials = TrialStore(ws.store)
            first, second = trials.trial(SESSION), trials.trial(f"{SESSION}#prompt")
        assert first is not None and second is not None
        assert (first.assignment, second.assignment, second.parent) == ("random", "inherited", SESSION)
        assert first.arm == second.arm == "warm"

    def test_what_was_added_counts_as_given(self, taught):
        """So that it is never mined back from the session, and its tokens are counted."""
        answer(start())
        answer(prompt())
        with warmstart.open() as ws:
            trials = TrialStore(ws.store)
            assert [t.session for t in trials.trials_of_session(SESSION, "-")] == [SESSION, f"{SESSION}#prompt"]
            assert trials.trials_of_session(SESSION[:-1], "-") == []
            parts = [json.loads(trials.seed(name, "text") or "")["tokens"] for name in (SESSION, f"{SESSION}#prompt")]
            assert trials.seed_tokens(SESSION) == sum(parts) and all(parts)

    def test_both_parts_come_again_byte_for_byte_after_a_compaction(self, taught):
        opening, added = answer(start()), answer(prompt())
        with warmstart.open() as ws:
            ws.templates.retire("deploying", reason="no more")
        assert answer(start(source="compact")) == f"{opening}\n\n{added}"
        assert answer(start(source="compact")) == f"{opening}\n\n{added}"

    def test_a_resumed_session_gets_the_opening_again_and_replays_the_rest_itself(self, taught):
        opening = answer(start())
        answer(prompt())
        assert answer(start(source="resume")) == opening
        assert answer(prompt("go on")) is None
        assert answer(start(source="clear")) == opening

    def test_a_cleared_session_is_a_new_one(self, taught):
        answer(start())
        assert answer(prompt())
        other = str(uuid.uuid4())
        assert answer(start(other, source="clear"))
        assert answer(prompt(session=other))

    def test_a_hook_installed_in_the_middle_works_from_the_next_prompt_on(self, taught):
        given = answer(prompt())
        assert given is not None and "helm upgrade" in given
        assert answer(prompt()) is None
        with warmstart.open() as ws:
            trial = TrialStore(ws.store).trial(SESSION)
        assert trial is not None and (trial.assignment, trial.picks) == ("random", "[]")
        assert answer(start(source="compact")) == given

    def test_a_fork_is_given_nothing_and_left_out(self, taught):
        assert answer(start(source="fork")) is None
        assert answer(prompt()) is None
        with warmstart.open() as ws:
            trial = TrialStore(ws.store).trial(SESSION)
        assert trial is not None and (trial.arm, trial.assignment) == ("cold", "choice")

    def test_subagents_are_left_alone(self, taught):
        assert answer(start(agent_id="a1", agent_type="Explore")) is None
        assert answer(prompt(agent_id="a1")) is None
        with warmstart.open() as ws:
            assert TrialStore(ws.store).trial(SESSION) is None
        assert answer(start(agent_type="reviewer")), "claude --agent is the main thread"

    def test_another_agents_examples_are_not_given(self, taught):
        assert answer(start(), agent="codex") is None

    def test_no_project_no_opening(self, taught):
        assert answer({"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}) is None
        assert read_log() == ""

    def test_a_store_that_is_not_there_yet_is_made_and_the_session_counted(self):
        assert answer(start()) is None
        assert answer(prompt()) is None
        with warmstart.open() as ws:
            assert TrialStore(ws.store).trial(SESSION) is not None
        assert read_log() == ""

    def test_budget_and_length_are_kept(self, tmp_path):
        long = [
            example("Bash", f"{word} --run", f"grind the {word}", result="line of text here\n" * 400)
            for word in ("coffee", "pepper", "cumin", "wheat", "barley", "salt", "sugar", "clove", "anise")
        ]
        own = {"project": PROJECT, "agent": "claude-code"}
        Path(os.environ["WARMSTART_HOME"]).mkdir()
        Path(os.environ["WARMSTART_HOME"], "config.toml").write_text("budget = 90000\nexamples = 9\n")
        with warmstart.open() as ws:
            ws.templates.import_(
                write_bundle(tmp_path / "t.json", template("long", *long, provenance=own)), approve=True
            )
        assert 0 < len(answer(start()) or "") < 10_000
        assert 0 < len(answer(prompt("grind the coffee, the pepper, the cumin and the wheat")) or "") < 10_000
        assert 0 < len((answer(start(source="compact")) or "").encode()) <= 10_000


class TestArms:
    def sessions(self, arm: str) -> str:
        shares = holdout_shares(0.5)
        return next(s for s in (str(uuid.uuid4()) for _ in range(200)) if assign(s, shares) == arm)

    def test_a_cold_session_gets_nothing_and_a_warm_one_does(self, taught, monkeypatch):
        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        warm, cold = self.sessions("warm"), self.sessions("cold")
        assert answer(start(warm)) and answer(prompt(session=warm))
        for said in (start(cold), prompt(session=cold), start(cold, source="compact"), start(cold, source="resume")):
            assert answer(said) is None
        with warmstart.open() as ws:
            trials = TrialStore(ws.store)
            arms = {name: trials.trial(name) for name in (warm, cold, f"{cold}#prompt")}
            assert [trial.arm for trial in arms.values() if trial] == ["warm", "cold", "cold"]
            assert trials.picks(arms[f"{cold}#prompt"]), "what it would have been shown is written down"

    def test_a_person_can_have_a_session_cold(self, taught):
        assert answer(start()) and answer(prompt())
        with warmstart.open() as ws:
            ws.provision(Task(session=SESSION, dialect="text", cold=True))
        assert answer(start(source="compact")) is None
        assert answer(start(source="resume")) is None

    @pytest.mark.parametrize("value", ["1", "yes"])
    def test_it_can_be_switched_off(self, taught, transcript, monkeypatch, value):
        monkeypatch.setenv("WARMSTART_OFF", value)
        for said in (start(), prompt(), event("Stop"), event("SessionEnd", reason="other")):
            assert answer(said) is None
        assert Queue(Path(os.environ["WARMSTART_HOME"])).count() == 0
        monkeypatch.setenv("WARMSTART_OFF", "0")
        assert answer(start())


class TestCodex:
    def said(self, name: str, **facts: Any) -> dict[str, Any]:
        """As its schemas have it."""
        common = {"session_id": SESSION, "transcript_path": None, "cwd": PROJECT, "model": "gpt-5.2-codex"}
        return common | {"hook_event_name": name, "permission_mode": "default"} | facts

    @pytest.fixture
    def taught(self, tmp_path: Path) -> None:
        own = {"project": PROJECT, "agent": "codex"}
        shell = template("shell", example("shell", "cargo test -q", PROMPT), provenance=own)
        other = template("other", example("shell", "cargo fmt --check", "format the code"), provenance=own)
        Path(os.environ["WARMSTART_HOME"]).mkdir()
        Path(os.environ["WARMSTART_HOME"], "config.toml").write_text("examples = 1\n")
        with warmstart.open() as ws:
            ws.templates.import_(write_bundle(tmp_path / "t.json", shell, other), approve=True)

    def test_start_and_prompt(self, taught):
        opening = answer(self.said("SessionStart", source="startup"), agent="codex")
        added = answer(self.said("UserPromptSubmit", turn_id="t1", prompt=PROMPT), agent="codex")
        assert opening is not None and "cargo" in opening
        both = "\n\n".join(part for part in (opening, added) if part)
        assert answer(self.said("SessionStart", source="resume"), agent="codex") is None, "its record has it"
        assert answer(self.said("SessionStart", source="compact"), agent="codex") == both

    def test_a_resumed_session_that_is_not_known_is_a_new_one(self, taught):
        assert answer(self.said("SessionStart", source="resume"), agent="codex")

    def test_its_transcripts_are_queued(self):
        path = user_home() / ".codex/sessions/2026/11/16/rollout-2026-11-16T10-00-00-x.jsonl"
        write_jsonl(path, [{"type": "session_meta", "payload": {"id": "x"}}])
        outside = write_jsonl(user_home() / ".claude/projects/p/a.jsonl", claude_lines())
        answer(self.said("Stop", transcript_path=str(path)), agent="codex")
        answer(self.said("Stop", transcript_path=str(outside)), agent="codex")
        answer(self.said("Stop"), agent="codex")
        assert [entry.transcript for entry in Queue(Path(os.environ["WARMSTART_HOME"])).take()] == [path]

    def test_a_subagents_own_transcript_is_queued(self):
        folder = user_home() / ".codex/sessions/2026/11/16"
        session, subagent = (folder / f"rollout-2026-11-16T10-00-0{n}-x{n}.jsonl" for n in range(2))
        for path in (session, subagent):
            write_jsonl(path, [{"type": "session_meta", "payload": {"id": path.stem}}])
        inside = {"agent_id": "x1", "transcript_path": str(session), "agent_transcript_path": str(subagent)}
        assert answer(self.said("SubagentStop", **inside), agent="codex") is None
        assert [entry.transcript for entry in Queue(Path(os.environ["WARMSTART_HOME"])).take()] == [subagent]


class TestQueueing:
    def queued(self) -> list[Path]:
        return [entry.transcript for entry in Queue(Path(os.environ["WARMSTART_HOME"])).take()]

    def test_a_stop_queues_the_transcript_once(self, transcript):
        for _ in range(3):
            assert answer(event("Stop", stop_hook_active=False, transcript_path=str(transcript))) is None
        assert answer(event("Stop")) is None, "the same, written with a ~"
        assert self.queued() == [transcript]
        assert not Path(os.environ["WARMSTART_HOME"], "warmstart.db").exists(), "a stop needs no store"

    def test_its_subagents_are_queued_with_it(self, transcript):
        beside = transcript.with_suffix("") / "subagents"
        write_jsonl(beside / "agent-1.jsonl", claude_lines(SESSION))
        answer(event("Stop"))
        assert sorted(self.queued()) == sorted([transcript, beside])

    def test_a_folder_of_its_own_counts_too(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        path = write_jsonl(tmp_path / "claude" / "projects" / "p" / "a.jsonl", claude_lines())
        answer(event("Stop", transcript_path=str(path)))
        assert self.queued() == [path]

    def test_nothing_else_is_queued(self, transcript, tmp_path):
        root = user_home() / ".claude/projects"
        secret = tmp_path / "secret.jsonl"
        secret.write_text("{}")
        (root / "link.jsonl").symlink_to(secret)
        (root / "folder.jsonl").mkdir()
        (root / "notes.txt").write_text("x")
        (user_home() / ".claude/history.jsonl").write_text("{}")
        os.mkfifo(root / "pipe.jsonl")
        for path in (
            *(secret, root / "link.jsonl", root / "folder.jsonl", root / "notes.txt", root / "pipe.jsonl"),
            *(
                user_home() / ".claude/history.jsonl",
                root / "../../../secret.jsonl",
                root / "missing.jsonl",
                "/etc/passwd",
            ),
            *("", "a\0b.jsonl", f"{root}/\0.jsonl", "/" + "x" * 5_000 + ".jsonl", "~nobody/x.jsonl", "relative.jsonl"),
        ):
            assert answer(event("Stop", transcript_path=str(path))) is None
        assert self.queued() == []
        assert read_log() == ""

    def test_links_to_transcripts_are_followed(self, transcript):
        link = user_home() / ".claude/projects/other.jsonl"
        link.symlink_to(transcript)
        answer(event("Stop", transcript_path=str(link)))
        assert self.queued() == [transcript]

    def test_ingest_without_a_path_takes_what_is_queued(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
        path = write_jsonl(tmp_path / "claude" / "projects" / "p" / "a.jsonl", claude_lines("s-queued"))
        answer(event("Stop", transcript_path=str(path)))
        monkeypatch.delenv("CLAUDE_CONFIG_DIR")
        with warmstart.open() as ws:
            assert ws.ingest().new == 1
            assert ws.session("s-queued").session.calls == 2
            assert ws.ingest().unchanged == 0, "it no longer waits"

    def test_what_is_in_its_usual_place_is_read_once(self, transcript):
        answer(event("Stop"))
        with warmstart.open() as ws:
            report = ws.ingest()
        assert (report.sessions, report.new) == (1, 1)


class TestTrouble:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        "said",
        [
            b"",
            b"{",
            b"null",
            b"[]",
            b"\xff\xfe{}",
            b'{"hook_event_name": "SessionStart", "session_id": "\xff"}',
            b'{"hook_event_name": 5}',
            b'{"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": {"a": 1}}',
            b'{"a":' * 100_000,
            b'{"hook_event_name": "SessionStart", "session_id": "' + b"x" * 50_000_000 + b'"}',
            b'{"hook_event_name": "Nonsense", "session_id": "s"}',
            b'{"hook_event_name": "SessionStart", "session_id": ""}',
            b'{"hook_event_name": "SessionStart", "session_id": "ghp_16C7e42F292c6912E7710c838347Ae178B4a"}',
        ],
        ids=lambda said: repr(said[:40]),
    )
    def test_broken_input_is_answered_with_silence(self, taught, said):
        assert call(said).stdout == b""
        assert len(read_log().splitlines()) == 1

    def test_a_huge_prompt_is_still_a_prompt(self, taught):
        assert answer_by_program(prompt(PROMPT + "\n" + "log line\n" * 500_000))

    def test_odd_text_is_carried(self, taught):
        assert call(json.dumps(prompt(PROMPT + " \ud800 \x00 \u202e")).encode("utf-8", "surrogatepass"))
        assert answer_by_program(prompt(PROMPT + " \u0000 \u202e ümläut 🚀", session=str(uuid.uuid4())))

    def test_a_damaged_store(self, taught):
        Path(os.environ["WARMSTART_HOME"], "warmstart.db").write_bytes(b"rubbish" * 1_000)
        assert answer_by_program(start()) is None and answer_by_program(prompt()) is None
        assert "StoreError" in read_log() and "not a SQLite database" in read_log()

    @pytest.mark.slow
    def test_a_busy_store_does_not_hold_the_user(self, taught):
        busy = apsw.Connection(str(Path(os.environ["WARMSTART_HOME"], "warmstart.db")))
        busy.execute("BEGIN IMMEDIATE")
        began = time.monotonic()
        assert answer_by_program(start()) is None
        assert time.monotonic() - began < 20
        busy.close()
        assert "busy" in read_log() or "gave up" in read_log()
        assert answer_by_program(start())

    @pytest.mark.slow
    def test_an_input_that_never_ends_is_given_up(self, taught):
        began = time.monotonic()
        waiting = subprocess.Popen(
            [PROGRAM, "hook", "run", "claude-code"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert waiting.wait(timeout=60) == 0
        assert time.monotonic() - began < 40
        assert waiting.stdin is not None and waiting.stdout is not None
        assert waiting.stdout.read() == b""
        waiting.stdin.close()
        waiting.stdout.close()
        assert "gave up after 3 seconds" in read_log()

    @pytest.mark.slow
    def test_a_full_disk(self, taught, transcript):
        def fill() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

        for said in (start(), prompt(), event("Stop")):
            assert answer_by_program(said, preexec_fn=fill) is None
        assert read_log() == ""
        assert answer_by_program(start())

    def test_a_home_that_is_none(self, monkeypatch, tmp_path, transcript):
        file = tmp_path / "file"
        file.write_text("mine")
        monkeypatch.setenv("WARMSTART_HOME", str(file))
        for said in (start(), prompt(), event("Stop")):
            assert answer_by_program(said) is None
        assert file.read_text() == "mine"

    def test_wrong_settings_of_ours(self, taught):
        Path(os.environ["WARMSTART_HOME"], "config.toml").write_text("stor = 1")
        assert answer_by_program(start()) is None
        assert "config.toml" in read_log()

    @pytest.mark.parametrize("words", [[], ["nonsense"], ["claude-code", "--home"], ["claude-code", "--bad", "x", "y"]])
    def test_wrong_words(self, words):
        done = subprocess.run([PROGRAM, "hook", "run", *words], input=b"{}", capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")

    def test_through_the_command_line_it_is_the_same(self, taught):
        done = subprocess.run(
            [PROGRAM, "--home", os.environ["WARMSTART_HOME"], "hook", "run", "claude-code"],
            input=json.dumps(start()).encode(),
            capture_output=True,
            check=False,
        )
        assert done.returncode == 0 and b"additionalContext" in done.stdout

    def test_another_home_can_be_named(self, taught, monkeypatch, tmp_path):
        own = os.environ["WARMSTART_HOME"]
        monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "empty"))
        done = call(json.dumps(start()).encode(), "--home", own)
        assert b"additionalContext" in done.stdout

    @pytest.mark.slow
    def test_the_log_tells_no_secrets_and_stays_small(self, taught):
        token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
        for said in ({"prompt": [token]}, {"session_id": token}, {"hook_event_name": token}, {"cwd": [token]}):
            call(json.dumps(prompt(f"use {token}") | said).encode())
        assert "16C7e42F" not in read_log() and "deploy" not in read_log()
        file = Path(os.environ["WARMSTART_HOME"], "hooks.log")
        file.write_text("x" * 100_000)
        call(b"{")
        assert len(read_log()) < 1_000
        assert file.with_suffix(".log.1").stat().st_size == 100_000

    @pytest.mark.slow
    def test_the_working_folder_is_no_place_to_import_from(self, taught, transcript, tmp_path):
        folder = tmp_path / "hostile"
        folder.mkdir()
        for name in ("warmstart", "msgspec", "apsw", "re2", "zstandard", "json"):
            (folder / f"{name}.py").write_text(f"open({str(tmp_path / 'owned')!r}, 'w')")
        assert answer_by_program(start(), cwd=folder)
        answer_by_program(event("Stop"), cwd=folder)
        answer_by_program(event("SessionEnd", reason="other"), cwd=folder)
        wait_for_quiet()
        assert not (tmp_path / "owned").exists()
