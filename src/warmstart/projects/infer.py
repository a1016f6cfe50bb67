"""Give every folder its project: by remote or root commit, by the places of worktrees, else by the files touched. Pure.

The answer depends only on the set of folders and what is known about them, not on the order in which they were seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from warmstart.projects.evidence import SharedPaths, compare_paths, compare_specific, is_specific, keep_specific
from warmstart.projects.paths import clean_folder, is_absolute, is_broad, relative_path
from warmstart.projects.worktrees import Worktree, find_worktree

KnownBy = Literal["remote", "commit", "paths", "folder", "person"]
_CROSSING = 3  # files that show that a subfolder's sessions and those of the folder above do the same work


class FolderFacts(Struct, frozen=True):
    """The known facts about a folder in which sessions ran."""

    folder: str  # as transcripts name it
    remote: str | None = None  # normalised
    commit: str | None = None  # identity by root commit: `name@0123456789ab`
    root: str | None = None  # root of its checkout on this machine
    paths: frozenset[str] = frozenset()  # files that its sessions touched, relative to `top_of` the folder
    outside: frozenset[str] = frozenset()  # absolute paths that they touched outside of it


class Placement(Struct, frozen=True):
    """The project of a folder."""

    folder: str
    project: str
    root: str | None  # of the project, above the folder; None: unknown
    by: KnownBy


class _Unit(Struct):
    """Folders that belong together for certain."""

    key: str
    name: str  # of the repository's folder
    by: KnownBy
    facts: list[FolderFacts]

    @property
    def is_identified(self) -> bool:
        return self.by in ("remote", "commit")

    def collect_paths(self) -> set[str]:
        return {path for fact in self.facts for path in fact.paths}


def top_of(folder: str, root: str | None = None) -> str:
    """Return the folder that paths are relative to: the checkout's root, the worktree's, or the folder itself."""
    if root:
        return clean_folder(root)
    clean = clean_folder(folder)
    worktree = find_worktree(clean)
    return worktree.root if worktree else clean


def name_worktrees(worktree: Worktree) -> str:
    """Return a folder that stands for the worktrees of a repository in one place: `.../workspaces/REPOSITORY`."""
    above, _, last = worktree.root.rpartition("/")
    place = above if last != worktree.repository else above.rpartition("/")[0]
    return place if place.rpartition("/")[2] == worktree.repository else f"{place}/{worktree.repository}"


def place_folders(facts: Iterable[FolderFacts]) -> dict[str, Placement]:
    """Return the project of each folder."""
    ordered = sorted(facts, key=lambda fact: fact.folder)
    units = _make_units(ordered)
    units = _join_nested(units)
    clusters = _join_named([unit for unit in units if not unit.is_identified])
    identified = [unit for unit in units if unit.is_identified]
    placements: dict[str, Placement] = {}
    for cluster in clusters:
        home = _find_home(cluster, identified)
        if home is not None:
            home.facts.extend(fact for unit in cluster for fact in unit.facts)
        else:
            placements |= _place_cluster(cluster)
    for unit in identified:
        placements |= _place_identified(unit)
    return placements


def find_rivals(facts: Iterable[FolderFacts]) -> set[str]:
    """Return the folders whose touched files must be known to place them: others have their name or lie above them."""
    units = _make_units(sorted(facts, key=lambda fact: fact.folder))
    by_name: defaultdict[str, list[_Unit]] = defaultdict(list)
    for unit in units:
        by_name[unit.name.lower()].append(unit)
    rivals: set[str] = set()
    for named in by_name.values():
        if len(named) > 1 and not all(unit.is_identified for unit in named):
            rivals |= {fact.folder for unit in named for fact in unit.facts}
    tops = _index_tops(units)
    for unit in units:
        above = [] if unit.is_identified else [other for _root, other in _list_above(unit, tops)]
        if any(not other.is_identified for other in above):
            rivals |= {fact.folder for each in (unit, *above) for fact in each.facts}
    return rivals


def _make_units(facts: Sequence[FolderFacts]) -> list[_Unit]:
    units: dict[str, _Unit] = {}
    commits = _name_commits(facts)
    for fact in facts:
        if not is_absolute(fact.folder):
            continue
        key, name, by = _identify(fact, commits)
        units.setdefault(key, _Unit(key, name, by, [])).facts.append(fact)
    return [units[key] for key in sorted(units)]


def _identify(fact: FolderFacts, commits: dict[str, str]) -> tuple[str, str, KnownBy]:
    clean = clean_folder(fact.folder)
    if is_broad(clean):
        return clean, clean, "folder"
    if fact.remote:
        return fact.remote, fact.remote.rpartition("/")[2], "remote"
    if fact.commit:
        name = commits[fact.commit.rpartition("@")[2]]
        return name, name.rpartition("@")[0], "commit"
    worktree = find_worktree(clean)
    if worktree is None or not worktree.is_certain:
        top = top_of(fact.folder, fact.root)
        return top, top.rpartition("/")[2], "folder"
    if worktree.main:
        return worktree.main, worktree.repository, "folder"
    return name_worktrees(worktree), worktree.repository, "folder"


def _name_commits(facts: Sequence[FolderFacts]) -> dict[str, str]:
    """Return one identity per root commit: clones may lie in folders of different names."""
    names: dict[str, str] = {}
    for fact in facts:
        if fact.commit:
            commit = fact.commit.rpartition("@")[2]
            names[commit] = min(names.get(commit, fact.commit), fact.commit, key=lambda name: (len(name), name))
    return names


# Folders below others


def _join_nested(units: list[_Unit]) -> list[_Unit]:
    """Add subfolders to the project above them, the deepest first."""
    left = {unit.key: unit for unit in units}
    tops = _index_tops(units)
    for unit in sorted(units, key=lambda each: (-len(each.key), each.key)):
        if unit.is_identified or is_broad(unit.key):
            continue
        for root, other in _list_above(unit, tops):
            if other.is_identified or _crosses(unit, other, root) or _is_worktree_of(unit, other):
                other.facts.extend(_move_up(fact, root) for fact in unit.facts)
                del left[unit.key]
                break
    return [left[key] for key in sorted(left)]


def _index_tops(units: list[_Unit]) -> dict[str, list[_Unit]]:
    """Return the units by the roots of their folders."""
    tops: defaultdict[str, list[_Unit]] = defaultdict(list)
    for unit in units:
        own = {top_of(fact.folder, fact.root) for fact in unit.facts} | (
            {unit.key} if not unit.is_identified else set()
        )
        for top in sorted(own):
            if not is_broad(top):
                tops[top].append(unit)
    return tops


def _list_above(unit: _Unit, tops: dict[str, list[_Unit]]) -> list[tuple[str, _Unit]]:
    """Return the other units whose root is the unit's folder or lies above it, the nearest first."""
    above: list[tuple[str, _Unit]] = []
    path = unit.key
    while path:
        above += [(path, other) for other in tops.get(path, ()) if other.key != unit.key]
        path = path.rpartition("/")[0]
    return above


