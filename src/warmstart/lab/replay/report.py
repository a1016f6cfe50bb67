"""What a replay shows: per arm how many proposed calls agree with the record, and warm minus cold, session by session."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Literal

from msgspec import Struct, structs

from warmstart.arms import COLD, MISMATCHED, WARM
from warmstart.lab.replay.player import Played
from warmstart.lab.replay.ties import Traces, join
from warmstart.model import Effect, Problem
from warmstart.stats.compare import decide
from warmstart.stats.paired import MIN_GROUPS, MIN_TASKS, Crossing, Paired, compare_paired, cross

SHOWS = (
    "whether the seed moves the model towards calls that worked in your own sessions: the tool, the shape of its arguments,"
    " the very call; and whether it repeats calls that failed there",
    "on sessions that the seed's templates were not learned from, nor from others of the same task as far as that can be"
    " told (each half is tried with the other's templates)",
)
CANNOT_SHOW = (
    "whether a task gets solved: nothing is carried out",
    "whether a call is understood or copied, in the lines on tool and shape: whoever takes an example and changes only its"
    " values agrees there. The first line is safe from that: it takes the request's own values, and what a seed shows does"
    " not count. How much any example does, fitting or not, shows the arm mismatched",
    "whether a call that differs from the record is wrong: a different but right call counts as no match, and what the"
    " record answers does not react to what came before",
    "how the model compares with the one that was recorded, which may be stronger: arms are compared with each other only",
    "small effects in few sessions: where there is no interval, the figures are an anecdote",
)
CONDITIONS = (
    "tools are all that the agent is known to have by these recordings (the most usual, where they are many); their argument"
    " names and types are inferred from recorded calls, descriptions and the agent's own system prompt are not sent",
    "requests, recorded results (shortened, as transcripts are kept) and seeds are redacted before they are sent",
    "a call that nothing was recorded for is told so and is no error; an answer without any call counts as one call that"
    " agrees with nothing; the same call again counts once; one that repeats a call of the seed agrees only where it is the"
    " very call that worked",
    "sessions are taken for one task when they share its id, the request, or a value, call or wording that few others have",
)


class ReplayCounts(Struct, frozen=True, kw_only=True):
    """Proposed calls of one session in one arm, or of all sessions of an arm."""

    sessions: int = 0
    turns: int = 0
    calls: int = 0  # different ones
    repeated: int = 0  # further ones that were proposed before in the same replay
    copied: int = 0  # of `calls`, those that the session's seeds show
    no_call: int = 0  # sessions without any call
    malformed: int = 0  # arguments are no JSON object
    unknown_tools: int = 0  # a tool that was not offered
    tool: int = 0  # of a tool that worked in the record
    shape: int = 0  # of the shape of a call that worked
    exact: int = 0  # the very call that worked
    own: int = 0  # of them, those that no seed of the session shows
    failed: int = 0  # the very call that failed
    matched: int = 0  # any recorded call, however it ended
    first_tool: int = 0  # the same of the first call alone
    first_shape: int = 0
    first_exact: int = 0
    first_own: int = 0
    first_failed: int = 0
    first_unusable: int = 0  # none, malformed, or of no tool that was offered
    seed_tokens: int = 0
    examples: int = 0


class SessionLine(Struct, frozen=True, kw_only=True):
    """One recorded session, replayed in all arms."""

    name: str
    task: str  # its beginning
    half: int
    project: str | None
    family: str
    seeded: bool  # there was something to show in the warm arm
    given_away: bool  # the warm seed held a call that worked in this very record
    arms: dict[str, ReplayCounts]


class Half(Struct, frozen=True, kw_only=True):
    """What one half of the sessions taught."""

    half: int
    sessions: int
    templates: int  # active ones, which the other half was replayed with
    refused: dict[str, int]  # sessions that taught nothing, by reason


class Compared(Struct, frozen=True, kw_only=True):
    """Warm against another arm in one measure."""

    title: str
    effect: Effect
    crossing: Crossing  # helped: as it should be only warm; harmed: only in the other arm


class ReplayReport(Struct, frozen=True, kw_only=True):
    """A replay, finished or not."""

    model: str
    endpoint: str
    at: float  # seconds since the epoch
    version: str  # of Warmstart
    random_seed: int
    turns: int  # that a replay has, at most
    recorded: int  # sessions that were read
    planned: int  # of them to be replayed
    replayed: int  # answered in all arms
    seeded: int  # of the replayed, with something to show
    given_away: int  # of the seeded, whose seed held a call that worked in the session's own record
    tasks: int  # of the sessions that can be replayed, as far as they can be told apart
    left_loose: int  # ties between sessions that were left out, because all would have become one task
    unanswered: dict[str, int]  # sessions that the endpoint gave no answer to, by arm
    left_out: dict[str, int]  # sessions that cannot be replayed, by reason
    problems: tuple[Problem, ...]  # what could not be read
    halves: tuple[Half, ...]
    arms: dict[str, ReplayCounts]
    compared: tuple[Compared, ...]  # warm with cold, over all replayed sessions
    compared_seeded: tuple[Compared, ...]  # over those that were seeded
    compared_mismatched: tuple[Compared, ...]  # warm with mismatched, over those that were seeded in both
    sessions: tuple[SessionLine, ...]
    trouble: str = ""  # what the endpoint last failed with
    asked: int = 0  # requests of this run; the others were answered before
    shows: tuple[str, ...] = SHOWS
    cannot_show: tuple[str, ...] = CANNOT_SHOW
    conditions: tuple[str, ...] = CONDITIONS

    @property
    def finished(self) -> bool:
        return self.replayed >= self.planned


class Measure(Struct, frozen=True, kw_only=True):
    """One way to compare arms: so many of so many, session by session."""

    name: str
    title: str
    count: Callable[[ReplayCounts], int]
    of: Literal["session", "call"]
    lower_is_better: bool = False

    def read(self, counts: ReplayCounts) -> tuple[float, float]:
        return float(self.count(counts)), 1.0 if self.of == "session" else float(attempts(counts))

    def is_good(self, counts: ReplayCounts) -> bool:
        return (self.count(counts) == 0) == self.lower_is_better


MEASURES = (  # the first is to go by: the only one that neither copying nor shape alone can win
    Measure(name="first_own", title="first call: very call, not shown", count=lambda c: c.first_own, of="session"),
    Measure(name="first_shape", title="first call: shape worked", count=lambda c: c.first_shape, of="session"),
    Measure(name="first_tool", title="first call: tool worked", count=lambda c: c.first_tool, of="session"),
    Measure(name="first_exact", title="first call: very call worked", count=lambda c: c.first_exact, of="session"),
    Measure(
        name="first_failed",
        title="first call: repeats an error",
        count=lambda c: c.first_failed,
        of="session",
        lower_is_better=True,
    ),
    Measure(
        name="first_unusable",
        title="first call: none or unusable",
        count=lambda c: c.first_unusable,
        of="session",
        lower_is_better=True,
    ),
    Measure(name="own", title="all calls: very call, not shown", count=lambda c: c.own, of="call"),
    Measure(name="shape", title="all calls: shape worked", count=lambda c: c.shape, of="call"),
    Measure(name="tool", title="all calls: tool worked", count=lambda c: c.tool, of="call"),
    Measure(name="exact", title="all calls: very call worked", count=lambda c: c.exact, of="call"),
    Measure(
        name="failed", title="all calls: repeats an error", count=lambda c: c.failed, of="call", lower_is_better=True
    ),
    Measure(
        name="unusable",
        title="all calls: none or unusable",
        count=lambda c: c.no_call + c.malformed + c.unknown_tools,
        of="call",
        lower_is_better=True,
    ),
)


def attempts(counts: ReplayCounts) -> int:
    """Calls, and answers that should have held one: whoever makes no call is not left out of the comparison."""
    return counts.calls + counts.no_call


def count(played: Played) -> ReplayCounts:
    """One session's replay in numbers. The same call again says nothing new, so it counts once."""
    calls = [call for call in played.calls if not call.repeated]
    first = calls[0] if calls else None
    return ReplayCounts(
        sessions=1,
        turns=played.turns,
        calls=len(calls),
        repeated=len(played.calls) - len(calls),
        copied=sum(call.shown for call in calls),
        no_call=int(first is None),
        malformed=sum(call.form == "malformed" for call in calls),
        unknown_tools=sum(call.form == "unknown_tool" for call in calls),
        tool=sum(call.tool_worked for call in calls),
        shape=sum(call.shape_worked for call in calls),
        exact=sum(call.exact for call in calls),
        own=sum(call.own for call in calls),
        failed=sum(call.repeats_error for call in calls),
        matched=sum(call.matched is not None for call in calls),
        first_tool=int(first is not None and first.tool_worked),
        first_shape=int(first is not None and first.shape_worked),
        first_exact=int(first is not None and first.exact),
        first_own=int(first is not None and first.own),
        first_failed=int(first is not None and first.repeats_error),
        first_unusable=int(first is None or first.form != "good"),
        seed_tokens=played.seed_tokens,
        examples=played.examples,
    )


