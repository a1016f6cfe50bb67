"""The store's rows: one struct a table, its fields in the order of the table's columns.

JSON columns hold text: whoever wants the value decodes it (`msgspec.json.decode(row.score, type=Score)`), so that
listing a thousand sessions decodes nothing. Everything here is redacted before it comes; the store only keeps it.
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

Change = Literal["new", "updated", "same"]


class Row(Struct, frozen=True, kw_only=True, gc=False):
    """A line of a table."""

    def to_columns(self) -> tuple[Any, ...]:
        return astuple(self)

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        return cls(**dict(zip(cls.__struct_fields__, values, strict=True)))


class SourceRow(Row, frozen=True, kw_only=True, gc=False):
    """A place that was read, and how it looked then: while it looks the same it need not be read again."""

    uri: str  # path or URI of the transcript
    size: int  # bytes
    mtime_ns: int  # last change, nanoseconds since the epoch
    inode: int | None = None  # where the file system has one
    reader: int = 0  # number of the reading program's rules: with other rules the source is read again
    read_at: float  # seconds since the epoch
    problems: str = "[]"  # JSON list of model.Problem

    def to_columns(self) -> tuple[Any, ...]:
        """SQLite's integers are signed, some file systems' inodes use the 64th bit."""
        signed = self.inode - (1 << 64) if self.inode is not None and self.inode >= 1 << 63 else self.inode
        return astuple(replace(self, inode=signed))

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        columns = dict(zip(cls.__struct_fields__, values, strict=True))
        if columns["inode"] is not None:
            columns["inode"] %= 1 << 64
        return cls(**columns)


class SessionRow(Row, frozen=True, kw_only=True, gc=False):
    """One session: its facts and its score."""

    key: str  # content-hash id, ours
    id: str  # the agent's own id; two agents may use the same
    format: str  # the reader that understood it
    agent: str  # who ran: "claude-code", "codex", ...
    model: str | None = None  # the model that answered
    project: str | None = None  # the working folder, or what the agent calls the project
    source_uri: str  # the way back to the original
    task: str | None = None  # excerpt of the first thing the user asked for
    started: float | None = None  # seconds since the epoch
    ended: float | None = None  # seconds since the epoch
    end_reason: str | None = None  # as the agent says it
    label: bool | None = None  # success, where someone labelled it
    parent: str | None = None  # id of the session that spawned this one
    messages: int  # what user and agent said
    calls: int  # tool calls
    results: int  # tool results
    errors: int  # results judged to be the agent's errors
    verdict: Verdict  # of the score, here to be filtered by
    quality: float  # 0-1
    confidence: float  # 0-1
    category: Category  # of work, from the tools used
    task_type: TaskType  # narrower, from the tools used
    score: str  # JSON of model.Score
    usage: str | None = None  # JSON of model.Usage
    digest: str  # hash of the redacted content: another digest is a change
    first_seen: float  # when it first came here; an update keeps the stored value
    updated: float  # when its content last changed
    turns: int | None = None  # answers of the agent

    @classmethod
    def from_columns(cls, values: Sequence[Any]) -> Self:
        columns = dict(zip(cls.__struct_fields__, values, strict=True))
        if columns["label"] is not None:
            columns["label"] = bool(columns["label"])
        return cls(**columns)

    @property
    def length(self) -> int:
        """How much happened, to tell an older copy from a longer one."""
        return self.messages + self.calls + self.results


class CallRow(Row, frozen=True, kw_only=True, gc=False):
    """One tool call of a session and what became of it."""

    session_key: str  # SessionRow.key
    ordinal: int  # place among the session's calls, from 0
    call_id: str  # the agent's id of the call
    tool: str  # as the agent names it
    arguments: str  # JSON: an object, or a string where the agent wrote none
    intent: str | None = None  # what the user or agent wanted just then
    excerpt: str | None = None  # head and tail of the result
    status: Status  # what became of it
    basis: Basis  # how that is known
    error_kind: ErrorKind | None = None  # only for errors
    at: float | None = None  # seconds since the epoch
    turn: int | None = None  # in which answer of the agent, from 1
    answered: float | None = None  # when the result came, seconds since the epoch


class SpentRow(Row, frozen=True, kw_only=True, gc=False):
    """What a session used of one model on one day, as its transcript tells."""

    session_key: str  # SessionRow.key
    model: str  # '' where it is not told
    day: str  # UTC, 2026-11-16; '' where it is not told
    input: int | None = None  # None is unknown, here and below
    output: int | None = None  # tokens
    cache_read: int | None = None  # tokens
    cache_write: int | None = None  # tokens
    reasoning: int | None = None  # tokens, part of the output
    cost: float | None = None  # US dollars, as reported
    basis: TokenBasis  # of the tokens


class LiveRow(Row, frozen=True, kw_only=True, gc=False):
    """The same as callers report it while the session runs."""

    session: str  # the agent's own id
    agent: str  # '' where it is not told
    model: str  # '' where it is not told
    project: str | None = None  # None: not told
    day: str  # UTC, 2026-11-16
    input: int | None = None  # None is unknown, here and below
    output: int | None = None  # tokens
    cache_read: int | None = None  # tokens
    cache_write: int | None = None  # tokens
    reasoning: int | None = None  # tokens, part of the output
    cost: float | None = None  # US dollars
    updated: float  # seconds since the epoch


class TemplateRow(Row, frozen=True, kw_only=True, gc=False):
    """One version of a template, without its examples."""

    name: str  # as given
    version: int  # from 1
    name_key: str  # names that look alike have the same
    status: TemplateStatus  # proposed, active, retired
    reason: str  # why it has that status
    category: Category  # of work
    task_type: TaskType  # narrower
    project: str  # '' for any project
    strength: float  # to find the weakest by
    body: str  # JSON of model.Template without its examples
    digest: str  # of the content
    created: float  # seconds since the epoch
    used: int = 0  # sessions it was given to
    last_used: float | None = None  # seconds since the epoch
    effect: str | None = None  # JSON of model.Effect: what it did to sessions it was shown to


class ExampleRow(Row, frozen=True, kw_only=True, gc=False):
    """One example of a version."""

    id: int  # the store's
    name: str  # of the template
    version: int  # of the template
    ordinal: int  # place in the template, from 0
    tool: str  # as the agent names it
    body: str  # JSON of model.Example
    costs: str  # JSON: dialect -> tokens


class FoundRow(ExampleRow, frozen=True, kw_only=True, gc=False):
    """An example with what filters need to know of its template."""

    category: Category  # of the template
    task_type: TaskType  # of the template
    used: int  # sessions the template was given to
    template: str  # JSON of model.Template without its examples
    effect: str | None  # JSON of model.Effect


class TrialRow(Row, frozen=True, kw_only=True, gc=False):
    """What a session was given, once and for ever; and, when its transcript is there, how it went."""

    session: str  # the unit of assignment
    arm: str  # warm, cold, text or the name of a template
    picks: str  # JSON: list of model.Pick; in the cold arm what would have been given
    task: str  # JSON: what was known before the session, redacted
    at: float  # seconds since the epoch
    experiment: str = ""  # '' is the standing holdout
    assignment: Assignment = "random"  # how the arm came about
    propensities: str = "{}"  # JSON: arm -> how probable it was
    parent: str | None = None  # session whose arm it keeps
    transcript: str | None = None  # SessionRow.key; None: missing so far
    measures: str | None = None  # JSON of model.Measures
    closed: float | None = None  # when the transcript was last read


class ExperimentRow(Row, frozen=True, kw_only=True, gc=False):
    """A comparison that a person has started."""

    name: str  # as given
    arms: str  # JSON: arm -> share, as it was started
    shares: str  # JSON: arm -> share, as new sessions are given it now
    metric: str  # what decides
    salt: str  # with a session's id it decides the arm
    after: Literal["fixed", "thompson"]  # how arms are given once there is a verdict
    floor: float  # the control's least share then
    started: float  # seconds since the epoch
    stopped: float | None = None  # None: running
    design: Design = "random"  # who plays which arm
    horizon: float | None = None  # turns within which the first success is awaited; None: the usual window


class ProposalRow(Row, frozen=True, kw_only=True, gc=False):
    """What a review wants to keep."""

    id: str  # 128 random bits
    digest: str  # of what it says
    kind: Literal["memory", "skill", "template"]  # what would be written
    action: str  # add, replace, remove; create, edit, patch, delete; propose
    target: str  # memory or user; the name of a skill or template
    summary: str  # one line, redacted
    body: str  # JSON, redacted: what is to be written
    cites: str  # JSON: numbers of the steps that show it, from 1
    suspicions: str = "[]"  # JSON: why a person must look, whatever the policy says
    status: Literal["waiting", "applied", "discarded"] = "waiting"  # what became of it
    reason: str = ""  # why it has that status
    write_origin: str  # what wanted it
    execution_context: str  # where that ran
    session: str  # the agent's own id
    session_key: str  # as SessionRow.key; the session need not be remembered
    source: str = ""  # the transcript; '' where there is none
    parent: str | None = None  # session that started that session
    platform: str  # cli, telegram, ...; the agent where that is not told
    tool_call: str | None = None  # id of the review's own call; None: no model made it
    created: float  # seconds since the epoch
    decided: float | None = None  # seconds since the epoch
    decided_by: str | None = None  # person, policy:review
