"""The confirmation daemon's store in one SQLite file, apart from what Warmstart learns from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from warmstart.confirm.store.protocol import MIGRATIONS_FOLDER, QUERIES, Values
from warmstart.confirm.store.triggers import compare_guards, read_triggers
from warmstart.errors import StoreError
from warmstart.store import check_library, create_file
from warmstart.store.sqlite_file import Kind, Migration, SqliteFile, load_migrations

MIGRATIONS = ("0001_confirm",)  # append only, never edit: what is recorded in someone's file does not run again

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA recursive_triggers = ON;
PRAGMA cache_size = -8000;
"""

KIND = Kind(
    application_id=0x57524D43,  # "WRMC"
    schema=len(MIGRATIONS),
    load_migrations=lambda: load_migrations(MIGRATIONS_FOLDER, MIGRATIONS),
    put_migration=QUERIES["put_migration"],
    settings=SETTINGS,
    when_damaged="Stop the daemon, keep a copy of the file, bring back a backup",
)


def open_file(path: Path, patience: float, migrations: Sequence[Migration] | None = None) -> ConfirmSqliteStore:
    """Make the file where there is none, upgrade it where it is older."""
    path = path.expanduser().resolve()
    check_library(apsw.sqlite_lib_version())
    if path.exists() and not path.is_file():
        raise StoreError(f"{path}: not a file")
    create_file(path)
    if migrations is None:
        return ConfirmSqliteStore(path, KIND, patience)
    return ConfirmSqliteStore(path, KIND._replace(schema=len(migrations), load_migrations=lambda: migrations), patience)


def open_file_to_read(path: Path, patience: float) -> ConfirmSqliteStore:
    """Only to look."""
    return ConfirmSqliteStore(path.expanduser().resolve(), KIND, patience, to_read=True)


class ConfirmSqliteStore(SqliteFile):
    """See store.py."""

    def __init__(self, path: Path, kind: Kind, patience: float, *, to_read: bool = False) -> None:
        super().__init__(path, kind, patience, to_read=to_read)
        self.place = str(path)
        self.anchor_path = path.with_name(path.name + ".anchor")

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """What a statement answers."""
        with self._asking():
            return self._fetch(self._db.execute(QUERIES[query], values or {}))

    def row(self, query: str, values: Values | None = None) -> Any:
        """The first row, or None."""
        found = self.rows(query, values)
        return found[0] if found else None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody writes meanwhile, in no process; nothing is written here either."""
        with self._transaction("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Several reads of one moment, whatever others write meanwhile."""
        with self._transaction("BEGIN"):
            yield

    def version(self) -> int:
        """Another number as soon as anyone else has written: cheap to ask often."""
        with self._asking():
            return int(self._db.pragma("data_version"))

    def stream(self, query: str) -> Iterator[Any]:
        """What a statement answers, row by row, however much it is."""
        with self._asking():
            yield from self._stream(self._db.execute(QUERIES[query]))

    def check_guards(self) -> list[str]:
        """What is wrong with the triggers that keep the audit append-only."""
        return compare_guards(self._wanted_guards(), self._find_guards())

    def restore_guards(self) -> None:
        """Those triggers as they must be, and no others."""
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
