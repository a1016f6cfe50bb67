"""Every domain type: immutable values. Unknown is None or "unknown", never zero. Imports nothing else of Warmstart."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

Status = Literal[
    "ok", "error", "rejected", "denied", "cancelled", "unknown"
]  # denied: by a hook or rule, unseen by a person
Basis = Literal["flag", "exit_code", "structure", "text", "none"]
ErrorKind = Literal["arguments", "precondition", "permission", "environment", "semantic", "other"]
Verdict = Literal["success", "failure", "unknown"]
Category = Literal["coding", "research", "ops", "general"]
TaskType = Literal["code", "file", "research", "mixed"]
Role = Literal["system", "user", "assistant"]
TokenBasis = Literal["reported", "completed", "estimated"]  # completed: reported, but for an output taken from the text
CostBasis = Literal[
    "reported", "priced", "estimated"
]  # priced: list price of reported tokens; estimated: of estimated ones
EffectRole = Literal["decides", "guardrail", "context"]

Arguments = dict[str, Any] | str  # a string if the agent wrote something other than a JSON object


class Signal(Struct, frozen=True, gc=False):
    """What a transcript says about a result besides the result's text."""

    failed: bool | None = None  # the error flag, if the format has one
    exit_code: int | None = None
    status: Status | None = None  # the outcome, if the format names it (Gemini: "cancelled")
    basis: Basis = "flag"  # evidence for `status` or `failed`


class Outcome(Struct, frozen=True, gc=False):
    """How one tool call ended, and how that is known."""

    status: Status
    basis: Basis = "none"  # evidence for the status
    error_kind: ErrorKind | None = None  # only for errors
    flagged: bool | None = None  # the transcript's own error flag, where the outcome differs from it
    cause: str | None = None  # of an error: the line that names its cause
    findings: tuple[str, ...] = ()  # linter rules, compiler codes and failing tests that the result names
    words: str | None = None  # a person's words when they rejected the call

    @property
    def counts(self) -> bool:
        """Whether the call counts in an error rate. Rejected, denied, cancelled and unknown calls do not."""
        return self.status == "ok" or self.status == "error"


UNKNOWN = Outcome("unknown")


class Message(Struct, frozen=True, gc=False, tag="message"):
    """A message of the system, the user or the agent."""

    role: Role
    text: str  # clipped: head and tail
    at: float | None = None  # seconds since the epoch, UTC


class ToolCall(Struct, frozen=True, gc=False, tag="call"):
    """A tool call that the agent made."""

    call_id: str
    tool: str
    arguments: Arguments  # long strings are clipped
    at: float | None = None


class ToolResult(Struct, frozen=True, gc=False, tag="result"):
    """The result of a tool call."""

    call_id: str
    text: str  # clipped: head and tail
    outcome: Outcome  # judged on the full text
    at: float | None = None


Step = Message | ToolCall | ToolResult


class Usage(Struct, frozen=True, gc=False):
    """Tokens and cost of a session. Prompt tokens = input + cache_read + cache_write."""

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost: float | None = None  # US dollars, as the transcript reports it
    basis: TokenBasis = "reported"  # of the tokens; a cost is always reported


class Spent(Struct, frozen=True, gc=False):
    """A session's usage of one model on one day."""

    usage: Usage
    model: str = ""  # empty: unknown
    day: str = ""  # UTC, "2026-11-16"; empty: unknown


class LiveUsage(Struct, frozen=True, kw_only=True):
    """Usage that a caller reports while a session runs: running totals, or the usage of one answer."""

    session: str  # the agent's own session id, the one in its transcript
    usage: Usage
    model: str = ""  # empty: unknown
    agent: str = ""  # "claude-code", "codex", ...; empty: unknown
    project: str | None = None
    event: str | None = None  # id of this report; reporting it again changes nothing
    at: float | None = None  # seconds since the epoch; None: now
    whole: bool = False  # `usage` totals all models of the session, not this model alone


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars per million tokens. None: unknown; usage that needs this price has no known cost."""

    input: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    output: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    cache_read: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    cache_write: Annotated[float, Meta(ge=0, le=1e6)] | None = None
    window: int | None = None  # context window of the model, in tokens


class SessionOwner(Struct, frozen=True, kw_only=True, gc=False):
    """Whose session it is, in the agent's own words. Never stored: see the module scopes."""

    profile: str = ""  # of the agent; empty: the default profile
    platform: str = ""  # telegram, slack, ...; empty: the machine's own user
    chat: str = ""  # raw id of the chat
    user: str = ""  # raw id of the person


