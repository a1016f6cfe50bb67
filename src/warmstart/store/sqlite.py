"""The store in one SQLite file.

- Processes: each opens its own store. Writers take turns; readers never wait for them (WAL).
- Threads: a store can be shared; its calls take turns under a lock. To read in parallel, open one store per thread.
- Forks: open the store after forking.
- Durability: when `with writing()` returns, its changes are on the disk (synchronous=FULL).
"""

from __future__ import annotations

import re
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
)

_SECONDS = 1_000  # in which a session's number in the index of words is looked for, 4096 each

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


_SHORT = 16  # characters of a shortened id
_PLAIN_ID = re.compile(r"[\w.:-]+")


class SqliteStore(SqliteFile):
    """The store. `open_store` opens one. Use it as a context manager, or close() it."""

    def __init__(self, path: Path, *, patience: float = 60.0) -> None:
        super().__init__(path, KIND, patience)

    def run(self, query: str, values: Sequence[Any] = ()) -> apsw.Cursor:
        """Execute a named query."""
        try:
            return self._db.execute(QUERIES[query], values)
        except UnicodeEncodeError:  # half a surrogate pair, from a transcript cut in the middle of a character
            mended = [v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values]
            return self._db.execute(QUERIES[query], mended)

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a named query once per row."""
        try:
            with self.part():
                self._db.executemany(QUERIES[query], rows)
        except UnicodeEncodeError:  # in some row: run them one by one, and mend that row
            for row in rows:
                self.run(query, row)

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return all rows of a named query."""
        with self._asking():
            return self._fetch(self.run(query, values))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a transaction: all of it is on the disk when this returns, or none of it after an error.

        Inside another transaction it is a savepoint: an error undoes this part, and all of it unless it is caught.
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
            time.sleep(min(0.003, held / 20))  # otherwise the next transaction would overtake those that wait

    def put_session(self, row: SessionRow, calls: Sequence[CallRow], spent: Sequence[SpentRow] = ()) -> Change:
        """Store a session. The same content changes nothing; an older, shorter copy never replaces a longer one."""
        if any(call.session_key != row.key for call in calls) or any(part.session_key != row.key for part in spent):
            raise ValueError("a call or usage belongs to another session")
        with self.writing():
            if self.is_forgotten(row.key):
                return "forgotten"
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
                self.run("forget_words", (row.key,))
            self.run("put_session", row.to_columns())
            self.run_many("put_call", [call.to_columns() for call in calls])
            self.run_many("put_spent", [part.to_columns() for part in spent])
            self.index_words([row.key])
            ((has_trials, has_occurrences),) = self.rows("has_marked")
            if has_trials:
                self.run("mark_unmeasured", (row.key,))
            if has_occurrences:
                self.run("mark_unread", (row.id, row.parent))
        return "updated" if known else "new"

    def index_words(self, keys: Sequence[str]) -> None:
        """Make the words of sessions searchable that are not in the index, in a transaction that the caller has begun."""
        for key in keys:
            self.run("index_words", (self._number_session(key), key))

    def _number_session(self, key: str) -> int:
        """Return the session's new number in the index of words, which follows the time at which it started."""
        for later in range(_SECONDS):
            if numbered := self.run("number_session", (key, later)).fetchall():
                number = numbered[0][0]
                assert isinstance(number, int)
                return number
        raise StoreError(f"session {key} cannot be numbered: it is not stored, or too many started at the same time")

    def forget_session(self, key: str, at: float) -> None:
        """Delete a session, its calls, usage and proposals, and refuse it when its transcript is read again.

        Call `erase` afterwards to remove its bytes from the files.
        """
        with self.writing():
            deleted = self.run("delete_session", (key,)).fetchall()
            if not deleted:
                raise NotFound(f"no session {key}")
            own_id, agent, source_uri, parent = deleted[0]
            self.run("mark_unread", (own_id, parent))
            self.run("forget_settled_folders")  # the session was evidence about its folder
            self.run("delete_session_place", (own_id, agent))
            self.run("delete_live", (own_id, agent))
            self.run("delete_live_counters", (own_id, agent))
            for mark in ("#", "!/"):  # a session's place, a member of an archive
                self.run("delete_source", (str(source_uri).partition(mark)[0],))  # the next ingest reads it and says so
            self.run("delete_proposals_of", (key,))
            self.run("delete_reviewed", (key,))
            self.run("forget_session", (key, at))

    def is_forgotten(self, key: str) -> bool:
        """Return whether a person deleted this session."""
        return bool(self.rows("is_forgotten", (key,))[0][0])

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

    def put_source(self, row: SourceRow) -> None:
        """Store how a source looked when it was read."""
        with self.writing():
            self.run("put_source", row.to_columns())

    def source(self, uri: str) -> SourceRow | None:
        """Return how a source looked when it was read; None if it never was."""
        rows = self.rows("source", (uri,))
        return SourceRow.from_columns(rows[0]) if rows else None

    def sources(self) -> list[SourceRow]:
        """Return every source that was read."""
        return [SourceRow.from_columns(row) for row in self.rows("sources")]

    def find_session(self, name: str) -> SessionRow:
        """Return a session by its key or the agent's id, or by a unique prefix of either."""
        rows = self.rows("session_by_key", (name,))
        if not rows and name:
            matches = self._find_matches(name)
            if len(matches) > 1:
                listed = ", ".join(f"{key[:12]} ({agent} {own_id})" for key, own_id, agent in matches[:5])
                raise Refused(f"{name} matches several sessions: {listed}{', ...' if len(matches) > 5 else ''}")
            rows = self.rows("session_by_key", (matches[0][0],)) if matches else []
        if not rows:
            is_empty = self.rows("count_rows")[0][0] == 0
            raise NotFound(
                f"no session {name!r}: none is stored yet; run: warmstart ingest"
                if is_empty
                else f"no session {name!r}; see: warmstart sessions list"
            )
        return SessionRow.from_columns(rows[0])

    def shorten_id(self, row: SessionRow) -> str:
        """Return a short beginning of a session's id, or of its key, that names no other session."""
        own = {row.id[:8], row.id[:12], row.id} if _PLAIN_ID.fullmatch(row.id) else ()
        for name in (*sorted(name for name in own if len(name) <= _SHORT), row.key[:8], row.key[:12]):
            if [key for key, _id, _agent in self._find_matches(name)] == [row.key]:
                return name
        return row.key

    def _find_matches(self, name: str) -> list[Any]:
        return self.rows("keys_by_id", (name,)) or self.rows("keys_by_prefix", (name,))

    def list_sessions(
        self,
        limit: int | None = 50,
        offset: int = 0,
        *,
        agent: str | None = None,
        verdict: Verdict | None = None,
        project: str | None = None,
        since: float | None = None,
        source: str | None = None,
    ) -> list[SessionRow]:
        """Return sessions, newest first; those without a start time come last."""
        wanted = (agent, verdict, project, since, source, -1 if limit is None else limit, offset)
        return [SessionRow.from_columns(row) for row in self.rows("list_sessions", wanted)]

    def calls_of(self, key: str) -> list[CallRow]:
        """Return the calls of a session, in order."""
        return [CallRow.from_columns(row) for row in self.rows("calls_of", (key,))]

    def read_version(self) -> int:
        """Return a number that differs after every change that another connection has made."""
        with self._asking():
            return int(self._db.pragma("data_version"))

    def health(self) -> dict[str, Any]:
        """Return facts for `warmstart doctor`. Reads the whole file to check its integrity."""
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
