"""Other programs' SQLite databases: opened read-only, even while they are being written, and even if they are damaged."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import apsw

from warmstart.formats.source import Source

TROUBLE = (apsw.Error, UnicodeDecodeError)
_PATIENCE = 2_000  # milliseconds to wait for a lock
_MAX_TEXT = 64 << 20
_WAL_MODE = 2  # the value of byte 18 of the file


def has_columns(path: Path, needed: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a database has these columns of these tables; False where it cannot be read."""
    try:
        with closing(_open(path, "immutable=1")) as database:  # ignores locks and an unmerged log
            if _has_columns(database, needed):
                return True
    except TROUBLE:
        pass
    if not _beside(path, "-wal").exists():
        return False
    try:
        with connected(path) as database:
            return _has_columns(database, needed)
    except (*TROUBLE, OSError):
        return False


def _has_columns(database: apsw.Connection, needed: Mapping[str, frozenset[str]]) -> bool:
    return all(columns <= list_columns(database, table) for table, columns in needed.items())


@contextmanager
def reading(source: Source) -> Iterator[apsw.Connection]:
    """Open the database of a source; whatever stops the reading is a problem of the source."""
    try:
        with connected(source.path) as database:
            yield database
    except apsw.BusyError:
        source.report("the database is locked by another program; try again when that has finished")
    except (*TROUBLE, OSError) as error:
        source.report(f"the database cannot be read: {error}")


@contextmanager
def connected(path: Path) -> Iterator[apsw.Connection]:
    """Open the database read-only, and so that SQLite does not write the index that WAL mode needs beside it."""
    log, index = _beside(path, "-wal").exists(), _beside(path, "-shm").exists()
    with path.open("rb") as file:
        merged = file.read(19)[18:] == bytes((_WAL_MODE,)) and not log
    if log and not index:  # nobody is writing, and SQLite needs an index to read the log: read a copy
        with tempfile.TemporaryDirectory(prefix="warmstart-") as folder:
            copy = Path(folder) / path.name
            shutil.copyfile(path, copy)
            shutil.copyfile(_beside(path, "-wal"), _beside(copy, "-wal"))
            with closing(_open(copy, "mode=ro")) as database:
                yield database
        return
    with closing(_open(path, "immutable=1" if merged else "mode=ro&readonly_shm=1")) as database:
        yield database


def _open(path: Path, how: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    database = apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
    database.set_busy_timeout(_PATIENCE)
    database.limit(apsw.SQLITE_LIMIT_LENGTH, _MAX_TEXT)
    database.execute("PRAGMA writable_schema = ON")  # writes nothing, but lets a file without its end be opened
    return database


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def list_columns(database: apsw.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns; none where there is no such table."""
    return frozenset(str(name) for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,)))
