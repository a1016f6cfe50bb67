"""Find the transcripts of stored sessions and read them again: the store keeps no messages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from warmstart.archive.library import TranscriptArchive
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.ingest.read import scan
from warmstart.ingest.records import session_key
from warmstart.ingest.sources import find_holder, find_sources
from warmstart.model import Session
from warmstart.store import SessionRow

_MEMBER = "!/"  # between the address of an archive and the name of a member


def read_again(rows: Iterable[SessionRow], archive: TranscriptArchive) -> Iterator[tuple[SessionRow, Session | None]]:
    """Yield each stored session as its transcript or its archived copy has it; None where neither is there."""
    files: defaultdict[Path | None, dict[str, SessionRow]] = defaultdict(dict)
    for row in rows:
        files[_find_path(row)][row.key] = row
    for path, wanted in files.items():
        missing = dict(wanted)
        for session in _read(path) if path else ():
            if (key := session_key(session)) in missing:
                yield missing.pop(key), session
        if missing and archive.exists():
            for key, session in _read_archived(archive, missing):
                yield missing.pop(key), session
        for row in missing.values():
            yield row, None


def _find_path(row: SessionRow) -> Path | None:
    """Return the file of a transcript, or the archive that it lies in; None where neither is there."""
    parts = urlsplit(row.source_uri)
    if parts.scheme != "file":
        return None
    name = url2pathname(parts.path)
    return next((path for path in (Path(name), Path(name.partition(_MEMBER)[0])) if path.is_file()), None)


def _read(path: Path) -> Iterator[Session]:
    for source in find_sources(path) if find_holder(Source(path)) else [Source(path)]:
        source.whole = True
        try:
            for scored in scan(source):
                yield scored.session
        except SourceError:
            continue


def _read_archived(archive: TranscriptArchive, wanted: dict[str, SessionRow]) -> Iterator[tuple[str, Session]]:
    """Yield the sessions found in the archive. A copy as it was comes before a redacted one, whose keys may differ."""
    found: set[str] = set()
    for entry in sorted(archive.entries.list(), key=lambda entry: entry.redacted):
        keys = [one.key for one in entry.sessions]
        if found.issuperset(wanted) or not (set(keys) & wanted.keys()) - found:
            continue
        with archive.unpack([entry]) as copies:
            for copy in copies:
                for key, session in zip(keys, _read(copy), strict=False):  # in the order in which they were archived
                    if key in wanted and key not in found:
                        found.add(key)
                        yield key, session
