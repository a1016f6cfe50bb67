"""The findings of a lab run: words and numbers that the terminal and the page share.

Differences, intervals and verdicts come from the store's own report. An unfinished run, or one whose arms cannot be
compared, shows neither intervals nor verdicts: the paired interval is for one look, when every task is done in every arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from warmstart.doors.render.insights import name_of
from warmstart.lab.run.summary import ArmLine, LabReport, TaskCell, TaskLine
from warmstart.model import Effect
from warmstart.plurals import format_count
from warmstart.stats.paired import MIN_GROUPS, MIN_TASKS
from warmstart.trials.metrics import METRICS

Tone = Literal["better", "worse", "open"]
UNKNOWN = "-"
NAME, REQUEST = 24, 300  # characters shown of an arm's or a family's name, and of a request

CENSORED = "A session in which no call worked counts as waiting to its end, up to the limit of turns (censored)."


class Shown(NamedTuple):
    """A metric in the form the lab shows it."""

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
        return f"{self._scale(value):,.{self._places(value)}f}{'%' if self.is_share else ''}"

    def sign(self, value: float | None) -> str:
        """Write a difference; a difference of shares is in points, not in per cent."""
        if value is None:
            return UNKNOWN
        written = f"{self._scale(value):+,.{self._places(value)}f}"
        return "0" if not written.strip("+-0.,") else written

    def sign_interval(self, effect: Effect) -> str:
        if effect.low is None or effect.high is None:
            return UNKNOWN
        return f"{self.sign(effect.low)} to {self.sign(effect.high)}"

    def _scale(self, value: float) -> float:
        return value * 100 if self.is_share else value

    def _places(self, value: float) -> int:
        if self.is_share:
            return 1 if 0 < abs(value) < 0.1 else 0
        return self.decimals


SOLVED = Shown("success", "tasks solved", "points", is_share=True)  # the metric that decides
ERRORS = Shown("error_rate", "errors per call", "points", is_share=True)
TURNS = Shown("turns_to_success", "turns to first success", "turns", decimals=2)
TOKENS = Shown("tokens", "tokens per session", "tokens")


class LabFinding(NamedTuple):
    """The conclusion of a run: one sentence, and the details that belong to it."""

    tone: Tone
    headline: str
    details: tuple[str, ...]


def safe(text: str, limit: int = NAME) -> str:
    """Return text from outside on one line, short and harmless; half a character becomes a mark."""
    return name_of(text.encode("utf-8", "replace").decode(), limit)


def may_conclude(report: LabReport) -> bool:
    return report.finished and not report.report.blocked


def list_others(report: LabReport) -> list[ArmLine]:
    """Return the arms that are compared with the control."""
    return [line for line in report.arms if line.arm != report.report.control]


def find_main_arm(report: LabReport) -> str | None:
    """Return warm, or else the first arm beside the control."""
    names = [line.arm for line in list_others(report)]
    return "warm" if "warm" in names else names[0] if names else None


def find_effect(report: LabReport, arm: str, metric: str) -> Effect | None:
    effects = (*report.report.effects, *report.report.secondary)
    return next((effect for effect in effects if (effect.arm, effect.metric) == (arm, metric)), None)


def judge_effect(report: LabReport, effect: Effect) -> tuple[Tone, str]:
    """Return the verdict on an effect and its colour. Only the metric that decides is called better or worse."""
    if not may_conclude(report):
        return "open", "no verdict" if report.finished else "no verdict yet"
    if effect.verdict == "better" or effect.verdict == "worse":
        if effect not in report.report.effects:
            return "open", "more" if (effect.difference or 0.0) > 0 else "less"
        return effect.verdict, effect.verdict
    return "open", "no difference shown" if effect.verdict == "inconclusive" else _explain_no_interval(effect)


def _explain_no_interval(effect: Effect) -> str:
    if min(effect.n.values(), default=0) < MIN_TASKS:
        return "too few tasks to tell"
    return "too few families to tell" if effect.clusters < MIN_GROUPS else "no spread to judge by"


# The finding


def describe_finding(report: LabReport) -> LabFinding:
    """Return what this run shows, in one sentence with details."""
    if report.report.blocked:
        reason = safe(report.report.blocked, 600)
        return LabFinding("open", "No verdict: the arms cannot be compared", (f"{reason[:1].upper()}{reason[1:]}.",))
    if not report.finished:
        headline = f"Unfinished: no verdict before all {format_count(report.planned, 'session')} are done"
        done = f"{report.done} of {format_count(report.planned, 'session')} are done."
        return LabFinding("open", headline, (f"{done} All numbers here are of those and may still change.",))
    main = find_main_arm(report)
    effect = next((one for one in report.report.effects if one.arm == main), None)
    if main is None or effect is None:
        ran = ", ".join(safe(line.arm) for line in report.arms) or "no arm"
        return LabFinding("open", f"Nothing to compare: {ran} ran alone", ("Run it again with --arms cold,warm.",))
    tone, headline = _write_headline(report, effect)
    details = [
        _describe_certainty(report, effect),
        _describe_tasks(report, effect),
        _describe_others(report, effect),
        _describe_extremes(report),
    ]
    return LabFinding(tone, headline, tuple(filter(None, details)))


def _write_headline(report: LabReport, effect: Effect) -> tuple[Tone, str]:
    arm, control = safe(effect.arm), safe(effect.control)
    match effect.verdict:
        case "better":
            return "better", f"{arm} beats {control}: {_compare_solved(report, effect, 'instead of')}"
        case "worse":
            return "worse", f"{arm} does worse than {control}: {_compare_solved(report, effect, 'instead of')}"
    solved = _compare_solved(report, effect, "against")
    if effect.verdict == "too_few":
        return "open", f"No verdict on {arm}, {_explain_no_interval(effect)}: {solved}"
    return "open", f"No difference shown between {arm} and {control}: {solved}"


def _compare_solved(report: LabReport, effect: Effect, against: str) -> str:
    lines = {line.arm: line for line in report.arms}
    arm, control = lines[effect.arm], lines[effect.control]
    total = f" of {control.sessions}" if arm.sessions != control.sessions else ""
    return f"{arm.solved} of {arm.sessions} tasks solved {against} {control.solved}{total}"


def _describe_certainty(report: LabReport, effect: Effect) -> str:
    if effect.low is None:
        return "There are too few tasks or families for a reliable interval: how much of this is chance is unknown."
    groups = f", over {_count_families(effect.clusters)}" if effect.clusters else ""
    text = f"The difference in {SOLVED.title} is {SOLVED.sign(effect.difference)} {SOLVED.unit}"
    text += f" (95% interval {SOLVED.sign_interval(effect)}{groups})"
    text += ": chance alone hardly does that." if effect.verdict in ("better", "worse") else ": it may as well be none."
    errors = find_effect(report, effect.arm, ERRORS.metric)
    if errors is None or errors.low is None:
        return text
    return f"{text} In {ERRORS.title}: {ERRORS.sign(errors.difference)} points ({ERRORS.sign_interval(errors)})."


def _describe_tasks(report: LabReport, effect: Effect) -> str:
    crossing = report.report.crossings.get(effect.arm)
    if crossing is None:
        return ""
    return (
        f"{format_count(crossing.helped, 'task')} solved only with {safe(effect.arm)}, {crossing.harmed} only with "
        f"{safe(effect.control)} ({write_p(crossing.p)})."
    )


def _describe_others(report: LabReport, main: Effect) -> str:
    others = [
        f"{safe(effect.arm)} {SOLVED.sign(effect.difference)}, {judge_effect(report, effect)[1]}"
        for effect in report.report.effects
        if effect.arm != main.arm
    ]
    against = f"The other arms against {safe(main.control)}, {SOLVED.title} ({SOLVED.unit})"
    return f"{against}: {'; '.join(others)}." if others else ""


def _describe_extremes(report: LabReport) -> str:
    """Say so if all arms fail or solve everything: such tasks cannot tell arms apart."""
    solved, tried = (sum(getattr(line, name) for line in report.arms) for name in ("solved", "sessions"))
    if tried and not solved:
        return "No arm solved a task: they are too hard for this model to show what a seed does to solving them."
    if tried and solved == tried:
        return "Every arm solved every task: they are too easy for this model to show what a seed does to solving them."
    return ""


def _count_families(number: int) -> str:
    return "1 family" if number == 1 else f"{number} families"


def write_p(p: float) -> str:
    return "McNemar p < 0.001" if p < 0.001 else f"McNemar p = {p:.2g}"


def list_limits(report: LabReport) -> list[str]:
    """Return what this run cannot show."""
    arms = len(list_others(report))
    several = (
        f" Those of {SOLVED.title}, which decides, are widened so that all {arms} hold together." if arms > 1 else ""
    )
    return [
        "Intervals are 95% and for new tasks and families like these. Tasks of one family resemble each other, so the "
        f"{_count_families(len(report.families))} are counted, not the tasks.{several}",
        f"Only {SOLVED.title} decides; the other numbers help to understand. McNemar's p treats tasks as independent, the "
        "intervals do not.",
        f"Errors per call are of a session's first turns; an answer without a call counts as a failed call. {CENSORED}",
        "The tasks were written by the lab's authors: other tasks may give other results.",
        "A tiny model is not your agent. What helps here may do nothing for a model that knows the tools; try yours with "
        "--endpoint or --gguf.",
    ]


# Tasks and families


class FamilyResult(NamedTuple):
    """A family in every arm: solved and tried."""

    name: str
    arms: dict[str, tuple[int, int]]


def count_families(report: LabReport) -> list[FamilyResult]:
    """Return the families, largest gain of the main arm over the control first."""
    control, main = report.report.control, find_main_arm(report)
    names = dict.fromkeys((*report.families, *(task.family for task in report.tasks)))
    counts: dict[str, dict[str, tuple[int, int]]] = {name: {} for name in names}
    for task in report.tasks:
        for arm, cell in task.arms.items():
            solved, tried = counts[task.family].get(arm, (0, 0))
            counts[task.family][arm] = solved + cell.solved, tried + 1
    families = [FamilyResult(name, arms) for name, arms in counts.items() if arms]
    return sorted(families, key=lambda family: _share(family, control) - _share(family, main))


def _share(family: FamilyResult, arm: str | None) -> float:
    solved, tried = family.arms.get(arm or "", (0, 0))
    return solved / tried if tried else 0.0


def list_harmed(report: LabReport, arm: str) -> list[TaskLine]:
    """Return the tasks that were solved in the control arm and failed with this arm's seed."""
    control = report.report.control
    return [
        task
        for task in report.tasks
        if control in task.arms and arm in task.arms and task.arms[control].solved and not task.arms[arm].solved
    ]


