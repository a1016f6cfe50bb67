"""Reviews from the command line and Claude Code's hook, and their settings."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import warmstart
from review.conversations import NOTE, conversation, open_warmstart, write_transcript
from review.endpoint import Endpoint, call
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.doors.cli.main import main
from warmstart.doors.hooks import catch_up
from warmstart.errors import ConfigError
from warmstart.ingest.queue import Queue
from warmstart.review import Schedule


def run(*words: str, code: int = 0) -> list[dict[str, Any]]:
    done = CliRunner().invoke(main, [*words, "--json"])
    assert done.exit_code == code, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def configure(**review: Any) -> None:
    home = Path(os.environ["WARMSTART_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "config.toml").write_text("[review]\n" + "".join(f"{k} = {json.dumps(v)}\n" for k, v in review.items()))


def failing_session(session: str) -> list[dict[str, Any]]:
    """A Claude Code session in which a command fails twice and then works in another form."""
    lines = claude_lines(session, calls=3)
    for n, (command, text, failed) in enumerate(
        (
            ("python -m pytest", "bash: python: command not found", True),
            ("python -m pytest", "bash: python: command not found", True),
            ("python3 -m pytest", "3 passed in 0.1s", False),
        )
    ):
        lines[1 + 2 * n]["message"]["content"][0]["input"]["command"] = command
        answer = lines[2 + 2 * n]["message"]["content"][0]
        answer["content"], answer["is_error"] = (f"Exit code 127\n{text}" if failed else text), failed
    return lines


def test_review_of_a_path_and_what_comes_after(tmp_path: Path) -> None:
    path = write_transcript(tmp_path / "s.json", conversation())
    (done,) = run("review", str(path))
    origins = [row["write_origin"] for row in done["proposals"]]
    assert origins == ["review:corrected_call", "review:new_template"]
    assert all(row["steps"] for row in done["proposals"]) and done["ended"] == "no model"
    assert done["line"].startswith("Self-improvement review: Memory note proposed")
    assert run("review", str(path))[0]["ended"] == "nothing new"
    listed = run("review", "list")
    assert [row["id"] for row in listed] == [row["id"] for row in done["proposals"]]
    (shown,) = run("review", "show", listed[0]["id"][:12])
    assert shown["platform"] == "openai-chat" and shown["execution_context"] == "command"
    assert run("review", "apply", listed[0]["id"])[0]["status"] == "applied"
    assert run("review", "discard", listed[1]["id"], "--reason", "no")[0]["reason"] == "no"
    assert run("review", "list") == [] and len(run("review", "list", "--status", "all")) == 2
    run("review", "apply", listed[1]["id"], code=1)
    run("review", "no-such-session", code=1)


def test_people_read_tables(tmp_path: Path) -> None:
    path = write_transcript(tmp_path / "s.json", conversation())
    first = CliRunner().invoke(main, ["review", str(path)])
    assert "memory add" in first.output and "3, 4, 5, 6" in first.output
    shown = CliRunner().invoke(main, ["review", "show", run("review", "list")[0]["id"]])
    assert "write_origin:" in shown.output and "python3" in shown.output
    assert "nothing new" in CliRunner().invoke(main, ["review", str(path)]).output


def test_only_what_is_new_since_the_last_review(tmp_path: Path) -> None:
    lines = failing_session("s-grows")
    path = write_jsonl(tmp_path / "s-grows.jsonl", lines[:5])
    (first,) = run("review", str(path))
    assert [row["write_origin"] for row in first["proposals"]] == ["review:repeated_error", "review:project_note"]
    write_jsonl(path, lines)
    (second,) = run("review", str(path))
    assert [row["write_origin"] for row in second["proposals"] if row["kind"] == "memory"] == ["review:corrected_call"]


def test_an_error_of_earlier_sessions_counts(tmp_path: Path) -> None:
    once = failing_session("s-a")[:3]
    with warmstart.open() as ws:
        ws.ingest(write_jsonl(tmp_path / "a.jsonl", once))
    (done,) = run("review", str(write_jsonl(tmp_path / "b.jsonl", failing_session("s-b")[:3])))
    assert "2 times in 2 sessions" in done["proposals"][0]["summary"]


def test_a_remembered_session_without_its_transcript(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "s.jsonl", failing_session("s-gone"))
    with warmstart.open() as ws:
        ws.ingest(path)
    assert run("review", "s-gone")[0]["proposals"]
    path.unlink()
    with warmstart.open() as ws, ws.store.writing():
        ws.store._db.execute("DELETE FROM reviews; DELETE FROM proposals")
    assert {row["kind"] for row in run("review", "s-gone")[0]["proposals"]} >= {"memory"}


def test_a_configured_model_sees_a_redacted_transcript(
    tmp_path: Path, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVIEW_KEY", "sk-review-key-123")
    monkeypatch.setenv("SHOP_PASSWORD", "correct-horse-battery")
    configure(url=endpoint.url, model="small", key_env="REVIEW_KEY", apply=["memory"])
    messages = conversation()
    messages[1]["content"] += " The password is correct-horse-battery."
    endpoint.answer(call("memory", action="add", target="user", content=NOTE, steps=[10]))
    (done,) = run("review", str(write_transcript(tmp_path / "s.json", messages)))
    assert "User profile updated" in done["line"] and done["steps"] == 2 and done["tokens"] == 220
    assert b"correct-horse" not in b"".join(endpoint.raw)
    assert endpoint.headers[0]["Authorization"] == "Bearer sk-review-key-123"
    assert [tool["function"]["name"] for tool in endpoint.bodies[0]["tools"]] == [
        "memory",
        "skill_manage",
        "template_propose",
    ]
    asked = len(endpoint.raw)
    run(
        "review",
        str(write_transcript(tmp_path / "t.json", [*messages, {"role": "user", "content": "and"}])),
        "--no-model",
    )
    assert len(endpoint.raw) == asked


@pytest.mark.parametrize("focus", ["memory", "skills", "both"])
def test_three_prompts(focus: str, tmp_path: Path, endpoint: Endpoint) -> None:
    configure(url=endpoint.url, model="small")
    run("review", str(write_transcript(tmp_path / "s.json", conversation())), "--focus", focus)
    question = endpoint.bodies[0]["messages"][-1]["content"].split("Rules:")[0]
    assert ("with `memory`" in question, "with `skill_manage`" in question) == (focus != "skills", focus != "memory")


def test_when_a_review_is_due() -> None:
    schedule = Schedule(config.ReviewSettings(every_turns=2, every_calls=3))
    assert schedule.take() is None
    schedule.count_turn()
    schedule.count_calls(2)
    assert schedule.take() is None
    schedule.count_turn()
    assert schedule.take() == "memory" and schedule.take() is None
    schedule.count_calls()
    assert schedule.take() == "skills"
    schedule.count_turn()
    schedule.count_turn()
    schedule.count_calls(3)
    assert schedule.take() == "both" and schedule.take() is None
    never = Schedule(config.ReviewSettings(every_turns=0, every_calls=0))
    never.count_turn()
    assert never.take() is None


@pytest.mark.parametrize("wanted", [False, True])
def test_claude_codes_hook_reviews_only_when_switched_on(wanted: bool, endpoint: Endpoint) -> None:
    configure(url=endpoint.url, model="small", claude_code=wanted)
    settings = config.load()
    path = settings.user_home / ".claude" / "projects" / "p" / "s-hook.jsonl"
    Queue(settings.home).add(write_jsonl(path, failing_session("s-hook")))
    catch_up.catch_up(settings)
    with open_warmstart() as ws:
        assert ws.sessions()
        rows = ws.reviews.list()
    assert bool(rows) == bool(endpoint.raw) == wanted
    assert all(row.execution_context == "session_end" and row.platform == "claude-code" for row in rows)


@pytest.mark.slow
def test_a_dead_endpoint_leaves_one_line_in_the_hooks_log() -> None:
    configure(url="http://127.0.0.1:1/v1", model="small", claude_code=True)
    settings = config.load()
    path = settings.user_home / ".claude" / "projects" / "p" / "s-hook.jsonl"
    Queue(settings.home).add(write_jsonl(path, failing_session("s-hook")))
    catch_up.catch_up(settings)
    (line,) = (settings.home / "hooks.log").read_text().splitlines()
    assert "cannot be reached" in line
    with open_warmstart() as ws:
        assert ws.reviews.list()


def test_wrong_settings_are_reported() -> None:
    for wrong in ({"steps": 17}, {"apply": ["everything"]}, {"unknown": 1}, {"budget": -1}):
        configure(**wrong)
        with pytest.raises(ConfigError):
            config.load()