class Session(Struct, frozen=True):
    """One agent session, as read from a transcript."""

    id: str  # the agent's own id; derived from the content if there is none
    format: str
    source_uri: str
    agent: str
    steps: tuple[Step, ...]
    model: str | None = None
    project: str | None = None  # the working folder, or the agent's name for the project
    task: str | None = None  # the first request of the user
    started: float | None = None
    ended: float | None = None
    end_reason: str | None = None  # in the agent's words
    usage: Usage | None = None
    label: bool | None = None  # whether the task succeeded; None: nobody labelled it
    parent: str | None = None  # the session that spawned this one
    unkept: int = 0  # steps that were counted but dropped, because the session is too long
    spent: tuple[Spent, ...] = ()  # `usage` by model and day
    remote: str | None = None  # git remote, if the transcript records it
    opening: str | None = None  # a message of the program in front of the task; session keys are made of it
    scope: str = ""  # of a stored session; of others it is named after their owner when they are recorded
    owner: SessionOwner = SessionOwner()
    source: str | None = None  # place that its agent ran it for: cli, telegram, cron ...

    def number_turns(self) -> list[int]:
        """Return the number of each step's turn.

        A turn is one answer of the agent with all its calls. The next turn begins when the agent answers after a
        message of someone else or a tool result.
        """
        turns: list[int] = []
        turn, listening = 0, True
        for step in self.steps:
            if isinstance(step, ToolCall) or (isinstance(step, Message) and step.role == "assistant"):
                turn += listening
                listening = False
            else:
                listening = True
            turns.append(turn)
        return turns

    def calls(self) -> list[tuple[ToolCall, ToolResult | None]]:
        """Return each call with its result. Agents reuse ids: a result answers the latest open call with its id."""
        calls: list[tuple[ToolCall, ToolResult | None]] = []
        waiting: dict[str, int] = {}
        for step in self.steps:
            if isinstance(step, ToolCall):
                waiting[step.call_id] = len(calls)
                calls.append((step, None))
            elif isinstance(step, ToolResult) and (at := waiting.pop(step.call_id, None)) is not None:
                calls[at] = (calls[at][0], step)
        return calls


class Problem(Struct, frozen=True, gc=False):
    """A part of a source that could not be read. The rest was read."""

    path: str
    reason: str
    line: int | None = None


class Counts(Struct, frozen=True, kw_only=True):
    """Counts of a session."""

    total_messages: int  # messages of user and agent, without calls and results
    tool_calls: int
    tool_results: int
    error_count: int
    error_rate: float | None  # errors / (ok + errors); None if no call was judged
    unique_tools: int
    tools: dict[str, int]  # calls by tool


class Evidence(Struct, frozen=True, gc=False):
    """One reason for a verdict."""

    sign: str  # "label", "tests_passed", "user_corrected", ...
    weight: float  # positive: towards success
    step: int | None = None  # index into Session.steps


class Score(Struct, frozen=True, kw_only=True):
    """How a session went and what kind of work it was, with the evidence."""

    verdict: Verdict
    quality: float  # 0-1
    confidence: float  # 0-1: confidence in the verdict
    evidence: tuple[Evidence, ...]
    category: Category
    task_type: TaskType
    counts: Counts
    is_proficient: bool  # enough judged calls, few errors, no repeated failure
    is_successful: bool  # the verdict is success


# Warm seed out: templates, tasks, seeds.

