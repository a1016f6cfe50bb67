"""The values that `insights` reports. Unknown is None and counted, never zero."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warmstart.model import ErrorKind

How = Literal["arguments", "command", "other tool", "same call"]


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
    what: str  # what changed, the other tool, or what came before the same call worked
    sessions: int


class RepeatedError(Struct, frozen=True, kw_only=True):
    """The same error, seen at least twice."""

    tool: str
    error_kind: ErrorKind | None
    shape: str  # of the arguments; the commonest of several
    shapes: int  # number of different shapes
    message: str  # paths, numbers, ids and quoted text masked; "" if the tool returned none
    example: str  # one original message, redacted and shortened
    count: int
    sessions: int
    last_seen: float | None
    last_session: str  # key of the session it was last seen in
    fixes: tuple[FixedBy, ...]  # the commonest first
    unfixed: int  # sessions in which no call soon after its last occurrence fixed it
    cost: Cost


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


class Advice(Struct, frozen=True, kw_only=True):
    """A recommendation that follows from the figures."""

    text: str
    command: str


class Insights(Struct, frozen=True, kw_only=True):
    """What the remembered sessions show."""

    sessions: int = 0
    unreadable: int = 0  # sessions whose record cannot be read
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
    by_week: tuple[Rate, ...] = ()  # named by their Monday (UTC), the latest last
    undated: int = 0  # sessions with judged calls that do not say when they started
    along: Along = Along()
    cost: TotalCost = TotalCost()
    advice: tuple[Advice, ...] = ()
