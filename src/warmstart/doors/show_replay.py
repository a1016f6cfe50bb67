"""A replay for people: what the model proposed in each arm, warm minus cold with whiskers, and what that can show."""

from __future__ import annotations

from collections.abc import Sequence

import click

from warmstart.doors.show import clean, print_table
from warmstart.doors.show_effect import draw
from warmstart.lab.replay_report import Compared, Counts, ReplayReport

_PROBLEMS = 5  # told one by one


def show_replay(report: ReplayReport) -> None:
    """A replay as it stands."""
    where = f" at {report.endpoint}" if report.endpoint else ""
    click.secho(f"Replay with {clean(report.model)}{clean(where)}", bold=True)
    _say_what_was_done(report)
    print_table(
        ("arm", "#sessions", "#without any call", "#calls", "#malformed", "#unknown tool", "#recorded", "#seed tokens"),
        [_arm_line(name, counts) for name, counts in report.arms.items()],
    )
    if not report.compared:
        click.secho("No session was answered in both arms: there is nothing to compare.", fg="yellow", bold=True)
    else:
        _show_compared("All replayed sessions", report.compared)
    if report.compared_seeded and 0 < report.seeded < report.replayed:
        _show_compared("Only sessions that got a seed", report.compared_seeded)
    if report.compared:
        _say_how_to_read(report)
    for title, lines in (
        ("What this shows:", report.shows),
        ("What it cannot show:", report.cannot_show),
        ("How it was done:", report.conditions),
    ):
        click.secho(title, bold=True)
        for line in lines:
            click.echo(f"- {line}")


def _say_what_was_done(report: ReplayReport) -> None:
    click.echo(
        f"{report.recorded} recorded sessions; {report.replayed} of {report.planned} replayed cold and warm, up to"
        f" {report.turns} turns; {report.seeded} of them got a seed, the others were asked once for both arms."
    )
    if not report.finished:
        click.secho("Not finished: the figures are of a part, drawn by chance. Run it again to go on.", fg="yellow")
    if report.left_out:
        told = "; ".join(f"{number} ({clean(reason)})" for reason, number in sorted(report.left_out.items()))
        click.echo(f"not replayed: {told}")
    if any(report.unanswered.values()):
        told = ", ".join(f"{number} {arm}" for arm, number in report.unanswered.items())
        click.secho(f"without an answer, and not compared: {told} ({clean(report.trouble)})", fg="yellow")
    for half in report.halves:
        click.echo(
            f"half {half.half}: {half.sessions} sessions taught {half.templates} templates, which the other half was tried with"
        )
    if report.halves and not any(half.templates for half in report.halves):
        click.secho(
            "Neither half taught a template that may be used, so both arms are the same; more sessions are needed.",
            fg="yellow",
        )
    for problem in report.problems[:_PROBLEMS]:
        line = "" if problem.line is None else f":{problem.line}"
        click.secho(f"unreadable: {clean(problem.path)}{line}: {clean(problem.reason)}", fg="yellow")
    if len(report.problems) > _PROBLEMS:
        click.secho(f"... and {len(report.problems) - _PROBLEMS} more problems; see --json", fg="yellow")


def _arm_line(name: str, counts: Counts) -> tuple[str, ...]:
    tokens = f"{counts.seed_tokens / counts.sessions:,.0f}" if counts.sessions else "-"
    numbers = (counts.sessions, counts.no_call, counts.calls, counts.malformed, counts.unknown_tools, counts.matched)
    return (name, *(f"{number:,}" for number in numbers), tokens)


def _show_compared(title: str, compared: Sequence[Compared]) -> None:
    click.secho(title, bold=True)
    print_table(
        (
            "share of",
            "#warm",
            "#cold",
            "#difference",
            "#95 % interval",
            f"{'less':<10}0{'more':>10}",
            "#helped",
            "#harmed",
            "warm is",
        ),
        [_line(one) for one in compared],
    )


def _line(one: Compared) -> tuple[str, ...]:
    effect = one.effect
    interval = "-" if effect.low is None or effect.high is None else f"{effect.low:+.1%} to {effect.high:+.1%}"
    values = (_share(effect.values[effect.arm]), _share(effect.values[effect.control]), _share(effect.difference, "+"))
    crossing = (str(one.crossing.helped), str(one.crossing.harmed))
    return (one.title, *values, interval, draw(effect), *crossing, effect.verdict.replace("_", " "))


def _share(value: float | None, sign: str = "") -> str:
    return "-" if value is None else f"{value:{sign}.1%}"


def _say_how_to_read(report: ReplayReport) -> None:
    effect = report.compared[0].effect
    if effect.verdict == "too_few":
        click.secho(f"No interval: {effect.reason}.", fg="yellow")
    else:
        click.echo(
            f"Intervals: sessions of one {effect.clustered_by} taken together ({effect.clusters} of them), for one look when"
            " all is done. Of ten measures one may cross zero by chance: the first was chosen beforehand to go by."
        )
    click.echo("Helped, harmed: sessions that were as they should be only warm, or only cold.")