def add_up(parts: Sequence[ReplayCounts]) -> ReplayCounts:
    """All sessions of an arm together."""
    names = ReplayCounts.__struct_fields__
    return ReplayCounts(**{name: sum(getattr(part, name) for part in parts) for name in names})


def compare(lines: Sequence[SessionLine], control: str = COLD) -> tuple[Compared, ...]:
    """Warm minus the other arm in every measure, over sessions that were replayed in both."""
    groups = _choose_groups(lines)
    return tuple(_compare(measure, lines, control, groups) for measure in MEASURES) if lines else ()


def compare_mismatched(lines: Iterable[SessionLine]) -> tuple[Compared, ...]:
    """Warm minus mismatched, where each had something to show: does what fits do more than any example?"""
    shown = [one for one in lines if one.seeded and MISMATCHED in one.arms and one.arms[MISMATCHED].examples]
    return compare(shown, MISMATCHED)


def _choose_groups(lines: Sequence[SessionLine]) -> tuple[str, Callable[[SessionLine], Hashable]]:
    """Sessions of one project are alike, and those of one task even across projects. Where projects are too few to see how
    they differ, sessions of one task are taken together, and the interval speaks of these projects only."""
    kin = join({one.name: Traces((f"task {one.family}", f"project {one.project or one.family}")) for one in lines})
    if any(line.project for line in lines) and len(set(kin.families.values())) >= MIN_GROUPS:
        return "project", lambda line: kin.families[line.name]
    return "task", lambda line: line.family


