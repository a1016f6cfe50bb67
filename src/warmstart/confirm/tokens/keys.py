"""The daemon's own keys, in its database: for execution tokens, CSRF tokens, masks and its identity."""

from __future__ import annotations

from secrets import token_hex
from typing import Literal

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.confirm.tokens.identity import derive_key

KeyName = Literal["execution", "csrf", "masks", "identity"]
_NAMES: tuple[KeyName, ...] = ("execution", "csrf", "masks", "identity")


def load_keys(store: ConfirmStore) -> dict[KeyName, str]:
    """Return the keys of this database, creating those that are missing."""
    with store.writing():
        return {name: _load(store, name) for name in _NAMES}


def read_identity(tx: Transaction) -> str:
    """Return the daemon's public key, creating its private one if there is none."""
    return derive_key(_load(tx.store, "identity"))


def renew_identity(tx: Transaction, by: str) -> str:
    """Replace the daemon's private key and return the new public one. A running daemon uses it after a restart."""
    before = read_identity(tx)
    tx.store.rows("replace_key", {"name": "identity", "value": token_hex(32)})
    key = read_identity(tx)
    tx.log("identity_renewed", by, key=key, before=before)
    return key


def _load(store: ConfirmStore, name: KeyName) -> str:
    store.rows("put_key", {"name": name, "value": token_hex(32)})
    return str(store.row("key", {"name": name})[0])
