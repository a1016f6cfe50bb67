"""The passkeys that may sign, as the audit proves them: read from its entries, never from the table alone.

Everybody who can write the database can write a row that says "trusted". Only a trusted device can make the signature with
which another one becomes trusted, so each such entry is checked anew.
"""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from warmstart.confirm.audit.expected_rows import Details, read_details
from warmstart.confirm.model import Allowance, Assertion, AuditEntry
from warmstart.confirm.passkeys.signatures import check_assertion
from warmstart.confirm.passkeys.statements import Terms, state_approval, state_vouching
from warmstart.confirm.policy.actions import key_of
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.names import name_key

_AT_ONCE = 1_000
_holds = lru_cache(4096)(check_assertion)


class RingKey(NamedTuple):
    """A passkey of the audit, with the entries between which it may sign."""

    subject_key: str
    public_key: str
    rp: str
    trusted: int | None = None
    removed: int | None = None

    def may_sign(self, sequence: int) -> bool:
        """Return whether the entry at this place may be signed with it."""
        return (
            self.trusted is not None and self.trusted < sequence and (self.removed is None or sequence < self.removed)
        )


class KeyRing:
    """Follows the audit of one store."""

    def __init__(self) -> None:
        self.since: int | None = None  # the entry from which on approvals are signed
        self._keys: dict[str, RingKey] = {}
        self._allowances: dict[str, dict[str, Any]] = {}  # signed whitelist entries: the columns of their rows
        self._used: set[str] = set()  # requests whose approval also allowed in advance
        self._seen, self._hash = 0, ""

    def holds(self, store: ConfirmStore) -> bool:
        """Return whether the last entry that was read is still there as it was."""
        return not self._seen or store.row("hash_at", {"sequence": self._seen}) == (self._hash,)

    def follow(self, store: ConfirmStore) -> None:
        """Read the entries that are new."""
        while rows := store.rows("ring_entries", {"since": self._seen, "limit": _AT_ONCE}):
            for row in rows:
                entry = AuditEntry(*row)
                self._read(entry, read_details(entry))
                self._seen, self._hash = entry.sequence, entry.hash
            if len(rows) < _AT_ONCE:
                break

    def find_key(self, id: str, subject_key: str) -> RingKey | None:
        """Return a person's passkey if it may sign now."""
        key = self._keys.get(id)
        usable = key is not None and key.trusted is not None and key.removed is None
        return key if usable and key is not None and key.subject_key == subject_key else None

    def check(self, entry: AuditEntry, challenge: bytes) -> str:
        """Return why the entry is not signed by its actor, or an empty text if it is."""
        proof = read_proof(read_details(entry))
        if proof is None:
            return "without the signature of a passkey"
        key = self._keys.get(proof.id)
        if key is None or key.subject_key != name_key(entry.actor):
            return f"without the signature of a passkey of {entry.actor}"
        if not key.may_sign(entry.sequence):
            return "without the signature of a passkey that is trusted"
        why = _holds(proof, key.public_key, key.rp, challenge)
        return f"without the signature of a passkey that holds: {why}" if why else ""

    def allows(self, entry: Allowance) -> bool:
        """Return whether a whitelist entry is one that somebody signed, unchanged."""
        signed = self._allowances.get(entry.id)
        return signed is not None and all(getattr(entry, name) == value for name, value in signed.items())

    def _read(self, entry: AuditEntry, details: Details) -> None:
        match entry.event:
            case "passkey_added":
                self._add(entry, details)
            case "passkey_vouched":
                id = str(details.get("passkey"))
                key = self._keys.get(id)
                if key and key.trusted is None and not self.check(entry, state_vouching(id, key.public_key)):
                    self._keys[id] = key._replace(trusted=entry.sequence)
            case "passkey_removed":
                id = str(details.get("passkey"))
                if id in self._keys and self._keys[id].removed is None:
                    self._keys[id] = self._keys[id]._replace(removed=entry.sequence)
            case "whitelisted":
                self._allow(entry, details)

    def _add(self, entry: AuditEntry, details: Details) -> None:
        id = str(details.get("passkey"))
        if id in self._keys:
            return
        trusted = entry.sequence if self.since is None else None
        public_key, rp = str(details.get("public_key")), str(details.get("rp"))
        self._keys[id] = RingKey(name_key(entry.actor), public_key, rp, trusted)
        if self.since is None:
            self.since = entry.sequence

    def _allow(self, entry: AuditEntry, details: Details) -> None:
        """Keep a whitelist entry if it is signed. One signature makes one entry, which lasts as long as it says."""
        terms, digest = read_terms(details), str(details.get("digest"))
        if self.since is None or terms is None or not digest or entry.request in self._used:
            return
        if self.check(entry, state_approval(entry.request, digest, terms)):
            return
        self._used.add(entry.request)
        self._allowances[str(details.get("entry"))] = {
            "action_key": key_of(entry.action),
            "session_key": details.get("session"),
            "requester_key": name_key(str(details.get("requester", ""))),
            "digest": digest,
            "expires": entry.at + terms.seconds * 1000,
            "times": terms.times,
        }


_rings: WeakKeyDictionary[ConfirmStore, KeyRing] = WeakKeyDictionary()
_gate = threading.Lock()


def read_ring(store: ConfirmStore) -> KeyRing:
    """Return the ring of a store, up to its last entry."""
    with _gate:
        ring = _rings.get(store)
        if ring is None or not ring.holds(store):
            ring = _rings[store] = KeyRing()
        ring.follow(store)
        return ring


def read_terms(details: Details) -> Terms | None:
    """Return how long and how often an entry allows in advance, None if it does not."""
    times, seconds = details.get("times"), details.get("seconds")
    return Terms(times, seconds) if isinstance(times, int) and isinstance(seconds, int) else None


def read_proof(details: Details) -> Assertion | None:
    """Return the signature of an entry, None if it has none."""
    try:
        return msgspec.convert(details.get("proof"), Assertion)
    except msgspec.ValidationError:
        return None
