"""The score weighs evidence; length never raises it; without a firm sign the verdict is unknown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmstart
from warmstart.judging.gate import check_verdict
from warmstart.judging.score import score
from warmstart.model import Message, Outcome, Score, Session, Step, ToolCall, ToolResult

OK, ERROR, REJECTED = Outcome("ok", "flag"), Outcome("error", "flag", "other"), Outcome("rejected", "flag")


def session(*steps: Step, **facts: object) -> Session:
    return Session(id="s", format="test", source_uri="memory:", agent="test", steps=steps, **facts)


def pair(tool: str, outcome: Outcome = OK, number: int = 0, **arguments: object) -> tuple[ToolCall, ToolResult]:
    return ToolCall(f"c{number}", tool, arguments), ToolResult(f"c{number}", "text", outcome)


ASK = Message("user", "please do it")


def test_counts_people_expect():
    counts = score(
        session(ASK, *pair("a"), *pair("b", ERROR, 1), *pair("b", REJECTED, 2), Message("assistant", "done"))
    ).counts
    assert counts.total_messages == 2
    assert (counts.tool_calls, counts.tool_results, counts.error_count) == (3, 3, 1)
    assert counts.error_rate == 0.5, "a person's rejection is out of the rate"
    assert (counts.unique_tools, counts.tools) == (2, {"a": 1, "b": 2})


def test_without_judged_results_there_is_no_rate():
    assert score(session(ASK)).counts.error_rate is None


def test_a_label_decides():
    failing = [step for n in range(5) for step in pair("a", ERROR, n)]
    good, bad = score(session(ASK, *failing, label=True)), score(session(ASK, *pair("a"), label=False))
    assert (good.verdict, good.confidence, good.is_successful) == ("success", 1.0, True)
    assert (bad.verdict, bad.is_successful) == ("failure", False)


def test_without_a_firm_sign_the_verdict_is_unknown():
    assert (
        score(session(ASK, *pair("a"), Message("assistant", "done"), Message("user", "thanks!"))).verdict == "unknown"
    )


def test_checks_that_pass_after_the_last_edit_are_a_success():
    edit, check = pair("Edit", OK, 1, file_path="a.py"), pair("Bash", OK, 2, command="pytest -q")
    assert score(session(ASK, *edit, *check)).verdict == "success"
    assert score(session(ASK, *check, *edit)).verdict == "unknown", "nothing was checked after the change"
    signs = {e.sign for e in score(session(ASK, *edit, *pair("Bash", ERROR, 3, command="npm test"))).evidence}
    assert "checks_failed" in signs


def test_evidence_points_at_steps():
    scored = score(session(ASK, *pair("Bash", OK, 1, command="go test ./..."), Message("assistant", "ok")))
    (evidence,) = [e for e in scored.evidence if e.sign == "checks_passed"]
    assert evidence.step == 2


@pytest.mark.parametrize(
    ("worse", "sign"),
    [
        ((*pair("a", ERROR, 1, x=1), *pair("a", ERROR, 2, x=1)), "repeated_failure"),
        ((Message("user", "no, that's not what I asked"),), "user_corrected"),
        ((Message("user", "[Request interrupted by user]"),), "user_interrupted"),
        ((ToolCall("c9", "a", {}),), "call_unanswered"),
        (pair("a", ERROR, 1), "last_result_error"),
    ],
)
def test_bad_signs_lower_quality(worse, sign):
    plain, marked = score(session(ASK, *pair("a"))), score(session(ASK, *pair("a"), *worse))
    assert marked.quality < plain.quality
    assert sign in {e.sign.partition(":")[0] for e in marked.evidence}


def test_how_it_ended_matters():
    plain, aborted, done = (
        score(session(ASK, *pair("a"), end_reason=r)).quality for r in (None, "aborted:interrupted", "completed")
    )
    assert aborted < plain < done


@given(st.integers(0, 60), st.integers(1, 40))
def test_more_of_the_same_never_raises_quality(length, more):
    def quality(n: int) -> float:
        steps = [step for i in range(n) for step in (*pair("a", OK, i), Message("assistant", "next"))]
        return score(session(ASK, *steps)).quality

    assert quality(length + more) <= quality(length)


KINDS = [
    (["read_file"] * 3, "coding", "file"),
    (["execute_code"] * 3, "coding", "code"),
    (["web_search", "web_extract", "web_search"], "research", "research"),
    (["terminal", "terminal", "read_file"], "ops", "mixed"),
    (["Bash"] * 3, "ops", "mixed"),
    (["Edit", "Read", "Grep", "Write"], "coding", "file"),
    (["WebFetch", "WebSearch"], "research", "research"),
    (["shell"] * 2 + ["apply_patch"] * 2, "coding", "mixed"),
    (["run_shell_command", "replace"], "coding", "mixed"),
    (["mcp__files__read_file"], "coding", "file"),
    (["book_flight"] * 5, "general", "mixed"),
    ([], "general", "mixed"),
    (["terminal"] * 2 + ["x"] * 3, "general", "mixed"),
]


@pytest.mark.parametrize(("used", "category", "task_type"), KINDS)
def test_kinds(used, category, task_type):
    scored = score(session(ASK, *(ToolCall(str(n), tool, {}) for n, tool in enumerate(used))))
    assert (scored.category, scored.task_type) == (category, task_type)


def test_kinds_can_be_extended():
    asked = session(ASK, ToolCall("1", "my_editor", {}))
    assert score(asked).category == "general"
    assert score(asked, {"my_editor": "patch"}).category == "coding"


def test_proficient_means_enough_calls_and_few_errors():
    assert score(session(ASK, *(s for n in range(4) for s in pair("a", OK, n)))).is_proficient
    assert not score(session(ASK, *pair("a"))).is_proficient
    assert not score(session(ASK, *(s for n in range(4) for s in pair("a", ERROR if n % 2 else OK, n)))).is_proficient


def test_the_gate_says_why():
    assert check_verdict("failure", 0.9) == "the session failed"
    assert check_verdict("unknown", 0.4) == "no sign of success, and more effort than usual"
    assert check_verdict("unknown", 0.4, min_quality=0.0) is None, "somebody named the session"
    assert check_verdict("unknown", 0.6) is None
    assert check_verdict("success", 0.4) is None


def test_plain_openai_messages_can_be_judged_and_scored():
    messages = [
        {"role": "user", "content": "list"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}},
            {"id": "2", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "cat x"}'}}]},
        {"role": "tool", "tool_call_id": "2", "content": "cat: x: No such file or directory"},
        {"role": "tool", "tool_call_id": "1", "content": "a.txt"},
        {"role": "assistant", "content": "done"},
    ]  # fmt: skip
    assert [(r.call_id, r.outcome.status) for r in warmstart.judge(messages)] == [("2", "error"), ("1", "ok")]
    scored = warmstart.score(messages)
    assert (scored.counts.tool_calls, scored.counts.error_count, scored.category) == (2, 1, "ops")
    assert msgspec.json.encode(scored)


class TestJobRuns:
    """Runs of scheduled jobs: the answer decides."""

    def run(self, answer: str | None, **facts: Any) -> Score:
        steps: list[Step] = [
            Message("user", "make the backup"),
            ToolCall("c", "terminal", {"command": "tar czf b.tgz /home"}),
            ToolResult("c", "done", Outcome("ok", "structure")),
        ]
        if answer is not None:
            steps.append(Message("assistant", answer))
        given: dict[str, Any] = {"project": "job:backup", "ended": 9.0, "end_reason": "cron_complete"} | facts
        return score(Session("s", "hermes", "file:///x", "hermes", tuple(steps), **given))

    @pytest.mark.parametrize(
        ("answer", "sign"),
        [
            ("[SCRIPT_FAILED]: the disk is full", "job_failed"),
            ("I tried it twice.\n[SCRIPT_FAILED]", "job_failed"),
            ("The backup script crashed with exit code 1.", "job_failed"),
            ("", "job_without_answer"),
            (None, "job_without_answer"),
            ("(No response generated)", "job_without_answer"),
            ("(empty)", "job_without_answer"),  # as Hermes stores it
            ("\u26a0\ufe0f No reply: the model returned nothing", "job_without_answer"),
        ],
    )
    def test_failed(self, answer: str | None, sign: str) -> None:
        found = self.run(answer)
        assert found.verdict == "failure" and not found.is_successful
        assert sign in {evidence.sign for evidence in found.evidence}

    @pytest.mark.parametrize(
        "answer",
        ["[SILENT]", "Backed up 12 GB.", "CI: 3 of 48 workflows failed, `lint` among them.", "No reply from Ann."],
    )
    def test_delivered_or_silent(self, answer: str) -> None:
        assert self.run(answer).verdict != "failure"

    def test_a_run_that_is_still_going_on_has_not_failed(self) -> None:
        assert self.run(None, ended=None, end_reason=None).verdict != "failure"

    def test_the_mark_counts_in_every_session_and_the_words_only_in_jobs(self) -> None:
        assert self.run("[SCRIPT_FAILED]: no key", project="/srv").verdict == "failure"
        assert self.run("The backup script crashed with exit code 1.", project="/srv").verdict != "failure"
        asked = "make the backup. Answer [SILENT] if there is nothing, [SCRIPT_FAILED]: reason if it fails."
        assert self.run("The backup script crashed.", project="/srv", task=asked).verdict == "failure"

    def test_a_label_outweighs_the_answer(self) -> None:
        assert self.run("[SCRIPT_FAILED]", label=True).verdict == "success"
