"""Copy a store into an empty one: a file or a server, either way. All of it arrives, verified, or nothing.

The copy is one transaction of the target: every table is read back and compared, by count and digest, before it is
committed. A copy that was killed leaves an empty target, and can be run again; one that was complete is recognised.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec
from msgspec import Struct

from warmstart.digests import blake2b
from warmstart.errors import Refused, StoreError
from warmstart.ports import Progress
from warmstart.scopes import SHARED
from warmstart.store.protocol import Store
from warmstart.store.sqlite import KIND, SqliteStore
from warmstart.store.sqlite_file import migrate
from warmstart.store.words import SessionWords

_BATCH = 500  # rows
_DERIVED = ("migrations", "merged_digests", "worded_sessions", "session_words")  # made anew, or the target's own
_FIRST = ("sessions", "templates", "examples", "postings", "notes", "trials")  # others are chosen by these
_NUMBERED = ("examples", "decisions", "note_decisions")  # tables whose ids the database counts
_encode = msgspec.json.Encoder().encode

Row = Sequence[Any]


class CopiedTable(Struct, frozen=True):
    """One table after a copy."""

    name: str
    rows: int
    digest: str


class CopiedStore(Struct, frozen=True, kw_only=True):
    """The result of a copy."""

    source: str
    target: str
    tables: tuple[CopiedTable, ...]
    left_out: int  # rows of other projects and of personal scopes
    changed_texts: int  # texts with NUL, which PostgreSQL cannot hold
    already_there: bool = False  # an earlier copy was complete
    limited: bool = False  # row-level security hides a part of the source from this role


class _Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


class CopyChoice:
    """Which rows are copied. It sees the tables in the order of `list_tables`, so that rows follow their sessions."""

    def __init__(self, projects: Collection[str] | None = None, *, personal: bool = True) -> None:
        """`projects`: only these; None: all. `personal`: also scopes of agents' profiles, users and chats."""
        self._projects = None if projects is None else frozenset(projects)
        self._personal = personal
        self._seen: dict[str, set[Any]] = {
            name: set() for name in ("keys", "ids", "files", "names", "versions", "examples", "notes", "trials")
        }

    @property
    def is_whole(self) -> bool:
        """Whether everything is copied."""
        return self._projects is None and self._personal

    def admits(self, table: str, row: dict[str, Any]) -> bool:
        """Return whether a row is copied."""
        if self.is_whole:
            return True
        seen = self._seen
        match table:
            case "sessions":
                if not self._is_chosen(row["project"] or "", row["scope"]):
                    return False
                seen["keys"].add(row["key"])
                seen["ids"].add(row["id"])
                seen["files"].add(str(row["source_uri"]).partition("#")[0].partition("!/")[0])
            case "templates":
                if not self._is_chosen(row["project"], row["scope"], general=True):
                    return False
                seen["names"].add(row["name"])
                seen["versions"].add((row["name"], row["version"]))
            case "notes":
                if not self._is_chosen(row["project"], row["scope"], general=True):
                    return False
                seen["notes"].add(row["id"])
            case "trials":
                task = _read_object(row["task"])
                if not self._is_chosen(str(task.get("project") or ""), str(task.get("scope") or "")):
                    return False
                seen["trials"].add(row["session"])
            case "examples":
                if (row["name"], row["version"]) not in seen["versions"]:
                    return False
                seen["examples"].add(row["id"])
            case _:
                return self._follows(table, row)
        return True

    def _is_chosen(self, project: str, scope: str, *, general: bool = False) -> bool:
        if not self._personal and scope not in ("", SHARED):
            return False
        return self._projects is None or project in self._projects or (general and not project)

    def _follows(self, table: str, row: dict[str, Any]) -> bool:
        """Return whether what a row belongs to is copied."""
        seen = self._seen
        match table:
            case "calls" | "spent" | "digests" | "unmeasured" | "reviews" | "proposals":
                return row["session_key"] in seen["keys"]
            case "seeds":
                return row["session"] in seen["trials"]
            case "live_spent" | "live_counters" | "usage_events" | "session_places":
                return row["session"] in seen["ids"] or row["session"] in seen["trials"]
            case "postings":
                return row["example"] in seen["examples"]
            case "decisions":
                return row["name"] in seen["names"] or str(row["name"]).removeprefix("session:") in seen["keys"]
            case "note_decisions" | "showings" | "occurrences":
                return row["note"] in seen["notes"]
            case "sources":
                return row["uri"] in seen["files"]
            case "project_names" | "settled_folders":
                return self._projects is None or row["project"] in self._projects
            case _:
                return True


