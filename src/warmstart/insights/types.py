"""The values that `insights` reports. Unknown is None and counted, never zero."""

from __future__ import annotations

from msgspec import Struct

from warmstart.calls.changes import FixKind

How = FixKind


class Rate(Struct, frozen=True, kw_only=True):
    """Errors per judged call. Rejected, cancelled and unknown calls are not judged."""

    name: str | None  # None: the transcripts do not say
    errors: int
    judged: int  # calls that worked or failed
    sessions: int
    rate: float | None = None  # None: no call was judged
    low: float | None = None  # 95 % interval, with sessions as clusters; None: not defined
    high: float | None = None


class Breakdown(Struct, frozen=True, kw_only=True):
    """Rates of groups, those with the most errors first."""

    rates: tuple[Rate, ...] = ()
    more: int = 0  # groups left out


class Cost(Struct, frozen=True, kw_only=True):
    """What errors cost until they were fixed. A turn or minute that several errors share counts once."""

    errors: int = 0
    turns: int | None = None
    turns_unknown: int = 0  # errors without known turns
    tokens: int | None = None  # turns x the session's own tokens per turn
    tokens_estimated: int = 0  # the part whose session usage is itself an estimate
    tokens_unknown: int = 0  # errors in sessions without known tokens
    seconds: float | None = None  # waits capped, see costs.IDLE
    seconds_unknown: int = 0  # errors without timestamps


class TotalCost(Struct, frozen=True, kw_only=True):
    """The cost of all errors, and its share of all sessions."""

    cost: Cost = Cost()
    turns_share: float | None = None  # of all known turns
    tokens_share: float | None = None  # of the tokens of all sessions that report them
    seconds_share: float | None = None  # of the time of all sessions with timestamps, with the same capped waits


class FixedBy(Struct, frozen=True, kw_only=True):
    """How an error was fixed."""

    how: How
    what: str  # what changed
    sessions: int  # without forks and subagents
    examples: tuple[str, ...] = ()  # paths or values that were replaced, the commonest first


class KnownNote(Struct, frozen=True, kw_only=True):
    """A note about the cause of an error."""

    id: str
    status: str  # proposed or active
    shown: int = 0  # sessions that it was shown to


class RepeatedError(Struct, frozen=True, kw_only=True):
    """The same error, seen at least twice."""

    number: int  # its row, for `insights --show`
    tool: str
    error_kind: str | None  # of `model.ErrorKind`, or as another version named it
    shape: str  # of the arguments; the commonest of several
    shapes: int  # number of different shapes
    message: str  # paths, numbers, ids and quoted text masked; "" if the tool returned none
    example: str  # one original message, redacted and shortened
    count: int
    sessions: int  # without forks and subagents
    last_seen: float | None
    last_session: str  # key of the session it was last seen in
    fixes: tuple[FixedBy, ...]  # the commonest first
    unfixed: int  # sessions in which no fix was seen
    check: bool  # a failing test, lint, type check or build: work to do, not a wrong call
    passed: int  # sessions in which that check passed soon after
    cost: Cost
    note: KnownNote | None = None  # the one about most of its occurrences


class Occurrence(Struct, frozen=True, kw_only=True):
    """One occurrence of a repeated error."""

    session: str  # key of the session
    id: str  # the agent's own id of it
    call: int  # its number in the session, from 0, as `sessions show` numbers calls
    at: float | None
    cause: str  # redacted and shortened
    followed: str  # the fix, or the next call


class KindOfWork(Struct, frozen=True, kw_only=True):
    """The error rate of one kind of work, and its course over the first turns."""

    name: str  # code, file, research or mixed
    rate: Rate
    course: tuple[Rate, ...]  # named by their turns


class Window(Struct, frozen=True, kw_only=True):
    """A window of turns."""

    first: int
    last: int | None  # None: to the end
    everyone: Rate  # all sessions that reached it
    followed: Rate | None = None  # only sessions that reached the last window shown


class Along(Struct, frozen=True, kw_only=True):
    """Error rates along the session."""

    windows: tuple[Window, ...] = ()
    sessions: int = 0  # with judged calls and known turns
    followed_from: int | None = None  # the turn that the followed sessions reached; None: too few did
    followed_sessions: int = 0
    beyond: int = 0  # sessions that continued after the last window shown
    without_turns: int = 0  # sessions without known turns, left out
    meaning: str = ""


class Recommendation(Struct, frozen=True, kw_only=True):
    """A recommendation that follows from the figures."""

    text: str
    command: str
    note: str | None = None  # id of the note that it is about


class Insights(Struct, frozen=True, kw_only=True):
    """What the remembered sessions show."""

    sessions: int = 0
    unreadable: int = 0  # sessions whose record cannot be read
    unread_files: int = 0  # of a lake: left out because they are damaged, incomplete or could not be written
    first: float | None = None  # start of the earliest session, seconds since the epoch
    last: float | None = None  # start of the latest
    calls: int = 0
    left_out: dict[str, int] = {}  # calls in no rate, by status: rejected, denied, cancelled, unknown
    overall: Rate = Rate(name="all", errors=0, judged=0, sessions=0)
    repeated: tuple[RepeatedError, ...] = ()
    repeated_more: int = 0  # repeated errors left out
    seen_once: int = 0  # errors that occurred once
    by_tool: Breakdown = Breakdown()
    by_model: Breakdown = Breakdown()
    by_agent: Breakdown = Breakdown()
    by_project: Breakdown = Breakdown()
    by_work: tuple[KindOfWork, ...] = ()  # by kind of work
    by_week: tuple[Rate, ...] = ()  # named by their Monday (UTC), the latest last
    undated: int = 0  # sessions with judged calls that do not say when they started
    along: Along = Along()
    cost: TotalCost = TotalCost()
    weekly: float = 0.0  # recent sessions per week, as `experiment power` counts them
    shown: RepeatedError | None = None  # the error that was asked for
    occurrences: tuple[Occurrence, ...] = ()  # of that error, the latest first
    advice: tuple[Recommendation, ...] = ()
