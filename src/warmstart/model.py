"""Every domain type. Immutable values; what is not known is None or "unknown", never zero. Imports nothing of ours."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Status = Literal["ok", "error", "rejected", "cancelled", "unknown"]
Basis = Literal["flag", "exit_code", "structure", "text", "none"]
ErrorKind = Literal["arguments", "precondition", "permission", "environment", "semantic", "other"]
Verdict = Literal["success", "failure", "unknown"]
Category = Literal["coding", "research", "ops", "general"]
TaskType = Literal["code", "file", "research", "mixed"]
Role = Literal["system", "user", "assistant"]
TokenBasis = Literal["reported", "estimated"]

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
    """Something the system, the user or the agent said."""

    role: Role
    text: str  # clipped: head and tail of what was said
    at: float | None = None  # seconds since the epoch, UTC


class ToolCall(Struct, frozen=True, gc=False, tag="call"):
    """A tool call that the agent made."""

    call_id: str
    tool: str
    arguments: Arguments  # long strings inside are clipped
    at: float | None = None


class ToolResult(Struct, frozen=True, gc=False, tag="result"):
    """What a tool answered."""

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
    basis: TokenBasis = "reported"  # of the tokens; a cost is always as reported


class Spent(Struct, frozen=True, gc=False):
    """What a session used of one model on one day."""

    usage: Usage
    model: str = ""  # "" where it is not told
    day: str = ""  # UTC, "2026-11-16"; "" where it is not told


class LiveUsage(Struct, frozen=True, kw_only=True):
    """What a caller says of a session while it runs: running totals, or what one answer cost."""

    session: str  # the agent's own id, as its transcript will name it
    usage: Usage
    model: str = ""  # "" is not told
    agent: str = ""  # "claude-code", "codex", ...; "" is not told
    project: str | None = None
    event: str | None = None  # an id of this report: told again it changes nothing
    at: float | None = None  # seconds since the epoch; None is now
    whole: bool = False  # running totals of the session over all its models, not of this model alone


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens. None: there is no such price, so what needs it has no known cost."""

    input: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    output: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    cache_read: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    cache_write: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    window: int | None = None  # tokens that the model takes in


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
    spent: tuple[Spent, ...] = ()  # `usage` by model and day

    def number_turns(self) -> list[int]:
        """For each step in which turn it stands. A turn is one answer of the agent, with all that it calls at once:
        the next begins when it speaks again after a person or a tool has spoken."""
        found: list[int] = []
        turn, listening = 0, True
        for step in self.steps:
            if isinstance(step, ToolCall) or (isinstance(step, Message) and step.role == "assistant"):
                turn += listening
                listening = False
            else:
                listening = True
            found.append(turn)
        return found

    def calls(self) -> list[tuple[ToolCall, ToolResult | None]]:
        """Each call with its answer. Agents reuse ids: a result answers the latest open call of its id."""
        found: list[tuple[ToolCall, ToolResult | None]] = []
        waiting: dict[str, int] = {}
        for step in self.steps:
            if isinstance(step, ToolCall):
                waiting[step.call_id] = len(found)
                found.append((step, None))
            elif isinstance(step, ToolResult) and (at := waiting.pop(step.call_id, None)) is not None:
                found[at] = (found[at][0], step)
        return found


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
    """How a session went, what kind of work it was, and why we think so."""

    verdict: Verdict
    quality: float  # 0-1
    confidence: float  # 0-1: how sure the verdict is
    evidence: tuple[Evidence, ...]
    category: Category
    task_type: TaskType
    counts: Counts
    is_proficient: bool  # knew its tools: enough judged calls, few errors, no repeated failure
    is_successful: bool  # verdict is success


# Warm seed out: what is kept, what is asked for, what is given.

