"""Commands that make and manage templates: learn, capture, templates."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from warmstart.doors.cli.agent_commands import split
from warmstart.doors.cli.locate import locate_session
from warmstart.doors.cli.main import PATH, json_option
from warmstart.doors.cli.options import (
    agent_option,
    lake_option,
    offer_anyway,
    project_option,
    since_option,
    source_option,
)
from warmstart.doors.cli.template_build import build_template
from warmstart.doors.render.as_json import describe_template, summarise_template
from warmstart.doors.render.lake import describe_unread, name_left_out
from warmstart.doors.render.terminal import (
    clean,
    coloured,
    format_iso,
    format_time,
    print_json,
    print_table,
    progress_bar,
)
from warmstart.model import Category, Decision, LearnedNotes, Problem, TaskType, Template, TemplateStatus, Verdict
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.scopes import EVERYWHERE, SHARED, Border
from warmstart.store import SessionRow, TemplateRow
from warmstart.templates.mine import LearnLimits, RefusedSession
from warmstart.templates.register import LearnedTemplate

_FEW_SOURCES = 10  # of each template in a list
_TYPES = click.Choice(["code", "file", "research", "mixed"])
_CATEGORIES = click.Choice(["coding", "research", "ops", "general"])


@click.command()
@agent_option
@source_option
@project_option
@since_option
@click.option("--verdict", type=click.Choice(["success", "unknown"]), help="Only sessions with this verdict.")
@click.option(
    "--min-calls",
    type=click.IntRange(1),
    help="Fewest calls that worked in a session, unless one corrects a failure.  [default: 1]",
)
@click.option(
    "--max-error-rate",
    type=click.FloatRange(0, 1),
    help="Largest share of errors in a session.  [default: 0.5]",
)
@click.option(
    "--skip-ended",
    multiple=True,
    metavar="REASON",
    help="Skip sessions that ended for this reason, besides errors and crashes; repeatable.",
)
@lake_option
@json_option
@click.pass_obj
def learn(
    ws: Warmstart,
    agent: str | None,
    source: str | None,
    project: str | None,
    since: float | None,
    verdict: Verdict | None,
    min_calls: int | None,
    max_error_rate: float | None,
    skip_ended: tuple[str, ...],
    lake: str | None,
    as_json: bool,
) -> None:
    """Mine the stored sessions for templates. Well-supported, unsuspicious ones become active."""
    if lake is not None and any((agent, source, project, since, verdict, min_calls, max_error_rate, skip_ended)):
        raise click.UsageError("--lake learns from all sessions of the lake; give no filters with it")
    limits = LearnLimits(min_calls=min_calls, max_error_rate=max_error_rate, skip_end_reasons=skip_ended or None)
    library = ws.lake(lake) if lake is not None else None
    with progress_bar("learning") as report:
        learned = (
            ws.learn_from(library, progress=report)
            if library is not None
            else ws.learn(
                agent=agent,
                since=since,
                project=project,
                verdict=verdict,
                source=source.lower() if source else None,
                limits=limits,
                progress=report,
            )
        )
    if library is not None:
        name_left_out(library, as_json=as_json)
    if as_json:
        print_json(learned)
        return
    click.echo(f"{learned.considered} sessions considered, {sum(learned.refused.values())} refused")
    for reason, count in sorted(learned.refused.items(), key=lambda item: -item[1]):
        click.echo(f"  {count:>5}  {clean(reason)}{_give_example(reason, count, learned.refusals)}")
    _show_learned(learned.templates)
    _report_notes(ws, learned.notes)
    if learned.unread_files:
        click.echo(describe_unread(learned.unread_files))
    if not learned.considered and library is not None:
        click.echo("no session of the lake could be used")
    elif not learned.considered:
        stored = ws.count_sessions()
        none = f"none of the {stored} sessions matches the filters; see: warmstart sessions list"
        click.echo(none if stored else "no sessions stored yet; run: warmstart ingest")


def _report_notes(ws: Warmstart, learned: LearnedNotes | None) -> None:
    if learned is None or not learned.notes + learned.proposed:
        return
    projects = {note.project for note in ws.notes.list() if note.project and note.status != "retired"}
    about = f"about {format_count(len(projects), 'project')}"
    counts = [f"{learned.new} new"] if learned.new else []
    counts += [f"{learned.proposed} proposed"] if learned.proposed else []
    total = learned.notes + learned.proposed
    shown = f" ({', '.join(counts)})" if counts else ""
    click.echo(f"{format_count(total, 'note')} {about}{shown}; see: warmstart notes list")


def _give_example(reason: str, count: int, refusals: tuple[RefusedSession, ...]) -> str:
    """Return the numbers of one session that was refused for a reason."""
    refusal = next((refusal for refusal in refusals if refusal.reason == reason), None)
    if refusal is None or refusal.detail == reason:
        return ""
    numbers = clean(refusal.detail.removeprefix(reason).strip(" ;"))
    session = f"{'such as ' if count > 1 else 'session '}{clean(refusal.key[:8])}"
    return f", {session}{' ' if numbers.startswith('(') else ': '}{numbers}"


def _show_learned(templates: tuple[LearnedTemplate, ...]) -> None:
    if templates:
        print_table(
            ("template", "status", "change", "kind", "#examples", "#sessions", "#tokens", "why"),
            [
                (f"{t.name}@{t.version}", coloured(t.status), t.change, f"{t.category}/{t.task_type}")
                + (t.examples, t.sessions, t.tokens, t.reason)
                for t in templates
            ],
        )


@click.command()
@click.argument("session")
@click.option("--name", help="The template's name.")
@click.option("--type", "task_type", type=_TYPES, help="The kind of work.")
@click.option("--max-examples", type=click.IntRange(1, 50), help="Examples to keep.")
@click.option("--description", help="What the template is good for.")
@click.option("--tags", help="Words to find it by, separated by commas.")
@click.option("--approve", is_flag=True, help="Use it at once: your decision, on the record.")
@click.option("--anyway", is_flag=True, help="Capture a session that failed: your decision, on the record.")
@json_option
@click.pass_obj
def capture(
    ws: Warmstart,
    session: str,
    name: str | None,
    task_type: TaskType | None,
    max_examples: int | None,
    description: str | None,
    tags: str | None,
    approve: bool,
    anyway: bool,
    as_json: bool,
) -> None:
    """Make a template from one session, or say why not (exit 1). SESSION may be shortened.

    A session that is not stored yet is looked for in the agents' usual places; SESSION may also be a transcript's path.
    Refused: a session that failed or crashed, one in which most calls failed, and one in which none worked.
    """
    with offer_anyway():
        template = ws.capture(
            locate_session(ws, session),
            name=name,
            task_type=task_type,
            max_examples=max_examples,
            description=description,
            tags=split(tags),
            approve=approve,
            anyway=anyway,
        )
    if as_json:
        print_json(template)
        return
    _show_learned((template,))
    if template.status == "proposed":
        click.echo(f"to use it: warmstart templates approve {clean(template.name)}")


@click.group()
def templates() -> None:
    """Manage the templates that new sessions start with."""


templates.add_command(build_template)


@templates.command("list")
@click.option("--category", type=_CATEGORIES, help="Only this category.")
@click.option("--type", "task_type", type=_TYPES, help="Only this kind of work.")
@click.option("--tags", help="Only with any of these tags, separated by commas.")
@click.option("--status", type=click.Choice(["proposed", "active", "retired"]), help="Only with this status.")
@click.option("--scope", help="Only what this profile or person may see; '': the machine's own user.")
@json_option
@click.pass_obj
def list_templates(
    ws: Warmstart,
    category: Category | None,
    task_type: TaskType | None,
    tags: str | None,
    status: TemplateStatus | None,
    scope: str | None,
    as_json: bool,
) -> None:
    """List the templates, in every version."""
    library = ws.templates
    wanted = set(split(tags))
    border = Border(scope, EVERYWHERE) if scope is not None else None
    found = library.find(status, category, task_type, border=border)
    matching = [pair for pair in found if not wanted or wanted & set(pair[1].tags)]
    if as_json:
        print_json([summarise_with_sources(ws, row, template) for row, template in matching])
    elif matching:
        scopes = ("scope",) if any(row.scope for row, _template in matching) else ()
        columns = ("template", "status", "kind", *scopes, "#examples", "#used", "created (UTC)", "from", "tags")
        print_table(
            (*columns, "description"),
            [
                (f"{r.name}@{r.version}", coloured(r.status), f"{r.category}/{r.task_type}")
                + ((name_scope(r.scope),) if scopes else ())
                + (len(t.examples), r.used, format_time(r.created), _name_sources(ws, t))
                + (", ".join(t.tags)[:40], t.description[:80])
                for r, t in matching
            ],
        )
    else:
        click.echo(_explain_none(ws))
    _print_problems(library.problems)


def _explain_none(ws: Warmstart) -> str:
    """Return why no template is listed, and the next step."""
    if counts := ws.templates.stats()["by_status"]:
        listed = ", ".join(f"{count} {status}" for status, count in counts.items())
        return f"none of the templates ({listed}) matches the filters; see: warmstart templates list"
    if stored := ws.count_sessions():
        return f"no templates yet, and {format_count(stored, 'session')} to learn from; run: warmstart learn"
    return "no templates and no sessions; run: warmstart ingest, then: warmstart learn"


@templates.command("show")
@click.argument("name")
@json_option
@click.pass_obj
def show_template(ws: Warmstart, name: str, as_json: bool) -> None:
    """Show one template with its examples and decisions. NAME or NAME@VERSION."""
    row, template, decisions = ws.templates.show(name)
    if as_json:
        print_json(describe_template(row, template, decisions) | {"sources": list_sources(ws, template)})
        return
    click.secho(f"{clean(row.name)}@{row.version}  {row.status}: {clean(row.reason)}", bold=True)
    click.echo(clean(template.description))
    if template.addendum:
        click.echo(clean(template.addendum))
    if template.tags:
        click.echo(f"tags: {clean(', '.join(template.tags))}")
    kind = f"{row.category}/{row.task_type}"
    click.echo(f"{kind}, created {format_time(row.created)} (UTC), used {format_count(row.used, 'time')}")
    for source in list_sources(ws, template):
        if source["agent"]:
            click.echo(f"from session {clean(source['short'])}: {clean(source['id'])} ({clean(source['agent'])})")
        else:
            click.echo(f"from session {clean(source['id'] or source['short'])}: not stored here")
    for number, example in enumerate(template.examples, 1):
        click.secho(f"\n{number}. {', '.join(clean(call.tool) for call in example.shown)}", fg="cyan")
        click.echo(f"   wanted: {clean(example.intent)}")
        for call in example.shown:
            click.echo(f"   call:   {f'{clean(call.tool)} ' if example.is_whole else ''}{clean(call.arguments)[:400]}")
            click.echo(f"   result: {clean(call.result)[:300]}".replace("\n", "\n           "))
            if call.correction:
                click.echo(f"   fixes:  {clean(call.correction)}")
        if example.closing:
            click.echo(f"   closed: {clean(example.closing)}")
        click.echo(f"   why:    {clean(example.why)}")
    if template.further:
        click.secho(f"\nFurther exchanges that seeds may show while it is in use: {len(template.further)}", fg="cyan")
        for example in template.further:
            click.echo(f"   {clean(example.intent)[:100]} -> {', '.join(clean(call.tool) for call in example.shown)}")
    print_table(
        ("decision", "by", "reason", "when (UTC)"),
        [(f"@{d.version} {d.status}", d.by, d.reason, format_time(d.at)) for d in decisions],
    )


def _name_sources(ws: Warmstart, template: Template) -> str:
    """Return the first session that a template comes from, and how many others there are."""
    named = [source["short"] if source["agent"] else source["id"] or "" for source in list_sources(ws, template, 1)]
    more = len(template.source_sessions) - len(named)
    return " ".join([*(name or "" for name in named), *([f"+{more}"] if more else [])])


def summarise_with_sources(ws: Warmstart, row: TemplateRow, template: Template) -> dict[str, Any]:
    """Describe a template for lists, with the first sessions that it was mined from."""
    return summarise_template(row, template) | {"sources": list_sources(ws, template, _FEW_SOURCES)}


def list_sources(ws: Warmstart, template: Template, most: int | None = None) -> list[dict[str, str | None]]:
    """Return the sessions that a template was mined from, by their agents' own ids. Files of others name only those."""
    is_foreign = template.provenance.origin in ("imported", "written")
    sources: list[dict[str, str | None]] = []
    for key in template.source_sessions[:most]:
        row = _find_source(ws, key, by_id=is_foreign)
        id = row.id if row else key if is_foreign else None
        short = ws.store.shorten_id(row) if row else key[:12]
        sources.append({"key": key, "short": short, "id": id, "agent": row.agent if row else None})
    return sources


