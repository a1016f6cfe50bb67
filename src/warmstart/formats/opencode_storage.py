"""OpenCode before its database: `~/.local/share/opencode/storage`, one JSON file per session, message and part.

The file of a session, `session/<project>/<id>.json`, is read together with its messages (`message/<id>/`) and their parts
(`part/<message>/`, in the oldest versions all in `part/`). Messages and parts by themselves hold no session.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from warmstart.formats.fields import dict_of, parse_time, string_of
from warmstart.formats.opencode import Info, Messages, StoredPart
from warmstart.formats.source import Source, SourceHead
from warmstart.model import Session
from warmstart.ports import Judge

NAME = "opencode_storage"

T = TypeVar("T")

_LARGEST = 32 << 20  # bytes of a message or part
_MOST_FILES = 50_000  # messages of a session, or parts of a message


class _Session(msgspec.Struct, gc=False):
    id: Any = None
    directory: Any = None
    parentID: Any = None  # noqa: N815 - the names are the format's
    time: Any = None


class _Part(StoredPart, gc=False):
    id: Any = None
    messageID: Any = None  # noqa: N815
    time: Any = None


_session = msgspec.json.Decoder(_Session)
_message = msgspec.json.Decoder(Info)
_part = msgspec.json.Decoder(_Part)


def sniff(head: SourceHead) -> bool:
    if head.root != "object":
        return False
    first = head.first
    is_session = "projectID" in first and "directory" in first and "time" in first and "messages" not in first
    return is_session or _is_piece(first)


def _is_piece(record: dict[str, Any]) -> bool:
    """Return whether a file is a message or a part of a session."""
    is_message = "sessionID" in record and "role" in record and "time" in record
    return is_message or ("messageID" in record and "type" in record and "id" in record)


def read(source: Source, judge: Judge) -> Iterator[Session]:
    if "directory" not in source.head.first:
        return
    messages = Messages(source, judge, NAME)
    with source.open() as stream:
        described = source.decode(stream.read(_LARGEST), _session)
    if described is None:
        return
    session = string_of(described.id)
    messages.describe(session, described.directory, described.parentID, dict_of(described.time))
    if not source.local or not _is_name(session):
        source.report("its messages lie in other files, which can only be read from a folder")
        return
    storage = source.path.absolute().parents[2]
    infos = _read_folder(source, storage / "message" / session, _message)
    infos.sort(key=lambda info: (parse_time(dict_of(info.time).get("created")) or 0, string_of(info.id)))
    loose = _read_loose(source, storage / "part", {string_of(info.id) for info in infos})
    for info in infos:
        message = string_of(info.id)
        parts = _read_folder(source, storage / "part" / message, _part) if _is_name(message) else []
        parts = parts or [part for part in loose if string_of(part.messageID) == message]
        messages.take(info, list(parts))
    if not messages.draft.empty:
        yield messages.draft.close()


def _is_name(name: str) -> bool:
    """Return whether an id can be the name of a folder and no path."""
    return bool(name) and name not in (".", "..") and not set(name) & set("/\\\0")


def _read_folder(source: Source, folder: Path, decoder: msgspec.json.Decoder[T]) -> list[T]:
    """Return the records of a folder in the order of their names."""
    try:
        files = sorted(path for path in folder.iterdir() if path.suffix == ".json")[:_MOST_FILES]
    except OSError:
        return []
    return [record for path in files if (record := _read_record(source, path, decoder)) is not None]


def _read_loose(source: Source, folder: Path, wanted: set[str]) -> list[_Part]:
    """Return the parts that lie in one folder for all messages."""
    return [part for part in _read_folder(source, folder, _part) if string_of(part.messageID) in wanted]


def _read_record(source: Source, path: Path, decoder: msgspec.json.Decoder[T]) -> T | None:
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        source.report(f"{path.parent.name}/{path.name} is damaged and was left out")
        return None
