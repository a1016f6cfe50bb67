"""Marks of a module or test for the databases that its stores are in (see `database` in conftest.py)."""

from __future__ import annotations

import pytest

on_both_databases = pytest.mark.parametrize("database", ["sqlite", "postgres"], indirect=True)
on_postgres = pytest.mark.parametrize("database", ["postgres"], indirect=True)
