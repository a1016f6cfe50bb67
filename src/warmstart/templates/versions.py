"""Find the versions of a template that a person names."""

from __future__ import annotations

from warmstart.errors import NotFound
from warmstart.names import name_key
from warmstart.store import TemplateRow, TemplateStore


def find_versions(templates: TemplateStore, name: str) -> list[TemplateRow]:
    """Return all versions of NAME, latest first; or the one of NAME@VERSION. A name may itself contain an @."""
    if rows := templates.versions(name_key(name)):
        return rows
    own, _, version = name.rpartition("@")
    rows = templates.versions(name_key(own)) if own and version.isdecimal() else []
    if not rows:
        raise NotFound(f"no template {name}; see: warmstart templates list")
    wanted = [row for row in rows if row.version == int(version)]
    if not wanted:
        raise NotFound(f"template {own} has no version {version}; the latest is {rows[0].version}")
    return wanted
