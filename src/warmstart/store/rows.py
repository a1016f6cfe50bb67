"""The rows of the store: one struct per table, with its fields in the order of the columns.

JSON columns hold text, so that listing a thousand sessions decodes nothing; callers decode the values they need
(`msgspec.json.decode(row.score, type=Score)`). Values are redacted before they reach the store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from msgspec import Struct
from msgspec.structs import astuple, replace

from warmstart.model import (
    Assignment,
    Basis,
    Category,
    Design,
    ErrorKind,
    Status,
    TaskType,
    TemplateStatus,
    TokenBasis,
    Verdict,
)

Change = Literal["new", "updated", "same", "forgotten", "foreign"]  # a person deleted it; another role has stored it
LeftOut = Literal["earlier"]  # the session had begun before its trial
ProjectBy = Literal["remote", "commit", "paths", "folder", "person"]


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """A row of a table."""

    def to_columns(self) -> tuple[Any, ...]:
        return astuple(self)

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        return cls(**dict(zip(cls.__struct_fields__, values, strict=True)))


class SourceRow(Row, frozen=True, kw_only=True, gc=False):
    """A file that was read, and how it looked then. It is read again only when it looks different."""

    uri: str  # path or URI of the transcript
    size: int  # bytes
    mtime_ns: int  # last change, nanoseconds since the epoch
    inode: int | None = None  # None: the file system has none
    reader: int = 0  # version of the rules that read it; with other rules it is read again
    read_at: float  # seconds since the epoch
    problems: str = "[]"  # JSON list of model.Problem

    def to_columns(self) -> tuple[Any, ...]:
        """Return the columns. SQLite's integers are signed, but the inodes of some file systems use the 64th bit."""
        signed = self.inode - (1 << 64) if self.inode is not None and self.inode >= 1 << 63 else self.inode
        return astuple(replace(self, inode=signed))

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        columns = dict(zip(cls.__struct_fields__, values, strict=True))
        if columns["inode"] is not None:
            columns["inode"] %= 1 << 64
        return cls(**columns)


class SessionRow(Row, frozen=True, kw_only=True, gc=False):
    """A stored session: its facts and its score."""

    key: str  # Warmstart's own id, a hash
    id: str  # the agent's own id; two agents may use the same
    format: str  # transcript format
    agent: str  # "claude-code", "codex", ...
    model: str | None = None  # the model that answered
    project: str | None = None  # identity of the project: see the package projects
    source_uri: str  # path or URI of the transcript
    task: str | None = None  # excerpt of the first request of the user
    started: float | None = None  # seconds since the epoch
    ended: float | None = None  # seconds since the epoch
    end_reason: str | None = None  # in the agent's words
    label: bool | None = None  # whether the task succeeded; None: nobody labelled it
    parent: str | None = None  # id of the session that spawned this one
    messages: int  # messages of user and agent
    calls: int  # tool calls
    results: int  # tool results
    errors: int  # results judged to be the agent's errors
    verdict: Verdict  # of the score; a column, so that it can be filtered
    quality: float  # 0-1
    confidence: float  # 0-1
    category: Category  # kind of work, from the tools used
    task_type: TaskType  # narrower kind, from the tools used
    score: str  # JSON of model.Score
    usage: str | None = None  # JSON of model.Usage
    digest: str  # hash of the redacted content; differs after a change
    first_seen: float  # time of the first ingest; updates keep it
    updated: float  # time of the last change of its content
    turns: int | None = None  # answers of the agent
    folder: str | None = None  # working folder, as the transcript names it
    root: str | None = None  # the project's root above that folder; None: unknown
    remote: str | None = None  # normalised git remote; None: unknown
    scope: str = ""  # agent profile, user and chat; empty: the machine's own user
    source: str | None = None  # place that its agent ran it for: cli, telegram, cron ...; None: unknown

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        columns = dict(zip(cls.__struct_fields__, values, strict=True))
        if columns["label"] is not None:
            columns["label"] = bool(columns["label"])
        return cls(**columns)

    @property
    def length(self) -> int:
        """The number of messages, calls and results. An older copy of a session is shorter."""
        return self.messages + self.calls + self.results


