"""Enrol, vouch for, remove and use passkeys in the store.

The first passkey of a database is trusted as it comes. From then on every approval must be signed, whoever gives it, and
a further passkey signs nothing before one that is trusted has vouched for it: otherwise everybody who can write the
database could enrol a key of their own. Removing passkeys does not lift this.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.errors import ConfirmationError, Conflict, NotAllowed
from warmstart.confirm.model import Assertion, Identity, Passkey
from warmstart.confirm.passkeys.key_ring import read_ring
from warmstart.confirm.passkeys.proofs import need_passkeys
from warmstart.confirm.passkeys.signatures import NewPasskey, check_assertion
from warmstart.confirm.passkeys.statements import state_vouching
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import NotFound

log = logging.getLogger("warmstart.confirm")
MOST_PASSKEYS = 50  # not removed, of all people together
_NEEDED = "approvals are signed with a passkey here: approve on the page, on a device that has one"


def list_passkeys(store: ConfirmStore) -> list[Passkey]:
    """Return the passkeys that were not removed, oldest first."""
    return [Passkey(*row) for row in store.rows("passkeys")]


def add_passkey(tx: Transaction, who: Identity, new: NewPasskey, name: str) -> Passkey | ConfirmationError:
    """Enrol a device of the caller. The first one is trusted; others wait until one that is vouches for them."""
    is_first = not need_passkeys(tx.store)
    if tx.store.row("passkey", {"id": new.id}) is not None:
        return Conflict("this passkey was enrolled before", code="known_passkey")
    if len(list_passkeys(tx.store)) >= MOST_PASSKEYS:
        return Conflict(f"there are {MOST_PASSKEYS} passkeys already; remove one first", code="too_many")
    passkey = Passkey(
        id=new.id,
        subject=who.subject,
        subject_key=who.key,
        name=name,
        public_key=new.public_key,
        rp=new.rp,
        created=tx.now,
        vouched=tx.now if is_first else None,
        vouched_by="",
        removed=None,
    )
    tx.store.rows("put_passkey", msgspec.structs.asdict(passkey))
    tx.log(
        "passkey_added",
        who,
        passkey=passkey.id,
        public_key=passkey.public_key,
        rp=passkey.rp,
        name=name,
        first=is_first,
    )
    return passkey


def vouch(tx: Transaction, who: Identity, id: str, assertion: Assertion) -> Passkey | Exception:
    """Trust another device, by the signature of one that is trusted already."""
    row = tx.store.row("passkey", {"id": id})
    if row is None or Passkey(*row).removed is not None:
        return NotFound(f"no passkey {id[:40]}")
    passkey = Passkey(*row)
    if passkey.vouched is not None:
        return Conflict("this device is trusted already", code="already_vouched")
    if (refused := check_signature(tx, who, assertion, state_vouching(passkey.id, passkey.public_key))) is not None:
        tx.log("passkey_refused", who, why=refused.code, passkey=passkey.id)
        return refused
    tx.store.row("vouch_passkey", {"id": id, "now": tx.now, "by": assertion.id})
    tx.log("passkey_vouched", who, passkey=id, name=passkey.name, subject=passkey.subject, proof=show_proof(assertion))
    return msgspec.structs.replace(passkey, vouched=tx.now, vouched_by=assertion.id)


def remove_passkey(tx: Transaction, id: str, by: Identity | str, *, own: bool = False) -> Passkey | Exception:
    """Remove a device: it signs nothing any more. `own`: only one of the caller's."""
    row = tx.store.row("passkey", {"id": id})
    if row is None or Passkey(*row).removed is not None:
        return NotFound(f"no passkey {id[:40]}; see: warmstart confirm passkey list")
    passkey = Passkey(*row)
    if own and isinstance(by, Identity) and by.key != passkey.subject_key:
        return NotAllowed(f"this is a device of {passkey.subject}", code="not_yours")
    tx.store.row("remove_passkey", {"id": id, "now": tx.now})
    tx.log("passkey_removed", by, passkey=id, name=passkey.name, subject=passkey.subject)
    return msgspec.structs.replace(passkey, removed=tx.now)


def check_signature(
    tx: Transaction, who: Identity, assertion: Assertion | None, challenge: bytes
) -> ConfirmationError | None:
    """Return why the caller has not signed the statement, or None: they have, or no signature is needed yet."""
    if assertion is None:
        return NotAllowed(_NEEDED, code="passkey_needed") if need_passkeys(tx.store) else None
    row = tx.store.row("passkey", {"id": assertion.id})
    if row is None or (passkey := Passkey(*row)).removed is not None or passkey.subject_key != who.key:
        return NotAllowed("this device has no passkey of yours; enrol it first", code="unknown_passkey")
    if passkey.vouched is None:
        return NotAllowed(
            f"nobody has vouched for {passkey.name} yet: open Devices on a device that approves already",
            code="passkey_not_trusted",
        )
    key = read_ring(tx.store).find_key(passkey.id, who.key)
    if key is None:
        log.error("passkey %s of %s: the table says that it is trusted, the audit does not", passkey.id, who.subject)
        return NotAllowed(
            f"the audit holds no signature that vouches for {passkey.name}; see: warmstart confirm verify",
            code="passkey_not_trusted",
        )
    if why := check_assertion(assertion, key.public_key, key.rp, challenge):
        return NotAllowed(f"the passkey's signature does not hold: {why}", code="bad_signature")
    return None


def show_proof(assertion: Assertion) -> dict[str, Any]:
    """Return a signature as the audit keeps it."""
    return msgspec.structs.asdict(assertion)
