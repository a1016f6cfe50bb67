"""SQLite files of stores: a process migrates the first of a kind step by step, and the others get a copy of its schema.

The steps take 28 ms and most tests begin with them; a copy takes 6. The tests of the steps themselves, in tests/store,
run them, and so does every other process that a test starts.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from typing import Any

import apsw

from warmstart.store import sqlite_file
from warmstart.store.sqlite_file import Kind, Migration, migrate

_process = os.getpid()
_lock = threading.Lock()
_schemas: dict[Any, apsw.Connection] = {}


def copy_schemas() -> None:
    """Let new files of this process get copies from now on."""
    sqlite_file.migrate = _migrate_or_copy


def _migrate_or_copy(db: apsw.Connection, kind: Kind, migrations: Iterable[Migration]) -> None:
    steps = tuple(migrations)
    is_tested = os.environ.get("PYTEST_CURRENT_TEST", "").startswith("tests/store/")
    if is_tested or os.getpid() != _process:
        migrate(db, kind, steps)
        return
    with _lock:
        if db.pragma("user_version") or db.execute("SELECT count(*) FROM sqlite_schema").get:
            migrate(db, kind, steps)
            return
        known = (kind.application_id, steps)
        if known not in _schemas:
            first = apsw.Connection(":memory:")
            migrate(first, kind, steps)
            _schemas[known] = first
        with db.backup("main", _schemas[known], "main") as copying:
            copying.step()
