"""The store in one SQLite file.

- Processes: each opens its own store. Writers take turns; readers never wait for them (WAL).
- Threads: a store can be shared; its calls take turns under a lock. To read in parallel, open one store per thread.
- Forks: open the store after forking.
- Durability: when `with writing()` returns, its changes are on the disk (synchronous=FULL).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from warmstart.errors import StoreError
from warmstart.store.protocol import Store
from warmstart.store.sqlite_file import Kind, SqliteFile, load_migrations, load_queries

HERE = Path(__file__).parent  # read as files: importing importlib.resources costs 10 ms at every start
QUERIES = load_queries(HERE / "queries.sql")

# Append only, never edit: a migration recorded in a user's file does not run again.
MIGRATIONS = (
    "0001_sessions",
    "0002_templates",
    "0003_effect",
    "0004_review",
    "0005_paired",
    "0006_forgotten",
    "0007_what_happened",
    "0008_notes",
    "0009_trials",
    "0010_occurrences",
    "0011_incremental",
    "0012_exchanges",
    "0013_places",
    "0014_source",
    "0015_search",
    "0016_search_by_time",
    "0017_merged",
)

SETTINGS = """
PRAGMA synchronous = FULL;
PRAGMA foreign_keys = ON;
PRAGMA secure_delete = ON;
PRAGMA cache_size = -16000;
"""

KIND = Kind(
    application_id=0x57524D53,  # "WRMS"
    schema=len(MIGRATIONS),
    load_migrations=lambda: load_migrations(HERE / "migrations", MIGRATIONS),
    put_migration=QUERIES["put_migration"],
    settings=SETTINGS,
    when_damaged="Move it away and ingest again; your transcripts are untouched",
)


class SqliteStore(SqliteFile, Store):
    """The store of protocol.py, where most of its methods are described."""

    def __init__(self, path: Path, *, patience: float = 60.0) -> None:
        self._file = _identify(path)  # first: a file that takes its place meanwhile is noticed
        super().__init__(path, KIND, patience)
        self.place = str(path)

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        self._execute(query, values)

    def _execute(self, query: str, values: Sequence[Any]) -> apsw.Cursor:
        try:
            return self._db.execute(QUERIES[query], values)
        except UnicodeEncodeError:  # half a surrogate pair, from a transcript cut in the middle of a character
            mended = [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values]
            return self._db.execute(QUERIES[query], mended)

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            with self.part():
                self._db.executemany(QUERIES[query], rows)
        except UnicodeEncodeError:  # in some row: run them one by one, and mend that row
            for row in rows:
                self.run(query, row)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            return self._fetch(self._execute(query, values))

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._asking():
            if self._inside:
                with self.part():
                    yield
                return
            with super().writing():
                began = time.monotonic()
                yield
        if (held := time.monotonic() - began) > 0.02:
            time.sleep(min(0.003, held / 20))  # otherwise the next transaction would overtake those that wait

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            yield

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            return self._fetch(self._db.execute(sql, values))

    def is_limited(self) -> bool:
        return False

    def put_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        with self.part():
            self._db.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def renumber(self, tables: Sequence[str]) -> None:
        """Do nothing: SQLite counts on from the largest id by itself."""

    def index_words(self, keys: Sequence[str]) -> None:
        numbers = [self.number_session(key) for key in keys]
        self.run("index_words", (json.dumps(numbers),))

    def make_match(self, words: Sequence[str]) -> str:
        return make_match(words)

    def erase(self) -> None:
        """Rewrite the database without deleted content, and empty the WAL, which holds older pages."""
        with self._asking():
            self.run("drop_deleted_words")
            self._db.execute("VACUUM")
            blocked, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if blocked:
            raise StoreError(
                f"{self.path}: deleted, but another process is reading, so the bytes stay in the file until the next delete"
            )

    def read_version(self) -> int:
        with self._asking():
            return int(self._db.pragma("data_version"))

    def is_current(self) -> bool:
        if self._file is None or _identify(self.path) != self._file:
            return False
        try:
            with self._asking():
                return bool(self._db.pragma("user_version") == KIND.schema)
        except StoreError:
            return False

    def health(self) -> dict[str, Any]:
        """Return facts for `warmstart doctor`. Reads the whole file to check its integrity."""
        with self._asking():
            try:
                integrity = "; ".join(line for (line,) in self._db.execute("PRAGMA quick_check"))
                sessions, calls, sources = self._execute("count_rows", ()).fetchall()[0]
            except apsw.CorruptError as error:
                integrity, sessions, calls, sources = str(error), None, None, None
            files = (self.path, Path(f"{self.path}-wal"))
            return {
                "path": str(self.path),
                "bytes": sum(file.stat().st_size for file in files if file.exists()),
                "sqlite": apsw.sqlite_lib_version(),
                "schema": self._db.pragma("user_version"),
                "journal_mode": self._db.pragma("journal_mode"),
                "integrity": integrity,
                "sessions": sessions,
                "calls": calls,
                "sources": sources,
            }


def _identify(path: Path) -> tuple[int, int] | None:
    """Return the device and number of a file; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def make_match(words: Sequence[str]) -> str:
    """Return the query of SQLite's word index for texts with every one of the words; the last may be the beginning of one."""
    return " ".join(f'"{word}"' for word in words) + "*"
