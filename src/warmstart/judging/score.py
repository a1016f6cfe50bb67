"""Session in, Score out: whether it succeeded, how well, and what kind of work it was.

A label decides. Without one the evidence is weighed: how the session ended, which errors it left, what the user said,
whether checks passed after the last change, and how much effort it took. Length never raises quality, because long
sessions succeed less often. Without a firm sign the verdict is "unknown" and quality only ranks.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

import msgspec

from warmstart.calls import tools
from warmstart.calls.shell import command_in
from warmstart.judging.hints import HintGate, PatternGate
from warmstart.judging.job_answer import asks_for_marks, classify_job_output, is_no_answer, says_it_failed
from warmstart.model import (
    Category,
    Counts,
    Evidence,
    Message,
    Score,
    Session,
    TaskType,
    ToolCall,
    ToolResult,
    Verdict,
    is_job,
)

CATEGORIES: dict[Category, frozenset[str]] = {  # in the order they are checked
    "coding": frozenset((tools.CODE, tools.WRITE, tools.READ, tools.PATCH, tools.SEARCH)),
    "research": frozenset((tools.WEB_SEARCH, tools.WEB_READ, tools.SESSIONS, tools.FACTS, tools.READ, tools.BROWSE)),
    "ops": frozenset((tools.TERMINAL, tools.CRON, tools.PROCESS, tools.SEND)),
}
TASK_TYPES: dict[TaskType, frozenset[str]] = {
    "code": frozenset((tools.CODE,)),
    "file": frozenset((tools.READ, tools.WRITE, tools.PATCH, tools.SEARCH)),
    "research": frozenset((tools.WEB_SEARCH, tools.WEB_READ, tools.BROWSE)),
}
_CATEGORY_SHARE, _TYPE_SHARE = 0.4, 0.6

_TEST = re.compile(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|rspec|phpunit|ctest|go test|go vet|cargo (?:test|check|clippy|build)"
    r"|(?:npm|pnpm|yarn|bun)(?: run)? (?:test|check|lint|typecheck|build)|make (?:test|check|lint)|mvn|gradle|gradlew"
    r"|mise run (?:test|lint)|dotnet test|mix test|ruff check|mypy|pyright|tsc|eslint|golangci-lint|xcodebuild|swift test"
    r"|deno test|bundle exec|rake test|sbt test|just test|playwright test|cypress run)\b"
)
_TEST_HINTS = tuple("test check lint build tsc mypy pyright vet clippy mvn gradle tox nox mocha rspec rake".split())
_THANKS = re.compile(
    r"\b(?:thanks?|thank you|thx|great|perfect|excellent|awesome|amazing|nice|works now|it works|that works|looks good|lgtm"
    r"|well done|good job|appreciate|that(?:'s| is) (?:all|it|exactly))\b",
    re.I,
)
_CORRECTING = re.compile(  # at the start of a message
    r"\W{0,3}(?:no\b(?! (?:problem|worries|thanks|need))|nope|wrong|incorrect|stop\b|don'?t\b|undo|revert|actually\b|wait\b|hold on"
    r"|that(?:'s| is)(?: not|n'?t) |this is(?: not|n'?t) |not what|you (?:forgot|missed|broke|didn'?t|should(?:n'?t| not)? have)"
    r"|why (?:did|didn'?t|are|is) |i (?:said|meant|told|asked)|still (?:not|broken|fail|getting|doesn)|it(?:'s| is) still)",
    re.I,
)
_CORRECTED = re.compile(  # anywhere in it
    r"\b(?:doesn'?t work|does not work|not working|isn'?t working|didn'?t work|still (?:fails|failing|broken|not))\b"
    r"|\b(?:are you sure|not what i|i meant|that'?s wrong)\b",
    re.I,
)
_CORRECTED_GATE = PatternGate(_CORRECTED)  # for all openings of a session at once
_THANKS_GATE = HintGate(
    (
        *("thank", "thx", "great", "perfect", "excellent", "awesome", "amazing", "nice", "work", "looks good", "lgtm"),
        *("well done", "good job", "appreciate", "that's", "that is"),
    ),
    folded=True,
)
_OPENING, _THANKING = 400, 300  # characters of a message in which corrections and thanks are looked for
_INTERRUPTION = "[Request interrupted by user"
_BAD_ENDS = re.compile(
    r"abort|interrupt|api_error|limit|exceed|max_|too_many|timeout|timed|crash|error|killed|fail|cost|format|cancel",
    re.I,
)
_GOOD_ENDS = re.compile(r"^(?:submitted|completed|complete|done|success|finished|cron_complete)", re.I)

JOB_FAILED, JOB_WITHOUT_ANSWER = "job_failed", "job_without_answer"  # signs

_STEPS, _WORDS = 6.0, 800.0  # steps and characters of messages; effort below this costs nothing
_WORK = 4.0  # work on files, shells and the web takes so many times more than a talk with a few function calls
_FEW_CALLS, _LOW_ERROR_RATE = 3, 0.15


def score(session: Session, more_tools: Mapping[str, str] | None = None) -> Score:
    """Score one session. `more_tools` maps further tool names onto the base set."""
    course = _survey(session)
    counts = course.counts
    used = _base_counts(counts.tools, more_tools)
    category = _category(used, counts.tool_calls)
    evidence = tuple(_weigh(session, course, category))
    quality = 1 / (1 + math.exp(-sum(e.weight for e in evidence)))
    verdict, confidence = _decide(session, evidence, quality)
    return Score(
        verdict=verdict,
        quality=round(quality, 4),
        confidence=round(confidence, 4),
        evidence=evidence,
        category=category,
        task_type=_task_type(used, counts.tool_calls),
        counts=counts,
        is_proficient=counts.tool_results >= _FEW_CALLS
        and counts.error_rate is not None
        and counts.error_rate <= _LOW_ERROR_RATE
        and not any(e.sign == "repeated_failure" for e in evidence),
        is_successful=verdict == "success",
    )


class _Course(msgspec.Struct):
    """The facts of a session that its evidence is drawn from, gathered in one pass over its steps."""

    counts: Counts
    words: int  # characters of the messages of user and agent
    requests: list[tuple[int, Message]]  # the user's messages with their steps
    failures: Counter[tuple[str, bytes]]  # failed calls by tool and arguments
    broken: dict[str, int]  # tool -> step of its last failure, until it succeeds again
    check: Evidence | None  # the last test, build or linter run, unless a file was changed after it


def _survey(session: Session) -> _Course:
    used: dict[str, int] = {}
    messages = results = ok = errors = words = 0
    requests: list[tuple[int, Message]] = []
    failures: Counter[tuple[str, bytes]] = Counter()
    broken: dict[str, int] = {}
    waiting: dict[str, ToolCall] = {}
    open_checks: set[str] = set()
    check: Evidence | None = None
    for index, step in enumerate(session.steps):
        if isinstance(step, ToolCall):
            tool = step.tool
            used[tool] = used.get(tool, 0) + 1
            waiting[step.call_id] = step
            base = tools.base_tool(tool)
            if base == tools.TERMINAL:
                if _is_check(command_in(step.arguments)):
                    open_checks.add(step.call_id)
            elif base == tools.WRITE or base == tools.PATCH:
                check = None
        elif isinstance(step, ToolResult):
            results += 1
            status = step.outcome.status
            call = waiting.pop(step.call_id, None)
            if status == "ok":
                ok += 1
                if broken and call is not None:
                    broken.pop(call.tool, None)
            elif status == "error":
                errors += 1
                if call is not None:
                    failures[call.tool, msgspec.json.encode(call.arguments)] += 1
                    broken[call.tool] = index
            if step.call_id in open_checks:
                open_checks.discard(step.call_id)
                if status == "ok":
                    check = Evidence("checks_passed", 0.8, index)
                elif status == "error":
                    check = Evidence("checks_failed", -0.8, index)
        elif step.role != "system":
            messages += 1
            words += len(step.text)
            if step.role == "user":
                requests.append((index, step))
    counts = Counts(
        total_messages=messages,
        tool_calls=sum(used.values()),
        tool_results=results,
        error_count=errors,
        error_rate=errors / (ok + errors) if ok + errors else None,
        unique_tools=len(used),
        tools=used,
    )
    return _Course(counts, words, requests, failures, broken, check)


def _weigh(session: Session, course: _Course, kind: Category) -> Iterator[Evidence]:
    if session.label is not None:
        yield Evidence("label", 3.0 if session.label else -3.0)
    yield _weigh_effort(session, course.words, kind)
    yield from _weigh_errors(course, len(session.steps))
    yield from _weigh_requests(course.requests)
    if course.check:
        yield course.check
    yield from _ending(session)
    yield from _job_run(session)


def _weigh_effort(session: Session, words: int, kind: Category) -> Evidence:
    """Weigh the effort: every doubling of steps and of words costs; below the usual effort nothing is gained."""
    usual = 1.0 if kind == "general" else _WORK
    steps = len(session.steps) + session.unkept
    cost = math.log(max(1.0, steps / (_STEPS * usual))) + math.log(max(1.0, words / (_WORDS * usual)))
    return Evidence("effort", round(1.4 - 0.45 * cost, 3))


def _weigh_errors(course: _Course, last: int) -> Iterator[Evidence]:
    failures = course.failures
    if failures:
        yield Evidence("errors", -round(0.2 * math.log1p(failures.total()), 3))
    worst = max(failures.values(), default=0)
    if worst > 1:
        yield Evidence("repeated_failure", -round(0.3 * math.log(worst), 3))
    for tool, index in course.broken.items():
        if last - index <= max(4, last // 5):
            yield Evidence(f"unrecovered_error:{tool[:60]}", -0.35, index)
            return


def _weigh_requests(requests: list[tuple[int, Message]]) -> Iterator[Evidence]:
    openings = [message.text[:_OPENING] for _index, message in requests[1:]]
    may_correct = _CORRECTED_GATE.opens("\n".join(openings)) if openings else False
    corrections = [
        index
        for (index, _message), opening in zip(requests[1:], openings, strict=True)
        if _corrects(opening, may_correct)
    ]
    if corrections:
        yield Evidence("user_corrected", -round(0.2 * math.log1p(len(corrections)), 3), corrections[-1])
    interruptions = [i for i, s in requests if s.text.startswith(_INTERRUPTION)]
    if interruptions:
        yield Evidence("user_interrupted", -round(0.25 * math.log1p(len(interruptions)), 3), interruptions[-1])
    if openings:
        opening = openings[-1][:_THANKING]
        if _THANKS_GATE.opens(opening) and _THANKS.search(opening) and not _corrects(opening, True):
            yield Evidence("user_thanked", 0.1, requests[-1][0])


def _corrects(opening: str, may_hold: bool) -> bool:
    """Return whether a message begins with a correction or, if it may, holds one."""
    return bool(_CORRECTING.match(opening) or (may_hold and _CORRECTED.search(opening)))


@lru_cache(1_024)
def _is_check(command: str) -> bool:
    return any(hint in command for hint in _TEST_HINTS) and _TEST.search(command) is not None


def _ending(session: Session) -> Iterator[Evidence]:
    reason = session.end_reason
    if reason:
        if _GOOD_ENDS.search(reason):
            yield Evidence(f"ended:{reason[:60]}", 0.3)
        elif _BAD_ENDS.search(reason):
            yield Evidence(f"ended:{reason[:60]}", -1.0)
    if not session.steps:
        return
    last = session.steps[-1]
    index = len(session.steps) - 1
    if isinstance(last, ToolCall):
        yield Evidence("call_unanswered", -0.5, index)
    elif isinstance(last, ToolResult) and last.outcome.status in ("error", "rejected", "cancelled"):
        yield Evidence(f"last_result_{last.outcome.status}", -0.5, index)


def _job_run(session: Session) -> Iterator[Evidence]:
    """Weigh the answer of a scheduled run. The mark of a failed run counts in every session: others schedule too."""
    index, answer = _find_answer(session)
    if says_it_failed(answer):
        yield Evidence(JOB_FAILED, -3.0, index)
    elif is_job(session.project) or asks_for_marks(session.task or ""):
        if not is_no_answer(answer):
            if classify_job_output(answer).status == "failed":
                yield Evidence(JOB_FAILED, -3.0, index)
        elif session.end_reason is not None or session.ended is not None:
            yield Evidence(JOB_WITHOUT_ANSWER, -3.0, index)


def _find_answer(session: Session) -> tuple[int | None, str]:
    """Return the agent's last answer and its step; no answer if the session ends with a call, a result or a request."""
    for index in range(len(session.steps) - 1, -1, -1):
        step = session.steps[index]
        if isinstance(step, Message) and step.role == "system":
            continue
        if isinstance(step, Message) and step.role == "assistant":
            return index, step.text
        return index, ""
    return None, ""


