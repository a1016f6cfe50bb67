"""A replay for people: what the model proposed in each arm, warm minus cold with whiskers, and what that can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from warmstart.arms import MISMATCHED
from warmstart.doors.render.effect import draw
from warmstart.doors.render.terminal import clean, print_table
from warmstart.lab.replay.report import Compared, ReplayCounts, ReplayReport

_PROBLEMS = 5  # told one by one
_FEW = 6  # sessions that reach a measure, below which it tells next to nothing


def show_replay(report: ReplayReport) -> None:
    """A replay as it stands."""
    where = f" at {report.endpoint}" if report.endpoint else ""
    click.secho(f"Replay with {clean(report.model)}{clean(where)}", bold=True)
    _say_what_was_done(report)
    print_table(
        (
            "arm",
            "#sessions",
            "#without any call",
            "#calls",
            "#again",
            "#copied",
            "#malformed",
            "#unknown tool",
            "#recorded",
            "#seed tokens",
        ),
        [_arm_line(name, counts) for name, counts in report.arms.items()],
    )
    if not report.compared:
        click.secho("No session was answered in all arms: there is nothing to compare.", fg="yellow", bold=True)
    else:
        _show_compared("All replayed sessions", report.compared)
    if report.compared_seeded and 0 < report.seeded < report.replayed:
        _show_compared("Only sessions that got a seed", report.compared_seeded)
    if report.compared_mismatched:
        number = report.compared_mismatched[0].effect.n[MISMATCHED]
        _show_compared(
            f"Against examples of other work, in the {number} sessions that there were both kinds for",
            report.compared_mismatched,
        )
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
        f"{report.recorded} recorded sessions; {report.replayed} of {report.planned} replayed {_enumerate(report.arms)}, up to"
        f" {report.turns} turns; {report.seeded} of them got a warm seed. An arm without a seed is the cold one: it is not"
        " asked twice."
    )
    click.echo(f"They are of {report.tasks} tasks, as far as these can be told apart; each stands in one half.")
    if report.left_loose:
        click.secho(
            f"{report.left_loose} rare values or wordings were left to tie nothing, because one task would have become too"
            " large: sessions in both halves may share them.",
            fg="yellow",
        )
    if report.seeded:
        click.secho(
            f"{report.given_away} of {report.seeded} seeds held a call that worked in the session's own record.",
            fg="yellow" if report.given_away else None,
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


def _enumerate(arms: Iterable[str]) -> str:
    *most, last = arms
    return f"{', '.join(most)} and {last}"


def _arm_line(name: str, counts: ReplayCounts) -> tuple[str, ...]:
    tokens = f"{counts.seed_tokens / counts.sessions:,.0f}" if counts.sessions else "-"
    proposed = (counts.calls, counts.repeated, counts.copied, counts.malformed, counts.unknown_tools, counts.matched)
    numbers = (counts.sessions, counts.no_call, *proposed)
    return (name, *(f"{number:,}" for number in numbers), tokens)


def _show_compared(title: str, compared: Sequence[Compared]) -> None:
    click.secho(title, bold=True)
    print_table(
        (
            "share of",
            "#warm",
            f"#{compared[0].effect.control}",
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
    known = effect.low is not None and effect.high is not None
    interval = f"{_points(effect.low)} to {_points(effect.high)}" if known else "-"
    values = (_share(effect.values[effect.arm]), _share(effect.values[effect.control]))
    difference = "-" if effect.difference is None else f"{_points(effect.difference)} pt"
    crossing = (str(one.crossing.helped), str(one.crossing.harmed))
    return (one.title, *values, difference, interval, draw(effect), *crossing, effect.verdict.replace("_", " "))


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"


def _points(value: float | None) -> str:
    """A difference of two percentages."""
    return "-" if value is None else f"{100 * value:+.1f}"


def _say_how_to_read(report: ReplayReport) -> None:
    effect = report.compared[0].effect
    if effect.verdict == "too_few":
        click.secho(f"No interval: {effect.reason}.", fg="yellow")
    else:
        click.echo(
            f"Intervals: sessions of one {effect.clustered_by} taken together ({effect.clusters} of them), for one look when"
            " all is done, in points (pt), which end at 100. Of a dozen measures one may cross zero by chance: the first was"
            " chosen beforehand to go by, since copying cannot win it."
        )
    crossing = report.compared[0].crossing
    reached = crossing.both + crossing.helped + crossing.harmed
    if reached < _FEW:
        click.secho(
            f"The first line has little to go by: {reached} sessions reached it in either arm. Where a first request does not"
            " hold what the calls take, hardly any can; the lines on shape then tell more, but a copied shape counts there.",
            fg="yellow",
        )
    click.echo("Helped, harmed: sessions that were as they should be only warm, or only in the other arm.")
    click.echo("Again: the same call a further time, counted once. Copied: calls that the session's seeds show.")
    if MISMATCHED not in report.arms:
        click.echo(
            "How much any example does, fitting or not: --arms cold,warm,mismatched, for half as many requests again."
        )