Dialect = Literal["openai", "anthropic", "responses", "gemini", "text"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic", "responses", "gemini", "text")
TemplateStatus = Literal["proposed", "active", "retired"]
Origin = Literal["learned", "captured", "imported"]


class PastCall(Struct, frozen=True, kw_only=True):
    """A stored call: redacted, its result shortened."""

    ordinal: int  # place among its session's calls
    call_id: str
    tool: str
    arguments: Arguments
    intent: str = ""  # what the user or the agent had said just before
    excerpt: str | None = None  # None: never answered
    outcome: Outcome = UNKNOWN
    at: float | None = None
    turn: int | None = None  # in which answer of the agent, from 1
    answered: float | None = None  # when the result came


class PastSession(Struct, frozen=True, kw_only=True):
    """A stored session with its calls, for mining."""

    key: str
    id: str
    agent: str
    category: Category
    task_type: TaskType
    verdict: Verdict
    quality: float
    project: str | None = None
    task: str = ""  # what the user first asked for
    started: float | None = None
    end_reason: str | None = None
    parent: str | None = None
    errors: int = 0
    results: int = 0
    calls: tuple[PastCall, ...] = ()
    model: str | None = None
    ended: float | None = None
    label: bool | None = None
    turns: int | None = None  # answers of the agent; None where nobody counted
    usage: Usage | None = None


class Example(Struct, frozen=True, kw_only=True):
    """One call that worked, as it will be shown to a new session."""

    tool: str
    arguments: Arguments  # redacted
    result: str  # redacted excerpt, head and tail
    intent: str = ""  # what the user or the agent wanted just then
    task: str = ""  # what its session was asked for: not shown, but searched when choosing
    correction: str | None = None  # where an earlier try failed: what was wrong with it
    why: str = ""  # why this one was taken
    session: str = ""  # key of the session it comes from
    step: int | None = None  # its place among that session's calls
    support: int = 1  # sessions that made a call of this shape
    successes: int = 1  # calls of this shape that worked ...
    failures: int = 0  # ... and that failed

    def adjoins(self, other: Example) -> bool:
        """Whether the two stand side by side in one session, on the same request, so that they can be shown as one
        exchange. Not where the later one corrects a mistake: that is said with words of its own."""
        if self.step is None or other.step is None or abs(self.step - other.step) != 1:
            return False
        if not self.session or not self.intent or (self.session, self.intent) != (other.session, other.intent):
            return False
        return (self if self.step > other.step else other).correction is None


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a template comes from."""

    origin: Origin
    project: str | None = None
    agent: str | None = None
    parent: str | None = None  # name@version it replaces
    source: str | None = None  # file it was imported from
    suspicions: tuple[str, ...] = ()  # why a person should look first


class Template(Struct, frozen=True, kw_only=True):
    """A few good examples of one kind of work, kept for new sessions."""

    name: str
    version: int = 1
    category: Category = "general"
    task_type: TaskType = "mixed"
    description: str = ""
    tags: tuple[str, ...] = ()
    addendum: str = ""  # extra guidance for the system prompt
    examples: tuple[Example, ...] = ()
    source_sessions: tuple[str, ...] = ()
    status: TemplateStatus = "proposed"
    created: float | None = None
    used: int = 0
    provenance: Provenance = Provenance(origin="learned")


class Pick(Struct, frozen=True, kw_only=True):
    """An example chosen for a task, with the template it stands in."""

    template: str
    version: int
    example: Example
    tokens: int | None = None  # in the dialect asked for, where it was counted before


class Omission(Struct, frozen=True):
    """What was not given, and why."""

    template: str
    reason: str


def name_job(job: str) -> str:
    """What stands for a project in the runs of a scheduled job: they are one kind of work, wherever they run."""
    return f"job:{job}"


class Task(Struct, frozen=True, kw_only=True):
    """What a new session is about to do, and what may be given to it."""

    text: str = ""  # the request; also a template's name or a category as a pick
    agent: str | None = None
    model: str | None = None
    project: str | None = None  # only examples of this project and of none
    own: bool = False  # of this project alone: nothing else is known that could make others fit
    tools: tuple[str, ...] | None = None  # the tools the session has; None: not known
    category: Category | None = None
    task_type: TaskType | None = None
    tags: tuple[str, ...] = ()
    templates: tuple[str, ...] | None = None  # choose among these only; None: among all
    budget: int = 1_500  # tokens of the whole seed
    examples: int = 3  # at most
    dialect: Dialect = "openai"
    thinking: bool = False  # the model thinks aloud in signed blocks (Anthropic)
    session: str | None = None  # the unit of assignment; None: a preview
    parent: str | None = None  # the session that started this one, or that it goes on from: its arm is kept
    continues: bool = False  # it goes on from its parent, so the seed stays the same too
    adds: bool = False  # it adds to its parent's seed in the same conversation, so nothing is shown twice
    job: str | None = None  # the scheduled job that it is a run of: its runs come first, and its trial counts under it
    cold: bool = False  # a person wants this session cold; it is then left out of the comparison
    arm: str | None = None  # which arm it plays, where a paired experiment runs; else it is drawn


class Decision(Struct, frozen=True, kw_only=True):
    """Why a template has its status."""

    template: str
    version: int
    status: TemplateStatus
    by: str  # "person", or the policy that decided
    reason: str
    at: float


# Measured effect back: who got what, and what became of it.

Assignment = Literal["random", "paired", "choice", "inherited", "unknown"]
Design = Literal["random", "paired"]  # a session plays one arm, drawn; or every task is done in every arm
EffectVerdict = Literal["better", "worse", "inconclusive", "too_few"]
WINDOW = (
    30  # turns that the primary metric looks at: long sessions are the survivors, so all are compared at their start
)


class Measures(Struct, frozen=True, kw_only=True):
    """How one session went, in the numbers that arms are compared by. None is not known."""

    errors: int  # calls in the window that failed
    judged: int  # calls in the window that worked or failed; a person's no, collateral and the unknown are out
    calls: int  # calls in the window, however they ended
    all_errors: int  # the same over the whole session
    all_judged: int
    all_calls: int
    tools: int  # different tools used with success in the window
    turns: int | None = None
    success_turn: int | None = None  # the turn of the first call that worked; None: none did
    success_seconds: float | None = None  # from the session's start
    seconds: float | None = None  # how long it was watched
    tokens: int | None = None  # all that were sent and answered, the seed's included
    tokens_basis: TokenBasis = "reported"
    seed_tokens: int = 0
    cost: float | None = None  # US dollars
    label: bool | None = None  # task success, where someone labelled it


class Effect(Struct, frozen=True, kw_only=True):
    """What an arm did, compared with the control. An interval that is not defined is None, never a point."""

    metric: str
    arm: str
    control: str
    n: dict[str, int]  # sessions compared, by arm
    missing: dict[str, int]  # assigned, but without a transcript
    values: dict[str, float | None]  # the metric, by arm
    difference: float | None = None
    low: float | None = None  # of the difference; holds however often one looks
    high: float | None = None
    relative: float | None = None  # difference / control's value
    verdict: EffectVerdict = "too_few"
    reason: str = ""
    blocked: str | None = None  # why no verdict may be given
    harmed: int | None = None  # sessions that did worse than nine in ten of the control's
    harmed_expected: float | None = None  # as many would by chance
    clusters: int = 0
    clustered_by: str = "session"
    adjusted: bool = False  # for what was known before the sessions
    shrunk: float | None = None  # of one among many: the relative effect, drawn towards the others'