def _find_source(ws: Warmstart, key: str, *, by_id: bool) -> SessionRow | None:
    """Return a session by its key, or by the id that its agent gave it."""
    keys = [key, *(found for found, _id, _agent in (ws.store.rows("keys_by_id", (key,)) if by_id else ()))]
    rows = (columns for one in keys for columns in ws.store.rows("session_by_key", (one,)))
    return next(map(SessionRow.from_columns, rows), None)


@templates.command()
@click.argument("name")
@click.option("--reason", default="", help="Kept on the record.")
@click.option("--share", is_flag=True, help="Let every profile, person and project use it.")
@json_option
@click.pass_obj
def approve(ws: Warmstart, name: str, reason: str, share: bool, as_json: bool) -> None:
    """Allow a template to be used. NAME or NAME@VERSION."""
    decision = ws.templates.approve(name, reason=reason, share=share)
    print_json(decision) if as_json else click.echo(f"{clean(decision.template)}@{decision.version} is active")


@templates.command("share")
@click.argument("name")
@click.option("--reason", default="", help="Kept on the record.")
@json_option
@click.pass_obj
def share_template(ws: Warmstart, name: str, reason: str, as_json: bool) -> None:
    """Let every profile, person and project use a template. NAME or NAME@VERSION."""
    _show_sharing(ws.templates.share(name, reason=reason), as_json)