Dialect = Literal["openai", "anthropic", "responses", "gemini", "text"]
DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic", "responses", "gemini", "text")
TemplateStatus = Literal["proposed", "active", "retired"]
Origin = Literal["learned", "captured", "imported", "written"]  # written: by hand, in a program


class PastCall(Struct, frozen=True, kw_only=True):
    """A stored call: redacted, its result shortened."""

    ordinal: int  # position among the calls of its session
    call_id: str
    tool: str
    arguments: Arguments
    intent: str = ""  # what the user or the agent said just before
    excerpt: str | None = None  # of the result; None: never answered
    outcome: Outcome = UNKNOWN
    at: float | None = None
    turn: int | None = None  # number of the agent's answer, from 1
    answered: float | None = None  # time of the result
    request: int | None = None  # number of the user's message that it serves, from 1; None: not recorded
    asked: str = ""  # of the first call that serves a message: that message
    closing: str = ""  # of the last call that serves a message: the agent's own words after it


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
    task: str = ""  # the first request of the user
    started: float | None = None
    end_reason: str | None = None
    parent: str | None = None
    errors: int = 0
    results: int = 0
    calls: tuple[PastCall, ...] = ()
    model: str | None = None
    ended: float | None = None
    label: bool | None = None
    turns: int | None = None  # answers of the agent; None: not counted
    usage: Usage | None = None
    signs: tuple[str, ...] = ()  # of a failure: the evidence for it, the heaviest first
    folder: str | None = None  # working folder, as the transcript names it
    root: str | None = None  # the project's root above that folder; None: unknown
    remote: str | None = None  # normalised git remote
    scope: str = ""  # agent profile, user and chat; empty: the machine's own user
    stand_ins: tuple[str, ...] = ()  # values that were put in the place of people's; not stored


class ExampleCall(Struct, frozen=True, kw_only=True):
    """One call of an exchange."""

    tool: str
    arguments: Arguments  # redacted
    result: str  # redacted excerpt, head and tail
    correction: str | None = None  # what was wrong with an earlier attempt, if one failed


class Example(Struct, frozen=True, kw_only=True):
    """One exchange, as shown to a new session: a request, the calls that met it, and the agent's closing words.

    Where a request took too many calls to be shown, it is one call that worked, and `calls` is empty.
    """

    tool: str
    arguments: Arguments  # redacted
    result: str  # redacted excerpt, head and tail
    intent: str = ""  # what the user or the agent wanted at that point
    task: str = ""  # the request of its session; searched when choosing, not shown
    correction: str | None = None  # what was wrong with an earlier attempt, if one failed
    why: str = ""  # why this call was chosen
    session: str = ""  # key of its session
    step: int | None = None  # position among the calls of that session
    support: int = 1  # number of sessions with a call of this shape
    successes: int = 1  # calls of this shape that worked
    failures: int = 0  # calls of this shape that failed
    calls: tuple[ExampleCall, ...] = ()  # all calls that met the request, in order; empty: this call is one of several
    closing: str = ""  # the agent's own words after the last call, shortened
    stand_ins: tuple[str, ...] = ()  # values in the calls that are made up, in place of secret or personal ones

    @property
    def is_whole(self) -> bool:
        """Whether it shows everything that met its request."""
        return bool(self.calls)

    @property
    def shown(self) -> tuple[ExampleCall, ...]:
        """The calls to show, in order."""
        own = ExampleCall(tool=self.tool, arguments=self.arguments, result=self.result, correction=self.correction)
        return self.calls or (own,)

    def adjoins(self, other: Example) -> bool:
        """Return whether two examples are neighbours in one session and serve the same request.

        Such examples can be shown as one exchange. A correction cannot: it is introduced by its own words.
        """
        if self.calls or other.calls or self.step is None or other.step is None or abs(self.step - other.step) != 1:
            return False
        if not self.session or not self.intent or (self.session, self.intent) != (other.session, other.intent):
            return False
        return (self if self.step > other.step else other).correction is None


