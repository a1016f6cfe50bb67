"""Stored values that this version does not know: an older or newer version, or a person, wrote them. They count as unknown."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
from msgspec import structs

from warmstart.model import Basis, Category, ErrorKind, Status, TaskType, TokenBasis, Usage, Verdict
from warmstart.store.rows import CallRow, SessionRow

_STATUSES = frozenset(get_args(Status))
_BASES = frozenset(get_args(Basis))
_KINDS = frozenset((None, *get_args(ErrorKind)))
_VERDICTS = frozenset(get_args(Verdict))
_CATEGORIES = frozenset(get_args(Category))
_TASK_TYPES = frozenset(get_args(TaskType))
_TOKEN_BASES = frozenset(get_args(TokenBasis))


def know_call(row: CallRow) -> CallRow:
    """Return a call whose status, basis and kind of error are known ones."""
    if row.status in _STATUSES and row.basis in _BASES and row.error_kind in _KINDS:
        return row
    return structs.replace(
        row,
        status=row.status if row.status in _STATUSES else "unknown",
        basis=row.basis if row.basis in _BASES else "none",
        error_kind=row.error_kind if row.error_kind in _KINDS else "other",
    )


def know_session(row: SessionRow) -> SessionRow:
    """Return a session whose verdict, category and type of task are known ones."""
    if row.verdict in _VERDICTS and row.category in _CATEGORIES and row.task_type in _TASK_TYPES:
        return row
    return structs.replace(
        row,
        verdict=row.verdict if row.verdict in _VERDICTS else "unknown",
        category=row.category if row.category in _CATEGORIES else "general",
        task_type=row.task_type if row.task_type in _TASK_TYPES else "mixed",
    )


def know_token_basis(basis: TokenBasis) -> TokenBasis:
    """Return the basis of a usage; "estimated", the weakest, for one that is not known."""
    return basis if basis in _TOKEN_BASES else "estimated"


def read_usage(text: str) -> Usage:
    """Return a stored usage, also one whose basis is not known."""
    try:
        return msgspec.json.decode(text, type=Usage)
    except msgspec.ValidationError:
        facts = msgspec.json.decode(text, type=dict[str, Any])
        return msgspec.convert(facts | {"basis": know_token_basis(facts.get("basis", "reported"))}, Usage)