@templates.command("unshare")
@click.argument("name")
@click.option("--reason", default="", help="Kept on the record.")
@json_option
@click.pass_obj
def unshare_template(ws: Warmstart, name: str, reason: str, as_json: bool) -> None:
    """Take a template back into the profile, chat and project that it comes from. NAME or NAME@VERSION."""
    _show_sharing(ws.templates.unshare(name, reason=reason), as_json)


def _show_sharing(decision: Decision, as_json: bool) -> None:
    if as_json:
        print_json(decision)
    else:
        click.echo(f"{clean(decision.template)}@{decision.version}: {clean(decision.reason)}")


@templates.command()
@click.argument("name", required=False)
@click.option("--from", "session", help="Retire every template that shows a call of this session.")
@click.option("--reason", default="", help="Kept on the record.")
@json_option
@click.pass_obj
def retire(ws: Warmstart, name: str | None, session: str | None, reason: str, as_json: bool) -> None:
    """Stop using a template. Nothing is deleted."""
    if (name is None) == (session is None):
        raise click.UsageError("give a template's NAME or --from SESSION")
    library = ws.templates
    if name is not None:
        retired = [f"{d.template}@{d.version}" for d in library.retire(name, reason=reason)]
    else:
        retired = library.revoke(session or "", reason=reason)
    print_json({"retired": retired}) if as_json else click.echo(f"retired: {clean(', '.join(retired) or 'nothing')}")


