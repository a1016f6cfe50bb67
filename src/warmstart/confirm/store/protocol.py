"""The confirmation database: a SQLite file, or PostgreSQL for teams, with the same statements.

When `with writing()` returns, its changes are on disk. A store may be shared by threads, which take turns under a lock.
Statements are named in queries.sql and bound by name; schemas and triggers differ per database.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from warmstart.errors import StoreError
from warmstart.store.sqlite_file import Migration, load_migrations, load_queries

Values = Mapping[str, Any]
HERE = Path(__file__).parent
MIGRATIONS_FOLDER = HERE / "migrations"
QUERIES = load_queries(HERE / "queries.sql") | load_queries(HERE / "queries_devices.sql")
_FOR_POSTGRES = "_postgres"


def find_migrations(folder: Path = MIGRATIONS_FOLDER, *, postgres: bool = False) -> list[Migration]:
    """Return the migrations of a folder: `0002_name.sql` for SQLite, `0002_name_postgres.sql` beside it. Append only, never
    edit: a migration that a database has had does not run again."""
    names = sorted(path.stem for path in folder.glob("[0-9]*.sql"))
    wanted = [name for name in names if name.endswith(_FOR_POSTGRES) == postgres]
    migrations = load_migrations(folder, wanted)
    for migration in migrations:
        if int(migration.name[:4]) != migration.number:
            raise StoreError(f"{folder}: migration {migration.number:04} is missing before {migration.name}")
    return migrations


@dataclass(frozen=True)
class ServerAddress:
    """A PostgreSQL server's `postgresql://...`, and the folder on this machine that keeps the anchor of its audit."""

    url: str = field(repr=False)  # may hold a password
    home: Path


Database = Path | str | ServerAddress


class ConfirmStore(Protocol):
    """An open database. `open_store` returns one; use it in a `with`, or close it."""

    place: str  # for messages, without secrets
    anchor_path: Path

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """Run a statement and return its rows. A statement that changes something needs `writing` around it."""

    def row(self, query: str, values: Values | None = None) -> Any:
        """Run a statement and return its first row, or None."""

    def put_all(self, query: str, values: Sequence[Values]) -> None:
        """Inside `writing`: run a statement without rows once for each of the values."""

    def writing(self) -> AbstractContextManager[None]:
        """Hold a write transaction: on return all of it is on disk, after an error nothing of it."""

    def part(self) -> AbstractContextManager[None]:
        """Hold a savepoint inside a transaction: an error undoes only this part."""

    def alone(self) -> AbstractContextManager[None]:
        """Hold the write lock without writing: no process writes meanwhile."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Hold a read transaction: all reads see the same state."""

    def version(self) -> int:
        """Return a number that changes when anyone else has written. Cheap enough to poll."""

    def stream(self, query: str) -> Iterator[Any]:
        """Run a statement inside `snapshot` and yield its rows without loading all of them."""

    def check_guards(self) -> list[str]:
        """Return what is wrong with the triggers that keep the audit append-only."""

    def restore_guards(self) -> None:
        """Inside `writing`: restore these triggers and drop all others."""
