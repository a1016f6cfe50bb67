"""What a replay shows: per arm how many proposed calls agree with the record, and warm minus cold, session by session."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Literal

from msgspec import Struct, structs

from warmstart.assigning import COLD, WARM
from warmstart.lab.replay_playing import Played
from warmstart.model import Effect, Problem
from warmstart.stats import decide
from warmstart.stats_paired import MIN_GROUPS, MIN_TASKS, Crossing, Paired, compare_paired, cross

SHOWS = (
    "whether the seed moves the model towards calls that worked in your own sessions: the tool, the shape of its arguments,"
    " the very call; and whether it repeats calls that failed there",
    "on sessions and tasks that the seed's templates were not learned from (each half is tried with the other's templates)",
)
CANNOT_SHOW = (
    "whether a task gets solved: nothing is carried out",
    "whether a call that differs from the record is wrong: a different but right call counts as no match, and what the"
    " record answers does not react to what came before",
    "how the model compares with the one that was recorded, which may be stronger: arms are compared with each other only",
    "small effects in few sessions: where there is no interval, the figures are an anecdote",
)
CONDITIONS = (
    "tools are those that each session used; their argument names and types are inferred from recorded calls, descriptions"
    " and the agent's own system prompt are not sent",
    "requests, recorded results (shortened, as transcripts are kept) and seeds are redacted before they are sent",
    "a call that nothing was recorded for is told so and is no error; an answer without any call counts as one call that"
    " agrees with nothing",
)


class Counts(Struct, frozen=True, kw_only=True):
    """Proposed calls of one session in one arm, or of all sessions of an arm."""

    sessions: int = 0
    turns: int = 0
    calls: int = 0
    no_call: int = 0  # sessions without any call
    malformed: int = 0  # arguments are no JSON object
    unknown_tools: int = 0  # a tool that was not offered
    tool: int = 0  # of a tool that worked in the record
    shape: int = 0  # of the shape of a call that worked
    exact: int = 0  # the very call that worked
    failed: int = 0  # the very call that failed
    matched: int = 0  # any recorded call, however it ended
    first_tool: int = 0  # the same of the first call alone
    first_shape: int = 0
    first_exact: int = 0
    first_failed: int = 0
    first_unusable: int = 0  # none, malformed, or of no tool that was offered
    seed_tokens: int = 0
    examples: int = 0


class SessionLine(Struct, frozen=True, kw_only=True):
    """One recorded session, replayed in both arms."""

    name: str
    task: str  # its beginning
    half: int
    project: str | None
    family: str
    seeded: bool  # there was something to show in the warm arm
    arms: dict[str, Counts]


class Half(Struct, frozen=True, kw_only=True):
    """What one half of the sessions taught."""

    half: int
    sessions: int
    templates: int  # active ones, which the other half was replayed with
    refused: dict[str, int]  # sessions that taught nothing, by reason


class Compared(Struct, frozen=True, kw_only=True):
    """Warm against cold in one measure."""

    title: str
    effect: Effect
    crossing: Crossing  # helped: as it should be only warm; harmed: only cold


class ReplayReport(Struct, frozen=True, kw_only=True):
    """A replay, finished or not."""

    model: str
    endpoint: str
    at: float  # seconds since the epoch
    version: str  # of Warmstart
    seed: int
    turns: int  # that a replay has, at most
    recorded: int  # sessions that were read
    planned: int  # of them to be replayed
    replayed: int  # answered in both arms
    seeded: int  # of the replayed, with something to show
    unanswered: dict[str, int]  # sessions that the endpoint gave no answer to, by arm
    left_out: dict[str, int]  # sessions that cannot be replayed, by reason
    problems: tuple[Problem, ...]  # what could not be read
    halves: tuple[Half, ...]
    arms: dict[str, Counts]
    compared: tuple[Compared, ...]  # over all replayed sessions
    compared_seeded: tuple[Compared, ...]  # over those that were seeded
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
    count: Callable[[Counts], int]
    of: Literal["session", "call"]
    lower_is_better: bool = False

    def read(self, counts: Counts) -> tuple[float, float]:
        return float(self.count(counts)), 1.0 if self.of == "session" else float(attempts(counts))

    def is_good(self, counts: Counts) -> bool:
        return (self.count(counts) == 0) == self.lower_is_better


MEASURES = (
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


def attempts(counts: Counts) -> int:
    """Calls, and answers that should have held one: whoever makes no call is not left out of the comparison."""
    return counts.calls + counts.no_call


def count(played: Played) -> Counts:
    """One session's replay in numbers."""
    calls = played.calls
    first = calls[0] if calls else None
    return Counts(
        sessions=1,
        turns=played.turns,
        calls=len(calls),
        no_call=int(first is None),
        malformed=sum(call.form == "malformed" for call in calls),
        unknown_tools=sum(call.form == "unknown_tool" for call in calls),
        tool=sum(call.tool_worked for call in calls),
        shape=sum(call.shape_worked for call in calls),
        exact=sum(call.exact for call in calls),
        failed=sum(call.repeats_error for call in calls),
        matched=sum(call.matched is not None for call in calls),
        first_tool=int(first is not None and first.tool_worked),
        first_shape=int(first is not None and first.shape_worked),
        first_exact=int(first is not None and first.exact),
        first_failed=int(first is not None and first.repeats_error),
        first_unusable=int(first is None or first.form != "good"),
        seed_tokens=played.seed_tokens,
        examples=played.examples,
    )