_FIRM = frozenset(("label", "checks_passed", "checks_failed"))  # not thanks: half of the thanked sessions failed


def _decide(session: Session, evidence: tuple[Evidence, ...], quality: float) -> tuple[Verdict, float]:
    """Return verdict and confidence. A verdict needs a firm sign that agrees with the quality."""
    if session.label is not None:
        return ("success" if session.label else "failure"), 1.0
    if any(e.sign in (JOB_FAILED, JOB_WITHOUT_ANSWER) for e in evidence):
        return "failure", max(0.9, 1 - quality)
    firm = sum(e.weight for e in evidence if e.sign in _FIRM or (e.sign.startswith("ended:") and abs(e.weight) > 0.5))
    if firm > 0 and quality >= 0.6:
        return "success", quality
    if firm < 0 and quality <= 0.4:
        return "failure", 1 - quality
    return "unknown", abs(quality - 0.5)


def classify_tools(used: Mapping[str, int], more_tools: Mapping[str, str] | None = None) -> tuple[Category, TaskType]:
    """Return the kind of work that calls of these tools are, as a session's score names it."""
    counted, calls = _base_counts(used, more_tools), sum(used.values())
    return _category(counted, calls), _task_type(counted, calls)


def _base_counts(calls_by_tool: Mapping[str, int], more: Mapping[str, str] | None) -> Counter[str]:
    used: Counter[str] = Counter()
    for name, calls in calls_by_tool.items():
        base = tools.base_tool(name, more)
        if base:
            used[base] += calls
    return used


def _category(used: Counter[str], calls: int) -> Category:
    for name, group in CATEGORIES.items():
        if calls and sum(used[t] for t in group) / calls > _CATEGORY_SHARE:
            return name
    return "general"


def _task_type(used: Counter[str], calls: int) -> TaskType:
    for name, group in TASK_TYPES.items():
        if calls and sum(used[t] for t in group) / calls > _TYPE_SHARE:
            return name
    return "mixed"