def _crosses(unit: _Unit, other: _Unit, root: str) -> bool:
    """Return whether sessions in a subfolder and above it touch each other's files, and the folder above is a project.

    A folder that only holds projects has no files of its own.
    """
    above = other.collect_paths()
    if not any("/" not in path and "." in path.strip(".") for path in above):
        return False
    crossing: set[str] = set()
    for fact in unit.facts:
        below = relative_path(top_of(fact.folder), root)
        crossing |= {path for path in above if path.startswith(f"{below}/") and is_specific(path)}
        outside = (relative_path(path, root) for path in fact.outside)
        crossing |= {path for path in outside if path is not None and path != "."}
    return len(crossing) >= _CROSSING


def _is_worktree_of(unit: _Unit, other: _Unit) -> bool:
    """Return whether a folder in a plain `worktrees` folder is a worktree of the project around it."""
    worktree = find_worktree(unit.key)
    if worktree is None or worktree.main != other.key:
        return False
    return compare_paths(unit.collect_paths(), other.collect_paths()).is_enough


def _move_up(fact: FolderFacts, root: str) -> FolderFacts:
    """Return a subfolder's facts with its paths relative to the root above."""
    below = relative_path(top_of(fact.folder, fact.root), root)
    paths = frozenset(path if below in (None, ".") else f"{below}/{path}" for path in fact.paths)
    return FolderFacts(fact.folder, fact.remote, fact.commit, root, paths, fact.outside)


