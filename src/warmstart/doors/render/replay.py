"""Show a replay on a terminal: the calls proposed in each arm, warm minus cold with whiskers, and what that can show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import click

from warmstart.arms import MISMATCHED
from warmstart.doors.render.effect import draw
from warmstart.doors.render.terminal import clean, print_table
from warmstart.lab.replay.report import Compared, ReplayCounts, ReplayReport

_PROBLEMS = 5  # listed one by one
_FEW = 6  # sessions that reach a measure, below which it shows next to nothing


def show_replay(report: ReplayReport) -> None:
    """Print a replay, finished or not."""
    where = f" at {report.endpoint}" if report.endpoint else ""
    click.secho(f"Replay with {clean(report.model)}{clean(where)}", bold=True)
    _show_progress(report)
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
            f"Against examples of other work, in the {number} sessions with both kinds",
            report.compared_mismatched,
        )
    if report.compared:
        _explain_table(report)
    for title, lines in (
        ("What this shows:", report.shows),
        ("What it cannot show:", report.cannot_show),
        ("How it was done:", report.conditions),
    ):
        click.secho(title, bold=True)
        for line in lines:
            click.echo(f"- {line}")


def _show_progress(report: ReplayReport) -> None:
    """Print what was replayed, left out and learned."""
    click.echo(
        f"{report.recorded} recorded sessions; {report.replayed} of {report.planned} replayed {_enumerate(report.arms)}, up to"
        f" {report.turns} turns; {report.seeded} of them got a warm seed. A session without one counts as its cold replay and"
        " is not asked twice."
    )
    click.echo(f"They are of {report.tasks} tasks, as far as tasks can be distinguished; no task is in both halves.")
    if report.left_loose:
        click.secho(
            f"{report.left_loose} rare values or wordings were not used to join sessions, because one task would have become"
            " too large: sessions in both halves may share them.",
            fg="yellow",
        )
    if report.seeded:
        click.secho(
            f"{report.given_away} of {report.seeded} seeds contained a call that worked in the session's own record.",
            fg="yellow" if report.given_away else None,
        )
    if not report.finished:
        click.secho("Not finished: the figures are of a random part. Run it again to go on.", fg="yellow")
    if report.left_out:
        reasons = "; ".join(f"{number} ({clean(reason)})" for reason, number in sorted(report.left_out.items()))
        click.echo(f"not replayed: {reasons}")
    if any(report.unanswered.values()):
        counts = ", ".join(f"{number} {arm}" for arm, number in report.unanswered.items())
        click.secho(f"without an answer, and not compared: {counts} ({clean(report.trouble)})", fg="yellow")
    for half in report.halves:
        click.echo(
            f"half {half.half}: {half.templates} templates from {half.sessions} sessions, tried on the other half"
        )
    if report.halves and not any(half.templates for half in report.halves):
        click.secho(
            "Neither half gave a usable template, so both arms are the same; more sessions are needed.",
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
    """Write a difference of two percentages."""
    return "-" if value is None else f"{100 * value:+.1f}"


def _explain_table(report: ReplayReport) -> None:
    effect = report.compared[0].effect
    if effect.verdict == "too_few":
        click.secho(f"No interval: {effect.reason}.", fg="yellow")
    else:
        click.echo(
            f"Intervals treat sessions of one {effect.clustered_by} as related ({effect.clusters} {effect.clustered_by}s) and are"
            " for one look when all is done; they are in points (pt). One of a dozen measures may miss zero by chance, so the"
            " first was chosen beforehand to decide: copying cannot win it."
        )
    crossing = report.compared[0].crossing
    reached = crossing.both + crossing.helped + crossing.harmed
    if reached < _FEW:
        click.secho(
            f"The first line rests on little: {reached} sessions reached it in either arm. If first requests lack the"
            " values that the calls need, hardly any can; the lines on shape then show more, but count copied shapes.",
            fg="yellow",
        )
    click.echo("helped, harmed: sessions that were right only warm, or only in the other arm.")
    click.echo("again: repeated calls, which count once. copied: calls that the session's seeds show.")
    if MISMATCHED not in report.arms:
        click.echo(
            "To see how much any example does, fitting or not, add --arms cold,warm,mismatched (half as many requests more)."
        )
