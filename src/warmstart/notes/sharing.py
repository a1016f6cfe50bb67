"""Whose a project's notes and templates are, and a person's decision to share them with every scope."""

from __future__ import annotations

import builtins
from collections import Counter
from collections.abc import Callable

from msgspec import Struct

from warmstart.errors import Refused
from warmstart.notes.library import NoteLibrary
from warmstart.notes.types import Note
from warmstart.scopes import SHARED
from warmstart.store import Store, TemplateRow
from warmstart.templates.library import TemplateLibrary

Wanted = Callable[[str], bool]


class ScopeSummary(Struct, frozen=True, kw_only=True):
    """What one scope has in a project."""

    scope: str  # empty: the machine's own user; "*": what a person shared
    sessions: int
    notes: int
    templates: int


class SharingChange(Struct, frozen=True, kw_only=True):
    """What a decision has shared or taken back."""

    project: str
    notes: tuple[str, ...]
    templates: tuple[str, ...]


class ProjectSharing:
    """The scopes of a project. Retired notes and templates stay as they are."""

    def __init__(self, store: Store, notes: NoteLibrary, templates: TemplateLibrary) -> None:
        self._store = store
        self._notes = notes
        self._templates = templates

    def list(self, project: str) -> tuple[ScopeSummary, ...]:
        """Return the scopes of a project, by name; what is shared comes last."""
        sessions = {str(scope): int(count) for scope, count in self._store.rows("project_scopes", (project,))}
        notes = Counter(note.scope for note in self._list_notes(project))
        templates = Counter(row.scope for row in self._list_templates(project))
        scopes = sorted({*sessions, *notes, *templates}, key=lambda scope: (scope == SHARED, scope))
        return tuple(
            ScopeSummary(scope=scope, sessions=sessions.get(scope, 0), notes=notes[scope], templates=templates[scope])
            for scope in scopes
        )

    def share(self, project: str, *, scope: str | None = None, reason: str = "") -> SharingChange:
        """Share the notes and templates of a project, of one scope or of all: decisions of a person, each recorded.

        A shared note is used by every scope of the project; a shared template in every project.
        """
        return self._move(project, reason, lambda own: own != SHARED and scope in (None, own), is_shared=True)

    def unshare(self, project: str, *, reason: str = "") -> SharingChange:
        """Take what was shared back into the scopes that it was made in."""
        return self._move(project, reason, lambda own: own == SHARED, is_shared=False)

    def _move(self, project: str, reason: str, is_wanted: Wanted, *, is_shared: bool) -> SharingChange:
        notes = [note for note in self._list_notes(project) if is_wanted(note.scope)]
        templates = [row for row in self._list_templates(project) if is_wanted(row.scope)]
        if not notes and not templates:
            raise Refused(f"{project}: no note and no template {'to share' if is_shared else 'is shared'}")
        with self._store.writing():
            for note in notes:
                (self._notes.share if is_shared else self._notes.unshare)(note.id, reason=reason)
            for row in templates:
                (self._templates.share if is_shared else self._templates.unshare)(row.name, reason=reason)
        return SharingChange(
            project=project,
            notes=tuple(note.id for note in notes),
            templates=tuple(row.name for row in templates),
        )

    def _list_notes(self, project: str) -> builtins.list[Note]:
        return [note for note in self._notes.list(project=project) if note.status != "retired"]

    def _list_templates(self, project: str) -> builtins.list[TemplateRow]:
        """Return the latest version of each template of a project that is in use or waits."""
        latest = {row.name: row for row, _template in self._templates.find() if row.project == project}
        return [row for row in latest.values() if row.status != "retired"]
