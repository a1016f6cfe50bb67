"""Denied by a hook or a rule is neither an error nor a rejection; a person's rejection keeps their words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import warmstart
from warmstart.ingest.read import inspect
from warmstart.judging.outcome import judge_result
from warmstart.judging.stops import add_words
from warmstart.model import Message, Outcome, Session, Signal, Step, ToolCall, ToolResult

BAD = Signal(failed=True)
SHELL = ToolCall("1", "Bash", {"command": "rm -r build"})
STOP = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string "
    "was NOT written to the file)."
)
WAIT = f"{STOP} STOP what you are doing and wait for the user to tell you how to proceed."


def outcomes_in(path: Path, text: str) -> list[Outcome]:
    path.write_text(text)
    (scored,) = inspect(path).sessions
    return [step.outcome for step in scored.session.steps if isinstance(step, ToolResult)]


DENIALS = [
    ("Claude Code's hook", "PreToolUse:Bash hook error: [guard.py]: use trash instead", BAD),
    ("Claude Code's rules", "Permission to use Bash with command rm -r build has been denied.", BAD),
    ("Claude Code's rules for files", "File is in a directory that is denied by your permission settings.", BAD),
    ("Claude Code, nobody to ask", "Claude requested permissions to use Bash, but you haven't granted it yet.", BAD),
    ("Claude Code, a path", "Claude requested permissions to read from /w/a b.yaml, but you haven't granted it yet.", BAD),
    ("Claude Code, no way to ask", "Permission for this tool use was denied. It requires approval, and this session has none", BAD),
    ("Claude Code, approval", "This command requires approval", BAD),
    (
        "Claude Code, a replaced call",
        "PreToolUse hook for Read returned updatedInput that the tool refused: File is in a directory that is denied by your permission settings.",
        BAD,
    ),
    ("Claude Code's rules, unflagged", "Permission to use Read has been denied. IMPORTANT: You *may* try other tools.", None),
    ("Codex' hook", "Command blocked by PreToolUse hook: use trash instead. Command: rm -r build", None),
    ("Codex' review", "This action was rejected due to unacceptable risk.\nReason: it deletes files", None),
    ("Gemini's policy", "Tool execution denied by policy.", BAD),
    ("Gemini's hook", "Tool execution blocked: use trash instead", BAD),
    ("Hermes' guard", json.dumps({"output": "", "exit_code": -1, "error": "use trash", "status": "blocked"}), None),
    ("Hermes' guard, no status", json.dumps({"error": "BLOCKED: rm -r is not allowed in this profile"}), None),
    ("Copilot's hook", "Denied by preToolUse hook: use trash instead", BAD),
    ("OpenCode's rules", "Error: The user has specified a rule which prevents you from using this specific tool call.", BAD),
    ("a loop's hook", "Tool call blocked by hook: use trash instead", None),
    ("Warmstart's guard", json.dumps({"error": "[warmstart] stopped: a person said no"}), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "signal"), [case[1:] for case in DENIALS], ids=[case[0] for case in DENIALS])
def test_a_hook_or_a_rule_denies(text: str, signal: Signal | None) -> None:
    outcome = judge_result(SHELL, text, signal)
    assert (outcome.status, outcome.counts, outcome.words) == ("denied", False, None)


@pytest.mark.parametrize(
    "text",
    [
        "Exit code 1\nrm: build: Permission denied",
        "Exit code 1\nhusky - pre-commit hook failed: Tool execution blocked: x",
        "Exit code 1\nremote: error: push blocked by hook",
    ],
)
def test_a_program_that_is_refused_has_failed(text: str) -> None:
    assert judge_result(SHELL, text, BAD).status == "error"


QUOTED = [
    ("Claude Code", f"{STOP} To tell you how to proceed, the user said:\nuse a switch, please", "use a switch, please"),
    (
        "Claude Code 1.0",
        f"{STOP} The user provided the following reason for the rejection:  not in main\n\nNote: The user's next message may "
        "contain a correction or preference.",
        "not in main",
    ),
    ("Claude Code, no words", WAIT, None),
    ("Claude Code, questions", f"{STOP} To tell you how to proceed, the user said:\nThe user wants to clarify these questions.", None),
    ("Codex", "exec command rejected by user", None),
    ("OpenCode", "The user rejected permission to use this specific tool call with the following feedback: use sed", "use sed"),
    ("Cline", "The user denied this operation and provided the following feedback:\n<feedback>\nwrong folder\n</feedback>",
     "wrong folder"),
    ("Hermes", json.dumps({"error": "BLOCKED: User denied this command. Reason: keep the build. Do NOT retry it."}),
     "keep the build."),
    ("Hermes, no words", json.dumps({"status": "blocked", "exit_code": -1, "output": "", "error": "User denied this command"}), None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), [case[1:] for case in QUOTED], ids=[case[0] for case in QUOTED])
def test_a_rejection_keeps_the_words_that_the_result_quotes(text: str, words: str | None) -> None:
    outcome = judge_result(SHELL, text, None if text.startswith("{") else BAD)
    assert (outcome.status, outcome.words) == ("rejected", words)


def test_claude_code_words_follow_an_interruption(tmp_path: Path) -> None:
    def line(kind: str, content: Any) -> str:
        return json.dumps(
            {"type": kind, "sessionId": "s", "uuid": str(content)[:9], "message": {"role": kind, "content": content}}
        )

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "rm -r build"}}
    lines = [
        line("user", "Clean up"),
        line("assistant", [call]),
        line("user", [{"type": "tool_result", "tool_use_id": "t1", "content": WAIT, "is_error": True}]),
        line("user", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
        line("assistant", [{"type": "text", "text": "No response requested."}]),
        line("user", "only the cache, not the build"),
    ]
    (outcome,) = outcomes_in(tmp_path / "s.jsonl", "\n".join(lines))
    assert (outcome.status, outcome.words) == ("rejected", "only the cache, not the build")


def test_codex_words_follow_a_rejection(tmp_path: Path) -> None:
    def line(kind: str, **payload: Any) -> str:
        return json.dumps({"timestamp": "2026-02-03T09:00:01.000Z", "type": kind, "payload": payload})

    lines = [
        line("session_meta", id="c", cwd="/w", originator="codex_cli_rs", cli_version="0.77.0"),
        line("event_msg", type="user_message", message="Clean up"),
        line(
            "response_item", type="function_call", name="shell", arguments='{"command": ["rm", "build"]}', call_id="a"
        ),
        line("response_item", type="function_call_output", call_id="a", output="exec command rejected by user"),
        line("event_msg", type="user_message", message="only the cache"),
    ]
    (outcome,) = outcomes_in(tmp_path / "rollout.jsonl", "\n".join(lines))
    assert (outcome.status, outcome.words) == ("rejected", "only the cache")


def test_gemini_words_follow_a_refusal(tmp_path: Path) -> None:
    response = {"error": "[Operation Cancelled] Reason: User did not allow tool call"}
    call = {
        "id": "sh-1",
        "name": "run_shell_command",
        "args": {"command": "rm build"},
        "result": [{"functionResponse": {"id": "sh-1", "name": "run_shell_command", "response": response}}],
        "status": "cancelled",
    }
    messages = [
        {"id": "1", "type": "user", "content": "Clean up"},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": [call]},
        {"id": "3", "type": "info", "content": "Request cancelled."},
        {"id": "4", "type": "user", "content": "only the cache"},
    ]
    session = {"sessionId": "g", "projectHash": "c0ffee", "startTime": "2026-03-01T07:00:00.000Z", "messages": messages}
    (outcome,) = outcomes_in(tmp_path / "session.json", json.dumps(session))
    assert (outcome.status, outcome.words) == ("rejected", "only the cache")


def test_openai_words_follow_a_rejection(tmp_path: Path) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "rm build"}'}}
    messages = [
        {"role": "user", "content": "Clean up"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "User rejected the tool call"},
        {"role": "user", "content": "only the cache"},
    ]
    (outcome,) = outcomes_in(tmp_path / "chat.json", json.dumps({"messages": messages}))
    assert (outcome.status, outcome.words) == ("rejected", "only the cache")


def rejected(*after: Step, text: str = WAIT, status: Any = "rejected") -> str | None:
    steps = (ToolCall("1", "Bash", {}), ToolResult("1", text, Outcome(status, "flag")), *after)
    session = add_words(Session("s", "f", "u", "a", steps))
    result = session.steps[1]
    assert isinstance(result, ToolResult)
    return result.outcome.words


def test_only_what_the_person_says_next_are_their_words() -> None:
    said = Message("user", "not here")
    assert rejected(said) == "not here"
    assert rejected(Message("user", "[Request interrupted by user for tool use]"), said) == "not here"
    assert rejected(Message("assistant", "I will try another way."), said) is None
    assert rejected(ToolCall("2", "Bash", {}), ToolResult("2", "done", Outcome("ok")), said) is None
    assert rejected(Message("user", "Implement the following plan:\n\n# Plan")) is None
    assert rejected(said, text="Sibling tool call errored", status="cancelled") is None
    assert rejected(said, text="[Request interrupted by user for tool use]", status="cancelled") == "not here"
    assert rejected() is None


def test_long_words_are_cut_at_a_word() -> None:
    words = rejected(Message("user", "please keep the build " * 40))
    assert words is not None
    assert len(words) <= 300
    assert words.endswith(("please...", "keep...", "the...", "build..."))


def test_stored_words_are_redacted(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "deploy"}}
    said = f"{STOP} To tell you how to proceed, the user said:\nuse ghp_abcdefghijklmnopqrstuvwxyz0123456789 for it"
    result = {"type": "tool_result", "tool_use_id": "t1", "content": said, "is_error": True}
    contents = [("user", "Deploy"), ("assistant", [call]), ("user", [result])]
    lines = [
        {"type": kind, "sessionId": "s", "uuid": "u", "message": {"role": kind, "content": c}} for kind, c in contents
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with warmstart.open(tmp_path / "home") as ws:
        ws.ingest(tmp_path / "s.jsonl")
        (stored,) = ws.session("s").calls
    assert stored.status == "rejected"
    assert stored.words is not None
    assert stored.words.startswith("use ")
    assert "ghp_" not in stored.words
