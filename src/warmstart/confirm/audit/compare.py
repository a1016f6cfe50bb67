"""Every row of the tables against what the audit tells of it. What waits to be told to people (the outbox) and which
answer belongs to which idempotency key is not in the audit, and not compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from warmstart.confirm.audit.expected_rows import Facts, ReplayState
from warmstart.confirm.model import Allowance, Request, TokenRecord
from warmstart.confirm.store.protocol import ConfirmStore


class Difference(NamedTuple):
    problem: str
    evidence: tuple[Any, ...]  # what it is about, and the values that differ


class _Table(NamedTuple):
    what: str  # its rows are, in messages and in the ledger
    query: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    before: dict[str, Any]  # columns that change: what they hold until then

    def name(self, row: Facts) -> str:
        return " ".join(str(row[column]) for column in self.key)


_UNDECIDED = {"status": "pending", "decided": None, "decided_by": "", "reason": "", "executed": None}
_LOGIN = ("id", "digest", "subject", "subject_key", "scopes", "created", "expires", "ended")
_TABLES = (
    _Table("request", "all_requests", Request.__struct_fields__, ("id",), _UNDECIDED),
    _Table(
        "vote",
        "all_votes",
        ("request", "subject_key", "subject", "credential", "reason", "at"),
        ("request", "subject_key"),
        {},
    ),
    _Table("token", "all_tokens", TokenRecord.__struct_fields__, ("id",), {"revoked": None}),
    _Table(
        "login link",
        "all_links",
        ("digest", "subject", "scopes", "created", "expires", "used"),
        ("digest",),
        {"used": None},
    ),
    _Table("login", "all_logins", _LOGIN, ("id",), {"ended": None}),
    _Table("whitelist entry", "all_allowances", Allowance.__struct_fields__, ("id",), {"removed": None}),
)


def compare_tables(store: ConfirmStore, book: ReplayState) -> Iterator[Difference]:
    """What differs. The ledger is used up."""
    for table in _TABLES:
        for values in store.stream(table.query):
            row = dict(zip(table.columns, values, strict=True))
            yield from _compare(table, row, book.take(table.what, table.name(row)))
    for kind in (table.what for table in _TABLES):
        for id, facts in book.rest(kind):
            problem = f"{kind} {_cut(id)} is in the audit, but no longer in the table"
            yield Difference(problem, ("gone", kind, id, facts))


def _compare(table: _Table, row: Facts, told: Facts) -> Iterator[Difference]:
    about = (table.what, table.name(row))
    name = f"{table.what} {_cut(about[1])}"
    if "born" not in told:
        born = [value for column, value in row.items() if column not in table.before]
        yield Difference(f"{name} is in the table, but the audit does not tell of it", ("untold", *about, born))
    expected = table.before | told
    for column in table.columns:
        if column in expected and row[column] != expected[column]:
            problem = f"{name}: {column} is {_cut(row[column])}, but the audit says {_cut(expected[column])}"
            yield Difference(problem, (column, *about, row[column], expected[column]))
    if "shown" in told and (shown := Request(**row).shown) != told["shown"]:
        problem = f"{name}: what people are shown is not what was submitted"
        yield Difference(problem, ("shown", *about, shown, told["shown"]))


def _cut(value: Any) -> str:
    text = "nothing" if value in (None, "") else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