def describe_cell(cell: TaskCell) -> str:
    """Describe one session."""
    ending, turns = "solved" if cell.solved else "not solved", format_count(cell.turns, "turn")
    if not cell.calls:
        return f"{ending}, no call in {turns}"
    tried = f"{format_count(cell.errors, 'error')} in {format_count(cell.calls, 'call')}"
    if cell.success_turn is None:
        return f"{ending}, {tried}, none worked in {turns}"
    return f"{ending}, {tried}, first success on turn {cell.success_turn} of {cell.turns}"


def describe_run(report: LabReport) -> list[tuple[str, str]]:
    """Return all that is needed to repeat the run, or to doubt it."""
    model = report.model
    return [
        ("Model", safe(model.name, 120)),
        ("SHA-256 of its weights", "unknown, of an endpoint" if model.digest is None else safe(model.digest, 100)),
        ("Runtime", safe(model.runtime, 120) if model.runtime else UNKNOWN),
        *([("Endpoint", safe(model.endpoint, 200))] if model.endpoint else []),
        ("Run (UTC)", describe_times(report)),
        ("Warmstart", safe(report.version, 40)),
        ("Sessions", f"{report.done} of {report.planned} planned, up to {format_count(report.turns, 'turn')} each"),
        ("Random seed", str(report.random_seed)),
        ("Grammar that allows only calls", "yes, in every arm" if report.grammar else "no"),
        (
            "Learned",
            f"{format_count(report.templates, 'template')} from {format_count(report.training_sessions, 'session')}",
        ),
        ("Families tested", _list_names(report.families)),
        ("Held out, for the control arms alone", _list_names(report.held_out)),
        ("Walls around the model's commands", "; ".join(safe(wall, 200) for wall in report.walls)),
    ]


def describe_times(report: LabReport) -> str:
    """Return when the sessions ran and when the report was made: a finished run may be shown again long after."""
    shown = f"shown {safe(report.at, 40)}"
    if report.began is None or report.ended is None:
        return shown
    return f"{safe(report.began, 40)} to {safe(report.ended, 40)}, {shown}"


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(safe(name, 40) for name in names) or "none"