def _compare(
    measure: Measure,
    lines: Sequence[SessionLine],
    control: str,
    groups: tuple[str, Callable[[SessionLine], Hashable]],
) -> Compared:
    clustered_by, group = groups
    pairs = [Paired(measure.read(one.arms[WARM]), measure.read(one.arms[control]), group(one)) for one in lines]
    estimate = compare_paired(pairs, is_rate=True)
    verdict = decide(estimate, lower_is_better=measure.lower_is_better)
    reasons = {
        "too_few": f"too few for an interval: {len(lines)} sessions, {estimate.clusters} {clustered_by}s; it takes"
        f" {MIN_TASKS} and {MIN_GROUPS}",
        "inconclusive": "the interval holds both less and more",
    }
    effect = Effect(
        metric=measure.name,
        arm=WARM,
        control=control,
        n={WARM: estimate.n_treatment, control: estimate.n_control},
        missing={WARM: 0, control: 0},
        values={WARM: estimate.value_treatment, control: estimate.value_control},
        difference=estimate.difference,
        low=_possible(estimate.low),
        high=_possible(estimate.high),
        relative=estimate.relative,
        verdict=verdict,
        reason=reasons.get(verdict, f"{measure.title}: {'up' if (estimate.difference or 0) > 0 else 'down'}"),
        clusters=estimate.clusters,
        clustered_by=clustered_by,
    )
    outcomes = [(measure.is_good(one.arms[WARM]), measure.is_good(one.arms[control])) for one in lines]
    return Compared(title=measure.title, effect=effect, crossing=cross(outcomes))


def _possible(bound: float | None) -> float | None:
    """Shares lie between 0 and 1, so no difference of two is larger than 1; Student's t does not know that."""
    return None if bound is None else max(-1.0, min(1.0, bound))


def with_missing(compared: Sequence[Compared], missing: dict[str, int]) -> tuple[Compared, ...]:
    """Sessions that got no answer belong to every comparison, as what it does not know."""
    return tuple(
        structs.replace(one, effect=structs.replace(one.effect, missing={arm: missing[arm] for arm in one.effect.n}))
        for one in compared
    )
