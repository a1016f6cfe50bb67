"""The store in PostgreSQL, for teams: one schema of a server's database. Needs psycopg 3.

- Writers of all machines take turns through one advisory lock; readers never wait for them.
- Durability: when `with writing()` returns, the server has written its changes to disk (synchronous_commit).
- A server that hangs or restarts costs a bounded wait and a StoreUnreachable; see postgres_connection.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from warmstart.errors import StoreDenied, StoreError
from warmstart.store.postgres_address import PostgresServer, Waits, read_server
from warmstart.store.postgres_connection import PostgresConnection, PostgresKind
from warmstart.store.postgres_dialect import list_words, make_adapters, match_words, translate
from warmstart.store.protocol import SECONDS, Store
from warmstart.store.rows import CallRow, Change, SessionRow
from warmstart.store.sqlite import HERE, MIGRATIONS, QUERIES
from warmstart.store.sqlite_file import Migration, load_queries

SCHEMA = "warmstart"
FIRST = 16  # PostgreSQL's first migration makes the schema of SQLite's sixteenth
WRITE_LOCK = 0x57524D53  # id of the advisory lock that writers take
_LONGEST_THOUGHT = 50.0  # seconds between two statements of one change
_SHORTEST_ANSWER = 5.0  # seconds
_FOREIGN = "row-level security"  # in the error about a row of somebody else
_SKIPPED = frozenset(("put_note",))  # where somebody else has the row under the same key, hers stays


class _Statements(Mapping[str, str]):
    """The named statements, each translated when it is first used: a hook uses a dozen of 200, and an agent waits for it."""

    def __init__(self, queries: Mapping[str, str]) -> None:
        self._queries = queries
        self._translated: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        if name not in self._translated:
            self._translated[name] = translate(self._queries[name])
        return self._translated[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)


STATEMENTS = _Statements(QUERIES | load_queries(HERE / "queries_postgres.sql"))


def load_migrations() -> list[Migration]:
    """Return PostgreSQL's migrations, which have SQLite's names and numbers."""
    folder = HERE / "migrations_postgres"
    named = [*enumerate(MIGRATIONS, 1)][FIRST - 1 :]
    return [Migration(number, name, (folder / f"{name}.sql").read_text("utf-8")) for number, name in named]


def _put_migration(db: psycopg.Connection[Any], migration: Migration) -> None:
    db.execute(STATEMENTS["put_migration"], (migration.number, migration.name))


KIND = PostgresKind(
    schema=SCHEMA,
    lock=WRITE_LOCK,
    migrations=load_migrations(),
    put_migration=_put_migration,
    holds="store of Warmstart",
    upgrade="Run a command of the new Warmstart with the role that owns the store",
    options={"cursor_factory": psycopg.RawCursor, "context": make_adapters()},
)


def open_server(url: str, patience: float) -> PostgresStore:
    """Open a server's store, creating or upgrading its schema."""
    waits = Waits(patience, _LONGEST_THOUGHT, max(_SHORTEST_ANSWER, 2 * patience))
    store = PostgresStore(read_server(url, "warmstart"), waits)
    try:
        store.migrate()
    except BaseException:
        store.close()
        raise
    return store


class PostgresStore(PostgresConnection, Store):
    """The store of protocol.py, where most of its methods are described."""

    def __init__(self, server: PostgresServer, waits: Waits) -> None:
        super().__init__(server, KIND, waits)

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        if query in _SKIPPED and self._inside:
            try:
                with self.part():
                    self._ask(STATEMENTS[query], values)
            except StoreDenied as error:
                if _FOREIGN not in str(error):
                    raise
            return
        with self._asking():
            self._first(STATEMENTS[query], values)

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        if not rows:
            return
        with self._asking():
            self._ask_many(STATEMENTS[query], rows)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            return self._first(STATEMENTS[query], values).fetchall()

    def _put_session(self, row: SessionRow) -> Change:
        """Store the facts of a session; the same one of somebody else stays hers."""
        try:
            with self.part():
                return super()._put_session(row)
        except StoreDenied as error:
            if _FOREIGN not in str(error):
                raise
            return "foreign"

    def find_owner(self, key: str) -> str:
        owners = self.rows("session_owner", (key,))
        return str(owners[0][0]) if owners else ""

    @contextmanager
    def writing(self) -> Iterator[None]:
        with self._asking(), self.part() if self._inside else super().writing():
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"):
            yield

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            return self._first(translate(sql), values or None).fetchall()

    def is_limited(self) -> bool:
        return bool(self.ask("SELECT row_security_active('sessions')")[0][0])

    def put_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        marks = ", ".join(f"${number}" for number in range(1, len(columns) + 1))
        with self.part():
            self._ask_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)

    def renumber(self, tables: Sequence[str]) -> None:
        for table in tables:
            sequence = f"pg_get_serial_sequence('{table}', 'id')"
            self.ask(f"SELECT setval({sequence}, max(id)) FROM {table} HAVING max(id) IS NOT NULL")

    def index_words(self, keys: Sequence[str]) -> None:
        for key in keys:
            for texts in self.rows("session_texts", (key,)):
                self._index(key, texts)

    def index_sessions(self, sessions: Sequence[tuple[SessionRow, Sequence[CallRow]]]) -> None:
        for row, calls in sessions:
            self._index(row.key, _list_texts(row, calls))

    def _index(self, key: str, texts: Iterable[str | None]) -> None:
        words = list_words(texts)
        for later in range(SECONDS):
            if self.rows("index_words", (key, later, words)):
                return
        raise StoreError(f"session {key} cannot be indexed: it is not stored, or too many started at the same time")

    def make_match(self, words: Sequence[str]) -> str:
        return match_words(words)

    def erase(self) -> None:
        """Do nothing: the server's own vacuum, write-ahead log and backups decide when deleted bytes are gone."""

    def read_version(self) -> int:
        return int(self.rows("snapshot")[0][0])

    def health(self) -> dict[str, Any]:
        """Return facts for `warmstart doctor`. The server checks the integrity of its files itself."""
        with self._asking():
            version, role, size = self.rows("facts")[0]
            sessions, calls, sources = self.rows("count_rows")[0]
            return {
                "path": self.place,
                "bytes": size,
                "postgres": version,
                "role": role,
                "schema": self.find_schema(),
                "integrity": "ok",
                "sessions": sessions,
                "calls": calls,
                "sources": sources,
            }


def _list_texts(row: SessionRow, calls: Sequence[CallRow]) -> Iterator[str | None]:
    """Yield the texts of a session whose words are searched, as `session_texts` reads them from the database."""
    yield row.task
    for call in calls:
        yield call.tool
        yield re.sub(r"\\[ntr]", " ", call.arguments[:1000])
        yield call.intent and call.intent[:400]
        if call.status not in ("ok", "unknown"):
            yield from (call.error_kind, call.cause, call.findings, call.words)