def add_up(parts: Sequence[Counts]) -> Counts:
    """All sessions of an arm together."""
    names = Counts.__struct_fields__
    return Counts(**{name: sum(getattr(part, name) for part in parts) for name in names})


def compare(lines: Sequence[SessionLine]) -> tuple[Compared, ...]:
    """Warm minus cold in every measure, over sessions that were replayed in both arms."""
    clustered_by, group = _choose_groups(lines)
    return tuple(_compare(measure, lines, clustered_by, group) for measure in MEASURES) if lines else ()


def _choose_groups(lines: Sequence[SessionLine]) -> tuple[str, Callable[[SessionLine], Hashable]]:
    """Sessions of one project are alike. Where projects are too few to see how they differ, sessions of one task are
    taken together, and the interval speaks of these projects only."""
    by_project = {line.project or line.family for line in lines}
    if any(line.project for line in lines) and len(by_project) >= MIN_GROUPS:
        return "project", lambda line: line.project or line.family
    return "task", lambda line: line.family


def _compare(
    measure: Measure, lines: Sequence[SessionLine], clustered_by: str, group: Callable[[SessionLine], Hashable]
) -> Compared:
    pairs = [Paired(measure.read(one.arms[WARM]), measure.read(one.arms[COLD]), group(one)) for one in lines]
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
        control=COLD,
        n={WARM: estimate.n_treatment, COLD: estimate.n_control},
        missing={WARM: 0, COLD: 0},
        values={WARM: estimate.value_treatment, COLD: estimate.value_control},
        difference=estimate.difference,
        low=estimate.low,
        high=estimate.high,
        relative=estimate.relative,
        verdict=verdict,
        reason=reasons.get(verdict, f"{measure.title}: {'up' if (estimate.difference or 0) > 0 else 'down'}"),
        clusters=estimate.clusters,
        clustered_by=clustered_by,
    )
    outcomes = [(measure.is_good(one.arms[WARM]), measure.is_good(one.arms[COLD])) for one in lines]
    return Compared(title=measure.title, effect=effect, crossing=cross(outcomes))


def with_missing(compared: Sequence[Compared], missing: dict[str, int]) -> tuple[Compared, ...]:
    """Sessions that got no answer belong to every comparison, as what it does not know."""
    return tuple(structs.replace(one, effect=structs.replace(one.effect, missing=missing)) for one in compared)
