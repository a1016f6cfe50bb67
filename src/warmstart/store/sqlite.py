"""The store in one SQLite file.

Safe to share. Processes: each opens its own store; writers take turns, readers never wait for them (WAL). Threads:
one store may be shared, its calls take turns under a lock; who wants to read in parallel opens a store a thread.
Forks: open after forking. What a returned `with writing()` held is on the disk (synchronous=FULL).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from warmstart.errors import NotFound, Refused, StoreError
from warmstart.model import Verdict
from warmstart.store.rows import CallRow, Change, SessionRow, SourceRow, SpentRow
from warmstart.store.sqlite_file import Kind, SqliteFile, load_migrations, load_queries

HERE = Path(__file__).parent  # read as files: importlib.resources alone costs 10 ms of every start
QUERIES = load_queries(HERE / "queries.sql")

# Append only, never edit: what is recorded in someone's file does not run again.
MIGRATIONS = ("0001_sessions", "0002_templates", "0003_effect", "0004_review", "0005_paired", "0006_forgotten")

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
    when_damaged="Move it away and ingest again; transcripts are untouched",
)


class SqliteStore(SqliteFile):
    """See the module. `open_store` makes one; use it in a `with`, or close it."""

    def __init__(self, path: Path, *, patience: float = 60.0) -> None:
        super().__init__(path, KIND, patience)

    def run(self, query: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        try:
            return self._db.execute(QUERIES[query], values)
        except UnicodeEncodeError:  # half a surrogate pair, from a transcript cut in the middle of a character
            whole = [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values]
            return self._db.execute(QUERIES[query], whole)

    def run_many(self, query: str, values: Sequence[Sequence[Any]]) -> None:
        try:
            with self.part():
                self._db.executemany(QUERIES[query], values)
        except UnicodeEncodeError:  # somewhere among them: one by one, each mended where needed
            for one in values:
                self.run(query, one)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._asking():
            return self._fetch(self.run(query, values))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: all of it is on the disk when this returns, or nothing of it after an error.

        Inside another one it is a part of that: an error undoes the part, and the whole if it is not caught.
        """
        with self._asking():
            if self._inside:
                with self.part():
                    yield
                return
            with super().writing():
                began = time.monotonic()
                yield
        if (held := time.monotonic() - began) > 0.02:
            time.sleep(min(0.003, held / 20))  # back at once it would find the store free before those who wait ask

    def put_session(self, row: SessionRow, calls: Sequence[CallRow], spent: Sequence[SpentRow] = ()) -> Change:
        """Remember a session. The same content again changes nothing; an older, shorter copy never wins."""
        if any(call.session_key != row.key for call in calls) or any(part.session_key != row.key for part in spent):
            raise ValueError("calls of another session")
        with self.writing():
            if self.is_forgotten(row.key):
                return "same"
            known = self.rows("known_session", (row.key,))
            if known:
                digest, source_uri, length = known[0]
                moved = source_uri != row.source_uri
                if digest == row.digest and moved:
                    self.run("move_session", (row.source_uri, row.key))
                if digest == row.digest or (moved and row.length < length):
                    return "same"
                self.run("delete_calls", (row.key,))
                self.run("delete_spent", (row.key,))
            self.run("put_session", row.to_columns())
            self.run_many("put_call", [call.to_columns() for call in calls])
            self.run_many("put_spent", [part.to_columns() for part in spent])
        return "updated" if known else "new"

    def delete_session(self, key: str) -> None:
        """Forget a session, its calls and what it cost. `erase` afterwards takes the last bytes out of the files."""
        with self.writing():
            forgotten = self.run("delete_session", (key,)).fetchall()
            if not forgotten:
                raise NotFound(f"no session {key}")
            self.run("delete_live", forgotten[0])

    def forget_session(self, key: str, at: float) -> None:
        """Delete a session, what reviews proposed from it, and refuse it when its transcript is read again."""
        with self.writing():
            self.delete_session(key)
            self.run("delete_proposals_of", (key,))
            self.run("delete_reviewed", (key,))
            self.run("forget_session", (key, at))

    def is_forgotten(self, key: str) -> bool:
        """Return whether a person deleted this session."""
        return bool(self.rows("is_forgotten", (key,))[0][0])

    def erase(self) -> None:
        """Rewrite the database without what was deleted, and empty the WAL, where older pages live on."""
        with self._asking():
            self._db.execute("VACUUM")
            blocked, _, _ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        if blocked:
            raise StoreError(f"{self.path}: another process is reading; deleted, but its bytes stay until erased again")

    def put_source(self, row: SourceRow) -> None:
        """Remember how a source looked when it was read."""
        with self.writing():
            self.run("put_source", row.to_columns())

    def sources(self) -> list[SourceRow]:
        return [SourceRow.from_columns(row) for row in self.rows("sources")]

    def find_session(self, name: str) -> SessionRow:
        """By key or the agent's id, or by the beginning of either while it fits only one."""
        found = self.rows("session_by_key", (name,))
        if not found and name:
            fitting = self.rows("keys_by_id", (name,)) or self.rows("keys_by_prefix", (name,))
            if len(fitting) > 1:
                few = ", ".join(f"{key[:12]} ({agent} {own_id})" for key, own_id, agent in fitting[:5])
                raise Refused(f"{name} fits several sessions: {few}{', ...' if len(fitting) > 5 else ''}")
            found = self.rows("session_by_key", (fitting[0][0],)) if fitting else []
        if not found:
            raise NotFound(f"no session {name}")
        return SessionRow.from_columns(found[0])

    def list_sessions(
        self,
        limit: int | None = 50,
        offset: int = 0,
        *,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
    ) -> list[SessionRow]:
        """The latest first; those that do not say when they started come last."""
        wanted = (agent, verdict, project, since, -1 if limit is None else limit, offset)
        return [SessionRow.from_columns(row) for row in self.rows("list_sessions", wanted)]

    def calls_of(self, key: str) -> list[CallRow]:
        return [CallRow.from_columns(row) for row in self.rows("calls_of", (key,))]

    def health(self) -> dict[str, Any]:
        """For `doctor`. Reads the whole file to see that it is sound."""
        with self._asking():
            try:
                integrity = "; ".join(line for (line,) in self._db.execute("PRAGMA quick_check"))
                sessions, calls, sources = self.run("count_rows").fetchall()[0]
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
