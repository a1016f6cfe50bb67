"""The SQL of a team's roles, and whether a store has them."""

from __future__ import annotations

from pathlib import Path


def read_roles() -> str:
    """Return the SQL that makes the roles and policies of a PostgreSQL store."""
    return (Path(__file__).parent / "roles.sql").read_text("utf-8")
