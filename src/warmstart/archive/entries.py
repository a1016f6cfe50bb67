"""The entries of an archive: one small file per archived version of a transcript, written and deleted atomically."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
from msgspec import Struct

from warmstart.atomic_files import sync_folder, write_whole
from warmstart.errors import NotFound, explain
from warmstart.model import Problem

_ENDING = ".json"
_SHORTEST = 4  # characters of a shortened id


class ArchivedSession(Struct, frozen=True):
    """A session in an archived transcript."""

    key: str  # as in the store
    id: str  # the agent's own id


class ArchiveEntry(Struct, frozen=True, kw_only=True):
    """An archived version of a transcript."""

    id: str  # 12 hex digits, of the path and the content
    path: str  # where the transcript was
    digest: str  # SHA-256 of the content
    size: int  # bytes of the content
    packed: int  # bytes on disk
    source_size: int  # bytes of the transcript; of a redacted copy another number than `size`
    mtime_ns: int  # of the transcript
    at: float  # time of archiving, in seconds since the epoch
    agent: str
    format: str
    redacted: bool = False
    sessions: tuple[ArchivedSession, ...] = ()

    def is_named(self, text: str) -> bool:
        """Return whether a person means this entry: by its id or a session's, which may be shortened."""
        names = (self.id, *(name for session in self.sessions for name in (session.id, session.key)))
        return text in names or (len(text) >= _SHORTEST and any(name.startswith(text) for name in names))


_decode = msgspec.json.Decoder(ArchiveEntry).decode


def name_entry(path: str, digest: str, redacted: bool) -> str:
    """Return the id of an entry."""
    return hashlib.blake2b(f"{path}\0{digest}\0{redacted}".encode(), digest_size=6).hexdigest()


class ArchiveEntries:
    """A folder of entries. Those that cannot be read are in `problems` after each `list`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.problems: list[Problem] = []

    def list(self) -> list[ArchiveEntry]:
        """Return all entries, the newest first."""
        entries: list[ArchiveEntry] = []
        self.problems = []
        for file in sorted(self._folder.glob(f"[!.]*{_ENDING}")):
            try:
                entries.append(_decode(file.read_bytes()))
            except FileNotFoundError:  # deleted meanwhile
                continue
            except OSError as error:
                self.problems.append(Problem(str(file), explain(error)))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                self.problems.append(Problem(str(file), f"not an entry: {error}"))
        return sorted(entries, key=lambda entry: (-entry.at, entry.path))

    def find(self, text: str) -> tuple[ArchiveEntry, ...]:
        """Return the entries that a person names, the newest first. Raises NotFound."""
        paths = (text, str(Path(text).expanduser().absolute()))
        listed = self.list()
        exact = [entry for entry in listed if entry.path in paths]
        whole = [entry for entry in listed if any(text == session.id for session in entry.sessions)]
        if found := exact or whole or [entry for entry in listed if entry.is_named(text)]:
            return tuple(found)
        raise NotFound(f"nothing in the archive is named {text}; see: warmstart archive list")

    def put(self, entry: ArchiveEntry) -> None:
        """Write an entry. It survives a power cut once this returns."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._folder / f"{entry.id}{_ENDING}", msgspec.json.encode(entry), synced=True)

    def delete(self, entry: ArchiveEntry) -> None:
        """Delete an entry."""
        (self._folder / f"{entry.id}{_ENDING}").unlink(missing_ok=True)
        sync_folder(self._folder)
