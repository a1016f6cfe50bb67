"""The audit's triggers in PostgreSQL: the statement of each, together with its function's body."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier

from warmstart.confirm.store.postgres_address import SCHEMA
from warmstart.confirm.store.triggers import read_functions, read_triggers
from warmstart.store.sqlite_file import Migration

# The text of a trigger that is switched off, or whose function is not ours, says so.
FIND_TRIGGERS = f"""
SELECT c.relname, t.tgname,
    replace(pg_get_triggerdef(t.oid), '{SCHEMA}.', '') || '; '
    || CASE WHEN n.nspname = '{SCHEMA}' AND l.lanname = 'plpgsql' THEN p.prosrc ELSE 'a function of others' END
    || CASE WHEN t.tgenabled IN ('O', 'A') THEN '' ELSE ' switched off' END
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
    JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
WHERE c.relnamespace = to_regnamespace('{SCHEMA}') AND NOT t.tgisinternal
"""


def wanted_guards(migrations: Sequence[Migration]) -> dict[str, str]:
    """Return each trigger's statement and its function's body, by trigger name."""
    functions = read_functions(migrations)
    triggers = read_triggers(migrations)
    return {name: f"{sql} {functions[_find_function(sql)][1]}" for name, sql in triggers.items()}


def _find_function(trigger: str) -> str:
    """Return the function that a trigger calls: `... EXECUTE FUNCTION name();`"""
    return trigger.rpartition(" ")[2].partition("(")[0]


def restore_guards(db: psycopg.Connection[Any], migrations: Sequence[Migration]) -> None:
    for table, name, _ in db.execute(FIND_TRIGGERS).fetchall():
        db.execute(SQL("DROP TRIGGER {} ON {}").format(Identifier(name), Identifier(SCHEMA, table)))
    for sql, _ in read_functions(migrations).values():
        db.execute(sql.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1))
    for sql in read_triggers(migrations).values():
        db.execute(sql)
