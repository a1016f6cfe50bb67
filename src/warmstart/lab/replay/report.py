"""The report of a replay: how many proposed calls agree with the record per arm, and warm minus cold session by session."""

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
    " the exact call; and whether the model repeats calls that failed there",
    "on sessions that the seed's templates were not learned from, nor from others of the same task as far as tasks can be"
    " distinguished (each half is tried with the other half's templates)",
)
CANNOT_SHOW = (
    "whether a task gets solved: nothing is executed",
    "in the lines on tool and shape, whether a call is understood or copied: an example with changed values agrees there."
    " The first line is safe from that: it needs the request's own values, and calls that a seed shows do not count. The arm"
    " mismatched shows how much any example does, fitting or not",
    "whether a call that differs from the record is wrong: a different but right call counts as no match, and recorded"
    " results do not react to earlier calls",
    "how the model compares with the recorded one, which may be stronger: arms are compared with each other only",
    "small effects in few sessions: without an interval, the figures are an anecdote",
)
CONDITIONS = (
    "the model gets all tools that the agent has in these recordings (the most used, if they are many); argument names and"
    " types are inferred from recorded calls; descriptions and the agent's own system prompt are not sent",
    "requests, recorded results (shortened, as transcripts are kept) and seeds are redacted before they are sent",
    "the answer to a call without a record says so and is no error; an answer without any call counts as one call that agrees"
    " with nothing; a repeated call counts once; a call that repeats the seed agrees only if it is the exact call that worked",
    "sessions count as one task if they share its id, the request, or a value, call or wording that few others have",
)


class ReplayCounts(Struct, frozen=True, kw_only=True):
    """Proposed calls of one session in one arm, or of all sessions of an arm."""

    sessions: int = 0
    turns: int = 0
    calls: int = 0  # different ones
    repeated: int = 0  # proposed before in the same replay
    copied: int = 0  # of `calls`, those that the session's seeds show
    no_call: int = 0  # sessions without any call
    malformed: int = 0  # arguments are no JSON object
    unknown_tools: int = 0  # the tool was not offered
    tool: int = 0  # the tool worked in the record
    shape: int = 0  # a call of this shape worked
    exact: int = 0  # this exact call worked
    own: int = 0  # of `exact`, those that no seed of the session shows
    failed: int = 0  # this exact call failed
    matched: int = 0  # this exact call was recorded, with any outcome
    first_tool: int = 0  # the same for the first call alone
    first_shape: int = 0
    first_exact: int = 0
    first_own: int = 0
    first_failed: int = 0
    first_unusable: int = 0  # none, malformed, or of a tool that was not offered
    seed_tokens: int = 0
    examples: int = 0


class SessionLine(Struct, frozen=True, kw_only=True):
    """One recorded session, replayed in all arms."""

    name: str
    task: str  # its beginning
    half: int
    project: str | None
    family: str
    seeded: bool  # the warm arm got a seed
    given_away: bool  # the warm seed contained a call that worked in this session's record
    arms: dict[str, ReplayCounts]


class Half(Struct, frozen=True, kw_only=True):
    """One half of the sessions and what was learned from it."""

    half: int
    sessions: int
    templates: int  # active ones, for the replay of the other half
    refused: dict[str, int]  # sessions nothing was learned from, by reason


class Compared(Struct, frozen=True, kw_only=True):
    """Warm against another arm in one measure."""

    title: str
    effect: Effect
    crossing: Crossing  # helped: right only warm; harmed: right only in the other arm


class ReplayReport(Struct, frozen=True, kw_only=True):
    """A replay, finished or not."""

    model: str
    endpoint: str
    at: float  # seconds since the epoch
    version: str  # of Warmstart
    random_seed: int
    turns: int  # limit per replay
    recorded: int  # sessions read
    planned: int  # sessions to replay
    replayed: int  # sessions answered in all arms
    seeded: int  # of the replayed, sessions with a warm seed
    given_away: int  # of the seeded, those whose seed contained a call that worked in the session's own record
    tasks: int  # of the sessions that can be replayed, as far as tasks can be distinguished
    left_loose: int  # ties between sessions that were left out, because one task would have become too large
    unanswered: dict[str, int]  # sessions without an answer, by arm
    left_out: dict[str, int]  # sessions that cannot be replayed, by reason
    problems: tuple[Problem, ...]  # unreadable files and sessions
    halves: tuple[Half, ...]
    arms: dict[str, ReplayCounts]
    compared: tuple[Compared, ...]  # warm with cold, over all replayed sessions
    compared_seeded: tuple[Compared, ...]  # over the seeded ones
    compared_mismatched: tuple[Compared, ...]  # warm with mismatched, over those seeded in both
    sessions: tuple[SessionLine, ...]
    trouble: str = ""  # the endpoint's last error
    asked: int = 0  # requests sent by this run; the others were answered before
    shows: tuple[str, ...] = SHOWS
    cannot_show: tuple[str, ...] = CANNOT_SHOW
    conditions: tuple[str, ...] = CONDITIONS

    @property
    def finished(self) -> bool:
        return self.replayed >= self.planned


