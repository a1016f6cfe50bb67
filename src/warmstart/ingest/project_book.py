"""The projects as a person sees and corrects them: list, merge, alias, split."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from warmstart.errors import NotFound, Refused
from warmstart.model import is_job
from warmstart.projects.paths import is_absolute, is_plain
from warmstart.projects.resolve import Project, find_project, follow_name
from warmstart.store import ProjectNameRow, ProjectStore, Store

_BY = ("person", "remote", "commit", "paths", "folder")  # the most certain first
_LONGEST_NAME = 200
_LISTED = 10  # projects that an error names
_COMPARED = 60  # projects among which pairs are looked for, the latest


class ProjectSummary(Struct, frozen=True, kw_only=True):
    """A project and the folders that belong to it."""

    project: str  # the identity
    sessions: int
    folders: tuple[str, ...]  # working folders of its sessions, as transcripts name them
    by: str  # how it is known: person, remote, commit, paths or folder
    names: tuple[str, ...]  # other names and projects that a person gave to it
    last_seen: float | None  # seconds since the epoch


class ProjectChange(Struct, frozen=True, kw_only=True):
    """The result of a person's correction."""

    name: str  # the name or folder that was given or taken
    project: str  # the project that it now stands for
    moved: int  # sessions that moved to another project


class ProjectBook:
    """The projects of a store."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._projects = ProjectStore(store)
        self._clock = clock

    def find(self, text: str) -> Project:
        """Return the project that a person names: by identity, another name, a folder, or the end of an identity."""
        return find_project(self._projects, text)

    def is_known(self, project: str) -> bool:
        """Return whether sessions or templates of a project are stored."""
        return self._projects.is_known(project)

    def find_nearest(self, text: str) -> str | None:
        """Return the stored project whose last part is spelled most like that of a text; None if none is alike."""
        from difflib import get_close_matches

        ends = {_name_end(project): project for project in self._projects.projects() if project and not is_job(project)}
        near = get_close_matches(_name_end(text), ends, n=1)
        return ends[near[0]] if near else None

    def list(self) -> list[ProjectSummary]:
        """Return the projects, the latest first."""
        names = self._projects.names()
        given: defaultdict[str, list[str]] = defaultdict(list)
        for name, row in names.items():
            if row.by == "person" and (target := follow_name(name, names)) != name:
                given[target].append(name)
        grouped: defaultdict[str, list[tuple[str, int, float | None]]] = defaultdict(list)
        for place in self._projects.folders():
            grouped[place.project].append((place.folder or "", place.sessions, place.last))
        listed = []
        for project, places in grouped.items():
            folders = tuple(folder for folder, _sessions, _last in places if folder)
            ways = {names[folder].by for folder in folders if folder in names}
            ways |= {"person"} if given[project] else set()
            listed.append(
                ProjectSummary(
                    project=project,
                    sessions=sum(sessions for _folder, sessions, _last in places),
                    folders=folders,
                    by=next((by for by in _BY if by in ways), "folder"),
                    names=tuple(sorted(given[project])),
                    last_seen=max((last for _folder, _sessions, last in places if last is not None), default=None),
                )
            )
        return sorted(listed, key=lambda row: (-(row.last_seen or 0.0), row.project))

    def suggest(self) -> tuple[tuple[str, str, int], ...]:
        """Return pairs of projects that may be one, with the number of files that both touched.

        They have different names and no remote, as after a renaming; a person must decide.
        """
        from warmstart.ingest.projects import ProjectSettler  # agents wait for `find`, which needs none of this
        from warmstart.projects.evidence import compare_specific, keep_specific

        unknown = [row for row in self.list() if row.by in ("paths", "folder")][:_COMPARED]
        settler = ProjectSettler(self._projects, self._clock)
        names = self._projects.names()
        touched = {
            row.project: keep_specific(
                {path for folder in row.folders if folder in names for path in settler.collect_paths(folder)}
            )
            for row in unknown
            if is_absolute(row.project)
        }
        compared = (
            (one, other, compare_specific(touched[one], touched[other]))
            for one, other in itertools.combinations(touched, 2)
        )
        return tuple((one, other, evidence.files) for one, other, evidence in compared if evidence.is_striking)

    def merge(self, into: str, other: str) -> ProjectChange:
        """Make the sessions, templates and trials of another project those of the first one."""
        kept, gone = self.find_known(into), self.find_known(other)
        if kept == gone:
            raise Refused(f"{into} and {other} are one project already: {kept}")
        names = self._projects.names()
        with self._projects.store.writing():
            if kept in names and names[kept].by == "person":
                self._projects.forget_name(kept)
            return self._give(gone, kept)

    def alias(self, name: str, project: str) -> ProjectChange:
        """Let a folder or a name of your own stand for a project."""
        target = self.find_known(project)
        given = _expand(name)
        if not is_plain(given) or (len(given) > _LONGEST_NAME and not is_absolute(given)):
            raise Refused(f"{name!r} is no usable name; give a folder or one line of plain text")
        if given == target:
            raise Refused(f"{given} is the project itself")
        if not is_absolute(given) and self._projects.is_known(given):
            raise Refused(f"{given} is a project; to join them, run: warmstart projects merge {target} {given}")
        return self._give(given, target)

    def split(self, name: str) -> ProjectChange:
        """Take back an alias or a merge; a folder that was joined without a person becomes a project of its own."""
        names = self._projects.names()
        given = next((text for text in (name, _expand(name)) if text in names), _expand(name))
        row = names.get(given)
        if row is None:
            raise NotFound(f"no folder or name {name}; see: warmstart projects list")
        before = follow_name(given, names)
        with self._projects.store.writing():
            if row.by == "person":
                self._projects.forget_name(given)
            elif before != given:
                own = ProjectNameRow(name=given, project=given, root=row.root, by="person", at=self._clock())
                self._projects.name(own)
            else:
                raise Refused(f"{given} is a project of its own already")
            moved = self._settle()
        return ProjectChange(name=given, project=follow_name(given, self._projects.names()), moved=moved)

    def _give(self, name: str, project: str) -> ProjectChange:
        with self._projects.store.writing():
            self._projects.name(ProjectNameRow(name=name, project=project, by="person", at=self._clock()))
            moved = self._settle()
            if not is_absolute(name):
                self._projects.move(name, project)
        return ProjectChange(name=name, project=project, moved=moved)

    def _settle(self) -> int:
        from warmstart.ingest.projects import ProjectSettler

        return ProjectSettler(self._projects, self._clock).settle()

    def find_known(self, text: str) -> str:
        """Return the name of a stored project that a person names. Raises NotFound with those that are stored."""
        project = find_project(self._projects, text).name
        if not self._projects.is_known(project):
            listed = sorted(name for name in self._projects.projects() if name)
            more = f" and {len(listed) - _LISTED} more" if len(listed) > _LISTED else ""
            stored = f"stored are {', '.join(listed[:_LISTED])}{more}" if listed else "none is stored"
            raise NotFound(f"no project {text}; {stored}; see: warmstart projects list")
        return project


def _name_end(project: str) -> str:
    """Return the last part of an identity or folder, without a commit, for comparing how names are spelled."""
    return project.rstrip("/").rpartition("/")[2].partition("@")[0].lower()


def _expand(name: str) -> str:
    """Return the absolute path of a folder that a person names; other names as they are."""
    if name.startswith(("~", "./", "../")) or name in (".", ".."):
        return os.path.normpath(Path.cwd() / Path(name).expanduser())
    return name.rstrip("/") or name