# Folders of one name


def _join_named(units: list[_Unit]) -> list[list[_Unit]]:
    """Join folders of one name whose sessions touched mostly the same files, until no more join."""
    by_name: defaultdict[str, list[list[_Unit]]] = defaultdict(list)
    for unit in units:
        by_name[unit.name.lower()].append([unit])
    clusters: list[list[_Unit]] = []
    for name in sorted(by_name):
        clusters += _join_clusters(by_name[name])
    return clusters


def _join_clusters(clusters: list[list[_Unit]]) -> list[list[_Unit]]:
    while len(clusters) > 1:
        paths = [_collect(cluster) for cluster in clusters]
        groups = list(range(len(clusters)))
        for one in range(len(clusters)):
            for other in range(one + 1, len(clusters)):
                if groups[one] != groups[other] and compare_specific(paths[one], paths[other]).is_enough:
                    groups = [groups[one] if group == groups[other] else group for group in groups]
        joined = [
            [unit for cluster, group in zip(clusters, groups, strict=True) if group == name for unit in cluster]
            for name in dict.fromkeys(groups)
        ]
        if len(joined) == len(clusters):
            break
        clusters = joined
    return clusters


def _collect(cluster: list[_Unit]) -> set[str]:
    return keep_specific({path for unit in cluster for path in unit.collect_paths()})


def _find_home(cluster: list[_Unit], identified: list[_Unit]) -> _Unit | None:
    """Return the identified project of the same name that the cluster's files prove, the best one if there are several."""
    mine = _collect(cluster)
    proven: list[tuple[SharedPaths, _Unit]] = []
    for unit in identified:
        if unit.name.lower() == cluster[0].name.lower():
            evidence = compare_specific(mine, keep_specific(unit.collect_paths()))
            if evidence.is_enough:
                proven.append((evidence, unit))
    best = min(proven, key=lambda pair: (-pair[0].files, -pair[0].fitting, pair[1].key), default=None)
    return best[1] if best else None


# Names


def _place_identified(unit: _Unit) -> dict[str, Placement]:
    tops = {top_of(fact.folder, fact.root) for fact in unit.facts}
    placements = {}
    for fact in unit.facts:
        own = fact.remote == unit.key or (fact.commit is not None and unit.by == "commit")
        root = fact.root or _find_top(fact.folder, tops)
        placements[fact.folder] = Placement(fact.folder, unit.key, root, unit.by if own else "paths")
    return placements


def _place_cluster(cluster: list[_Unit]) -> dict[str, Placement]:
    facts = [fact for unit in cluster for fact in unit.facts]
    tops = {top_of(fact.folder, fact.root) for fact in facts}
    key = min((unit.key for unit in cluster), key=lambda key: (find_worktree(key) is not None, len(key), key))
    same = sorted(fact.folder for fact in facts if clean_folder(fact.folder) == key)
    project = same[0] if same else key
    placements = {}
    for fact in facts:
        root = None if is_broad(fact.folder) else fact.root or _find_top(fact.folder, tops)
        by: KnownBy = "folder" if clean_folder(fact.folder) == key else "paths"
        placements[fact.folder] = Placement(fact.folder, project, root, by)
    return placements


def _find_top(folder: str, tops: set[str]) -> str:
    """Return the highest root of the project above a folder, within its own worktree."""
    own = top_of(folder)
    if find_worktree(own):
        return own
    above = [top for top in tops if not is_broad(top) and (own == top or own.startswith(top.rstrip("/") + "/"))]
    return min(above, key=lambda top: (len(top), top), default=own)
