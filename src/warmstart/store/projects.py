"""Projects in the store: which folders and names stand for which project, and moving sessions between projects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import structs

from warmstart.store.notes import NoteStore
from warmstart.store.protocol import Store
from warmstart.store.rows import ProjectNameRow, TemplateRow

if TYPE_CHECKING:
    from warmstart.store.templates import TemplateStore

# Named queries that move the rows of one table to another project: (new project, old project).
MOVES = ("move_live", "move_trials")
_ROOTS = 20  # roots of one project that are looked for in older examples
_SESSIONS = 40  # sessions of a folder whose calls are evidence


class ProjectFolder(NamedTuple):
    """The sessions of one project in one folder."""

    project: str
    folder: str | None
    sessions: int
    last: float | None  # seconds since the epoch


class SettledFolder(NamedTuple):
    """The project of a folder's sessions, and the facts that decided about it."""

    folder: str
    project: str
    root: str | None  # of the project, above the folder; None: unknown
    is_rival: bool  # whether the files that its sessions touched are among the facts
    facts: str  # a hash


class ProjectStore:
    """The projects of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    # Reading

    def names(self) -> dict[str, ProjectNameRow]:
        """Return the folders and names that stand for projects."""
        return {row[0]: ProjectNameRow.from_columns(row) for row in self.store.rows("project_names")}

    def is_known(self, project: str) -> bool:
        """Return whether sessions or templates belong to a project."""
        return bool(self.store.rows("is_known_project", (project,))[0][0])

    def projects(self) -> list[str]:
        """Return the projects that sessions or templates belong to."""
        return [project for (project,) in self.store.rows("known_projects")]

    def folders(self) -> list[ProjectFolder]:
        """Return the folders of every project."""
        return [ProjectFolder(*row) for row in self.store.rows("list_projects")]

    def remotes(self) -> dict[str, str | None]:
        """Return the folders of all sessions, each with the latest remote that a transcript records."""
        latest: dict[str, str | None] = {}
        for folder, remote in self.store.rows("folder_remotes"):
            latest[folder] = remote or latest.get(folder)
        return latest

    def remote_of(self, folder: str) -> str | None:
        """Return the latest remote that a transcript records for a folder."""
        rows = self.store.rows("remotes_of_folder", (folder,))
        return str(rows[-1][0]) if rows else None

    def settled(self, folder: str) -> SettledFolder | None:
        """Return how a folder was given its project last; None: it never was, or a session has been deleted since."""
        rows = self.store.rows("settled_folder", (folder,))
        return _make_settled(rows[0]) if rows else None

    def roots(self, project: str) -> list[str]:
        """Return the roots of a project's checkouts, the latest first."""
        return [root for (root,) in self.store.rows("latest_roots", (project, _ROOTS))]

    def has_unplaced(self) -> bool:
        """Return whether there are sessions in folders that were never given a project."""
        return bool(self.store.rows("unplaced_folders")[0][0])

    def calls_in(self, folder: str) -> list[tuple[str, str]]:
        """Return tool and arguments (JSON) of calls in a folder that did not fail."""
        return [(tool, arguments) for tool, arguments in self.store.rows("folder_calls", (folder, _SESSIONS))]

    # Writing

    def name(self, row: ProjectNameRow) -> None:
        """Let a folder or name stand for a project."""
        with self.store.writing():
            self.store.run("put_project_name", row.to_columns())

    def forget_name(self, name: str) -> None:
        """Let a folder or name no longer stand for a project."""
        with self.store.writing():
            self.store.run("delete_project_name", (name,))

    def place(self, rows: Iterable[ProjectNameRow], folders: Sequence[SettledFolder]) -> int:
        """Give all folders their projects and roots in one transaction. Returns the number of sessions that moved.

        `rows` name the folders' own projects; `folders` are placed after a person's names are followed.
        """
        with self.store.writing():
            known = self.names()
            for row in rows:
                if row.name not in known or _is_other(row, known[row.name]):
                    self.store.run("put_project_name", row.to_columns())
            before = {_make_settled(row) for row in self.store.rows("settled_folders")}
            if before != set(folders):
                self.store.run("forget_settled_folders")
                self.store.run_many("put_settled_folder", folders)
            return self.place_folders(folders)

    def place_folders(self, folders: Iterable[SettledFolder]) -> int:
        """Move the sessions of folders to their projects. Returns the number of sessions that moved.

        Templates follow their source sessions; trials, live usage (`MOVES`) and notes follow their sessions or the whole
        project.
        """
        with self.store.writing():
            moved: defaultdict[str, Counter[str]] = defaultdict(Counter)
            for folder, target, root, _is_rival, _facts in folders:
                misplaced = self.store.rows("misplaced_sessions", (folder, target, root))
                if misplaced:
                    self.store.run("place_sessions", (target, root, folder))
                    self.store.run("delete_digests_in", (folder,))
                for project, sessions in misplaced:
                    if project is not None and project != target:
                        moved[project][target] += sessions
            for old in sorted(moved):
                self._follow(old, min(moved[old], key=lambda new: (-moved[old][new], new)))
        return sum(sum(counts.values()) for counts in moved.values())

    def move(self, old: str, new: str) -> None:
        """Move templates, trials and the rest of a project that has no folder here, such as one of imported templates."""
        with self.store.writing():
            self._follow(old, new)

    def _follow(self, old: str, new: str) -> None:
        """Move what belongs to the sessions that left a project, and everything else if no session is left in it."""
        from warmstart.store.templates import TemplateStore

        templates = TemplateStore(self.store)
        emptied = not self.store.rows("has_sessions_of", (old,))[0][0]
        for columns in self.store.rows("templates_of_project", (old,)):
            row = TemplateRow.from_columns(columns)
            target = self._find_template_project(templates, row) or (new if emptied else old)
            if target != old:
                _move_template(templates, row, target)
        if emptied:
            NoteStore(self.store).move(old, new)
        for query in MOVES:
            self.store.run(query, (new if emptied else old, old))

    def _find_template_project(self, templates: TemplateStore, row: TemplateRow) -> str | None:
        """Return the project of most of the sessions that a template was mined from."""
        template = templates.facts(row.name, row.version, row.body)
        sessions = msgspec.json.encode(template.source_sessions if template else ()).decode()
        rows = self.store.rows("projects_of_sessions", (sessions,))
        return str(rows[0][0]) if rows else None


def _make_settled(row: Sequence[Any]) -> SettledFolder:
    folder, project, root, is_rival, facts = row
    return SettledFolder(folder, project, root, bool(is_rival), facts)


def _is_other(row: ProjectNameRow, known: ProjectNameRow) -> bool:
    """Return whether a folder stands for something else than before. A person's word stands."""
    return known.by != "person" and (row.project, row.root, row.by) != (known.project, known.root, known.by)


def _move_template(templates: TemplateStore, row: TemplateRow, project: str) -> None:
    store = templates.store
    weights = [
        dict(store.rows("weights_of", (example.id,))) for example, _value in templates.examples(row.name, row.version)
    ]
    templates.unindex(row)
    body = row.body
    template = templates.facts(row.name, row.version, row.body)
    if template is not None:
        provenance = structs.replace(template.provenance, project=project)
        body = msgspec.json.encode(structs.replace(template, provenance=provenance)).decode()
    store.run("set_template_project", (project, body, row.name, row.version))
    if row.status == "active":
        templates.index(structs.replace(row, project=project, body=body), weights)
