"""Write the files that hooks read: the index of each project's notes, the map of folders, and the levels of advice."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from warmstart.atomic_files import sweep_unfinished, write_whole
from warmstart.config import AdviceSettings
from warmstart.digests import blake2b
from warmstart.notes.advise import helps_after
from warmstart.notes.compact_json import dump_json
from warmstart.notes.index import FOLDER, FOLDERS, LEVELS, VERSION, make_key, stamp_settings
from warmstart.notes.types import Note

_LARGEST_NOTE = 4_096  # bytes of one line; a longer note cannot be shown anyway
_LONGEST_TEXT = 800  # characters; half of that is shown
_ENDING = ".index"


def write_index(home: Path, project: str, notes: Iterable[Note], *, scope: str = "", roots: Sequence[str] = ()) -> Path:
    """Write the index of a project's active notes in place of the old one, and return its path.

    `roots`: folders that the project's paths are relative to. Give the rules of agents (notes without a project) too.
    """
    path = _make_folder(home) / name_index(project, scope)
    write_whole(path, compose_index(project, notes, scope=scope, roots=roots))
    return path


def is_current(home: Path, project: str, notes: Iterable[Note], *, scope: str = "", roots: Sequence[str] = ()) -> bool:
    """Return whether the index on disk is the one that would be written now."""
    try:
        known = (home / FOLDER / name_index(project, scope)).read_bytes()
    except OSError:
        return False
    return known == compose_index(project, notes, scope=scope, roots=roots)


def compose_index(project: str, notes: Iterable[Note], *, scope: str = "", roots: Sequence[str] = ()) -> bytes:
    """Return the content of a project's index."""
    lines: list[tuple[bytes, int, bytes]] = []
    count, watches_files, answers_failures = 0, False, False
    for note in notes:
        if note.status != "active":
            continue
        entry = _encode(note)
        keys = [key for mark in (note.trigger, f"={note.key}") if mark and (key := make_key(mark))]
        lines += [(key, -note.support, entry) for key in keys if len(key) + len(entry) < _LARGEST_NOTE]
        count += 1
        watches_files = watches_files or note.trigger.startswith("fresh:")
        answers_failures = answers_failures or helps_after(note.kind, note.fix)
    body = b"".join(key + entry + b"\n" for key, _support, entry in sorted(lines))
    header = {
        "warmstart_notes": VERSION,
        "project": project,
        "scope": scope,
        "roots": list(roots),
        "notes": count,
        "watches_files": watches_files,
        "answers_failures": answers_failures,
        "bytes": len(body),
    }
    return dump_json(header).encode() + b"\n" + body


def name_index(project: str, scope: str = "") -> str:
    """Return the name of a project's index file."""
    key = f"{project}\0{scope}".encode("utf-8", "surrogatepass")
    return blake2b(key, digest_size=8).hexdigest() + _ENDING


def write_folders(home: Path, folders: Mapping[str, Path]) -> None:
    """Write which index belongs to which folder, in place of the old map. The folder "" stands for all others."""
    lines = [
        f"{folder.rstrip('/')}\t{index.name}\n".encode("utf-8", "surrogatepass")
        for folder, index in folders.items()
        if not any(ord(char) < 32 for char in folder)
    ]
    write_whole(_make_folder(home) / FOLDERS, b"".join(sorted(lines)))


def write_levels(home: Path, advice: AdviceSettings) -> dict[str, str]:
    """Write the levels of advice as `config.toml` has them now, and return them."""
    stamp = stamp_settings(str(home))
    levels = list_levels(advice)
    lines = [stamp, *(f"{kind}\t{level}" for kind, level in levels.items()), ""]
    write_whole(_make_folder(home) / LEVELS, "\n".join(lines).encode())
    return levels


def list_levels(advice: AdviceSettings) -> dict[str, str]:
    """Return the levels by kind, under "" for all others."""
    chosen = {kind: level for kind, level in structs.asdict(advice).items() if kind != "level" and level is not None}
    return {"": advice.level, **chosen}


def add_folder(home: Path, folder: str, index: Path) -> bool:
    """Let a folder use an index, beside those that the map names; return False if it is known or there is no index."""
    path = home / FOLDER / FOLDERS
    line = f"{folder.rstrip('/')}\t{index.name}\n".encode("utf-8", "surrogatepass")
    if any(ord(char) < 32 for char in folder) or not folder.startswith("/") or not index.exists():
        return False
    with suppress(FileNotFoundError):
        known = path.read_bytes()
        if b"\n" + line in b"\n" + known:
            return False
        write_whole(path, b"".join(sorted({*known.splitlines(keepends=True), line})))
        return True
    return False


def delete_indexes(home: Path, keep: Collection[Path]) -> None:
    """Delete the indexes of projects that have no notes any more."""
    folder = home / FOLDER
    names = {path.name for path in keep}
    for path in folder.glob(f"*{_ENDING}"):
        if path.name not in names:
            path.unlink(missing_ok=True)
    sweep_unfinished(folder)


def _make_folder(home: Path) -> Path:
    folder = home / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _encode(note: Note) -> bytes:
    return dump_json(
        {
            "id": note.id,
            "kind": note.kind,
            "subject": note.subject,
            "trigger": note.trigger,
            "text": note.text[:_LONGEST_TEXT],
            "fix": note.fix,
            "support": note.support,
            "failures": note.failures,
            "against": note.against,
            "agent": note.agent if note.kind == "tool" else "",
        }
    ).encode()
