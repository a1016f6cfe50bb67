"""Tests on both databases: a module or test marked so runs on SQLite and on PostgreSQL (see `database` in conftest.py)."""

from __future__ import annotations

import pytest

on_both_databases = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