class CallRow(Row, frozen=True, kw_only=True, gc=False):
    """A stored tool call and its outcome."""

    session_key: str  # SessionRow.key
    ordinal: int  # position among the calls of its session, from 0
    call_id: str  # the agent's id of the call
    tool: str  # in the agent's words
    arguments: str  # JSON: an object, or a string if the agent wrote something else
    intent: str | None = None  # what the user or agent wanted at that point
    excerpt: str | None = None  # head and tail of the result
    status: Status  # how the call ended
    basis: Basis  # evidence for the status
    error_kind: ErrorKind | None = None  # only for errors
    at: float | None = None  # seconds since the epoch
    turn: int | None = None  # number of the agent's answer, from 1
    answered: float | None = None  # time of the result, seconds since the epoch
    flagged: bool | None = None  # the transcript's own error flag, where the outcome differs from it
    cause: str | None = None  # of an error: the line that names its cause
    findings: str | None = None  # JSON list: linter rules, compiler codes, failing tests
    words: str | None = None  # a person's words when they rejected the call
    request: int | None = None  # number of the user's message that it serves, from 1; None: not recorded
    asked: str | None = None  # of the first call that serves a message: the message
    closing: str | None = None  # of the last call that serves a message: the agent's words after it

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        columns = dict(zip(cls.__struct_fields__, values, strict=True))
        if columns["flagged"] is not None:
            columns["flagged"] = bool(columns["flagged"])
        return cls(**columns)


class ProjectNameRow(Row, frozen=True, kw_only=True, gc=False):
    """A folder or name that stands for a project."""

    name: str  # a folder, a project or a name that a person gave
    project: str  # the project's identity, or another name of it
    root: str | None = None  # the project's root above the folder; None: unknown
    by: ProjectBy  # how that is known
    at: float  # seconds since the epoch


class SpentRow(Row, frozen=True, kw_only=True, gc=False):
    """A session's usage of one model on one day, from its transcript."""

    session_key: str  # SessionRow.key
    model: str  # empty: unknown
    day: str  # UTC, 2026-11-16; empty: unknown
    input: int | None = None  # tokens; None: unknown, here and below
    output: int | None = None  # tokens
    cache_read: int | None = None  # tokens
    cache_write: int | None = None  # tokens
    reasoning: int | None = None  # tokens, part of the output
    cost: float | None = None  # US dollars, as reported
    basis: TokenBasis  # of the tokens


class LiveRow(Row, frozen=True, kw_only=True, gc=False):
    """A session's usage of one model on one day, as callers report it while the session runs."""

    session: str  # the agent's own id
    agent: str  # empty: unknown
    model: str  # empty: unknown
    project: str | None = None  # None: unknown
    day: str  # UTC, 2026-11-16
    input: int | None = None  # tokens; None: unknown, here and below
    output: int | None = None  # tokens
    cache_read: int | None = None  # tokens
    cache_write: int | None = None  # tokens
    reasoning: int | None = None  # tokens, part of the output
    cost: float | None = None  # US dollars
    updated: float  # seconds since the epoch


class CounterRow(Row, frozen=True, kw_only=True, gc=False):
    """The last running total that a caller reported."""

    session: str  # the agent's own id
    agent: str  # empty: unknown
    model: str  # empty: the totals are the whole session's
    last: str  # JSON, model.Usage: the last total
    base: str  # JSON, model.Usage: what was counted before the counter started over
    since: float  # when it started over, seconds since the epoch; 0: never
    at: float  # seconds since the epoch


class TemplateRow(Row, frozen=True, kw_only=True, gc=False):
    """One version of a template, without its examples."""

    name: str  # as given
    version: int  # from 1
    name_key: str  # the same for names that look alike
    status: TemplateStatus
    reason: str  # why it has that status
    category: Category  # kind of work
    task_type: TaskType  # narrower kind
    project: str  # empty: any project
    strength: float  # to rank templates of one kind
    body: str  # JSON of model.Template without its examples
    digest: str  # of the content
    created: float  # seconds since the epoch
    used: int = 0  # number of sessions that it was given to
    last_used: float | None = None  # seconds since the epoch
    effect: str | None = None  # JSON of model.Effect: measured on sessions that it was shown to
    scope: str = ""  # as SessionRow.scope; "*": a person shared it