@templates.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
@click.pass_obj
def delete(ws: Warmstart, name: str, yes: bool, as_json: bool) -> None:
    """Delete a template, in every version, for good."""
    row = ws.templates.latest(name)
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("deleting cannot be undone; add --yes")
        click.confirm(f"delete every version of {clean(row.name)}?", abort=True, err=True)
    deleted = ws.templates.delete(name)
    print_json({"deleted": deleted}) if as_json else click.echo(f"deleted: {clean(', '.join(deleted))}")


@templates.command()
@click.argument("names", nargs=-1)
@click.option("--output", "-o", type=PATH, help="The file to write (default: standard output).")
@click.option(
    "--private", is_flag=True, help="Keep e-mail addresses, home folders and host names: for your own machines only."
)
@click.option("--scope", help="The templates of this profile or person, as `templates list` shows it, and shared ones.")
@click.pass_obj
def export(ws: Warmstart, names: tuple[str, ...], output: Path | None, private: bool, scope: str | None) -> None:
    """Write templates as a bundle that `import` reads.

    Without names: all of the machine's own user and all shared ones, but for the retired.
    """
    library = ws.templates
    border = None if names and scope is None else Border(scope or "", EVERYWHERE)
    data = library.export(*names, share=not private, border=border)
    _print_problems(library.problems)
    if output is None:
        sys.stdout.write(data.decode())
        return
    try:
        output.write_bytes(data)
    except OSError as error:
        raise click.ClickException(f"{output}: {error.strerror}") from error
    click.echo(f"written: {output}", err=True)


@templates.command("import")
@click.argument("paths", nargs=-1, required=True, type=PATH)
@click.option("--approve", is_flag=True, help="Activate them: your decision.")
@json_option
@click.pass_obj
def import_templates(ws: Warmstart, paths: tuple[Path, ...], approve: bool, as_json: bool) -> None:
    """Read bundles, and the files of earlier tools of this kind. The templates wait for your decision."""
    imported = ws.templates.import_(*paths, approve=approve)
    if as_json:
        print_json(imported)
    else:
        _show_learned(imported.templates)
        _print_problems(imported.problems)
    if imported.problems and not imported.templates:
        sys.exit(1)


@templates.command()
@json_option
@click.pass_obj
def stats(ws: Warmstart, as_json: bool) -> None:
    """Count templates by status, type and category, and list the latest seeds."""
    counts = ws.templates.stats()
    if as_json:
        print_json(counts | {"recent": [r | {"at": format_iso(r["at"])} for r in counts["recent"]]})
        return
    facts = [(k, counts[k]) for k in ("templates", "examples", "uses", "provisions")]
    facts += [
        (k.replace("_", " "), ", ".join(f"{n} {c}" for n, c in counts[k].items()))
        for k in ("by_status", "by_category", "by_type")
    ]
    print_table(("", ""), facts)
    if counts["recent"]:
        rows = [(r["session"], r["arm"], format_time(r["at"]), ", ".join(r["templates"])) for r in counts["recent"]]
        print_table(("session", "arm", "when (UTC)", "templates"), rows, title="recent provisions")


def name_scope(scope: str) -> str:
    """Return a scope for a table."""
    return "shared" if scope == SHARED else scope or "own"


def _print_problems(problems: Iterable[Problem]) -> None:
    for problem in problems:
        click.echo(f"{clean(problem.path)}: {clean(problem.reason)}", err=True)
