"""The confirmation daemon's store in PostgreSQL, in a schema of its own. Needs psycopg 3.

Writers of all machines take turns by one advisory lock, as SQLite's do by the file's: the audit is one chain. The anchor
is a file under the home of whoever runs the daemon, away from the database: who administers that cannot reach it.
"""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from warmstart import config
from warmstart.confirm.store import GUARDS, QUERIES, Values
from warmstart.errors import ConfigError, StoreError, StoreFull, StoreTooNew

try:
    import psycopg
except ImportError as error:
    raise ConfigError("PostgreSQL needs psycopg; install it with: pip install 'psycopg[binary]>=3.2'") from error

SCHEMA = "warmstart_confirm"
MIGRATIONS = ("0001_confirm_postgres",)  # append only, never edit
TURNSTILE = 0x57524D43  # the advisory lock that writers take
_QUERIES = {name: re.sub(r":([a-z_]+)", r"%(\1)s", sql) for name, sql in QUERIES.items()}


def open_server(url: str, patience: float) -> PostgresStore:
    parts = urlsplit(url)
    place = f"postgresql://{parts.hostname or ''}{parts.path}"
    mark = hashlib.sha256(f"{parts.hostname}:{parts.port}{parts.path}?{parts.query}".encode()).hexdigest()[:12]
    return PostgresStore(url, place, config.find_homes()[1] / f"confirm-{mark}.anchor", patience)


class PostgresStore:
    """See store.py. A connection that is lost is made anew at the next call."""

    def __init__(self, url: str, place: str, anchor_path: Path, patience: float) -> None:
        self.place = place
        self.anchor_path = anchor_path
        self._url = url
        self._patience = patience
        self._turn = threading.RLock()
        self._closed = False
        self._db: psycopg.Connection[Any] | None = None
        anchor_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with self._asking():
                _migrate(self._connection(), place)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._turn:
            self._closed = True
            self._drop()

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        with self._asking():
            cursor = self._connection().execute(_QUERIES[query], _fit(values or {}))
            return cursor.fetchall() if cursor.description else []

    def row(self, query: str, values: Values | None = None) -> Any:
        found = self.rows(query, values)
        return found[0] if found else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            self._take_turn()
            _check_schema(self._connection(), self.place)  # upgraded since we opened?
            yield
            self._connection().execute("COMMIT")

    @contextmanager
    def part(self) -> Iterator[None]:
        with self._asking():
            db = self._connection()
            db.execute("SAVEPOINT part")
            try:
                yield
            except BaseException:
                if not db.closed:
                    db.execute("ROLLBACK TO SAVEPOINT part")
                raise
            db.execute("RELEASE SAVEPOINT part")

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._transaction("BEGIN"):
            self._take_turn()
            yield

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    def version(self) -> int:
        """Every change has its entry in the audit."""
        found = self.row("head")
        return int(found[0]) if found else 0

    def missing_guards(self) -> list[str]:
        with self._asking():
            cursor = self._connection().execute(
                "SELECT tgname FROM pg_trigger WHERE tgrelid = to_regclass('audit') AND tgenabled <> 'D'"
            )
            return sorted(GUARDS - {name for (name,) in cursor})

    def _take_turn(self) -> None:
        self._connection().execute("SELECT pg_advisory_xact_lock(%s)", (TURNSTILE,))

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[None]:
        """What was not committed inside is undone."""
        with self._asking():
            db = self._connection()
            db.execute(begin)
            try:
                yield
            finally:
                if not db.closed and db.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                    db.execute("ROLLBACK")

    def _connection(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError(f"{self.place}: the store is closed")
        if self._db is None:
            self._db = psycopg.connect(self._url, autocommit=True)
            wait = f"{int(self._patience * 1000)}ms"
            self._db.execute("SELECT set_config('lock_timeout', %s, false)", (wait,))
            self._db.execute(f"SET search_path = {SCHEMA}; SET synchronous_commit = on")
        return self._db

    def _drop(self) -> None:
        if self._db is not None:
            with suppress(psycopg.Error):
                self._db.close()
            self._db = None

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._turn:
            try:
                yield
            except psycopg.errors.DiskFull as error:
                raise StoreFull(f"{self.place}: no space left; nothing of this change was kept") from error
            except psycopg.errors.LockNotAvailable as error:
                raise StoreError(f"{self.place}: others have kept it busy for too long; try again") from error
            except psycopg.OperationalError as error:
                self._drop()
                raise StoreError(f"{self.place}: cannot be reached: {_first_line(error)}") from error
            except psycopg.Error as error:
                raise StoreError(f"{self.place}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _fit(values: Values) -> dict[str, Any]:
    """Truth is a number in our columns, and PostgreSQL's texts hold no NUL: nothing that has one is ever found."""
    return {
        name: int(value)
        if isinstance(value, bool)
        else value.replace("\0", "\ufffd")
        if isinstance(value, str)
        else value
        for name, value in values.items()
    }


def _migrate(db: psycopg.Connection[Any], place: str) -> None:
    """Make or upgrade the schema, whichever of several processes comes first."""
    folder = Path(__file__).parent / "migrations"
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (TURNSTILE,))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        done = _check_schema(db, place)
        for number, name in enumerate(MIGRATIONS[done:], done + 1):
            db.execute((folder / f"{name}.sql").read_text("utf-8"))
            db.execute(_QUERIES["put_migration"], {"number": number, "name": name, "applied": int(time.time() * 1000)})


def _check_schema(db: psycopg.Connection[Any], place: str) -> int:
    """How many migrations there were; 0 for a new schema."""
    if db.execute("SELECT to_regclass('migrations')").fetchone() == (None,):
        return 0
    found = db.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    number = int(found[0]) if found else 0
    if number > len(MIGRATIONS):
        raise StoreTooNew(
            f"{place}: written by a newer Warmstart (schema {number}, this one knows {len(MIGRATIONS)}); "
            "it was left untouched. Upgrade Warmstart"
        )
    return number
