"""The gate that every door to a template asks: is this session worth learning from?

`learn`, `capture`, `warm_session build`, `review apply` and a review's drafts all call `check_session`. A refusal names the
numbers. Only a person can overrule it, and the overruling is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from warmstart.calls.fixes import find_fixes
from warmstart.excerpt import first
from warmstart.model import PastCall, PastSession, Verdict

FAILED = "the session failed"
_FEW = 4  # judged calls; of fewer, one that is corrected says more than the error rate
_REASON = 60  # characters of an end reason

_BAD_END = re.compile(
    r"(?:^|_)(?:error(?:ed|s)?|crash(?:ed)?|kill(?:ed)?|time_?(?:d_?)?out|fail(?:ed|ure)?|fatal|panic(?:ked)?"
    r"|exception|oom|out_of_memory|sig(?:kill|term|segv|abrt)|segfault|unhandled|broken|died|dead)(?:_|$)"
)
_HARMLESS_END = re.compile(r"(?:^|_)(?:idle|inactiv\w*|user|no|without|session_timeout)(?:_|$)")
_WORD_BORDER = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")

_SIGNS = {
    "label": "its label says so",
    "checks_failed": "its last check failed",
    "job_failed": "the job's answer says so",
    "job_without_answer": "the job gave no answer",
    "errors": "calls failed",
    "repeated_failure": "the same call failed again and again",
    "call_unanswered": "its last call was never answered",
}


class GateLimits(Struct, frozen=True, kw_only=True):
    """The limits of the gate."""

    min_calls: int = 1  # minimum calls that worked; a session that corrects a failure needs one
    max_error_rate: float = 0.5  # maximum share of the judged calls that failed
    skip_end_reasons: tuple[str, ...] = ()  # end reasons to refuse besides the bad ones
    min_quality: float = 0.5  # of a session without a verdict; 0 where somebody named the session


class Refusal(Struct, frozen=True):
    """Why a session is not worth learning from."""

    reason: str  # the same for every session refused for it
    detail: str  # the reason with the session's own numbers

    def __str__(self) -> str:
        return self.detail


def check_session(session: PastSession, calls: Sequence[PastCall], limits: GateLimits) -> Refusal | None:
    """Return why a session is not worth learning from; None if it is. `calls`: without trivial and seeded ones."""
    if not session.calls:
        return Refusal("no tool was called", "no tool was called")
    worked = sum(call.outcome.status == "ok" for call in calls)
    failed = sum(call.outcome.status == "error" for call in calls)
    numbers = f"{failed} of {worked + failed} calls failed"
    if session.verdict == "failure":
        why = explain_failure(session)
        return Refusal(FAILED, f"{FAILED}{f' ({why})' if why else ''}; {numbers}")
    if end := _find_bad_end(session, limits.skip_end_reasons):
        return Refusal(f"it ended with {end}", f"it ended with {end}; {numbers}")
    if not worked and any(call.outcome.status == "ok" for call in session.calls):
        nothing_own = "only calls of its seed or of trivial tools worked"
        return Refusal(nothing_own, f"{nothing_own}; {numbers}" if failed else nothing_own)
    if refusal := _check_calls(calls, worked, failed, limits):
        return refusal
    reason = check_verdict(session.verdict, session.quality, limits.min_quality)
    return Refusal(reason, f"{reason}; {numbers}") if reason else None


def check_verdict(verdict: Verdict, quality: float, min_quality: float = GateLimits().min_quality) -> str | None:
    """Return why a session with this verdict is not worth learning from; None if it is."""
    if verdict == "failure":
        return FAILED
    if verdict == "unknown" and quality < min_quality:
        return "no sign of success, and more effort than usual"
    return None


def is_bad_end(reason: str) -> bool:
    """Return whether an agent's end reason says that the session broke. A person's interruption does not."""
    words = _WORD_BORDER.sub("_", reason).lower().strip("_")
    return _BAD_END.search(words) is not None and _HARMLESS_END.search(words) is None


def _check_calls(calls: Sequence[PastCall], worked: int, failed: int, limits: GateLimits) -> Refusal | None:
    judged = worked + failed
    is_corrected = bool(worked and failed and find_fixes(calls))
    if not worked:
        reason = "no call is known to have worked"
        return Refusal(reason, f"{reason}; {failed} of {judged} failed" if judged else reason)
    if failed > limits.max_error_rate * judged and not (is_corrected and judged < _FEW):
        limit = f"{100 * limits.max_error_rate:.0f} %"
        return Refusal(
            f"more than {limit} of its calls failed",
            f"{failed} of {judged} calls failed ({100 * failed / judged:.0f} %, limit {limit})",
        )
    if worked < limits.min_calls and not is_corrected:
        return Refusal(
            f"fewer than {limits.min_calls} calls worked, and none corrects a failure",
            f"{worked} of {judged} calls worked (minimum {limits.min_calls}), and none corrects a failure",
        )
    return None


def _find_bad_end(session: PastSession, skipped: Sequence[str]) -> str | None:
    reason = session.end_reason
    if reason and (reason in skipped or (is_bad_end(reason) and session.label is not True)):
        return first(reason, _REASON)
    return None


def explain_failure(session: PastSession) -> str:
    """Return the heaviest sign of a failure, in words."""
    if not session.signs:
        return ""
    sign, _, reason = session.signs[0].partition(":")
    return f"it ended with {first(reason, _REASON)}" if sign == "ended" else _SIGNS.get(sign, sign.replace("_", " "))
