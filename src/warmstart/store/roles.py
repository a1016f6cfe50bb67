"""The SQL of a team's roles, and whether a store has them."""

from __future__ import annotations

from pathlib import Path

PSQL = "\\set ON_ERROR_STOP on\n\\set QUIET on\n"  # psql's own words, before the SQL


def read_roles() -> str:
    """Return the SQL that makes the roles and policies of a PostgreSQL store."""
    return (Path(__file__).parent / "roles.sql").read_text("utf-8")