class ExampleRow(Row, frozen=True, kw_only=True, gc=False):
    """One example of a version."""

    id: int  # given by the store
    name: str  # of the template
    version: int  # of the template
    ordinal: int  # position in the template, from 0
    tool: str  # in the agent's words
    body: str  # JSON of model.Example
    costs: str  # JSON: dialect -> tokens
    further: int = 0  # 1: no part of what a person reviews first; see model.Template.further


class FoundRow(ExampleRow, frozen=True, kw_only=True, gc=False):
    """An example with the columns of its template that filters need."""

    category: Category  # of the template
    task_type: TaskType  # of the template
    used: int  # number of sessions that the template was given to
    template: str  # JSON of model.Template without its examples
    effect: str | None  # JSON of model.Effect
    project: str  # of the template; empty: any project
    scope: str  # of the template


class TrialRow(Row, frozen=True, kw_only=True, gc=False):
    """What a session was given, fixed once; and how it went, once its transcript is known."""

    session: str  # the unit of assignment
    arm: str  # as it was drawn, and never changed: warm, cold, text, or the name of a template
    picks: str  # JSON list of model.Pick; in the cold arm those that would have been given
    task: str  # JSON: facts known before the session, redacted
    at: float  # seconds since the epoch
    experiment: str = ""  # empty: the standing holdout
    assignment: Assignment = "random"  # how the arm was assigned
    propensities: str = "{}"  # JSON: arm -> its probability
    parent: str | None = None  # session whose arm it keeps
    transcript: str | None = None  # SessionRow.key; None: missing so far
    measures: str | None = None  # JSON of model.Measures
    closed: float | None = None  # time when the transcript was last measured
    chosen: str | None = None  # arm that a person chose after the draw; None: the drawn one was given
    chosen_at: float | None = None  # seconds since the epoch
    left_out: LeftOut | None = None  # why the measured session is not compared; None: it is

    @property
    def given(self) -> str:
        """The arm that the session runs in: the drawn one, unless a person chose another later."""
        return self.chosen or self.arm


class PlaceRow(Row, frozen=True, kw_only=True, gc=False):
    """Where a session runs and whose it is, as its agent's program knew."""

    session: str  # the agent's own id
    agent: str
    folder: str | None  # working folder; None: unknown, or on another machine
    scope: str  # empty: the machine's own user in the default profile
    summary: str = ""  # digest of the summary that the conversation began with; empty: it began without one
    at: float = 0.0  # seconds since the epoch


class ExperimentRow(Row, frozen=True, kw_only=True, gc=False):
    """A comparison that a person started."""

    name: str  # as given
    arms: str  # JSON: arm -> share at the start
    shares: str  # JSON: arm -> share for new sessions
    metric: str  # the metric that decides
    salt: str  # hashed with a session's id to draw the arm
    after: Literal["fixed", "thompson"]  # how arms are drawn once there is a verdict
    floor: float  # minimum share of the control then
    started: float  # seconds since the epoch
    stopped: float | None = None  # None: running
    design: Design = "random"  # how arms are assigned
    horizon: float | None = None  # turns within which the first success must come; None: model.WINDOW


class ProposalRow(Row, frozen=True, kw_only=True, gc=False):
    """A proposal of a review: something to keep."""

    id: str  # 128 random bits
    digest: str  # of its content
    kind: Literal["memory", "skill", "template", "note"]
    action: str  # add, replace, remove; create, edit, patch, delete; propose
    target: str  # memory or user; the name of a skill or template
    summary: str  # one line, redacted
    body: str  # JSON, redacted: the content to write
    cites: str  # JSON: numbers of the steps that show it, from 1
    suspicions: str = "[]"  # JSON: reasons why a person must look, whatever the policy says
    status: Literal["waiting", "applied", "discarded"] = "waiting"
    reason: str = ""  # why it has that status
    write_origin: str  # the component that proposed it
    execution_context: str  # where that component ran
    session: str  # the agent's own id
    session_key: str  # SessionRow.key; the session need not be stored
    source: str = ""  # path of the transcript; empty: none
    parent: str | None = None  # session that started this session
    platform: str  # cli, telegram, ...; the agent if that is unknown
    tool_call: str | None = None  # id of the model's call that proposed it; None: no model did
    created: float  # seconds since the epoch
    decided: float | None = None  # seconds since the epoch
    decided_by: str | None = None  # person, policy:review
