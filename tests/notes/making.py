"""Notes, and indexes of them, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warmstart.notes.index_files import write_folders, write_index
from warmstart.notes.mine import make_id
from warmstart.notes.types import Note

PROJECT = "/home/dev/shop"


def make_note(kind: str = "path", subject: str = ".golangci.yml", **more: Any) -> Note:
    """Return an active note that seven sessions met and nothing contradicts."""
    facts = {
        "id": make_id(PROJECT, "", f"{kind}:{subject}"),
        "project": PROJECT,
        "kind": kind,
        "subject": subject,
        "trigger": f"path:{subject}" if kind == "path" else "",
        "text": f"`{subject}` is not here",
        "support": 7,
        "failures": 9,
        "status": "active",
        "key": f"{kind}:{subject}",
    }
    return Note(**(facts | more))


def write_notes(home: Path, *notes: Note, folder: str | Path = PROJECT) -> Path:
    """Write the index of one project and the map that leads to it."""
    index = write_index(home, PROJECT, notes, roots=(str(folder),))
    write_folders(home, {str(folder): index})
    return index