class Provenance(Struct, frozen=True, kw_only=True):
    """Where a template comes from."""

    origin: Origin
    project: str | None = None
    scope: str = ""  # of the sessions that it was mined from
    agent: str | None = None
    parent: str | None = None  # name@version that it replaces
    source: str | None = None  # file that it was imported from
    suspicions: tuple[str, ...] = ()  # reasons why a person should look first
    partial: bool = False  # learned by a run with a filter; the next run without one replaces it


class Template(Struct, frozen=True, kw_only=True):
    """A few good examples of one kind of work, for new sessions."""

    name: str
    version: int = 1
    category: Category = "general"
    task_type: TaskType = "mixed"
    description: str = ""
    tags: tuple[str, ...] = ()
    addendum: str = ""  # extra guidance for the system prompt
    examples: tuple[Example, ...] = ()
    further: tuple[Example, ...] = ()  # other exchanges of its sessions that seeds may show too
    source_sessions: tuple[str, ...] = ()  # sessions that it was mined from
    status: TemplateStatus = "proposed"
    created: float | None = None  # seconds since the epoch
    used: int = 0  # number of seeds that showed it
    provenance: Provenance = Provenance(origin="learned")


class LearnedNotes(Struct, frozen=True, kw_only=True):
    """The result of learning notes."""

    projects: int  # looked at
    notes: int  # active now
    proposed: int  # waiting for a person, or for a second session
    new: int  # that were not there before
    retired: int  # that no longer hold


class NoteOmission(Struct, frozen=True):
    """An active note that was left out of a brief, and why."""

    note: str  # its id
    reason: str


class Brief(Struct, frozen=True, kw_only=True):
    """What a project knows, in a few lines for the start of a session."""

    project: str | None = None
    text: str = ""  # empty: nothing is worth saying
    tokens: int = 0
    budget: int = 300
    notes: tuple[str, ...] = ()  # ids of the notes in it
    files: tuple[str, ...] = ()  # that requests like the task's edited, relative to the project
    omitted: tuple[NoteOmission, ...] = ()  # the active notes that are not in it


class MetNote(Struct, frozen=True, kw_only=True):
    """A note that waits for a person, and the calls of a session that met it."""

    id: str
    project: str
    kind: str
    subject: str
    text: str
    calls: tuple[int, ...]  # indexes among the session's calls
    suspicions: tuple[str, ...] = ()


class Pick(Struct, frozen=True, kw_only=True):
    """An example chosen for a task, with its template."""

    template: str
    version: int
    example: Example
    tokens: int | None = None  # in the dialect of the task, if counted before
    match: float = 0.0  # how near its request is to the task; the nearest is shown last


class Omission(Struct, frozen=True):
    """A template that was left out of a seed, and why."""

    template: str
    reason: str


_JOB = "job:"


def name_job(job: str) -> str:
    """Return the project name of a scheduled job's runs: they are one kind of work, in whatever folder they run."""
    return f"{_JOB}{job}"


def is_job(project: str | None) -> bool:
    """Return whether a project name is that of a scheduled job's runs."""
    return project is not None and project.startswith(_JOB)


class Task(Struct, frozen=True, kw_only=True):
    """The work of a new session, and limits for its seed."""

    text: str = ""  # the request; the name of a template or a category picks that
    agent: str | None = None
    model: str | None = None
    project: str | None = None  # project or working folder: its examples and those of none; None: of none; "*": all
    root: str | None = None  # root of the project where the session runs; None: found from the working folder
    scope: str = ""  # agent profile, user and chat: only examples of this scope and shared ones
    own: bool = False  # only examples of this project: nothing else is known that could make others fit
    tools: tuple[str, ...] | None = None  # tools of the session; None: unknown
    category: Category | None = None
    task_type: TaskType | None = None
    tags: tuple[str, ...] = ()
    templates: tuple[str, ...] | None = None  # choose among these; None: among all
    budget: int = 1_500  # maximum tokens of the seed, its brief included
    brief: int | None = None  # maximum tokens of the brief; 0: none; None: as the settings say
    examples: int = 8  # maximum number of examples; the budget is usually used up before
    dialect: Dialect = "openai"
    thinking: bool = False  # the model uses signed thinking blocks (Anthropic)
    session: str | None = None  # the unit of assignment; None: a preview
    parent: str | None = None  # session that started or precedes this one; its arm is kept
    continues: bool = False  # the session continues its parent, so the seed stays the same too
    adds: bool = False  # the seed adds to the parent's in the same conversation, so nothing is shown twice
    job: str | None = None  # scheduled job of this run: its earlier runs come first, and the trial counts for it
    cold: bool = False  # a person wants this session cold; left out of the comparison if no arm was drawn before
    arm: str | None = None  # arm in a paired experiment; otherwise it is drawn


