"""A small file of every format: the fixtures under tests/data, and databases that a test fills."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from formats.databases import TABLES, add_session, fill
from places import DATA
from warmstart import formats


def fill_hermes(path: Path) -> None:
    """Write a Hermes database."""
    with closing(sqlite3.connect(path)) as database, database:
        fill(database)


def fill_opencode(path: Path) -> None:
    """Write an OpenCode database."""
    with closing(sqlite3.connect(path)) as database, database:
        for table in TABLES:
            database.execute(table)
        add_session(database, "ses_harbour")


MADE: dict[str, Callable[[Path], None]] = {
    "hermes": fill_hermes,
    "opencode": fill_opencode,
}  # formats whose files are databases


def find_case(expected: Path) -> Path:
    """Return the transcript that an `*.expected.json` describes."""
    name = expected.name.removesuffix(".expected.json")
    (case,) = [
        p
        for p in expected.parent.glob(f"{name}.*")
        if p != expected and p.name.removesuffix("".join(p.suffixes)) == name
    ]
    return case


def list_samples() -> list[tuple[str, Path | None]]:
    """Return `(format, fixture)` of every registered format; None where MADE writes the file."""
    listed: list[tuple[str, Path | None]] = []
    for known in formats.FORMATS:
        cases = sorted(map(find_case, (DATA / known.NAME).glob("*.expected.json")))
        listed += [(known.NAME, case) for case in cases]
        if not cases:
            listed.append((known.NAME, None))
    return listed


def copy_sample(name: str, case: Path | None, folder: Path) -> Path:
    """Put a sample into a folder, under a name that says nothing about its format."""
    path = folder / ("sample.db" if case is None else f"sample{''.join(case.suffixes)}")
    if case is None:
        MADE[name](path)
    else:
        path.write_bytes(case.read_bytes())
    return path