class Measure(Struct, frozen=True, kw_only=True):
    """A share that arms are compared in: a count out of sessions or calls, session by session."""

    name: str
    title: str
    count: Callable[[ReplayCounts], int]
    of: Literal["session", "call"]
    lower_is_better: bool = False

    def read(self, counts: ReplayCounts) -> tuple[float, float]:
        return float(self.count(counts)), 1.0 if self.of == "session" else float(count_attempts(counts))

    def is_good(self, counts: ReplayCounts) -> bool:
        return (self.count(counts) == 0) == self.lower_is_better


MEASURES = (  # the first decides: neither copying nor shape alone can win it
    Measure(name="first_own", title="first call: exact, not in a seed", count=lambda c: c.first_own, of="session"),
    Measure(name="first_shape", title="first call: shape worked", count=lambda c: c.first_shape, of="session"),
    Measure(name="first_tool", title="first call: tool worked", count=lambda c: c.first_tool, of="session"),
    Measure(name="first_exact", title="first call: exact call worked", count=lambda c: c.first_exact, of="session"),
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
    Measure(name="own", title="all calls: exact, not in a seed", count=lambda c: c.own, of="call"),
    Measure(name="shape", title="all calls: shape worked", count=lambda c: c.shape, of="call"),
    Measure(name="tool", title="all calls: tool worked", count=lambda c: c.tool, of="call"),
    Measure(name="exact", title="all calls: exact call worked", count=lambda c: c.exact, of="call"),
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


def count_attempts(counts: ReplayCounts) -> int:
    """Return the calls, and the sessions without any: making no call does not leave the comparison."""
    return counts.calls + counts.no_call


def count(played: Played) -> ReplayCounts:
    """Count one session's replay. A repeated call says nothing new, so it counts once."""
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
    """Add up all sessions of an arm."""
    names = ReplayCounts.__struct_fields__
    return ReplayCounts(**{name: sum(getattr(part, name) for part in parts) for name in names})


def compare(lines: Sequence[SessionLine], control: str = COLD) -> tuple[Compared, ...]:
    """Compare warm with another arm in every measure, over sessions replayed in both."""
    groups = _choose_groups(lines)
    return tuple(_compare(measure, lines, control, groups) for measure in MEASURES) if lines else ()


def compare_mismatched(lines: Iterable[SessionLine]) -> tuple[Compared, ...]:
    """Compare warm with mismatched where both had a seed: does a fitting example do more than any example?"""
    shown = [one for one in lines if one.seeded and MISMATCHED in one.arms and one.arms[MISMATCHED].examples]
    return compare(shown, MISMATCHED)


def _choose_groups(lines: Sequence[SessionLine]) -> tuple[str, Callable[[SessionLine], Hashable]]:
    """Return what clusters sessions: projects, whose sessions are alike, joined where they share a task. With too few
    projects sessions cluster by task, and the interval holds for these projects only."""
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
        "too_few": f"too few for an interval: {len(lines)} sessions, {estimate.clusters} {clustered_by}s; it needs"
        f" {MIN_TASKS} and {MIN_GROUPS}",
        "inconclusive": "the interval contains both less and more",
    }
    effect = Effect(
        metric=measure.name,
        arm=WARM,
        control=control,
        n={WARM: estimate.n_treatment, control: estimate.n_control},
        missing={WARM: 0, control: 0},
        values={WARM: estimate.value_treatment, control: estimate.value_control},
        difference=estimate.difference,
        low=_clip(estimate.low),
        high=_clip(estimate.high),
        relative=estimate.relative,
        verdict=verdict,
        reason=reasons.get(verdict, f"{measure.title}: {'up' if (estimate.difference or 0) > 0 else 'down'}"),
        clusters=estimate.clusters,
        clustered_by=clustered_by,
    )
    outcomes = [(measure.is_good(one.arms[WARM]), measure.is_good(one.arms[control])) for one in lines]
    return Compared(title=measure.title, effect=effect, crossing=cross(outcomes))


def _clip(bound: float | None) -> float | None:
    """Clip a bound: the difference of two shares lies between -1 and 1, which Student's t does not know."""
    return None if bound is None else max(-1.0, min(1.0, bound))


def with_missing(compared: Sequence[Compared], missing: dict[str, int]) -> tuple[Compared, ...]:
    """Add the sessions without an answer to every comparison, as missing."""
    return tuple(
        structs.replace(one, effect=structs.replace(one.effect, missing={arm: missing[arm] for arm in one.effect.n}))
        for one in compared
    )
