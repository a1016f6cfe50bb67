"""What `insights` finds in past sessions, as plain values. What is not known is None and counted, never zero."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from warmstart.model import ErrorKind

How = Literal["arguments", "command", "other tool", "same call"]


class Rate(Struct, frozen=True, kw_only=True):
    """Errors among the calls that worked or failed; a person's no, collateral and the unknown are out."""

    name: str | None  # None: the transcripts do not tell
    errors: int
    judged: int  # calls that worked or failed
    sessions: int
    rate: float | None = None  # None: nothing was judged
    low: float | None = None  # 95 %, calls of one session taken together; None: not defined
    high: float | None = None


class Breakdown(Struct, frozen=True, kw_only=True):
    """Rates of groups: those that most errors came from first."""

    rates: tuple[Rate, ...] = ()
    more: int = 0  # groups left out


class Cost(Struct, frozen=True, kw_only=True):
    """What errors took until they were fixed. A turn or minute that several errors share counts once."""

    errors: int = 0
    turns: int | None = None
    turns_unknown: int = 0  # errors whose turns nobody counted
    tokens: int | None = None  # turns x the session's own tokens a turn
    tokens_estimated: int = 0  # of them, where the session's usage is itself an estimate
    tokens_unknown: int = 0  # errors in sessions that do not tell
    seconds: float | None = None  # waits capped, see insights_costs.IDLE
    seconds_unknown: int = 0  # errors without clock times


class TotalCost(Struct, frozen=True, kw_only=True):
    """The cost of all errors, beside what all sessions took."""

    cost: Cost = Cost()
    turns_share: float | None = None  # of all turns that were counted
    tokens_share: float | None = None  # of the tokens of all sessions that tell them
    seconds_share: float | None = None  # of the time of all sessions with clock times, waits capped alike


class FixedBy(Struct, frozen=True, kw_only=True):
    """How an error finally ended."""

    how: How
    what: str  # what changed, the other tool, or what came before the same call worked
    sessions: int


class RepeatedError(Struct, frozen=True, kw_only=True):
    """The same error, seen at least twice."""

    tool: str
    error_kind: ErrorKind | None
    shape: str  # of the arguments; where there are several, the commonest
    shapes: int  # how many
    message: str  # paths, numbers, ids and quoted text masked; "" where the tool said nothing
    example: str  # one as it was said, redacted and shortened
    count: int
    sessions: int
    last_seen: float | None
    last_session: str  # key of the session it was last seen in
    fixes: tuple[FixedBy, ...]  # the commonest first
    unfixed: int  # sessions in which nothing soon after its last occurrence fixed it
    cost: Cost


class Window(Struct, frozen=True, kw_only=True):
    """Some turns of the sessions that reached them."""

    first: int
    last: int | None  # None: to the end
    everyone: Rate  # all sessions that reached it
    followed: Rate | None = None  # of them those that reached the last window shown


class Along(Struct, frozen=True, kw_only=True):
    """Error rates along the session, with who is left."""

    windows: tuple[Window, ...] = ()
    sessions: int = 0  # with judged calls and counted turns
    followed_from: int | None = None  # the turn that the followed sessions reached; None: too few did
    followed_sessions: int = 0
    beyond: int = 0  # sessions that went on after the last window shown
    without_turns: int = 0  # sessions read by an older version: left out
    meaning: str = ""


class Advice(Struct, frozen=True, kw_only=True):
    """What follows from the figures."""

    text: str
    command: str


class Insights(Struct, frozen=True, kw_only=True):
    """What one's own history tells."""

    sessions: int = 0
    unreadable: int = 0  # sessions whose record cannot be read
    first: float | None = None  # start of the earliest session, seconds since the epoch
    last: float | None = None  # start of the latest
    calls: int = 0
    left_out: dict[str, int] = {}  # calls that are in no rate: rejected, cancelled, unknown
    overall: Rate = Rate(name="all", errors=0, judged=0, sessions=0)
    repeated: tuple[RepeatedError, ...] = ()
    repeated_more: int = 0  # repeated errors left out
    seen_once: int = 0  # errors that were not repeated
    by_tool: Breakdown = Breakdown()
    by_model: Breakdown = Breakdown()
    by_agent: Breakdown = Breakdown()
    by_project: Breakdown = Breakdown()
    by_week: tuple[Rate, ...] = ()  # named by their Monday (UTC), the latest last
    undated: int = 0  # sessions with judged calls that do not say when they started
    along: Along = Along()
    cost: TotalCost = TotalCost()
    advice: tuple[Advice, ...] = ()
