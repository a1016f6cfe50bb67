"""Which projects a shared store takes: those that its user named (`store_projects`). A store in a file takes all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from warmstart.config import Settings
from warmstart.projects.paths import clean_folder, is_absolute
from warmstart.projects.resolve import KnownProjects, ends_with, follow_name, resolve_project
from warmstart.scopes import EVERYWHERE, SHARED

NO_PROJECT = "(no project)"


class ProjectGate:
    """Admits sessions of named projects. Those of other profiles, people and chats are personal and stay out.

    A pattern is the name of a project, the end of its name, a folder, or a glob over names (`github.com/acme/*`).
    """

    def __init__(self, patterns: Sequence[str], find_known: Callable[[], KnownProjects]) -> None:
        stripped = (pattern.strip().rstrip("/") for pattern in patterns)
        self._patterns = tuple(_expand(pattern) for pattern in stripped if pattern)
        self._find_known = find_known
        self._names: dict[tuple[str, str], str] = {}

    def admits(self, folder: str | None, remote: str | None = None, scope: str = "") -> bool:
        """Return whether what happens in a folder may be stored. `remote`: the one that the transcript names."""
        if not self._patterns or scope not in ("", SHARED):
            return False
        name = self.name(folder, remote)
        return any(_matches(pattern, name, folder or "") for pattern in self._patterns)

    def name(self, folder: str | None, remote: str | None = None) -> str:
        """Return the project of a folder, as the person sees it."""
        if not folder or folder == EVERYWHERE:
            return NO_PROJECT
        asked = folder, remote or ""
        if asked not in self._names:
            known = self._find_known()
            found = resolve_project(known, folder).name
            if remote and found == folder:  # its checkout is gone, and its transcript still names the remote
                found = follow_name(remote, known.names())
            self._names[asked] = found
        return self._names[asked]


def open_gate(settings: Settings, find_known: Callable[[], KnownProjects]) -> ProjectGate | None:
    """Return the projects that the store of the settings takes; None: all."""
    return None if settings.takes_all else ProjectGate(settings.store_projects, find_known)


def _expand(pattern: str) -> str:
    return str(Path(pattern).expanduser()) if pattern.startswith("~") else pattern


def _matches(pattern: str, name: str, folder: str) -> bool:
    if any(sign in pattern for sign in "*?["):
        return fnmatchcase(name.lower(), pattern.lower())
    if is_absolute(pattern):
        wanted, here = clean_folder(pattern), clean_folder(folder)
        return name == pattern or here == wanted or here.startswith(f"{wanted}/")
    return ends_with(name, pattern)
