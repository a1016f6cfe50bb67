"""Notes and what is made of them: facts about a project, the brief, advice at a call."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

NoteKind = Literal[
    "path", "command", "works", "check", "baseline", "tool", "large", "slow", "refusal", "environment", "where"
]
KINDS: tuple[NoteKind, ...] = (
    *("path", "command", "works", "check", "baseline", "tool", "large", "slow", "refusal", "environment", "where"),
)
NoteStatus = Literal["proposed", "active", "retired"]
BY_PERSON = "person:"  # the beginning of the key of a note whose cause no rule recognises
DECIDED = " by a person"  # the end of a decision that a person made
MOST_FILES = 10  # that an answer names to which earlier requests led
LONGEST_SENTENCE = 300  # characters that a person may write
Level = Literal["off", "tell", "correct", "stop"]
Action = Literal["none", "tell", "correct", "stop"]


class NoteSource(Struct, frozen=True, kw_only=True):
    """Where a note came from that other people's sessions support."""

    place: str  # the file or bundle
    file: str = ""  # in the bundle
    signer: str = ""  # the name that you gave the signer's key
    key: str = ""  # the signer's public key
    revision: int = 0  # of the signer's item
    effect: str = ""  # that the signer measured
    replaces: str = ""  # the id of the signer's earlier note, which this one replaces once it is approved


class Note(Struct, frozen=True, kw_only=True):
    """One counted, checkable fact about a project, in one sentence."""

    id: str  # a hash of project, scope, kind and subject: the same fact keeps its id
    project: str  # "" for a rule of the agent itself, the same in all its projects
    kind: NoteKind
    subject: str  # the path, option, rule or message that the fact is about
    key: str = ""  # the cause that it stands for, as Sighting.key
    trigger: str  # the mark of the calls that it concerns (see marks); "" where no mark identifies such calls
    text: str
    fix: str = ""  # what worked instead
    support: int  # root sessions that met it
    against: int = 0  # calls with this trigger that worked
    failures: int = 0  # calls with this trigger that failed
    people: int = 1
    first_seen: float | None = None  # seconds since the epoch
    last_seen: float | None = None
    rate: float = 0.0  # sessions that meet it, of the recent ones; 0-1
    scope: str = ""  # as Session.scope
    agent: str = ""  # set for kind "tool": the agent whose rule it is
    suspicions: tuple[str, ...] = ()  # reasons why a person must look first
    status: NoteStatus = "proposed"
    decision: str = ""  # why it has that status, and who decided
    shown: int = 0  # sessions that it was shown to
    recurred: int = 0  # of those, sessions that met it all the same
    source: NoteSource | None = None  # None: your own sessions
    errors: tuple[tuple[str, int], ...] = ()  # that a person made it of, each as its name and the number of its origin
    sessions: tuple[str, ...] = ()  # root sessions that had met those errors by then, the latest first
    written: bool = False  # a person wrote the sentence; see is_written

    @property
    def is_written(self) -> bool:
        """Whether a person wrote the sentence. Older versions recorded that in the decision or the key only."""
        return self.written or self.decision.startswith("edited") or self.key.startswith(BY_PERSON)

    @property
    def is_chosen(self) -> bool:
        """Whether a person decided to use it, however rare it is."""
        return self.is_written or (self.status == "active" and self.decision.endswith(DECIDED))

    @property
    def certainty(self) -> float:
        """Return how sure it is that a call with the trigger fails: a careful estimate between 0 and 1."""
        return self.failures / (self.failures + self.against + 0.5) if self.failures else 0.0


class CallEvent(Struct, frozen=True, kw_only=True):
    """A call that an agent is about to make, or has made."""

    tool: str
    arguments: dict[str, Any] | str
    when: Literal["before", "after"] = "before"
    session: str | None = None
    agent: str = ""
    cwd: str | None = None
    project: str | None = None
    scope: str = ""  # as Session.scope
    result: str | None = None  # of the call, where it was made
    error: bool | None = None  # whether it failed; None: judged by its result
    call_id: str = ""  # by which its transcript names it; where known, the outcome of a trial is read more surely


class Advice(Struct, frozen=True, kw_only=True):
    """The advice about a call."""

    action: Action = "none"
    text: str = ""
    note: str | None = None  # id of the note that says so
    arguments: dict[str, Any] | None = None  # the corrected call, for "correct"