class Decision(Struct, frozen=True, kw_only=True):
    """Why a template has its status."""

    template: str
    version: int
    status: TemplateStatus
    by: str  # "person" or the policy that decided
    reason: str
    at: float


# Measured effect back: trials and effects.

Assignment = Literal["random", "paired", "choice", "inherited", "unknown"]
# An arm is drawn for each session; every task runs in every arm; or notes are drawn at their occurrences in sessions.
Design = Literal["random", "paired", "occurrence"]
EffectVerdict = Literal["better", "worse", "inconclusive", "too_few"]
# Turns that the primary metric looks at. Long sessions are the survivors, so all are compared at their start.
WINDOW = 30


class Measures(Struct, frozen=True, kw_only=True):
    """The numbers of one session by which arms are compared. None: unknown."""

    errors: int  # calls in the window that failed
    judged: int  # calls in the window that worked or failed; not rejected, cancelled or unknown ones
    calls: int  # all calls in the window
    all_errors: int  # calls of the whole session that failed
    all_judged: int  # calls of the whole session that worked or failed
    all_calls: int  # all calls of the whole session
    tools: int  # distinct tools that worked in the window
    turns: int | None = None  # answers of the agent
    success_turn: int | None = None  # turn of the first call that worked; None: no call worked
    success_seconds: float | None = None  # seconds from the start to that call
    seconds: float | None = None  # length of the session
    tokens: int | None = None  # prompt and answer tokens, with the seed
    tokens_basis: TokenBasis = "reported"
    seed_tokens: int = 0
    cost: float | None = None  # US dollars
    cost_basis: CostBasis = "reported"
    label: bool | None = None  # whether the task succeeded; None: nobody labelled it


class Effect(Struct, frozen=True, kw_only=True):
    """One arm compared with the control. An undefined interval is None, never a point."""

    metric: str
    arm: str
    control: str
    n: dict[str, int]  # sessions compared, per arm
    missing: dict[str, int]  # sessions assigned but without a transcript, per arm
    values: dict[str, float | None]  # the metric, per arm
    difference: float | None = None  # arm minus control
    low: float | None = None  # lower bound of the difference; valid however often you look
    high: float | None = None  # upper bound of the difference
    relative: float | None = None  # difference / value of the control
    worst_low: float | None = (
        None  # lower bound if the sessions missing too often were at their best; None: none missing
    )
    worst_high: float | None = None  # upper bound if they were at their worst
    extreme_low: float | None = None  # the same if all missing sessions, those of both arms, were at that end
    extreme_high: float | None = None
    verdict: EffectVerdict = "too_few"
    reason: str = ""
    blocked: str | None = None  # why there can be no verdict
    harmed: int | None = None  # sessions worse than 90 % of the control's
    harmed_expected: float | None = None  # number expected by chance
    clusters: int = 0  # independent groups of sessions
    clustered_by: str = "session"
    adjusted: bool = False  # corrected for facts known before the sessions
    shrunk: float | None = None  # relative effect of one template among many, drawn towards the others'
    role: EffectRole = "context"  # what the metric does for the verdict
    basis: str | None = None  # of tokens and costs: the weakest basis among the compared sessions
    bases: dict[str, dict[str, int]] = {}  # of tokens and costs: sessions by basis, per arm
    other_basis: dict[str, int] = {}  # sessions left out per arm, because their figures rest on another basis
