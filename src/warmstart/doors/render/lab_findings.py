"""What a run of the lab says: the words and numbers that the terminal and the page share.

Nothing is computed twice: differences, intervals and verdicts are those of the store's own report. Where they may not be
believed (a run that is not finished, arms that cannot be compared), intervals and verdicts are not told at all: the paired
interval is for one look, when every task was done in every arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from warmstart.doors.render.insights import count_of, name_of
from warmstart.lab.run.summary import ArmLine, LabReport, TaskCell, TaskLine
from warmstart.model import Effect
from warmstart.stats.paired import MIN_GROUPS, MIN_TASKS
from warmstart.trials.metrics import METRICS

Tone = Literal["better", "worse", "open"]
UNKNOWN = "-"
NAME, REQUEST = 24, 300  # characters shown of an arm's or a family's name, and of a request

CENSORED = (
    "A session in which no call worked is not left out: it is known to have waited as long as it was watched, up to the "
    "limit of turns (censored)."
)


class Shown(NamedTuple):
    """A metric as the lab shows it."""

    metric: str
    title: str
    unit: str  # of a difference
    is_share: bool = False
    decimals: int = 0

    @property
    def lower_is_better(self) -> bool:
        return METRICS[self.metric].lower_is_better

    def write(self, value: float | None) -> str:
        if value is None:
            return UNKNOWN
        return f"{_scaled(value, self):,.{self._places(value)}f}{'%' if self.is_share else ''}"

    def sign(self, value: float | None) -> str:
        """A difference; of shares in points, which are no per cent of anything."""
        if value is None:
            return UNKNOWN
        told = f"{_scaled(value, self):+,.{self._places(value)}f}"
        return "0" if not told.strip("+-0.,") else told

    def sign_interval(self, effect: Effect) -> str:
        if effect.low is None or effect.high is None:
            return UNKNOWN
        return f"{self.sign(effect.low)} to {self.sign(effect.high)}"

    def _places(self, value: float) -> int:
        if self.is_share:
            return 1 if 0 < abs(value) < 0.1 else 0
        return self.decimals


def _scaled(value: float, shown: Shown) -> float:
    return value * 100 if shown.is_share else value


SOLVED = Shown("success", "tasks solved", "points", is_share=True)
ERRORS = Shown("error_rate", "errors per call", "points", is_share=True)
TURNS = Shown("turns_to_success", "turns to first success", "turns", decimals=2)
TOKENS = Shown("tokens", "tokens a session", "tokens")
SHOWN = (SOLVED, ERRORS, TURNS, TOKENS)


class LabFinding(NamedTuple):
    """What it comes to: one sentence, and what has to be said with it."""

    tone: Tone
    headline: str
    details: tuple[str, ...]


def safe(text: str, limit: int = NAME) -> str:
    """Text from outside on one line, short and harmless; half a character that nothing can write becomes a mark."""
    return name_of(text.encode("utf-8", "replace").decode(), limit)


def may_conclude(report: LabReport) -> bool:
    return report.finished and not report.report.blocked


def others_of(report: LabReport) -> list[ArmLine]:
    """The arms that are compared with the control."""
    return [line for line in report.arms if line.arm != report.report.control]


def line_of(report: LabReport, arm: str) -> ArmLine | None:
    return next((line for line in report.arms if line.arm == arm), None)


def main_arm(report: LabReport) -> str | None:
    """The arm it is all about: warm, or the first beside the control."""
    names = [line.arm for line in others_of(report)]
    return "warm" if "warm" in names else names[0] if names else None


def effect_of(report: LabReport, arm: str, metric: str) -> Effect | None:
    found = (*report.report.effects, *report.report.secondary)
    return next((effect for effect in found if (effect.arm, effect.metric) == (arm, metric)), None)


def shown_of(metric: str) -> Shown:
    known = next((shown for shown in SHOWN if shown.metric == metric), None)
    return known or Shown(metric, METRICS[metric].title if metric in METRICS else metric, "", decimals=2)


def verdict_of(report: LabReport, effect: Effect) -> tuple[Tone, str]:
    """What may be said of an effect, and in which colour."""
    if not may_conclude(report):
        return "open", "no verdict" if report.finished else "no verdict yet"
    if effect.verdict == "better" or effect.verdict == "worse":
        if effect not in report.report.effects:  # "better" is said of what decides alone
            return "open", "more" if (effect.difference or 0.0) > 0 else "less"
        return effect.verdict, effect.verdict
    against = [told for told in report.report.guardrails if told.startswith(f"{effect.arm}: ")]
    if against and effect in report.report.effects:
        return "open", "no verdict: see below"
    return "open", "no difference shown" if effect.verdict == "inconclusive" else _why_no_interval(effect)


def _why_no_interval(effect: Effect) -> str:
    if min(effect.n.values(), default=0) < MIN_TASKS:
        return "too few tasks to tell"
    return "too few families to tell" if effect.clusters < MIN_GROUPS else "no spread to judge by"


# The finding


def tell_finding(report: LabReport) -> LabFinding:
    """What may be believed of this run, in one sentence."""
    done = f"{report.done} of {count_of(report.planned, 'session')}"
    if report.report.blocked:
        why = safe(report.report.blocked, 600)
        return LabFinding("open", "No verdict: the arms cannot be compared", (f"{why[:1].upper()}{why[1:]}.",))
    if not report.finished:
        headline = f"Unfinished: no verdict before all {count_of(report.planned, 'session')} are done"
        return LabFinding("open", headline, (f"{done} are done. All numbers here are of those, and can still turn.",))
    main = main_arm(report)
    effect = next((one for one in report.report.effects if one.arm == main), None)
    if main is None or effect is None:
        ran = ", ".join(safe(line.arm) for line in report.arms) or "no arm"
        return LabFinding("open", f"Nothing to compare: {ran} ran alone", ("Run it again with --arms cold,warm.",))
    tone, headline = _headline(report, effect)
    details = [_tell_certainty(report, effect), _tell_tasks(report, effect), *_tell_others(report, effect)]
    return LabFinding(tone, headline, tuple(filter(None, (*details, _tell_ends(report)))))


def _headline(report: LabReport, effect: Effect) -> tuple[Tone, str]:
    arm, control = safe(effect.arm), safe(effect.control)
    against = "instead of" if effect.verdict in ("better", "worse") else "against"
    solved = effect_of(report, effect.arm, SOLVED.metric)
    told = [effect, solved] if solved is not None and solved is not effect else [effect]
    what = ", ".join(_compare_values(report, one, against) for one in told)
    if effect.verdict == "better":
        return "better", f"{arm} beats {control}: {what}"
    if effect.verdict == "worse":
        return "worse", f"{arm} does worse than {control}: {what}"
    if effect.verdict == "too_few":
        return "open", f"No verdict on {arm}, {_why_no_interval(effect)}: {what}"
    if any(told.startswith(f"{effect.arm}: ") for told in report.report.guardrails):
        return "open", f"No verdict on {arm}: {safe(effect.reason, 300)}"
    return "open", f"No difference shown between {arm} and {control}: {what}"


def _compare_values(report: LabReport, effect: Effect, against: str) -> str:
    """Both arms in the numbers people count in."""
    shown = shown_of(effect.metric)
    arm, control = (line_of(report, name) for name in (effect.arm, effect.control))
    if shown is SOLVED and arm and control:
        of = f" of {control.sessions}" if arm.sessions != control.sessions else ""
        return f"{arm.solved} of {arm.sessions} tasks solved {against} {control.solved}{of}"
    values = [shown.write(effect.values.get(name)) for name in (effect.arm, effect.control)]
    return f"{shown.title} {values[0]} {against} {values[1]}"


def _tell_certainty(report: LabReport, effect: Effect) -> str:
    shown = shown_of(effect.metric)
    if effect.low is None:
        return "There are too few tasks or families for an interval one could believe: nobody knows how much of it is chance."
    groups = f", over {_families(effect.clusters)}" if effect.clusters else ""
    told = f"The difference in {shown.title} is {shown.sign(effect.difference)} {shown.unit}".rstrip()
    told += f" (95% interval {shown.sign_interval(effect)}{groups})"
    told += ": chance alone hardly does that." if effect.verdict in ("better", "worse") else ": it can as well be none."
    beside = ERRORS if shown is SOLVED else SOLVED
    other = effect_of(report, effect.arm, beside.metric)
    if other is None or other.low is None:
        return told
    return f"{told} In {beside.title}: {beside.sign(other.difference)} points ({beside.sign_interval(other)})."


def _tell_tasks(report: LabReport, effect: Effect) -> str:
    crossing = report.report.crossings.get(effect.arm)
    if crossing is None:
        return ""
    return (
        f"{count_of(crossing.helped, 'task')} solved only with {safe(effect.arm)}, {crossing.harmed} only with "
        f"{safe(effect.control)} ({write_p(crossing.p)})."
    )


def _tell_others(report: LabReport, main: Effect) -> list[str]:
    """The other arms, whatever they say."""
    shown = shown_of(main.metric)
    told = [
        f"{safe(effect.arm)} {shown.sign(effect.difference)}, {verdict_of(report, effect)[1].split(':')[0]}"
        for effect in report.report.effects
        if effect.arm != main.arm
    ]
    unit = f" ({shown.unit})" if shown.unit else ""
    return [f"The other arms against {safe(main.control)}, {shown.title}{unit}: {'; '.join(told)}."] if told else []


def _tell_ends(report: LabReport) -> str:
    """Tasks that all arms fail, or that all arms solve, tell arms apart by nothing."""
    solved, tried = (sum(getattr(line, name) for line in report.arms) for name in ("solved", "sessions"))
    if tried and not solved:
        return "No arm solved a task: they are too hard for this model to show what a seed does to solving them."
    if tried and solved == tried:
        return "Every arm solved every task: they are too easy for this model to show what a seed does to solving them."
    return ""


def _families(number: int) -> str:
    return "1 family" if number == 1 else f"{number} families"


def write_p(p: float) -> str:
    return "McNemar p < 0.001" if p < 0.001 else f"McNemar p = {p:.2g}"


def list_limits(report: LabReport) -> list[str]:
    """What this run cannot tell."""
    arms = len(others_of(report))
    decided = shown_of(report.report.metric).title
    several = f" Those of {decided}, which decides, are widened so that all {arms} hold together." if arms > 1 else ""
    return [
        f"Intervals are 95% and for new tasks and families like these: tasks of one family hang together, so the "
        f"{_families(len(report.families))} are what is counted.{several}",
        f"Only {decided} decides; the other numbers help to understand. McNemar's p takes tasks for independent, the "
        "intervals do not.",
        f"Errors per call are of a session's first turns; an answer without a call counts as one that failed. {CENSORED}",
        "The tasks were written by the lab's authors: other tasks can say something else.",
        "A tiny model is not your agent. What helps here may do nothing for a model that knows the tools; try yours with "
        "--endpoint or --gguf.",
    ]


# Tasks and families


class FamilyResult(NamedTuple):
    """A family in every arm: solved and tried."""

    name: str
    arms: dict[str, tuple[int, int]]


def count_families(report: LabReport) -> list[FamilyResult]:
    """Largest gain of the main arm over the control first: who gains and who loses is seen from the ends."""
    control, main = report.report.control, main_arm(report)
    names = dict.fromkeys((*report.families, *(task.family for task in report.tasks)))
    found: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in names}
    for task in report.tasks:
        for arm, cell in task.arms.items():
            solved, tried = found[task.family].get(arm, (0, 0))
            found[task.family][arm] = solved + cell.solved, tried + 1
    families = [FamilyResult(name, arms) for name, arms in found.items() if arms]
    return sorted(families, key=lambda family: _share(family, control) - _share(family, main))


def _share(family: FamilyResult, arm: str | None) -> float:
    solved, tried = family.arms.get(arm or "", (0, 0))
    return solved / tried if tried else 0.0


def list_harmed(report: LabReport, arm: str) -> list[TaskLine]:
    """Solved without the arm's seed, failed with it."""
    control = report.report.control
    return [
        task
        for task in report.tasks
        if control in task.arms and arm in task.arms and task.arms[control].solved and not task.arms[arm].solved
    ]


