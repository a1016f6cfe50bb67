"""Empty stores for the tests of this folder: in PostgreSQL where a test says `on_both_databases`, else in a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from warmstart.store import Store, open_store


@pytest.fixture
def url(database: str, tmp_path: Path) -> str:
    """The address of an empty store."""
    return os.environ.get("WARMSTART_STORE") or str(tmp_path / "home" / "warmstart.db")


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as opened:
        yield opened
