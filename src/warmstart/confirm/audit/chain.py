"""The audit chain: one entry per transition, each hashed together with the hash of the entry before it."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.confirm.model import AuditEntry
from warmstart.confirm.store.protocol import ConfirmStore

ZERO = "0" * 64  # the hash before the first entry


class ChainHead(Struct, frozen=True, forbid_unknown_fields=True):
    """The newest entry."""

    sequence: int
    hash: str


def hash_entry(entry: AuditEntry) -> str:
    """Hash the previous hash and every column except the hash itself."""
    fields = (
        entry.previous,
        entry.sequence,
        entry.at,
        entry.event,
        entry.request,
        entry.action,
        entry.actor,
        entry.credential,
        entry.details,
    )
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()


def append(
    store: ConfirmStore,
    event: str,
    *,
    at: int,
    actor: str,
    credential: str = "",
    request: str = "",
    action: str = "",
    details: dict[str, Any] | None = None,
    head: ChainHead | None = None,
) -> ChainHead:
    """Add an entry inside the transaction of the change that it records, and return the chain's new head. `head`: the
    newest entry, if the caller knows it."""
    head = head or read_head(store)
    entry = AuditEntry(
        sequence=head.sequence + 1,
        at=at,
        event=event,
        request=request,
        action=action,
        actor=actor,
        credential=credential,
        details=msgspec.json.encode(details or {}, order="sorted").decode(),
        previous=head.hash,
        hash="",
    )
    columns = dict(zip(AuditEntry.__struct_fields__, msgspec.structs.astuple(entry), strict=True))
    after = ChainHead(entry.sequence, hash_entry(entry))
    store.rows("put_entry", columns | {"hash": after.hash})
    return after


def read_head(store: ConfirmStore) -> ChainHead:
    row = store.row("head")
    return ChainHead(*row) if row else ChainHead(0, ZERO)
