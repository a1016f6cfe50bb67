"""The gate: which sessions are worth learning from."""

from __future__ import annotations

from typing import Any

import pytest

from warmstart.judging.gate import GateLimits, Refusal, check_session, is_bad_end
from warmstart.model import Outcome, PastCall, PastSession

OK, WRONG = Outcome("ok", "flag"), Outcome("error", "flag", "environment")


def bash(command: str, excerpt: str = "done", outcome: Outcome = OK) -> PastCall:
    return PastCall(
        ordinal=0, call_id="c", tool="Bash", arguments={"command": command}, excerpt=excerpt, outcome=outcome
    )


PYTHON = (
    bash("python -m build", "bash: python: command not found", WRONG),
    bash("python3 -m build", "built"),
)


def check(*calls: PastCall, limits: GateLimits | None = None, **facts: Any) -> Refusal | None:
    given = {"agent": "codex", "category": "coding", "task_type": "mixed", "verdict": "unknown", "quality": 0.9} | facts
    session = PastSession(key="k", id="s", calls=calls, **given)
    return check_session(session, calls, limits or GateLimits())


@pytest.mark.parametrize(
    "reason",
    "error errored crashed killed timeout timed_out failed failure api_error agent_error turn.failed too_many_errors "
    "exit_timeout TimeoutError ContextWindowExceededError aborted:error oom sigkill fatal".split(),
)
def test_bad_ends(reason: str) -> None:
    assert is_bad_end(reason)
    refusal = check(bash("make"), end_reason=reason)
    assert refusal is not None and refusal.detail == f"it ended with {reason}; 0 of 1 calls failed"
    assert check(bash("make"), end_reason=reason, label=True, verdict="success") is None, "a label outweighs the end"


@pytest.mark.parametrize(
    "reason",
    "completed Submitted cli_close user_stop agent_stop interrupted aborted:interrupted cancelled user_cancelled "
    "idle_timeout lru_evict ws_disconnect session_reset compression branched new_session cron_complete tui_shutdown "
    "killed_by_user no_error mirrored terrorist_film_list".split(),
)
def test_other_ends(reason: str) -> None:
    assert not is_bad_end(reason)
    assert check(bash("make"), end_reason=reason) is None


def test_further_end_reasons() -> None:
    assert check(bash("make"), end_reason="max_turns") is None
    refusal = check(bash("make"), end_reason="max_turns", limits=GateLimits(skip_end_reasons=("max_turns",)))
    assert refusal is not None and refusal.reason == "it ended with max_turns"


@pytest.mark.parametrize(
    ("failed", "worked", "detail"), [(4, 4, None), (5, 4, "5 of 9 calls failed (56 %, limit 50 %)")]
)
def test_the_error_rate(failed: int, worked: int, detail: str | None) -> None:
    calls = [*(bash(f"make {n}", "no rule", WRONG) for n in range(failed)), *(bash(f"cat {n}") for n in range(worked))]
    refusal = check(*calls)
    assert (refusal.detail if refusal else None) == detail


class TestFewCalls:
    def test_one_call_that_worked_is_enough(self) -> None:
        assert check(bash("./backup.sh")) is None

    def test_a_minimum_says_what_was_missing(self) -> None:
        refusal = check(bash("./backup.sh"), limits=GateLimits(min_calls=2))
        assert refusal is not None
        assert refusal.detail == "1 of 1 calls worked (minimum 2), and none corrects a failure"

    def test_a_correction_passes_whatever_the_minimum(self) -> None:
        assert check(*PYTHON, limits=GateLimits(min_calls=5)) is None

    def test_a_correction_after_two_failures_passes_the_error_rate(self) -> None:
        assert check(PYTHON[0], *PYTHON) is None
        assert check(PYTHON[0], bash("make", "no rule", WRONG), bash("cat a")) is not None, "nothing was corrected"

    def test_a_correction_does_not_save_a_session_that_mostly_failed(self) -> None:
        refusal = check(*(bash(f"make {n}", "no rule", WRONG) for n in range(8)), *PYTHON)
        assert refusal is not None and refusal.detail == "9 of 10 calls failed (90 %, limit 50 %)"

    def test_nothing_worked(self) -> None:
        refusal = check(PYTHON[0])
        assert refusal is not None and refusal.detail == "no call is known to have worked; 1 of 1 failed"
        refusal = check()
        assert refusal is not None and refusal.detail == "no tool was called"


def test_a_failure_names_its_heaviest_sign() -> None:
    refusal = check(bash("make"), verdict="failure", signs=("checks_failed", "errors"))
    assert refusal is not None
    assert refusal.detail == "the session failed (its last check failed); 0 of 1 calls failed"
    assert refusal.reason == "the session failed"


def test_effort_counts_only_where_nobody_named_the_session() -> None:
    refusal = check(bash("make"), quality=0.4)
    assert refusal is not None and refusal.reason == "no sign of success, and more effort than usual"
    assert check(bash("make"), quality=0.4, limits=GateLimits(min_quality=0.0)) is None
