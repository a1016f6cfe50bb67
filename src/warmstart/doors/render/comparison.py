"""The first lines of a report: the comparison, the sessions in it and those left out, the checks, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping

import click

from warmstart.doors.render.terminal import clean
from warmstart.model import Effect
from warmstart.trials.metrics import METRICS
from warmstart.trials.report import Report
from warmstart.trials.split import MISMATCH, ArmCounts

_COLOURS = {"better": "green", "worse": "red"}
_CHECKED = "project, agent, kind of work and expected errors"


def show_comparison(report: Report) -> None:
    """Print at most seven lines of facts and then a line per arm with its verdict."""
    click.secho(state_subject(report), bold=True)
    for name, fact in list_facts(report):
        click.echo(f"{name + ':':<11}{fact}")
    if report.blocked:
        click.secho(f"NO VERDICT: {clean(report.blocked)}", fg="red", bold=True)
    for effect in report.effects:
        _show_verdict(effect)


def state_subject(report: Report) -> str:
    """Say in a line what is compared with what."""
    whose = "The standing holdout" if report.experiment == "holdout" else f"Experiment {clean(report.experiment)}"
    others = [clean(name) for name in report.arms if name != report.control]
    against = f": {', '.join(others)} against {clean(report.control)}" if others else ""
    return f"{whose}{against}, by {METRICS[report.metric].title}"


def list_facts(report: Report) -> list[tuple[str, str]]:
    """Return what stands behind a comparison: its sessions, those left out and missing, and the checks."""
    facts = [
        ("Compared", "sessions in the arm that was drawn for them, by the calls that they made after the draw"),
        ("Sessions", _count_sessions(report)),
        ("Seeded", _count_seeded(report)),
        ("Left out", _list_left_out(report)),
        ("Missing", _describe_missing(report)),
    ]
    return facts if report.blocked else [*facts, ("Checks", _describe_checks(report))]


def _count_sessions(report: Report) -> str:
    arms = [
        f"{arm.assigned - arm.missing} {clean(name)} measured of {arm.assigned} drawn ({arm.expected:.1f} expected)"
        for name, arm in report.arms.items()
    ]
    return ", ".join(arms)


def _count_seeded(report: Report) -> str:
    arms = [
        f"{arm.seeded} of {arm.assigned} {clean(name)}"
        for name, arm in report.arms.items()
        if name != "cold" and arm.seeded is not None
    ]
    return f"{', '.join(arms) or 'unknown'} got a seed or advice"


def _list_left_out(report: Report) -> str:
    reasons = "; ".join(f"{count} {clean(reason)}" for reason, count in report.left_out.items())
    return reasons or "none"


def _describe_missing(report: Report) -> str:
    if not any(arm.missing for arm in report.arms.values()):
        return "none without transcript"
    bounds = [text for effect in report.effects if (text := _write_bounds(effect))]
    return f"{_write_missing(report.arms)} without transcript{''.join(bounds)}"


def _write_missing(arms: Mapping[str, ArmCounts]) -> str:
    return ", ".join(f"{arm.missing} of {arm.assigned} {clean(name)}" for name, arm in arms.items())


def _write_bounds(effect: Effect) -> str:
    """Write how far the interval reaches if the missing sessions were the worst or the best."""
    worst = write_interval(effect, effect.worst_low, effect.worst_high)
    extreme = write_interval(effect, effect.extreme_low, effect.extreme_high)
    if worst is None or extreme is None:
        return ""
    return f"; with those too many at either end {clean(effect.arm)} is {worst}, with all of them {extreme}"


def write_interval(effect: Effect, low: float | None, high: float | None) -> str | None:
    """Write an interval in a metric's unit; None if there is none."""
    if low is None or high is None:
        return None
    form = "+.1%" if effect.metric in ("error_rate", "success") else "+,.2f"
    return f"{low:{form}} to {high:{form}}"


def _describe_checks(report: Report) -> str:
    if report.mismatch is None:
        return "nothing to check yet"
    if report.design == "paired":
        return f"every task in every arm as planned (p = {report.mismatch:.2g}, alarm below {MISMATCH})"
    lost = "" if report.missing_mismatch is None else f"; missing alike (p = {report.missing_mismatch:.2g})"
    return f"split as drawn, also by {_CHECKED} (p = {report.mismatch:.2g}){lost}; alarm below {MISMATCH}"


def _show_verdict(effect: Effect) -> None:
    """Print the verdict in a sentence, with the numbers behind it."""
    verdict, numbers = state_verdict(effect)
    if not numbers:
        if effect.verdict == "too_few":
            click.echo(f"{clean(effect.arm)}: {verdict}")
        return
    click.secho(f"{clean(effect.arm)}: {verdict}", fg=_COLOURS.get(effect.verdict, "yellow"), bold=True, nl=False)
    click.echo(f" - {numbers}")


def state_verdict(effect: Effect) -> tuple[str, str]:
    """Return the verdict, and the reason with the numbers behind it; without the latter where there can be no verdict."""
    name, control = clean(effect.arm), clean(effect.control)
    verdict = "too few sessions" if effect.verdict == "too_few" else effect.verdict
    if effect.blocked:
        return verdict, ""
    facts = [f"{effect.n[effect.arm]} {name} and {effect.n[effect.control]} {control} sessions"]
    if effect.harmed is not None and effect.harmed_expected is not None:
        facts.append(
            f"{effect.harmed} {name} sessions did worse than 90% of the {control} ones "
            f"({effect.harmed_expected:.0f} expected by chance)"
        )
    return verdict, f"{clean(effect.reason)} ({'; '.join(facts)})"
