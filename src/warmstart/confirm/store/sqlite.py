"""The confirmation store in a SQLite file of its own, separate from the store of sessions and templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from warmstart.confirm.store.protocol import QUERIES, Values, find_migrations
from warmstart.confirm.store.triggers import compare_guards, read_triggers
from warmstart.errors import StoreError
from warmstart.store import check_library, create_file
from warmstart.store.sqlite_file import Kind, SqliteFile

MIGRATIONS = find_migrations()  # at import: a process may have given up the right to read our files when it needs them

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA recursive_triggers = ON;
PRAGMA cache_size = -8000;
"""

KIND = Kind(
    application_id=0x57524D43,  # "WRMC"
    schema=len(MIGRATIONS),
    load_migrations=lambda: MIGRATIONS,
    put_migration=QUERIES["put_migration"],
    settings=SETTINGS,
    when_damaged="Stop the daemon, keep a copy of the file, and restore a backup",
)


def open_file(path: Path, patience: float) -> ConfirmSqliteStore:
    """Open a file, creating or upgrading it."""
    path = path.expanduser().resolve()
    check_library(apsw.sqlite_lib_version())
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: not a file")
    create_file(path)
    return ConfirmSqliteStore(path, KIND, patience)


def open_file_to_read(path: Path, patience: float) -> ConfirmSqliteStore:
    """Open a file to read; see `open_to_read`."""
    return ConfirmSqliteStore(path.expanduser().resolve(), KIND, patience, to_read=True)


class ConfirmSqliteStore(SqliteFile):
    """The ConfirmStore of protocol.py, where its methods are described."""

    def __init__(self, path: Path, kind: Kind, patience: float, *, to_read: bool = False) -> None:
        super().__init__(path, kind, patience, to_read=to_read)
        self.place = str(path)
        self.anchor_path = path.with_name(path.name + ".anchor")

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        with self._asking():
            return self._fetch(self._db.execute(QUERIES[query], values or {}))

    def row(self, query: str, values: Values | None = None) -> Any:
        rows = self.rows(query, values)
        return rows[0] if rows else None

    def put_all(self, query: str, values: Sequence[Values]) -> None:
        with self._asking():
            self._db.executemany(QUERIES[query], values)

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            yield

    def version(self) -> int:
        with self._asking():
            return int(self._db.pragma("data_version"))

    def stream(self, query: str) -> Iterator[Any]:
        with self._asking():
            yield from self._stream(self._db.execute(QUERIES[query]))

    def check_guards(self) -> list[str]:
        return compare_guards(self._wanted_guards(), self._find_guards())

    def restore_guards(self) -> None:
        with self._asking():
            for name in self._find_guards():
                self._db.execute(f"DROP TRIGGER {apsw.format_sql_value(name)}")
            for sql in self._wanted_guards().values():
                self._db.execute(sql).fetchall()

    def _wanted_guards(self) -> dict[str, str]:
        return read_triggers(self._kind.load_migrations())

    def _find_guards(self) -> dict[str, str]:
        with self._asking():
            return dict(self._fetch(self._db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")))
