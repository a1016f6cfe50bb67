"""The daemon's own keys, in its database: for execution tokens, CSRF tokens, masks and its identity.

The audit records a fingerprint of each, so that `verify` names a key that was put in place of another.
"""

from __future__ import annotations

import hashlib
from secrets import token_hex
from typing import Literal

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.tokens.identity import derive_key

KeyName = Literal["execution", "csrf", "masks", "identity"]
_NAMES: tuple[KeyName, ...] = ("execution", "csrf", "masks", "identity")


def load_keys(tx: Transaction) -> dict[KeyName, str]:
    """Return the keys of this database. Create those that are missing, and record those that the audit does not know."""
    for name in _NAMES:
        tx.store.rows("put_key", {"name": name, "value": token_hex(32)})
    stored = {name: (str(value), recorded) for name, value, recorded in tx.store.rows("all_keys")}
    unrecorded = {name: fingerprint_key(name, stored[name][0]) for name in _NAMES if stored[name][1] is None}
    if unrecorded:
        sequence = tx.log("keys_created", "daemon", keys=unrecorded)
        for name in unrecorded:
            tx.store.rows("record_key", {"name": name, "sequence": sequence})
    return {name: stored[name][0] for name in _NAMES}


def read_identity(tx: Transaction) -> str:
    """Return the daemon's public key, creating its private one if there is none."""
    return derive_key(load_keys(tx)["identity"])


def renew_identity(tx: Transaction, by: str) -> str:
    """Replace the daemon's private key and return the new public one. A running daemon uses it after a restart."""
    before, value = read_identity(tx), token_hex(32)
    tx.store.rows("replace_key", {"name": "identity", "value": value})
    key = derive_key(value)
    tx.log("identity_renewed", by, key=key, before=before, fingerprint=fingerprint_key("identity", value))
    return key


def fingerprint_key(name: str, value: str) -> str:
    """Hash a key. It has 256 random bits, so the hash reveals nothing."""
    return hashlib.sha256(f"{name} {value}".encode()).hexdigest()
