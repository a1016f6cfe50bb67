"""Show a lab run on a terminal: the arms, each against the control, the families, and the finding."""

from __future__ import annotations

from collections.abc import Sequence

import click

from warmstart.doors.render.lab_findings import (
    CENSORED,
    ERRORS,
    SOLVED,
    TOKENS,
    TURNS,
    UNKNOWN,
    Shown,
    count_families,
    describe_finding,
    describe_times,
    find_effect,
    judge_effect,
    list_limits,
    list_others,
    may_conclude,
    safe,
    write_p,
)
from warmstart.doors.render.terminal import print_table
from warmstart.lab.run.summary import ArmLine, LabReport
from warmstart.model import Effect
from warmstart.plurals import format_count

_COLOURS = {"better": "green", "worse": "red", "open": "yellow"}
_WIDTH = 17  # characters of a whisker
_SHORT = {SOLVED: "solved", ERRORS: "errors", TURNS: "turns"}  # the columns' names in the table of arms
_UNITS = {SOLVED: "pt", ERRORS: "pt", TURNS: ""}  # points: a difference of two percentages
_DIGEST = 12  # characters shown of a hash


def show_lab(report: LabReport) -> None:
    """Print the whole report, the finding last, where the eye is when the run has ended."""
    _show_header(report)
    if report.arms:
        _show_arms(report)
        _show_differences(report)
        _show_verdicts(report)
        _show_families(report)
    _show_finding(report)


def _show_header(report: LabReport) -> None:
    model = report.model
    digest = f"sha256 {safe(model.digest)[:_DIGEST]}" if model.digest else "weights unknown"
    click.secho(f"The lab: {safe(model.name, 60)}", bold=True, nl=False)
    about = (digest, *(safe(fact, 120) for fact in (model.runtime, model.endpoint) if fact))
    click.echo(f" ({', '.join(about)})")
    facts = (
        describe_times(report),
        f"random seed {report.random_seed}",
        f"{report.done} of {format_count(report.planned, 'session')}",
        f"up to {format_count(report.turns, 'turn')}",
        f"{format_count(report.templates, 'template')} from {format_count(report.training_sessions, 'session')}",
        "with a grammar" if report.grammar else "no grammar",
    )
    click.echo("; ".join(facts))
    click.echo(f"walls: {'; '.join(safe(wall, 100) for wall in report.walls)}")


def _show_arms(report: LabReport) -> None:
    """Print the table of arms, narrow enough for eighty columns."""
    columns = "arm #solved #errors #turns #tokens #tools #seed #shown #sec".split()
    print_table(columns, [_write_arm(line) for line in report.arms])
    click.echo(
        "errors: per call, in the first turns. turns: to the first call that works. seed: its tokens. shown: examples. "
        f"All but solved are means per session. {CENSORED}"
    )


def _write_arm(line: ArmLine) -> tuple[str, ...]:
    share = f" {line.solved / line.sessions:.0%}" if line.sessions else ""
    return (
        safe(line.arm),
        f"{line.solved}/{line.sessions}{share}",
        ERRORS.write(line.errors_per_call),
        TURNS.write(line.turns_to_success),
        TOKENS.write(line.tokens),
        UNKNOWN if line.tools is None else f"{line.tools:.1f}",
        TOKENS.write(line.seed_tokens),
        f"{line.examples:.1f}",
        UNKNOWN if line.seconds is None else f"{line.seconds:,.1f}",
    )


def _show_differences(report: LabReport) -> None:
    """Print three differences of every arm to the control, without verdicts: only one of them decides."""
    half = (_WIDTH - 1) // 2
    rows = [
        (safe(line.arm) if first else "", *_write_difference(report, effect, shown))
        for line in list_others(report)
        for first, shown in ((True, SOLVED), (False, ERRORS), (False, TURNS))
        if (effect := find_effect(report, line.arm, shown.metric)) is not None and effect.difference is not None
    ]
    if rows:
        against = f"against {safe(report.report.control)}"
        print_table((against, "", "#difference", "#95% interval", f"{'less':<{half}}0{'more':>{half}}"), rows)


def _write_difference(report: LabReport, effect: Effect, shown: Shown) -> tuple[str, ...]:
    believed = may_conclude(report)
    return (
        _SHORT[shown],
        f"{shown.sign(effect.difference)} {_UNITS[shown]}".rstrip(),
        shown.sign_interval(effect) if believed else UNKNOWN,
        draw_whisker(effect, _reach(report, shown), with_interval=believed),
    )


def _show_verdicts(report: LabReport) -> None:
    """Print how many tasks gain and lose, and the verdicts."""
    from rich.text import Text

    rows = []
    for effect in report.report.effects:
        tone, verdict = judge_effect(report, effect)
        crossing = report.report.crossings.get(effect.arm)
        counts: Sequence[str] = (UNKNOWN,) * 4
        p = UNKNOWN
        if crossing is not None:
            counts = [str(count) for count in (crossing.helped, crossing.harmed, crossing.both, crossing.neither)]
            p = write_p(crossing.p).removeprefix("McNemar p ").removeprefix("= ") if may_conclude(report) else UNKNOWN
        rows.append((safe(effect.arm), *counts, p, Text(verdict, style=f"bold {_COLOURS[tone]}")))
    if rows:
        print_table(("tasks", "#helped", "#harmed", "#both", "#neither", "#p", "verdict"), rows)
        control = safe(report.report.control)
        click.echo(f"helped: solved only with the arm's seed; harmed: solved only {control}; p: McNemar's exact test.")


def _reach(report: LabReport, shown: Shown) -> float:
    """Return one scale for all arms of a metric: a wide interval must look wide beside a narrow one."""
    effects = [find_effect(report, line.arm, shown.metric) for line in list_others(report)]
    ends = [value for one in effects if one for value in (one.low, one.high, one.difference) if value is not None]
    return max(map(abs, ends), default=0.0) or 1.0


def draw_whisker(effect: Effect, reach: float, *, with_interval: bool) -> str:
    """Draw a difference around zero, less on the left and more on the right, with or without its interval."""
    middle = _WIDTH // 2

    def place(value: float) -> int:
        return middle + round(max(-1.0, min(1.0, value / reach)) * middle)

    cells = [" "] * _WIDTH
    cells[middle] = "|"
    if with_interval and effect.low is not None and effect.high is not None:
        for at in range(place(effect.low), place(effect.high) + 1):
            cells[at] = "+" if at == middle else "-"
    if effect.difference is not None:
        cells[place(effect.difference)] = "o"
    return "".join(cells).rstrip()


def _show_families(report: LabReport) -> None:
    families = count_families(report)
    if not families:
        return
    names = [line.arm for line in report.arms]
    rows = [(safe(family.name), *(_count(family.arms.get(name)) for name in names)) for family in families]
    columns: Sequence[str] = ("solved, by family", *(f"#{safe(name)}" for name in names))
    print_table(columns, rows)


def _count(counts: tuple[int, int] | None) -> str:
    return UNKNOWN if counts is None else f"{counts[0]}/{counts[1]}"


def _show_finding(report: LabReport) -> None:
    finding = describe_finding(report)
    click.echo()
    click.secho(finding.headline, fg=_COLOURS[finding.tone], bold=True)
    for detail in finding.details:
        click.echo(detail)
    click.echo()
    click.echo("What this cannot show:")
    for limit in list_limits(report):
        click.echo(f"- {limit}")