class _Digest:
    """Count and digest of rows, whatever their order."""

    def __init__(self) -> None:
        self.count = 0
        self._sum = 0

    def add(self, row: Row) -> None:
        self.count += 1
        self._sum += int.from_bytes(blake2b(_encode(list(row)), digest_size=16).digest())

    @property
    def value(self) -> str:
        return f"{self._sum % (1 << 128):032x}"


class StoreCopy:
    """Copies one store into another."""

    def __init__(self, source: Store, target: Store, choice: CopyChoice | None = None) -> None:
        if source.place == target.place:
            raise Refused(f"{source.place} cannot be copied into itself")
        self._source = source
        self._target = target
        self._choice = choice or CopyChoice()
        self._tables = list_tables()
        self._left_out = self._changed = 0
        self._shelves: Counter[tuple[str, str]] = Counter()  # how many chosen examples hold a word, by shelf
        self._shelved: set[tuple[str, int]] = set()
        self._can_hold_nul = isinstance(target, SqliteStore)

    def run(self, progress: Progress | None = None) -> CopiedStore:
        """Copy everything that was chosen. Raises Refused if the target holds something else, or may do so unseen."""
        if self._target.is_limited():
            raise Refused(
                f"{self._target.place}: your role sees only a part of this store (row-level security), so nobody knows "
                "whether it is empty; it was left untouched. Copy with the role that owns it"
            )
        with self._source.reading():
            total = sum(self._count(self._source, table) for table in self._tables)
            with self._target.writing():
                is_empty = not any(self._count(self._target, table) for table in self._tables)
                sent = self._send(total, progress, write=is_empty)
                found = [self._read_back(table) for table in self._tables]
                if sent != found:
                    self._explain(sent, found, is_empty=is_empty)
                if is_empty:
                    self._target.renumber(_NUMBERED)
        SessionWords(self._target).complete(progress)
        return CopiedStore(
            source=self._source.place,
            target=self._target.place,
            tables=tuple(sent),
            left_out=self._left_out,
            changed_texts=self._changed,
            already_there=not is_empty,
            limited=self._source.is_limited(),
        )

    def _explain(self, sent: list[CopiedTable], found: list[CopiedTable], *, is_empty: bool) -> None:
        differing = next(pair for pair in zip(sent, found, strict=True) if pair[0] != pair[1])
        if is_empty:
            raise StoreError(
                f"{self._target.place}: table {differing[0].name} does not read back as it was written "
                f"({differing[1].rows} of {differing[0].rows} rows); nothing was kept"
            )
        raise Refused(
            f"{self._target.place} holds another store's data (table {differing[0].name}); it was left untouched. "
            "Copy into an empty store"
        )

    def _send(self, total: int, progress: Progress | None, *, write: bool) -> list[CopiedTable]:
        """Write the chosen rows and return what was written. Without `write`, only count them."""
        sent = []
        done = 0
        for table in self._tables:
            digest = _Digest()
            for batch in self._read(self._source, table):
                if progress:
                    progress(done, total, table.name)
                done += len(batch)
                chosen = self._choose(table, batch)
                for row in chosen:
                    digest.add(row)
                if write and chosen:
                    self._target.put_rows(table.name, table.columns, chosen)
            sent.append(CopiedTable(table.name, digest.count, digest.value))
        return sent

    def _choose(self, table: _Table, batch: list[Row]) -> list[Row]:
        if table.name == "terms" and not self._choice.is_whole:
            batch = self._recount(table, batch)
        chosen = []
        for row in batch:
            facts = dict(zip(table.columns, row, strict=True))
            if not self._choice.admits(table.name, facts):
                self._left_out += 1
                continue
            if table.name == "postings":
                self._shelve(facts)
            chosen.append(self._mend(row))
        return chosen

    def _shelve(self, posting: dict[str, Any]) -> None:
        shelf, example = posting["scope"], posting["example"]
        self._shelves[shelf, posting["term"]] += 1
        if (shelf, example) not in self._shelved:
            self._shelved.add((shelf, example))
            self._shelves[shelf, ""] += 1

    def _recount(self, table: _Table, batch: list[Row]) -> list[Row]:
        """Return the counts of words as the chosen examples have them."""
        at = {name: place for place, name in enumerate(table.columns)}
        counted: list[Row] = []
        for row in batch:
            count = self._shelves[row[at["scope"]], row[at["term"]]]
            changed = list(row)
            changed[next(place for name, place in at.items() if name not in ("scope", "term"))] = count
            if count:
                counted.append(tuple(changed))
            else:
                self._left_out += 1
        return counted

    def _mend(self, row: Row) -> Row:
        if self._can_hold_nul or not any(isinstance(value, str) and "\0" in value for value in row):
            return row
        self._changed += 1
        return tuple(value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in row)

    def _read_back(self, table: _Table) -> CopiedTable:
        digest = _Digest()
        for batch in self._read(self._target, table):
            for row in batch:
                digest.add(row)
        return CopiedTable(table.name, digest.count, digest.value)

    @staticmethod
    def _count(store: Store, table: _Table) -> int:
        ((count,),) = store.ask(f"SELECT count(*) FROM {table.name}")
        return int(count)

    @staticmethod
    def _read(store: Store, table: _Table) -> Iterator[list[Row]]:
        """Yield the rows of a table in batches, in the order of its key."""
        columns, key = ", ".join(table.columns), ", ".join(table.key)
        places = [table.columns.index(name) for name in table.key]
        marks = ", ".join("?" * len(places))
        after: list[Any] | None = None
        while True:
            where = f"WHERE ({key}) > ({marks}) " if after is not None else ""
            sql = f"SELECT {columns} FROM {table.name} {where}ORDER BY {key} LIMIT {_BATCH}"
            rows = store.ask(sql, after or ())
            if rows:
                yield rows
            if len(rows) < _BATCH:
                return
            after = [rows[-1][place] for place in places]


