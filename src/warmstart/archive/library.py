"""The archive of a Warmstart home: add, find, restore, verify and delete transcripts.

A version of a transcript is an entry and a packed content. The content is on disk before its entry, and an entry goes
before its content, so a killed process leaves at most a content without an entry, which the next `add` deletes. A
transcript that has grown replaces the version that it begins with; any other change is kept beside the older version.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath

import msgspec
from msgspec import Struct

from warmstart import formats
from warmstart.archive.entries import ArchivedSession, ArchiveEntries, ArchiveEntry, name_entry
from warmstart.archive.objects import PackedContents
from warmstart.archive.redacting import redact_transcript
from warmstart.atomic_files import lock_file, write_beside
from warmstart.errors import Refused, SourceError, WarmstartError, explain
from warmstart.formats.source import Source
from warmstart.ingest.queue import split_session
from warmstart.ingest.read import scan
from warmstart.ingest.records import Recorder, session_key
from warmstart.ingest.sources import find_reason_to_skip
from warmstart.model import Problem
from warmstart.ports import Progress
from warmstart.redact import Redactor

_CHUNK = 1 << 20
_FOLDERS = (
    4  # last parts of a path that a copy for reading keeps: readers take names of sessions and projects from them
)
_DATABASE = "a database, which its agent keeps; only transcripts in files of their own are archived"


class Archived(Struct, kw_only=True):
    """The result of one `add`."""

    added: int = 0  # versions archived
    replaced: int = 0  # older versions dropped, because the new ones begin with them
    unchanged: int = 0  # transcripts whose archived version is current
    skipped: int = 0  # files in folders that are not transcripts, and databases
    deleted: int = 0  # transcripts left out because they hold a session that a person deleted
    size: int = 0  # bytes of the versions archived
    packed: int = 0  # bytes that they take on disk
    problems: list[Problem] = msgspec.field(default_factory=list)


class Restored(Struct, frozen=True):
    """A transcript that was written back."""

    entry: ArchiveEntry
    path: str
    written: bool  # False: it was there already, with the same bytes


class TranscriptArchive:
    """The archive of a home. `is_forgotten` returns whether a person deleted a session, by its key."""

    def __init__(
        self,
        home: Path,
        secrets: Mapping[str, str],
        clock: Callable[[], float],
        is_forgotten: Callable[[str], bool],
    ) -> None:
        self._folder = home / "archive"
        self._contents = PackedContents(self._folder / "contents")
        self._secrets = secrets
        self._clock = clock
        self._is_forgotten = is_forgotten
        self.entries = ArchiveEntries(self._folder / "entries")

    def exists(self) -> bool:
        """Return whether anything was ever archived."""
        return self._folder.is_dir()

    def add(self, paths: Iterable[Path | str], *, redacted: bool = False, progress: Progress | None = None) -> Archived:
        """Archive files and the transcripts in folders. A current version is not archived again."""
        report = Archived()
        with self._alone():
            known: dict[tuple[str, bool], list[ArchiveEntry]] = {}
            for entry in self.entries.list():
                known.setdefault((entry.path, entry.redacted), []).append(entry)
            files = list(_find(paths, report))
            for done, (path, named) in enumerate(files):
                if progress:
                    progress(done, len(files), path.name)
                try:
                    self._add(path, named, redacted, known, report)
                except SourceError as error:
                    report.problems.append(Problem(error.path, error.reason, error.line))
                except (WarmstartError, OSError) as error:
                    reason = explain(error) if isinstance(error, OSError) else str(error)
                    report.problems.append(Problem(str(path), reason))
            self._sweep()
        return report

    def _add(
        self,
        path: Path,
        named: bool,
        redacted: bool,
        known: dict[tuple[str, bool], list[ArchiveEntry]],
        report: Archived,
    ) -> None:
        recorder, source = Recorder(self._secrets), Source(path)
        name = recorder.name(str(path)) if redacted else str(path)
        if not _is_text(name):
            raise Refused("its name is no valid text")
        looks = path.stat()
        versions = known.get((name, redacted), [])
        if any((old.source_size, old.mtime_ns) == (looks.st_size, looks.st_mtime_ns) for old in versions):
            report.unchanged += 1
            return
        reason = _DATABASE if source.head.sqlite else find_reason_to_skip(source)
        if reason and not named:
            report.skipped += 1
            return
        if reason:
            raise SourceError(str(path), reason)
        sessions = [scored.session for scored in scan(source)]
        keys = [session_key(session) for session in sessions]
        if any(map(self._is_forgotten, keys)):
            report.deleted += 1
            return
        if not sessions:
            raise Refused("no session could be read in it")
        ids = [recorder.name(session.id) if redacted else session.id for session in sessions]
        chunks = redact_transcript(source, Redactor(self._secrets).scope()) if redacted else _read(path)
        packed = self._contents.put(chunks, [old.size for old in versions])
        entry = ArchiveEntry(
            id=name_entry(name, packed.digest, redacted),
            path=name,
            digest=packed.digest,
            size=packed.size,
            packed=packed.packed,
            source_size=looks.st_size,
            mtime_ns=looks.st_mtime_ns,
            at=self._clock(),
            agent=sessions[0].agent,
            format=sessions[0].format,
            redacted=redacted,
            sessions=tuple(ArchivedSession(key, _clean(id)) for key, id in zip(keys, ids, strict=True)),
        )
        self.entries.put(entry)
        outgrown = [old for old in versions if old.digest in packed.beginnings and old.id != entry.id]
        self._delete(outgrown)
        report.added += 1
        report.replaced += len(outgrown)
        report.size += packed.size
        report.packed += packed.packed

    def restore(self, entry: ArchiveEntry, folder: Path | None = None) -> Restored:
        """Write a transcript back: to its old path, or into a folder. Another file of that name is never replaced."""
        path = folder / PurePath(entry.path).name if folder else Path(entry.path)
        if path.exists() or path.is_symlink():
            if self._is_same(entry, path):
                return Restored(entry, str(path), written=False)
            raise Refused(f"{path} exists and differs from the archived version; restore it elsewhere with --to")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with write_beside(path, self._contents.read(entry.digest), synced=True) as unfinished:
                unfinished.replace(path)
        except OSError as error:
            raise SourceError(str(path), explain(error)) from error
        return Restored(entry, str(path), written=True)

    def _is_same(self, entry: ArchiveEntry, path: Path) -> bool:
        try:
            with path.open("rb") as file:
                same = all(file.read(len(chunk)) == chunk for chunk in self._contents.read(entry.digest))
                return same and not file.read(1)
        except OSError:
            return False

    @contextmanager
    def unpack(self, entries: Iterable[ArchiveEntry]) -> Iterator[dict[Path, ArchiveEntry]]:
        """Yield copies for reading, which are deleted at the end. Contents that are damaged are left out."""
        with tempfile.TemporaryDirectory(prefix="warmstart-archive-") as folder:
            copies: dict[Path, ArchiveEntry] = {}
            for entry in entries:
                path = Path(folder, entry.id, *PurePath(entry.path).parts[1:][-_FOLDERS:])
                path.parent.mkdir(parents=True)
                try:
                    with path.open("wb") as file:
                        file.writelines(self._contents.read(entry.digest))
                except SourceError:
                    continue  # `verify` names it
                copies[path] = entry
            yield copies

    def verify(self) -> list[Problem]:
        """Unpack every content and return those that are missing or damaged, and the entries that cannot be read."""
        entries = self.entries.list()
        problems = list(self.entries.problems)
        for entry in entries:
            try:
                size = sum(map(len, self._contents.read(entry.digest)))
                if size != entry.size:
                    problems.append(Problem(entry.path, f"it has {size} bytes and should have {entry.size}"))
            except SourceError as error:
                problems.append(Problem(entry.path, f"{error.path}: {error.reason}"))
        return problems

    def delete(self, entries: Iterable[ArchiveEntry]) -> None:
        """Delete entries, and the contents that no other entry uses."""
        with self._alone():
            self._delete(entries)

    def forget(self, key: str) -> tuple[list[ArchiveEntry], list[ArchiveEntry]]:
        """Delete the copies of a session. Returns them, and the entries that hold other sessions too, which stay."""
        if not self.exists():
            return [], []
        holding = [entry for entry in self.entries.list() if any(one.key == key for one in entry.sessions)]
        alone = [entry for entry in holding if all(one.key == key for one in entry.sessions)]
        self.delete(alone)
        return alone, [entry for entry in holding if entry not in alone]

    def _delete(self, entries: Iterable[ArchiveEntry]) -> None:
        gone = list(entries)
        for entry in gone:
            self.entries.delete(entry)
        used = {entry.digest for entry in self.entries.list()} if gone else set()
        for digest in {entry.digest for entry in gone} - used:
            if not self.entries.problems:  # an entry that cannot be read may use it
                self._contents.delete(digest)

    def _sweep(self) -> None:
        used = {entry.digest for entry in self.entries.list()}
        if not self.entries.problems:
            self._contents.sweep(used)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with lock_file(self._folder / "lock", wait=True):
            yield


def _find(paths: Iterable[Path | str], report: Archived) -> Iterator[tuple[Path, bool]]:
    for text in paths:
        path = Path(os.path.abspath(split_session(str(text))[0]))  # noqa: PTH100 - links stay as the agent names them
        named = not path.is_dir()
        try:
            for file in formats.find_files(path):
                yield file, named
        except SourceError as error:
            report.problems.append(Problem(error.path, error.reason))


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


def _is_text(name: str) -> bool:
    return name == _clean(name)


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
