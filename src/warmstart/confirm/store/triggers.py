"""The triggers that keep the audit append-only: as the migrations make them, against what a database has. By name alone
they could be empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from warmstart.store.sqlite_file import Migration

_TRIGGER = re.compile(r"^CREATE TRIGGER (\w+)\b.*?(?:\bEND;|EXECUTE FUNCTION \w+\(\);)", re.M | re.S)
_FUNCTION = re.compile(r"^CREATE FUNCTION (\w+)\(\).*?\$\$(.*?)\$\$;", re.M | re.S)


def read_triggers(migrations: Iterable[Migration]) -> dict[str, str]:
    """The statement that makes each, by its name."""
    return {found[1]: found[0] for migration in migrations for found in _TRIGGER.finditer(migration.sql)}


def read_functions(migrations: Iterable[Migration]) -> dict[str, tuple[str, str]]:
    """`(statement, body)` of each function that a trigger of PostgreSQL calls."""
    return {found[1]: (found[0], found[2]) for migration in migrations for found in _FUNCTION.finditer(migration.sql)}


def flatten(sql: str) -> str:
    """What is compared: without caring for line ends."""
    return " ".join(sql.rstrip("; \n").split())


def compare_guards(wanted: Mapping[str, str], found: Mapping[str, str]) -> list[str]:
    """What is wrong, by the triggers' names and statements."""
    gone = [f"the trigger {name} is gone from the database" for name in sorted(wanted.keys() - found.keys())]
    foreign = [f"the trigger {name[:60]} is none of ours" for name in sorted(found.keys() - wanted.keys())]
    others = [
        f"the trigger {name} does something else than it should"
        for name in sorted(wanted.keys() & found.keys())
        if flatten(wanted[name]) != flatten(found[name])
    ]
    return gone + others + foreign
