"""Give the stored sessions their projects: once per folder, from the disk, the transcripts and the files touched."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec
from msgspec import structs

from warmstart.calls.touched import find_paths
from warmstart.model import Arguments
from warmstart.projects.disk import find_checkout, find_root_commit, name_commit
from warmstart.projects.infer import FolderFacts, Placement, find_rivals, place_folders, top_of
from warmstart.projects.paths import absolute_path, clean_folder, is_absolute, relative_path
from warmstart.projects.resolve import follow_folder
from warmstart.store import ProjectNameRow, ProjectStore, SessionRow
from warmstart.store.projects import SettledFolder

_arguments = msgspec.json.Decoder(Arguments)


class ProjectSettler:
    """Keeps the projects of a store's sessions right."""

    def __init__(self, projects: ProjectStore, clock: Callable[[], float], home: str | None = None) -> None:
        self._projects = projects
        self._clock = clock
        self._home = home
        self._names = projects.names()
        self._placed: dict[str, str] = {}  # projects of folders, as far as they were asked for

    def place(self, row: SessionRow) -> SessionRow:
        """Return a new session in the project of its folder, if that is known already."""
        known = self._names.get(row.folder or "")
        if known is None or row.folder is None or (row.remote and known.by not in ("remote", "person")):
            return row
        if row.folder not in self._placed:
            self._placed[row.folder] = follow_folder(row.folder, self._names)
        return structs.replace(row, project=self._placed[row.folder], root=known.root)

    def settle_changed(self, folders: Collection[str]) -> int:
        """Give folders with new or changed sessions their project. Returns the number of sessions that moved.

        All folders are settled only if a fact about one of these has changed: a new folder, remote, checkout or file.
        """
        self._names = self._projects.names()
        settled = [row for folder in sorted(folders) if (row := self._projects.settled(folder)) is not None]
        if len(settled) < len(folders) or any(self._has_changed(row) for row in settled):
            return self.settle()
        return self._projects.place_folders(settled)

    def _has_changed(self, row: SettledFolder) -> bool:
        fact = self._look(row.folder, self._projects.remote_of(row.folder))
        return _hash(self._add_paths(fact) if row.is_rival else fact) != row.facts

    def settle(self) -> int:
        """Give every folder its project. Returns the number of sessions that moved to another project."""
        self._names = self._projects.names()
        facts = [self._look(folder, remote) for folder, remote in sorted(self._projects.remotes().items())]
        rivals = find_rivals(facts)
        facts = [self._add_paths(fact) if fact.folder in rivals else fact for fact in facts]
        placements = place_folders(facts)
        placements |= _place_names(facts, placements)
        now = self._clock()
        rows = [_to_row(placement, now) for placement in placements.values()]
        targets = self._follow(placements.values())
        settled = [
            SettledFolder(fact.folder, targets[fact.folder], placed.root, fact.folder in rivals, _hash(fact))
            for fact in facts
            if (placed := placements.get(fact.folder)) is not None
        ]
        return self._projects.place(rows, settled)

    def collect_paths(self, folder: str) -> frozenset[str]:
        """Return the files that sessions in a folder touched, relative to its root."""
        return self._add_paths(FolderFacts(folder, root=self._names[folder].root)).paths

    def _follow(self, placements: Iterable[Placement]) -> dict[str, str]:
        """Return the project of each folder after all that a person said."""
        found = {placement.folder: _to_row(placement, 0.0) for placement in placements}
        names = found | {name: row for name, row in self._names.items() if row.by == "person"}
        return {folder: follow_folder(folder, names) for folder in found}

    def _look(self, folder: str, remote: str | None) -> FolderFacts:
        """Return the facts of a folder. What was once known of a checkout stays known when the checkout is gone."""
        if not is_absolute(folder):
            return FolderFacts(folder)
        known = self._names.get(folder)
        checkout = find_checkout(folder, self._home)
        if checkout is not None and checkout.remote:
            return FolderFacts(folder, remote=checkout.remote, root=checkout.root)
        if remote:
            return FolderFacts(folder, remote=remote, root=checkout.root if checkout else None)
        if known is not None and known.by == "remote":
            return FolderFacts(folder, remote=known.project, root=known.root)
        if known is not None and known.by == "commit":
            return FolderFacts(folder, commit=known.project, root=known.root)
        commit = find_root_commit(checkout) if checkout is not None else None
        named = name_commit(checkout, commit) if checkout is not None and commit else None
        return FolderFacts(folder, commit=named, root=checkout.root if checkout else None)

    def _add_paths(self, fact: FolderFacts) -> FolderFacts:
        """Return the facts with the files that the folder's sessions touched."""
        top, here = top_of(fact.folder, fact.root), clean_folder(fact.folder)
        inside: set[str] = set()
        outside: set[str] = set()
        touched: set[str] = set()
        for tool, text in self._projects.calls_in(fact.folder):
            touched |= _find_touched(tool, text)
        for path in touched:
            absolute = path if is_absolute(path) else absolute_path(path, here)
            relative = relative_path(absolute, top)
            if relative is not None:
                inside.add(relative)
            elif not absolute.startswith("~"):
                outside.add(absolute)
        return structs.replace(fact, paths=frozenset(inside), outside=frozenset(outside))


def _place_names(facts: Iterable[FolderFacts], placements: Mapping[str, Placement]) -> dict[str, Placement]:
    """Return the projects of what is no folder: a name of its own. Gemini CLI names a folder by its hash."""
    hashes = {hashlib.sha256(folder.encode("utf-8", "replace")).hexdigest(): folder for folder in sorted(placements)}
    named: dict[str, Placement] = {}
    for fact in facts:
        if fact.folder not in placements:
            known = placements.get(hashes.get(fact.folder, ""))
            named[fact.folder] = (
                Placement(fact.folder, known.project, known.root, known.by)
                if known
                else Placement(fact.folder, fact.folder, None, "folder")
            )
    return named


def _hash(fact: FolderFacts) -> str:
    parts = (fact.remote, fact.commit, fact.root, sorted(fact.paths), sorted(fact.outside))
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).hexdigest()


def _find_touched(tool: str, text: str) -> set[str]:
    try:
        return find_paths(tool, _arguments.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return set()


def _to_row(placement: Placement, at: float) -> ProjectNameRow:
    return ProjectNameRow(name=placement.folder, project=placement.project, root=placement.root, by=placement.by, at=at)
