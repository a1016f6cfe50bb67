"""Transcripts on branches of a git repository, read from its objects without a checkout.

Entire keeps checkpoints on `entire/checkpoints/v1`: `<aa>/<id>/<n>/full.jsonl` with a `metadata.json` beside it. Each
checkpoint has the whole transcript so far, so that of each session only the largest copy is read. Any other branch is read
like a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path, PurePosixPath

import msgspec

from warmstart.errors import SourceError, explain
from warmstart.formats import may_be_archive, may_be_transcript
from warmstart.formats.archive import show_name
from warmstart.formats.source import Looks, Source
from warmstart.formats.spooled import MAX_SPOOLED, TOO_LARGE, SpooledName, SpooledSource, hash_number
from warmstart.ingest.git_objects import GitEntry, GitObjects, find_repository, list_refs, resolve_ref
from warmstart.ingest.skips import OTHER_NAME, SMALLER, Skip
from warmstart.model import Problem

_ADDRESS = "git:"
_CHECKPOINTS = re.compile(r"refs/(?:heads|remotes/[^/]+)/entire/checkpoints/v\d+$")
_WHOLE = re.compile(r"full\.(?:jsonl|log)(?:\.(?P<part>\d{3,}))?$")
_SUBAGENT = re.compile(r"tasks/(?:.*/)?(?P<name>agent-[^/]+\.jsonl)$")
_FACTS = "metadata.json"
_MAX_FACTS = 1 << 20
_MAX_PROBLEMS = 1_000


class _Facts(msgspec.Struct):
    session_id: str = ""


_facts = msgspec.json.Decoder(_Facts)


def open_branches(address: str) -> list[GitBranch]:
    """Return the branch of `git:PATH#REF`, or the checkpoint branches of `git:PATH`. Raises SourceError without one."""
    place, _mark, ref = address.removeprefix(_ADDRESS).partition("#")
    path = Path(place or ".").expanduser()
    try:
        folder = find_repository(path)
        if folder is None:
            raise SourceError(address, "this is no git repository")
        if not ref:
            if branches := find_branches(path):
                return branches
            raise SourceError(address, f"it has no branch entire/checkpoints/v1; name a branch: {_ADDRESS}PATH#BRANCH")
        known = resolve_ref(folder, ref)
    except OSError as error:
        raise SourceError(address, explain(error)) from error
    if known is None:
        raise SourceError(address, f"it has no branch, tag or commit {ref!r}")
    return [GitBranch(path, folder, *known)]


def find_branches(path: Path) -> list[GitBranch]:
    """Return the checkpoint branches of a repository; none for a folder that is no repository.

    A remote's branch is left out if the local one is at the same commit.
    """
    try:
        folder = find_repository(path)
        refs = list_refs(folder) if folder else {}
    except OSError:
        return []
    found = {commit: ref for ref, commit in sorted(refs.items(), reverse=True) if _CHECKPOINTS.match(ref)}
    return [GitBranch(path, folder, ref, commit) for commit, ref in found.items() if folder]


class GitBranch:
    """The transcripts on one branch."""

    single = False

    def __init__(self, path: Path, folder: Path, ref: str, commit: str) -> None:
        self._folder = folder
        self._commit = commit
        short = re.sub(r"^refs/(?:heads|remotes|tags)/", "", ref)
        self.uri = (
            f"{_ADDRESS}{path.absolute().as_uri().removeprefix('file://')}@{short}"  # `#` begins a session's place
        )
        self.shown = f"{_ADDRESS}{path}#{short}".encode("utf-8", "replace").decode()
        self.problems: list[Problem] = []

    def look(self) -> Looks:
        """Return a number made of the commit."""
        return 0, 0, hash_number(self._commit)

    def sources(self, skip: Skip) -> Iterator[Source]:
        """Yield the transcripts of the branch. Raises SourceError if its objects cannot be read."""
        try:
            with GitObjects(self._folder, self._commit) as objects:
                entries = self._list_files(objects)
                if any(_WHOLE.match(entry.path.rpartition("/")[2]) for entry in entries):
                    yield from self._read_checkpoints(objects, entries, skip)
                else:
                    yield from self._read_files(objects, entries, skip)
        except OSError as error:
            raise SourceError(self.shown, explain(error)) from error

    def _list_files(self, objects: GitObjects) -> list[GitEntry]:
        entries = objects.list_files(self._commit)
        for entry in entries:
            if entry.size < 0:
                self._report(entry, "its object is missing; the repository is damaged or incomplete")
        return [entry for entry in entries if entry.size >= 0]

    def _report(self, entry: GitEntry, reason: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(Problem(self._show(entry), reason))

    def _show(self, entry: GitEntry) -> str:
        return f"{self.shown}!/{show_name(entry.path)}"

    def _read_files(self, objects: GitObjects, entries: list[GitEntry], skip: Skip) -> Iterator[Source]:
        for entry in entries:
            file = PurePosixPath(entry.path.replace("\0", ""))
            if may_be_transcript(file) or may_be_archive(file):
                yield from self._open(objects, [entry], skip)
            else:
                skip(self._show(entry), OTHER_NAME)

    def _read_checkpoints(self, objects: GitObjects, entries: list[GitEntry], skip: Skip) -> Iterator[Source]:
        """Yield the largest copy of each session."""
        copies: dict[str, list[list[GitEntry]]] = {}
        facts = {_folder_of(entry): entry for entry in entries if entry.path.endswith(f"/{_FACTS}")}
        whole = [entry for entry in entries if _WHOLE.match(entry.path.rpartition("/")[2])]
        for folder, parts in groupby(sorted(whole, key=lambda entry: (_folder_of(entry), entry.path)), _folder_of):
            session = self._read_session_id(objects, facts.get(folder))
            copies.setdefault(f"session {session}" if session else folder, []).append(list(parts))
        for entry in entries:
            if subagent := _SUBAGENT.search(entry.path):
                copies.setdefault(f"subagent {subagent['name']}", []).append([entry])
        for known in copies.values():
            largest = max(known, key=_measure)
            for copy in known:
                if copy is not largest:
                    skip(self._show(copy[0]), SMALLER)
            yield from self._open(objects, largest, skip)

    def _read_session_id(self, objects: GitObjects, entry: GitEntry | None) -> str:
        """Return the session of a checkpoint; "" where its facts cannot be read, so that it is a session of its own."""
        if entry is None or entry.size > _MAX_FACTS:
            return ""
        try:
            return _facts.decode(objects.read(entry)).session_id
        except (OSError, msgspec.DecodeError, UnicodeError) as error:
            self._report(entry, f"the session's id cannot be read: {error}")
            return ""

    def _open(self, objects: GitObjects, parts: list[GitEntry], skip: Skip) -> Iterator[Source]:
        size = _measure(parts)
        if size > MAX_SPOOLED:
            skip(self._show(parts[0]), TOO_LARGE)
            return
        looks = size, len(parts), hash_number("".join(part.id for part in parts))
        name = SpooledName(self.uri, self.shown, parts[0].path)
        yield SpooledSource(name, lambda: objects.spool(parts), looks)


def _folder_of(entry: GitEntry) -> str:
    return entry.path.rpartition("/")[0]


def _measure(parts: Iterable[GitEntry]) -> int:
    return sum(part.size for part in parts)
