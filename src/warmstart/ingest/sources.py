"""Where transcripts are: files, folders, archives, branches of git repositories and remote addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from warmstart import formats
from warmstart.errors import SourceError, UnknownFormat, explain
from warmstart.formats.source import Looks, Source
from warmstart.ingest.queue import split_session
from warmstart.ingest.skips import NESTED, Skip
from warmstart.model import Problem


class Holder(Protocol):
    """Something that holds transcripts: an archive, a branch, a remote folder."""

    @property
    def uri(self) -> str: ...  # stable: what is read in it is stored under this address
    @property
    def shown(self) -> str: ...
    @property
    def problems(self) -> list[Problem]: ...
    @property
    def single(self) -> bool: ...  # it is one transcript, which was named itself
    def look(self) -> Looks | None: ...  # None: only the transcripts in it show whether they changed
    def sources(self, skip: Skip) -> Iterator[Source]: ...


def find_places(name: Path | str, skip: Skip) -> Iterator[tuple[Source | Holder, bool]]:
    """Yield the files and holders of a path or address, and whether each was named itself.

    Raises SourceError if the path or address cannot be read.
    """
    holders = _find_holders(str(name))  # the modules of archives, git and remote files take long to load
    if holders is not None:
        yield from ((holder, True) for holder in holders)
        return
    file, session = split_session(str(name))
    path = Path(file)
    named = not path.is_dir()
    for found in formats.find_files(path, lambda error: skip(str(error.filename), explain(error)), packed=True):
        yield Source(found, only=session), named
    if (path / ".git").exists() or (path / "objects").is_dir():
        from warmstart.ingest.git_branches import find_branches

        yield from ((branch, False) for branch in find_branches(path))


def _find_holders(name: str) -> Sequence[Holder] | None:
    """Return the holders at an address; None for a path."""
    if name.startswith("git:"):
        from warmstart.ingest.git_branches import open_branches

        return open_branches(name)
    if "://" in name:
        from warmstart.ingest.remote import RemoteFolder, is_remote

        if is_remote(name):
            return [RemoteFolder(name)]
    return None


def find_sources(name: Path | str, problems: list[Problem] | None = None) -> Iterator[Source]:
    """Yield the transcripts of a path or address. Files in folders that are not transcripts are skipped.

    The problems of archives and other holders are added to `problems`; those of a transcript are its own.
    """
    for place, named in find_places(name, _ignore):
        yield from expand_source(place, named, [] if problems is None else problems)


def _ignore(_name: str, _reason: str) -> None:
    return None


def expand_source(
    place: Source | Holder, named: bool, problems: list[Problem], skip: Skip | None = None
) -> Iterator[Source]:
    """Yield the transcripts in a file or holder; a file that was not named itself and is no transcript is skipped."""
    skip = skip or _ignore
    if isinstance(place, Source):
        holder = find_holder(place)
        if holder is None:
            if named or (reason := find_reason_to_skip(place)) is None:
                yield place
            else:
                skip(place.shown, reason)
            return
        place = holder
    for source in place.sources(skip):
        yield from expand_source(source, place.single, problems, skip)
    problems += place.problems


def find_holder(source: Source) -> Holder | None:
    """Return the archive that a file is; None for any other file, one inside an archive, and one that cannot be read."""
    try:
        if source.nested or not source.head.archive:
            return None
        from warmstart.ingest.archives import open_archive

        return open_archive(source)
    except SourceError:
        return None


def find_reason_to_skip(source: Source) -> str | None:
    """Return why a file is no transcript; None for a transcript, and for a file that cannot be read."""
    try:
        formats.detect(source)
    except UnknownFormat as unknown:
        return NESTED if source.head.archive and source.nested else unknown.reason
    except SourceError:
        return None  # it cannot be read, which must be reported
    return None