def _read_object(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def list_tables() -> list[_Table]:
    """Return the tables of the newest schema, in an order in which no row precedes one that it belongs to."""
    db = apsw.Connection(":memory:")
    try:
        migrate(db, KIND, KIND.load_migrations())
        names = [
            name
            for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
            if not name.startswith(("sqlite_", "session_words")) and name not in _DERIVED
        ]
        parents = {name: {row[2] for row in db.execute(f"PRAGMA foreign_key_list({name})")} for name in names}
        return [_describe(db, name) for name in _sort(names, parents)]
    finally:
        db.close()


def _describe(db: apsw.Connection, name: str) -> _Table:
    facts: list[Any] = db.execute(f"PRAGMA table_info({name})").fetchall()
    columns = tuple(str(row[1]) for row in facts)
    key = tuple(str(row[1]) for row in sorted((row for row in facts if row[5]), key=lambda row: int(row[5])))
    return _Table(name, columns, key or columns[:1])


def _sort(names: Iterable[str], parents: dict[str, set[str]]) -> list[str]:
    waiting = sorted(names, key=lambda name: (name not in _FIRST, _FIRST.index(name) if name in _FIRST else 0))
    ordered: list[str] = []
    while waiting:
        ready = next(name for name in waiting if parents[name] - {name} <= {*ordered})
        ordered.append(ready)
        waiting.remove(ready)
    return ordered
