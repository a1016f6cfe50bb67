"""The store as its users see it: named statements, transactions, and the sessions with their calls.

`sqlite.SqliteStore` keeps one in a file, `postgres.PostgresStore` in a database server. Both run the statements of
queries.sql and both keep what they acknowledged. Everything that is not the database's own business stands here once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from warmstart.errors import NotFound, Refused, StoreError
from warmstart.model import Verdict
from warmstart.store.rows import CallRow, Change, SessionRow, SourceRow, SpentRow

_ALL = (1 << 63) - 1  # rows: more than there can be
SECONDS = 1_000  # in which a session's number in the index of words is looked for, 4096 each
_SHORT = 16  # characters of a shortened id
_TOGETHER = 5_000  # calls that are written together: a session may have 50,000
_PLAIN_ID = re.compile(r"[\w.:-]+")


class Store(Protocol):
    """An open store. `open_store` opens one. Use it as a context manager, or close() it.

    Threads may share a store; their calls take turns. To read in parallel, open one store per thread, and after a fork
    open it anew.
    """

    place: str  # path or address for messages, without a password

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    # Statements

    def run(self, query: str, values: Sequence[Any] = ()) -> None:
        """Execute a named statement that returns nothing. One that changes something needs `writing` around it."""

    def run_many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a named statement once per row: all of them, or none after an error."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Execute a named statement and return all its rows."""

    def writing(self) -> AbstractContextManager[None]:
        """Run a transaction: all of it is on the disk when this returns, or none of it after an error.

        Only one transaction runs at a time, so that what it has read still holds when it writes. Inside another
        transaction it is a savepoint: an error undoes this part, and all of it unless it is caught.
        """

    def part(self) -> AbstractContextManager[None]:
        """Run a part of a transaction: an error undoes this part only."""

    # Whole tables, for copies of a store

    def reading(self) -> AbstractContextManager[None]:
        """Read what was there at one moment, whatever others write meanwhile."""

    def ask(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Execute a statement that has no name, with `?` for its values, and return its rows."""

    def is_limited(self) -> bool:
        """Return whether the database shows this role only some of the rows."""

    def put_rows(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows as they are, in a transaction that the caller has begun."""

    def renumber(self, tables: Sequence[str]) -> None:
        """Go on counting after the largest `id` of tables into which rows were put with theirs."""

    # Words

    def index_words(self, keys: Sequence[str]) -> None:
        """Make the words of sessions searchable that are not in the index, in a transaction that the caller has begun."""

    def index_sessions(self, sessions: Sequence[tuple[SessionRow, Sequence[CallRow]]]) -> None:
        """Make the words of sessions searchable that were just stored."""
        self.index_words([row.key for row, _calls in sessions])

    def number_session(self, key: str) -> int:
        """Return the session's new number in the index of words, which follows the time at which it started."""
        for later in range(SECONDS):
            if numbered := self.rows("number_session", (key, later)):
                return int(numbered[0][0])
        raise StoreError(f"session {key} cannot be numbered: it is not stored, or too many started at the same time")

    def make_match(self, words: Sequence[str]) -> str:
        """Return the query for sessions with every one of the words; the last may be the beginning of one."""

    # The whole

    def erase(self) -> None:
        """Remove the bytes of deleted content, as far as the database lets us."""

    def read_version(self) -> int:
        """Return a number that differs after every change that another connection has made."""

    def is_current(self) -> bool:
        """Return whether its place still holds the store that was opened, with the schema that it had then."""
        return True

    def health(self) -> dict[str, Any]:
        """Return facts for `warmstart doctor`; `integrity` is "ok" if nothing is wrong."""

    # Sessions

    def put_session(self, row: SessionRow, calls: Sequence[CallRow], spent: Sequence[SpentRow] = ()) -> Change:
        """Store a session. The same content changes nothing; an older, shorter copy never replaces a longer one."""
        return self.put_sessions([(row, calls, spent)])[0]

    def put_sessions(
        self, sessions: Sequence[tuple[SessionRow, Sequence[CallRow], Sequence[SpentRow]]]
    ) -> list[Change]:
        """Store sessions in one transaction, the calls of all together, and index their words last.

        SQLite's index of words writes its words at every savepoint.
        """
        changes: list[Change] = []
        stored: dict[str, tuple[SessionRow, Sequence[CallRow], Sequence[SpentRow]]] = {}  # one may come twice
        with self.writing():
            for row, calls, spent in sessions:
                if any(call.session_key != row.key for call in calls) or any(
                    one.session_key != row.key for one in spent
                ):
                    raise ValueError("a call or usage belongs to another session")
                change = self._put_session(row)
                changes.append(change)
                if change == "new" or change == "updated":
                    stored[row.key] = row, calls, spent
            if stored:
                every = [call for _, calls, _ in stored.values() for call in calls]
                for start in range(0, len(every), _TOGETHER):
                    self.run_many("put_call", [call.to_columns() for call in every[start : start + _TOGETHER]])
                self.run_many("put_spent", [part.to_columns() for _, _, spent in stored.values() for part in spent])
                self.index_sessions([(row, calls) for row, calls, _spent in stored.values()])
                self._mark_changed([row for row, _, _ in stored.values()])
        return changes

    def _put_session(self, row: SessionRow) -> Change:
        """Store the facts of a session without its calls and usage; those of an older copy are deleted."""
        ((digest, source_uri, length, is_forgotten),) = self.rows("known_session", (row.key,))
        if is_forgotten:
            return "forgotten"
        if digest is not None:
            moved = source_uri != row.source_uri
            if digest == row.digest and moved:
                self.run("move_session", (row.source_uri, row.key))
            if digest == row.digest or (moved and row.length < length):
                return "same"
            self.run("delete_calls", (row.key,))
            self.run("delete_spent", (row.key,))
            self.run("forget_words", (row.key,))
        self.run("put_session", row.to_columns())
        return "new" if digest is None else "updated"

    def find_owner(self, key: str) -> str:
        """Return the role that stored a session; empty if it may not be seen, or the database has no roles."""
        return ""

    def _mark_changed(self, rows: Sequence[SessionRow]) -> None:
        """Mark what must be measured or read again because of new or changed sessions, if there is anything."""
        ((has_trials, has_occurrences),) = self.rows("has_marked")
        for row in rows:
            if has_trials:
                self.run("mark_unmeasured", (row.key,))
            if has_occurrences:
                self.run("mark_unread", (row.id, row.parent))

    def forget_session(self, key: str, at: float) -> None:
        """Delete a session, its calls, usage and proposals, and refuse it when its transcript is read again.

        Call `erase` afterwards to remove its bytes from the files.
        """
        with self.writing():
            deleted = self.rows("delete_session", (key,))
            if not deleted:
                raise NotFound(f"no session {key}")
            own_id, agent, source_uri, parent = deleted[0]
            self.run("mark_unread", (own_id, parent))
            self.run("forget_merged", (agent,))  # merged counts hold its messages and paths
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
        wanted = (agent, verdict, project, since, source, _ALL if limit is None else limit, offset)
        return [SessionRow.from_columns(row) for row in self.rows("list_sessions", wanted)]

    def calls_of(self, key: str) -> list[CallRow]:
        """Return the calls of a session, in order."""
        return [CallRow.from_columns(row) for row in self.rows("calls_of", (key,))]

    # Sources

    def put_source(self, row: SourceRow) -> None:
        """Store how a source looked when it was read."""
        self.put_sources([row])

    def put_sources(self, rows: Sequence[SourceRow]) -> None:
        """Store how sources looked when they were read."""
        with self.writing():
            self.run_many("put_source", [row.to_columns() for row in rows])

    def source(self, uri: str) -> SourceRow | None:
        """Return how a source looked when it was read; None if it never was."""
        rows = self.rows("source", (uri,))
        return SourceRow.from_columns(rows[0]) if rows else None

    def sources(self) -> list[SourceRow]:
        """Return every source that was read."""
        return [SourceRow.from_columns(row) for row in self.rows("sources")]
