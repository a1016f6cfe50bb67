"""Agents with words of their own: a note that cannot come before a call comes with its result."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from warmstart.doors.hooks import protocols
from warmstart.doors.hooks.calls import CallHook
from warmstart.notes.session_state import SessionFile

SESSION = "session-1"


def make_event(name: str, **fields: Any) -> dict[str, Any]:
    return {"hook_event_name": name, "session_id": SESSION, "tool_name": "read", "tool_input": {"path": "a"}} | fields


@pytest.fixture
def hook(monkeypatch, tmp_path) -> CallHook:
    """Return the hook of an agent whose answers are only a text."""
    words = SimpleNamespace(
        DELIVERS_LATE=True,
        translate=lambda event: event,
        encode=lambda output, event: {"text": output["additionalContext"], "input": output.get("updatedInput")},
    )
    monkeypatch.setattr(protocols, "AGENTS", ("acme",))
    monkeypatch.setitem(sys.modules, f"{protocols.__name__}.acme", words)
    return CallHook(str(tmp_path), "acme")


def test_a_note_is_given_once_with_the_result_of_its_call(hook):
    note = {"hookEventName": "PreToolUse", "additionalContext": 'line one\nline "two" \u00fc'}
    assert hook._deliver_late(make_event("PreToolUse"), note) is None
    other = make_event("PostToolUse", tool_input={"path": "b"})
    assert hook._deliver_late(other, None) is None
    after = hook._deliver_late(make_event("PostToolUse"), None)
    assert after == {"hookEventName": "PostToolUse", "additionalContext": 'line one\nline "two" \u00fc'}
    assert hook._deliver_late(make_event("PostToolUse"), None) is None


def test_it_comes_before_what_a_failure_adds(hook):
    hook._deliver_late(make_event("PreToolUse"), {"hookEventName": "PreToolUse", "additionalContext": "note"})
    fix = {"hookEventName": "PostToolUseFailure", "additionalContext": "fix"}
    assert hook._deliver_late(make_event("PostToolUseFailure"), fix)["additionalContext"] == "note\nfix"


@pytest.mark.parametrize("reported", [{"path": "a"}, {"path": "A"}])
def test_a_correction_goes_before_the_call_and_its_note_with_the_result(hook, reported):
    output = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"path": "A"},
        "additionalContext": "corrected",
    }
    assert hook._deliver_late(make_event("PreToolUse"), output) == output
    after = hook._deliver_late(make_event("PostToolUse", tool_input=reported), None)
    assert after["additionalContext"] == "corrected"


def test_a_kept_note_survives_hostile_text_in_the_file(hook, tmp_path):
    with SessionFile(str(tmp_path), SESSION) as state:
        state.keep("call", "a\tb\nkept\tcall\tc")
    with SessionFile(str(tmp_path), SESSION) as state:
        assert state.take_kept("call") == "a\tb\nkept\tcall\tc"
    with SessionFile(str(tmp_path), SESSION) as state:
        assert state.take_kept("call") == ""


def test_other_agents_use_the_words_of_claude_code():
    words = protocols.find_words("codex")
    event = make_event("PreToolUse")
    assert words.translate(event) is event
    assert words.encode({"hookEventName": "PreToolUse"}, event) == {
        "hookSpecificOutput": {"hookEventName": "PreToolUse"}
    }


class TestGeminiCli:
    """The events and answers of Gemini CLI 0.61."""

    words = protocols.find_words("gemini-cli")

    def make_result(self, **response: Any) -> dict[str, Any]:
        return make_event("AfterTool", tool_response=response)

    def test_events_have_the_names_of_claude_code(self):
        names = ["SessionStart", "BeforeAgent", "BeforeTool", "AfterAgent", "SessionEnd"]
        translated = [self.words.translate(make_event(name))["hook_event_name"] for name in names]
        assert translated == ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"]

    def test_a_result_is_its_text(self):
        own = self.words.translate(
            self.make_result(llmContent="<untrusted_context>\nOutput: x\nExit Code: 1\n</untrusted_context>")
        )
        assert (own["hook_event_name"], own["tool_response"]) == ("PostToolUse", "Output: x\nExit Code: 1")
        own = self.words.translate(self.make_result(llmContent=[{"text": "a"}, {"inlineData": {}}, "b"]))
        assert own["tool_response"] == "a\nb"

    def test_an_error_is_a_failure_and_keeps_its_message_beside_a_note(self):
        event = self.make_result(llmContent="x", error={"message": "File not found: a", "type": "file_not_found"})
        own = self.words.translate(event)
        assert (own["hook_event_name"], own["error"]) == ("PostToolUseFailure", "File not found: a")
        answer = self.words.encode({"hookEventName": "PostToolUseFailure", "additionalContext": "note"}, event)
        assert answer == {"decision": "deny", "reason": "File not found: a\n\nnote"}

    def test_nothing_is_said_at_the_start_where_a_resumed_session_would_lose_the_prompt(self):
        assert self.words.encode({"additionalContext": "brief"}, make_event("SessionStart")) is None

    def test_a_call_is_replaced_or_refused(self):
        event = make_event("BeforeTool")
        replaced = self.words.encode({"updatedInput": {"path": "b"}, "additionalContext": "x"}, event)
        assert replaced == {"hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": {"path": "b"}}}
        refusal = {"permissionDecision": "deny", "permissionDecisionReason": "no"}
        assert self.words.encode(refusal, event) == {"decision": "deny", "reason": "no"}

    @pytest.mark.parametrize(
        "event", [{}, {"hook_event_name": 5}, {"hook_event_name": "AfterTool", "tool_response": [1]}]
    )
    def test_strange_events_are_no_errors(self, event):
        self.words.translate(event)


class TestQwenCode:
    """The events and answers of Qwen Code 0.24."""

    words = protocols.find_words("qwen-code")

    def test_a_prompt_event_without_a_prompt_is_not_answered(self):
        assert self.words.translate(make_event("UserPromptSubmit", prompt=""))["hook_event_name"] == ""
        event = make_event("UserPromptSubmit", prompt="<system-reminder>x</system-reminder> do", submitted_prompt="do")
        assert self.words.translate(event)["prompt"] == "do"

    def test_a_failed_command_is_judged_by_its_exit_code(self):
        text = "Command: grep x a\nDirectory: (root)\nOutput: (empty)\nError: (none)\nExit Code: 1\nSignal: (none)"
        event = make_event("PostToolUseFailure", error=text)
        own = self.words.translate(event)
        assert (own["hook_event_name"], own["tool_response"], own["error"]) == ("PostToolUse", text, None)
        answer = self.words.encode({"hookEventName": "PostToolUse", "additionalContext": "note"}, event)
        assert answer == {"hookSpecificOutput": {"hookEventName": "PostToolUseFailure", "additionalContext": "note"}}

    def test_a_result_is_its_text(self):
        event = make_event("PostToolUse", tool_response={"llmContent": "a", "returnDisplay": "b"})
        assert self.words.translate(event)["tool_response"] == "a"


class TestCopilotCli:
    """Events as Copilot CLI 1.0.102 writes them."""

    words = protocols.find_words("copilot-cli")
    bash: ClassVar = {"tool_name": "Bash", "tool_input": {"command": "cat a"}}

    def end_command(self, text: Any) -> dict[str, Any]:
        result = {"result_type": "success", "text_result_for_llm": text}
        return self.words.translate(make_event("PostToolUse", **self.bash, tool_result=result))

    def test_a_session_starts(self):
        assert self.words.translate(make_event("SessionStart", source="new"))["source"] == "startup"
        assert self.words.translate(make_event("SessionStart", source="resume"))["source"] == "resume"

    def test_a_failed_command_is_a_failure(self):
        event = self.end_command("cat: a: No such file or directory\n<shellId: 0 completed with exit code 1>")
        assert event["hook_event_name"] == "PostToolUseFailure"
        assert event["error"] == "Exit code 1\ncat: a: No such file or directory"

    @pytest.mark.parametrize(
        ("text", "own"),
        [
            ("a\n<shellId: ci completed with exit code 0>", "a"),
            ("a completed with exit code 1", "a completed with exit code 1"),
            ("<shellId: 0 completed with exit code 1>\nmore", "<shellId: 0 completed with exit code 1>\nmore"),
            ("", ""),
        ],
    )
    def test_other_results_are_none(self, text, own):
        event = self.end_command(text)
        assert (event["hook_event_name"], event["tool_response"]) == ("PostToolUse", own)

    @pytest.mark.parametrize("result", [None, 7, [], {"text_result_for_llm": 7}])
    def test_odd_results_are_left(self, result):
        event = make_event("PostToolUse", **self.bash, tool_result=result)
        assert self.words.translate(event) == event

    def test_a_subagents_call_belongs_to_its_session(self):
        event = self.words.translate(
            make_event("PreToolUse", session_id="child", agent_id="child", parent_agent_id="p")
        )
        assert (event["session_id"], event["agent_id"]) == ("p", "child")

    def test_the_end_of_a_session_names_its_events(self, monkeypatch):
        monkeypatch.delenv("COPILOT_HOME", raising=False)
        end = make_event("SessionEnd", reason="complete")
        assert self.words.translate(end)["transcript_path"] == f"~/.copilot/session-state/{SESSION}/events.jsonl"
        monkeypatch.setenv("COPILOT_HOME", "/srv/c")
        assert self.words.translate(end)["transcript_path"] == f"/srv/c/session-state/{SESSION}/events.jsonl"
        assert self.words.translate(end | {"transcript_path": "/x"})["transcript_path"] == "/x"
        assert self.words.translate(end | {"session_id": 7})["transcript_path"] is None

    def test_answers_are_plain_keys(self):
        before, after = make_event("PreToolUse"), make_event("PostToolUse")
        told = {"hookEventName": "PreToolUse", "additionalContext": "note"}
        assert self.words.encode(told, before) is None  # it comes with the result
        assert self.words.encode(told, after) == {"additionalContext": "note"}
        corrected = told | {"permissionDecision": "allow", "updatedInput": {"path": "b"}}
        assert self.words.encode(corrected, before) == {"permissionDecision": "allow", "modifiedArgs": {"path": "b"}}
        stopped = {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "no"}
        assert self.words.encode(stopped, before) == {"permissionDecision": "deny", "permissionDecisionReason": "no"}


def test_a_call_without_an_id_is_known_by_the_note_that_is_kept_for_it(hook):
    before, after = make_event("PreToolUse"), make_event("PostToolUseFailure")
    identified = hook._identify(before)["tool_use_id"]
    assert identified and hook._identify(after) == after  # no note was kept
    hook._deliver_late(before, {"hookEventName": "PreToolUse", "additionalContext": "note"})
    assert hook._identify(after)["tool_use_id"] == identified
    hook._deliver_late(after, None)
    assert hook._identify(after) == after  # a later failure of the same call may be answered again
