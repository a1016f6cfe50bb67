"""Every domain type. Immutable values; what is not known is None or "unknown", never zero. Imports nothing of ours."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Status = Literal["ok", "error", "rejected", "cancelled", "unknown"]
Basis = Literal["flag", "exit_code", "structure", "text", "none"]
ErrorKind = Literal["arguments", "precondition", "permission", "environment", "semantic", "other"]
Verdict = Literal["success", "failure", "unknown"]
Category = Literal["coding", "research", "ops", "general"]
TaskType = Literal["code", "file", "research", "mixed"]
Role = Literal["system", "user", "assistant"]

Arguments = dict[str, Any] | str  # a string where the agent wrote something that is no JSON object


class Signal(Struct, frozen=True, gc=False):
    """What a transcript itself says about a result, apart from the result's text."""

    failed: bool | None = None  # an error flag, where the format has one
    exit_code: int | None = None
    status: Status | None = None  # the format names the outcome outright (Gemini "cancelled")
    basis: Basis = "flag"  # how `status` or `failed` is known


class Outcome(Struct, frozen=True, gc=False):
    """What became of one tool call, and how we know."""

    status: Status
    basis: Basis = "none"
    error_kind: ErrorKind | None = None  # only for errors

    @property
    def counts(self) -> bool:
        """Whether it belongs in an error rate: a person's no, a sibling's collateral and the unknown do not."""
        return self.status == "ok" or self.status == "error"


UNKNOWN = Outcome("unknown")


class Message(Struct, frozen=True, gc=False, tag="message"):
    role: Role
    text: str  # clipped: head and tail of what was said
    at: float | None = None  # seconds since the epoch, UTC


class ToolCall(Struct, frozen=True, gc=False, tag="call"):
    call_id: str
    tool: str
    arguments: Arguments  # long strings inside are clipped
    at: float | None = None


class ToolResult(Struct, frozen=True, gc=False, tag="result"):
    call_id: str
    text: str  # clipped: head and tail
    outcome: Outcome  # judged on the full text
    at: float | None = None


Step = Message | ToolCall | ToolResult


class Usage(Struct, frozen=True, gc=False):
    """Tokens of a session. Prompt tokens = input + cache_read + cache_write."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost: float | None = None  # US dollars, as the transcript reports it
    basis: Literal["reported", "estimated"] = "reported"


class Session(Struct, frozen=True):
    """One agent session as a transcript tells it."""

    id: str  # the agent's own id; where it has none, made from the content
    format: str
    source_uri: str
    agent: str
    steps: tuple[Step, ...]
    model: str | None = None
    project: str | None = None  # the working folder, or what the agent calls the project
    task: str | None = None  # the first thing the user asked for
    started: float | None = None
    ended: float | None = None
    end_reason: str | None = None  # as the agent says it
    usage: Usage | None = None
    label: bool | None = None  # success, where someone labelled it
    parent: str | None = None  # the session that spawned this one
    unkept: int = 0  # steps counted but not kept, in sessions too long to hold


class Problem(Struct, frozen=True, gc=False):
    """Something in a source that could not be read. The rest was."""

    path: str
    reason: str
    line: int | None = None


class Counts(Struct, frozen=True, kw_only=True):
    """The plain numbers of a session."""

    total_messages: int  # what user and agent said, calls and results not counted
    tool_calls: int
    tool_results: int
    error_count: int
    error_rate: float | None  # errors / (ok + errors); None where nothing was judged
    unique_tools: int
    tools: dict[str, int]  # calls by tool


class Evidence(Struct, frozen=True, gc=False):
    """One reason for a verdict."""

    sign: str  # "label", "tests_passed", "user_corrected", ...
    weight: float  # towards success when positive
    step: int | None = None  # index into Session.steps


class Score(Struct, frozen=True, kw_only=True):
    verdict: Verdict
    quality: float  # 0-1
    confidence: float  # 0-1: how sure the verdict is
    evidence: tuple[Evidence, ...]
    category: Category
    task_type: TaskType
    counts: Counts
    is_proficient: bool  # knew its tools: enough judged calls, few errors, no repeated failure
    is_successful: bool  # verdict is success
