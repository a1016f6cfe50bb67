"""Find the project of a folder, or the project that a person names. Every door uses these two functions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from warmstart.errors import Refused
from warmstart.projects.disk import Checkout, find_checkout, find_root_commit, name_commit
from warmstart.projects.infer import name_worktrees, top_of
from warmstart.projects.paths import clean_folder, is_absolute, is_broad, is_plain
from warmstart.projects.worktrees import Worktree, find_worktree

_FAST = 0.7  # seconds for git: someone waits for the answer


class Project(Struct, frozen=True):
    """A project, and its root where the session runs."""

    name: str  # the identity: `github.com/org/repo`, `repo@0123456789ab`, or a folder
    root: str | None = None  # None: unknown


class KnownName(Protocol):
    """A folder or name that stands for a project."""

    @property
    def project(self) -> str: ...
    @property
    def root(self) -> str | None: ...
    @property
    def by(self) -> str: ...


class KnownProjects(Protocol):
    """A store's knowledge of projects."""

    def names(self) -> Mapping[str, KnownName]:
        """Return the folders and names that stand for projects."""

    def is_known(self, project: str) -> bool:
        """Return whether anything belongs to a project."""

    def projects(self) -> list[str]:
        """Return the projects that anything belongs to."""


def resolve_project(known: KnownProjects, folder: str, home: str | None = None) -> Project:
    """Return the project of a folder: a fresh clone or worktree of a known repository is that repository.

    What is no folder is returned as it is, unless a person gave it another meaning. Never raises for a strange folder.
    """
    names = known.names()
    if not is_absolute(folder) or folder.startswith(("~", "file:")):
        return Project(follow_name(folder, names))
    plain = folder.rstrip("/") or folder
    own = _find_persons(plain, names)
    checkout = find_checkout(plain, home)
    root = checkout.root if checkout else None
    if own is not None:
        return Project(follow_name(own, names), root or _guess_root(plain))
    for name in _list_identities(known, names, checkout) if checkout else ():
        return Project(follow_name(name, names), root)
    return _resolve_by_name(plain, root, names)


def find_project(known: KnownProjects, text: str, home: str | None = None) -> Project:
    """Return the project that a person names: by identity, another name, a folder, or the unique end of an identity.

    Raises Refused if several projects end so. An unknown name is returned as it is.
    """
    names = known.names()
    if text in names and names[text].by == "person":
        return Project(follow_name(text, names))
    if known.is_known(text):
        return Project(follow_name(text, names), text if is_absolute(text) else None)
    if is_absolute(text) or text in (".", "..") or text.startswith(("./", "../")):
        return resolve_project(known, str(Path(os.path.normpath(Path.cwd() / Path(text).expanduser()))), home)
    ending = [project for project in known.projects() if ends_with(project, text)]
    if len(ending) > 1:
        raise Refused(f"{text} is the end of several projects: {', '.join(ending[:5])}; give more of the name")
    if ending:
        return Project(follow_name(ending[0], names))
    if Path(text).is_dir():
        return resolve_project(known, str(Path.cwd() / text), home)
    return Project(text)


def follow_name(name: str, names: Mapping[str, KnownName]) -> str:
    """Return the project that a name stands for, after all that a person said about it."""
    seen: set[str] = set()
    while name in names and name not in seen:
        seen.add(name)
        name = names[name].project
    return name


def follow_folder(folder: str, names: Mapping[str, KnownName]) -> str:
    """Return the project of a folder, after all that a person said about it, the folders above it and its project."""
    return follow_name(_find_persons(folder, names) or folder, names)


def _find_persons(folder: str, names: Mapping[str, KnownName]) -> str | None:
    """Return the folder itself or the nearest one above it that a person gave to a project."""
    path = clean_folder(folder)
    by_clean = {clean_folder(name): name for name, row in names.items() if row.by == "person" and is_absolute(name)}
    while path:
        if path in by_clean:
            return by_clean[path]
        above = path.rpartition("/")[0]
        path = above if above != path else ""
    return None


def _list_identities(known: KnownProjects, names: Mapping[str, KnownName], checkout: Checkout) -> Iterable[str]:
    """Yield the identity of a checkout: the one that the store knows first."""
    if checkout.remote:
        if known.is_known(checkout.remote) or checkout.remote in names or not known.is_known(checkout.root):
            yield checkout.remote
        return
    row = names.get(checkout.root)
    if row is not None and row.by == "commit":
        yield row.project
        return
    commit = find_root_commit(checkout, _FAST)
    if commit is not None:
        clones = [project for project in known.projects() if project.endswith(f"@{commit[:12]}")]
        named = name_commit(checkout, commit)
        if clones or not known.is_known(checkout.root):
            yield min(clones, default=named)


def _resolve_by_name(folder: str, root: str | None, names: Mapping[str, KnownName]) -> Project:
    """Return the project that the store knows for the folder, its worktree or the repository above; else the folder."""
    rows = {clean_folder(name): name for name in names if is_absolute(name)}
    here = clean_folder(folder)
    if here in rows:
        return Project(follow_name(rows[here], names), root or names[rows[here]].root or _guess_root(folder))
    worktree = find_worktree(here)
    if worktree and worktree.is_certain:
        main = rows.get(worktree.main) if worktree.main else _find_sibling(worktree, names)
        return Project(follow_name(main or worktree.main or folder, names), root or worktree.root)
    path = here
    while (path := path.rpartition("/")[0]) and not is_broad(path):
        if path in rows and names[rows[path]].by != "folder":
            return Project(follow_name(rows[path], names), root or names[rows[path]].root)
    return Project(folder, root or _guess_root(folder))


def _find_sibling(worktree: Worktree, names: Mapping[str, KnownName]) -> str | None:
    """Return a known worktree of the same repository in the same place."""
    for name in sorted(names):
        other = find_worktree(clean_folder(name)) if is_absolute(name) else None
        if other and not other.main and name_worktrees(other) == name_worktrees(worktree):
            return name
    return None


def _guess_root(folder: str) -> str | None:
    """Return the root of a folder that is no checkout on this machine."""
    return None if not is_plain(folder) or is_broad(folder) else top_of(folder)


def ends_with(project: str, text: str) -> bool:
    """Return whether a name is the end of an identity, at a slash; the commit may be left out."""
    wanted = text.strip("/").lower()
    names = {project.rstrip("/").lower(), project.rpartition("@")[0].lower()}
    return bool(wanted) and any(name == wanted or name.endswith(f"/{wanted}") for name in names if name)
