"""The templates that a task asks for by name: those that can be used, and why the others cannot."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from warmstart.errors import NotFound
from warmstart.model import Omission, Task
from warmstart.scopes import EVERYWHERE, Border, mark_name
from warmstart.seeds.choose import may_show
from warmstart.store import TemplateRow, TemplateStore
from warmstart.templates.versions import find_versions


class RequestedTemplates(Struct, frozen=True):
    """The templates that a task asks for."""

    usable: tuple[str, ...]  # names, as they are stored
    omitted: tuple[Omission, ...]


def find_requested(templates: TemplateStore, task: Task) -> RequestedTemplates:
    """Return the templates that a task asks for, as NAME or NAME@VERSION. Raises NotFound for names of no template."""
    found = {name: _find_rows(templates, name, task.scope) for name in task.templates or ()}
    if unknown := [name for name, rows in found.items() if not rows]:
        noun = "template" if len(unknown) == 1 else "templates"
        raise NotFound(f"no {noun} {', '.join(unknown)}; see: warmstart templates list")
    usable = (row.name for rows in found.values() for row in rows if row.status == "active" and may_show(row, task))
    reasons = ((rows[0], _explain_unusable(rows, task)) for rows in found.values())
    return RequestedTemplates(
        tuple(dict.fromkeys(usable)),
        tuple(Omission(f"{row.name}@{row.version}", why) for row, why in reasons if why is not None),
    )


def _find_rows(templates: TemplateStore, name: str, scope: str) -> list[TemplateRow]:
    """Return the versions of a template that the scope may know of. Those of other people do not exist for it."""
    border = Border(scope, EVERYWHERE)
    for candidate in dict.fromkeys((name, mark_name(name, scope))):
        with suppress(NotFound):
            rows = [row for row in find_versions(templates, candidate) if border.admits(row.scope, row.project)]
            if rows:
                return rows
    return []


def _explain_unusable(rows: Sequence[TemplateRow], task: Task) -> str | None:
    """Return why none of a template's versions can be used; None if one can."""
    if not (near := [row for row in rows if may_show(row, task)]):
        return "it belongs to another project"
    statuses = {row.status for row in near}
    if "active" in statuses:
        return None
    return "it waits for approval" if "proposed" in statuses else "it is retired"
