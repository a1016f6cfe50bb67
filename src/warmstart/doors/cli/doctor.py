"""`warmstart doctor`: check the installation, the agents' transcripts and the store."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click
from msgspec import structs

from warmstart import __version__
from warmstart.archive.vanishing import find_vanishing
from warmstart.doors.cli.hook import describe_old_hooks, examine_hooks
from warmstart.doors.cli.main import json_option
from warmstart.doors.hooks.log import count_given_up
from warmstart.doors.render.terminal import clean, format_iso, print_json, print_table
from warmstart.errors import SourceError, WarmstartError
from warmstart.formats import find_files
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count

_RECENTLY = 7 * 86_400.0  # seconds
_PARTS = ("apsw", "msgspec", "google-re2", "ahocorasick-rs", "zstandard", "click", "rich")


@click.command()
@json_option
@click.pass_obj
def doctor(ws: Warmstart, as_json: bool) -> None:
    """Show versions, agents' transcripts, and whether the store is healthy."""
    report = examine(ws)
    if as_json:
        print_json(report)
    else:
        print_table(("", ""), report["versions"].items(), title="versions")
        places = [(p["agent"], p["path"], p["files"]) for p in report["places"]]
        print_table(("agent", "transcripts in", "#files"), places or [("none found", "", "")], title="agents")
        print_table(("", ""), report["store"].items(), title="store")
        unreadable = report["templates"].pop("unreadable", [])
        rows = [*report["templates"].items(), *(("cannot be read", problem) for problem in unreadable)]
        print_table(("", ""), rows or [("none", "")], title="templates")
        projects = report["notes"].get("projects", [])
        if projects:
            counts = [(one["project"], one["active"], one["proposed"], one["index"]) for one in projects]
            print_table(("notes about", "#active", "#proposed", "index"), counts, title="notes")
        else:
            print_table(("", ""), [("none", "")], title="notes")
        if any(one["index"] == "old" for one in projects):
            click.echo("an old index gives agents' calls old advice; run: warmstart learn")
        if line := describe_vanishing(report["vanishing"]):
            click.echo(line)
        for line in (*report["hooks"], *report["silent_hooks"], *report["sharing"]):
            click.echo(clean(line))
    if not report["healthy"]:
        sys.exit(1)


def examine(ws: Warmstart) -> dict[str, Any]:
    """Return versions, the agents' places with their number of files, and the health of the store."""
    places = []
    for agent, path in ws.places():
        try:
            files = sum(1 for _file in find_files(path))
        except SourceError:
            files = 0
        places.append({"agent": agent, "path": str(path), "files": files})
    templates: dict[str, Any] = {}
    notes: dict[str, Any] = {}
    try:
        store = ws.store.health()
        healthy = store.get("integrity") == "ok"
        if healthy:
            templates = _count_templates(ws)
            healthy = not templates["unreadable"]
            notes = _count_notes(ws)
    except WarmstartError as error:
        store, healthy = {"error": str(error)}, False
    return {
        "versions": {"warmstart": __version__, "python": platform.python_version()}
        | {p: _find_version(p) for p in _PARTS},
        "home": str(ws.settings.home),
        "places": places,
        "store": store,
        "templates": templates,
        "notes": notes,
        "vanishing": examine_vanishing(ws),
        "hooks": describe_old_hooks(examine_hooks(ws.settings)),
        "silent_hooks": describe_silent_hooks(ws),
        "sharing": describe_sharing(ws),
        "healthy": healthy,
    }


def describe_silent_hooks(ws: Warmstart) -> list[str]:
    """Return a line about the hooks that gave up in the last days, and how the last of them did."""
    times, last = count_given_up(ws.settings.home, ws.now() - _RECENTLY)
    if not times:
        return []
    advice = " A near server, or `store` in a file, answers sooner." if ws.settings.is_shared else ""
    return [
        f"hooks gave up {format_count(times, 'time')} in the last week, and those sessions started without a brief; the last: "
        f"{last}.{advice}"
    ]


def describe_sharing(ws: Warmstart) -> list[str]:
    """Return a line about a store on a server that may take no project."""
    if not ws.settings.is_shared or ws.settings.store_projects:
        return []
    return [
        "this store may take no project of this machine: hooks store nothing there; run: warmstart store allow PROJECT"
    ]


def describe_vanishing(vanishing: dict[str, Any]) -> str:
    """Return one line about the transcripts that Claude Code will delete; nothing if all are archived."""
    if not vanishing["transcripts"]:
        return ""
    return (
        f"{format_count(vanishing['transcripts'], 'transcript')} of Claude Code not archived: it deletes them after "
        f"{format_count(vanishing['days'], 'day')} without use, the first from {vanishing['earliest'][:10]}, "
        f"{vanishing['soon']} within a week; keep them with: warmstart archive add"
    )


def examine_vanishing(ws: Warmstart) -> dict[str, Any]:
    """Return how many transcripts Claude Code will delete that are not archived, and when."""
    settings = ws.settings
    archived = {(entry.path, entry.mtime_ns) for entry in ws.archive.entries.list()}
    found = find_vanishing(settings.places.get("CLAUDE_CONFIG_DIR", settings.user_home / ".claude"), archived, ws.now())
    return structs.asdict(found) | {"earliest": format_iso(found.earliest)}


def _count_templates(ws: Warmstart) -> dict[str, Any]:
    library = ws.templates
    counts: Counter[str] = Counter(row.status for row, _template in library.find())
    return {**counts, "unreadable": [f"{problem.path}: {problem.reason}" for problem in library.problems]}


def _count_notes(ws: Warmstart) -> dict[str, Any]:
    """Count the notes about each project, with the state of the file that hooks read: current, old, or none needed."""
    old = set(ws.notes.find_old_indexes())
    counts: dict[str, Counter[str]] = {}
    for note in ws.notes.list():
        counts.setdefault(note.project, Counter())[note.status] += 1
    return {
        "projects": [
            {
                "project": project or "(rules of agents)",
                "active": count["active"],
                "proposed": count["proposed"],
                "index": "old" if project in old else "current" if project and count["active"] else "none",
            }
            for project, count in sorted(counts.items())
        ]
    }


def _find_version(part: str) -> str:
    try:
        return version(part)
    except PackageNotFoundError:
        return "not installed"
