"""The confirmation daemon's own database: a SQLite file, or PostgreSQL for teams, by the same statements.

What a returned `with writing()` held is on the disk. One thread at a time: a store that is shared takes turns under a
lock. Statements are named in queries.sql and bound by name; schemas and triggers are each database's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

from warmstart.store.sqlite_file import load_queries

Values = Mapping[str, Any]
HERE = Path(__file__).parent
MIGRATIONS_FOLDER = HERE / "migrations"
QUERIES = load_queries(HERE / "queries.sql")


@dataclass(frozen=True)
class ServerAddress:
    """A PostgreSQL server's `postgresql://...`, and the folder on this machine that keeps the anchor of its audit."""

    url: str = field(repr=False)  # may hold a password
    home: Path


Database = Path | str | ServerAddress


class ConfirmStore(Protocol):
    """A database. `open_store` opens one; use it in a `with`, or close it."""

    place: str  # for messages, without secrets
    anchor_path: Path

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...
    def close(self) -> None: ...

    def rows(self, query: str, values: Values | None = None) -> list[Any]:
        """What a statement answers. One that changes something needs `writing` around it."""

    def row(self, query: str, values: Values | None = None) -> Any:
        """The first row, or None."""

    def writing(self) -> AbstractContextManager[None]:
        """A transaction, alone: all of it is on the disk when this returns, or nothing of it after an error."""

    def part(self) -> AbstractContextManager[None]:
        """Of a transaction: an error undoes only this."""

    def alone(self) -> AbstractContextManager[None]:
        """Nobody writes meanwhile, in no process; nothing is written here either."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Several reads of one moment, whatever others write meanwhile."""

    def version(self) -> int:
        """Another number as soon as anyone else has written: cheap to ask often."""

    def stream(self, query: str) -> Iterator[Any]:
        """What a statement answers, row by row, however much it is. Inside `snapshot`."""

    def check_guards(self) -> list[str]:
        """What is wrong with the triggers that keep the audit append-only."""

    def restore_guards(self) -> None:
        """Those triggers as they must be, and no others. Inside `writing`."""