def say_cell(cell: TaskCell) -> str:
    """What happened in one session."""
    ending, turns = "solved" if cell.solved else "not solved", count_of(cell.turns, "turn")
    if not cell.calls:
        return f"{ending}, no call in {turns}"
    tried = f"{count_of(cell.errors, 'error')} in {count_of(cell.calls, 'call')}"
    if cell.success_turn is None:
        return f"{ending}, {tried}, none worked in {turns}"
    return f"{ending}, {tried}, first success on turn {cell.success_turn} of {cell.turns}"


def describe_run(report: LabReport) -> list[tuple[str, str]]:
    """All that is needed to do it again, or to doubt it."""
    model = report.model
    digest = "not known: an endpoint does not tell" if model.digest is None else safe(model.digest, 100)
    return [
        ("Model", safe(model.name, 120)),
        ("SHA-256 of its weights", digest),
        ("Runtime", safe(model.runtime, 120) if model.runtime else UNKNOWN),
        *([("Endpoint", safe(model.endpoint, 200))] if model.endpoint else []),
        ("Run (UTC)", tell_times(report)),
        ("Warmstart", safe(report.version, 40)),
        ("Sessions", f"{report.done} of {report.planned} planned, up to {count_of(report.turns, 'turn')} each"),
        ("Random seed", str(report.random_seed)),
        ("Output forced into a call by a grammar", "yes, in every arm" if report.grammar else "no"),
        ("Learned", f"{count_of(report.templates, 'template')} from {count_of(report.training_sessions, 'session')}"),
        ("Families tested", _list_names(report.families)),
        ("Held out, for the control arms alone", _list_names(report.held_out)),
        ("Walls around what the model ran", "; ".join(safe(wall, 200) for wall in report.walls)),
    ]


def tell_times(report: LabReport) -> str:
    """When the sessions were, and when they are looked at: a finished run is shown again long after."""
    shown = f"shown {safe(report.at, 40)}"
    if report.began is None or report.ended is None:
        return shown
    return f"{safe(report.began, 40)} to {safe(report.ended, 40)}, {shown}"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(safe(name, 40) for name in names) or "none"
