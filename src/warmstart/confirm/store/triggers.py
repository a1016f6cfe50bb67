"""Compare the triggers that keep the audit append-only with the migrations that create them. Names alone do not suffice:
a trigger of the right name could do nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from warmstart.store.sqlite_file import Migration

_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\b.*?(?:\bEND;|EXECUTE FUNCTION \w+\(\);)", re.M | re.S)
_FUNCTION = re.compile(r"^CREATE FUNCTION (\w+)\(\).*?\$\$(.*?)\$\$;", re.M | re.S)


def read_triggers(migrations: Iterable[Migration]) -> dict[str, str]:
    """Return the statement that creates each trigger, by its name."""
    return {match[1]: match[0] for migration in migrations for match in _TRIGGER.finditer(migration.sql)}


def read_functions(migrations: Iterable[Migration]) -> dict[str, tuple[str, str]]:
    """Return `(statement, body)` of each PostgreSQL function that a trigger calls, by its name."""
    return {match[1]: (match[0], match[2]) for migration in migrations for match in _FUNCTION.finditer(migration.sql)}


def _flatten(sql: str) -> str:
    """Collapse whitespace for comparison."""
    return " ".join(sql.rstrip("; \n").split())


def compare_guards(wanted: Mapping[str, str], present: Mapping[str, str]) -> list[str]:
    """Return what is wrong with the triggers of a database, given statements by name."""
    gone = [f"the trigger {name} is gone from the database" for name in sorted(wanted.keys() - present.keys())]
    foreign = [f"the trigger {name[:60]} is not one of ours" for name in sorted(present.keys() - wanted.keys())]
    changed = [
        f"the trigger {name} was changed"
        for name in sorted(wanted.keys() & present.keys())
        if _flatten(wanted[name]) != _flatten(present[name])
    ]
    return gone + changed + foreign
