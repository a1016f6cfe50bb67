"""Compare every row of the tables with the row that the audit leads to expect.

The outboxes of notifications, the browsers that get pushes and the idempotency keys are not recorded in the audit and not
compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from warmstart.confirm.audit.expected_rows import FIRST_ENTRY, ExpectedRow, ReplayState
from warmstart.confirm.audit.replay_access import KEY
from warmstart.confirm.masking.submission import digest_fingerprints
from warmstart.confirm.model import ALLOWED, Allowance, Passkey, Request, TokenRecord
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.confirm.tokens.keys import fingerprint_key


class Difference(NamedTuple):
    problem: str
    evidence: tuple[Any, ...]  # the row, and the values that differ
    forged: bool = False  # it gives a permission that somebody must have signed


class _Table(NamedTuple):
    kind: str  # what its rows are called in messages and in the replay state
    query: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    initial: dict[str, Any]  # columns that change later: their values until then

    def make_id(self, row: ExpectedRow) -> str:
        return " ".join(str(row[column]) for column in self.key)


_MASKS = "masks"  # where the replay state keeps a digest of the masked values in the table
_UNDECIDED = {"status": "pending", "decided": None, "decided_by": "", "reason": "", "executed": None}
_LOGIN = ("id", "digest", "subject", "subject_key", "scopes", "created", "expires", "ended")
_LINK = ("digest", "subject", "scopes", "created", "expires", "used")
_VOTE = ("request", "subject_key", "subject", "credential", "reason", "at")
_PERMITTING = {  # columns that give a permission, or say for what
    "request": ("status", "digest", "quorum", "execute_by", "executed"),
    "vote": ("subject",),
    "whitelist entry": ("action_key", "session_key", "requester_key", "digest", "expires", "times", "used", "removed"),
    "passkey": ("vouched", "public_key", "rp", "subject_key", "removed"),
}
_TABLES = (
    _Table("request", "all_requests", Request.__struct_fields__, ("id",), _UNDECIDED),
    _Table("vote", "all_votes", _VOTE, ("request", "subject_key"), {}),
    _Table("token", "all_tokens", TokenRecord.__struct_fields__, ("id",), {"revoked": None}),
    _Table("login link", "all_links", _LINK, ("digest",), {"used": None}),
    _Table("login", "all_logins", _LOGIN, ("id",), {"ended": None}),
    _Table("whitelist entry", "all_allowances", Allowance.__struct_fields__, ("id",), {"removed": None, "used": 0}),
    _Table("passkey", "all_passkeys", Passkey.__struct_fields__, ("id",), {"removed": None}),
)


def compare_tables(store: ConfirmStore, state: ReplayState) -> Iterator[Difference]:
    """Yield what differs. Empties the state on the way."""
    _note_masks(store, state)
    yield from _compare_keys(store, state)
    for table in _TABLES:
        for values in store.stream(table.query):
            row = dict(zip(table.columns, values, strict=True))
            recorded = state.pop(table.kind, table.make_id(row))
            yield from _compare(table, row, recorded)
            if table.kind == "request":
                yield from _compare_masks(row["id"], recorded, state)
    for table in _TABLES:
        for id, expected in state.list_rest(table.kind):
            problem = f"{table.kind} {_shorten(id)} is in the audit, but no longer in the table"
            yield Difference(problem, ("gone", table.kind, id, expected))


def _compare(table: _Table, row: ExpectedRow, recorded: ExpectedRow) -> Iterator[Difference]:
    about = (table.kind, table.make_id(row))
    name = f"{table.kind} {_shorten(about[1])}"
    if FIRST_ENTRY not in recorded:
        lasting = [value for column, value in row.items() if column not in table.initial]
        problem = f"{name} is in the table, but the audit does not record it"
        permits = _find_permission(table.kind, row)
        if permits:
            problem = f"{name} {permits} without the signature of a passkey: the audit does not record it"
        yield Difference(problem, ("unrecorded", *about, lasting), forged=bool(permits))
    expected = table.initial | recorded
    for column in table.columns:
        if column in expected and row[column] != expected[column]:
            problem = f"{name}: {column} is {_shorten(row[column])}, but the audit says {_shorten(expected[column])}"
            permits = _find_permission(table.kind, row) if column in _PERMITTING.get(table.kind, ()) else ""
            if permits:
                problem = f"{name} {permits} without the signature of a passkey: {problem.removeprefix(f'{name}: ')}"
            yield Difference(problem, (column, *about, row[column], expected[column]), forged=bool(permits))
    if "shown" in recorded and (shown := Request(**row).shown) != recorded["shown"]:
        problem = f"{name}: the texts shown to people are not the submitted ones"
        yield Difference(problem, ("shown", *about, shown, recorded["shown"]))


def _note_masks(store: ConfirmStore, state: ReplayState) -> None:
    """Note a digest of the masked values of each request."""
    for id, rows in groupby(store.stream("all_masks"), key=lambda row: row[0]):
        state.put(_MASKS, id, {"digest": digest_fingerprints((mask, mark) for _, mask, mark in rows)})


def _compare_masks(id: str, recorded: ExpectedRow, state: ReplayState) -> Iterator[Difference]:
    """Compare a request's masked values: whether one was seen before is shown to people. Entries of earlier versions do
    not record them."""
    stored = state.pop(_MASKS, id).get("digest", "")
    if "masks" in recorded and stored != recorded["masks"]:
        problem = f"request {_shorten(id)}: its masked values are not those that were submitted"
        yield Difference(problem, ("masks", id, stored, recorded["masks"]))


def _compare_keys(store: ConfirmStore, state: ReplayState) -> Iterator[Difference]:
    """Compare the daemon's keys. An audit that no version since has continued records none of them."""
    known = dict(state.list_rest(KEY))
    stored = {str(name): str(value) for name, value, _ in store.stream("all_keys")} if known else {}
    for name in sorted({*known, *stored}):
        fingerprint = fingerprint_key(name, stored[name]) if name in stored else ""
        if fingerprint != known.get(name, {}).get("fingerprint"):
            what = "is not the one that the audit records" if name in stored else "is in the audit, but no longer there"
            yield Difference(f"the daemon's key for {name} {what}", ("key", name, fingerprint))


def _find_permission(kind: str, row: ExpectedRow) -> str:
    """Return what a row permits that nobody may permit without a signature once there is a passkey."""
    match kind:
        case "request":
            return "approves" if row["status"] in ALLOWED else ""
        case "vote":
            return "approves"
        case "whitelist entry":
            return "allows in advance" if row["removed"] is None else ""
        case "passkey":
            return "vouches" if row["vouched"] is not None and row["removed"] is None else ""
    return ""


def _shorten(value: Any) -> str:
    text = "nothing" if value in (None, "") else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
