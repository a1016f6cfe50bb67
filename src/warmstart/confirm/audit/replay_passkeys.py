"""Replay entries about passkeys, and check the signatures of approvals; see replay.py.

A missing or wrong signature is a forgery, not a flaw that somebody could accept: whoever can write the database could
write the acceptance too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.confirm.audit.expected_rows import (
    FIRST_ENTRY,
    Details,
    ExpectedRow,
    Replay,
    ReplayState,
    pick,
    read_details,
)
from warmstart.confirm.audit.replay_access import key_person, replay_ending
from warmstart.confirm.model import Assertion, AuditEntry
from warmstart.confirm.passkeys.signatures import check_assertion
from warmstart.confirm.passkeys.statements import Terms, fingerprint, state_approval, state_vouching

_RULE = ("passkey rule", "")  # the place of the entry from which on approvals are signed


class EnrolledPasskey(Struct, frozen=True):
    """A passkey that the audit records."""

    id: str
    subject: str
    name: str
    fingerprint: str  # of its public key
    sequence: int  # of the entry that enrolled it
    trusted: bool
    removed: bool


def _replay_added(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    id = str(details.get("passkey"))
    if FIRST_ENTRY in state.get("passkey", id):
        yield "enrols a passkey that already exists"
    is_first = not state.get(*_RULE)
    row: ExpectedRow = {
        FIRST_ENTRY: entry.sequence,
        "subject": entry.actor,
        "subject_key": key_person(entry.actor),
        "created": entry.at,
        "vouched": entry.at if is_first else None,
        "vouched_by": "",
        **pick(details, "name", "public_key", "rp"),
    }
    state.put("passkey", id, row)
    if is_first:
        state.put(*_RULE, {"since": entry.sequence})


def _replay_vouched(state: ReplayState, entry: AuditEntry, details: Details) -> Iterable[str]:
    id, proof = str(details.get("passkey")), _read_proof(details)
    vouched = {"vouched": entry.at, "vouched_by": proof.id if proof else ""}
    state.put("passkey", id, state.get("passkey", id) | vouched)
    return ()


REPLAY_PASSKEYS: dict[str, Replay] = {
    "passkey_added": _replay_added,
    "passkey_vouched": _replay_vouched,
    "passkey_removed": replay_ending("passkey", "passkey", "removed"),
}


def are_signed(state: ReplayState) -> bool:
    """Return whether approvals must be signed by now."""
    return bool(state.get(*_RULE))


def find_forgery(state: ReplayState, entry: AuditEntry) -> str:
    """Return why an entry must be forged, or an empty text. Call it before the entry is replayed."""
    if not state.get(*_RULE):
        return ""
    if entry.event == "auto_approved":
        return _find_free_pass(state, entry, read_details(entry))
    if entry.event not in _SIGNED:
        return ""
    problem = _check_proof(state, entry, read_details(entry))
    if problem and entry.event == "passkey_vouched":
        id = str(read_details(entry).get("passkey"))
        state.put("passkey", id, state.get("passkey", id) | {"forged": True})
    return problem


def _check_proof(state: ReplayState, entry: AuditEntry, details: Details) -> str:
    what, challenge = _SIGNED[entry.event](state, entry, details)
    proof = _read_proof(details)
    if proof is None:
        return f"{what} without the signature of a passkey"
    passkey = state.get("passkey", proof.id)
    if passkey.get("subject_key") != key_person(entry.actor):
        return f"{what} with a passkey that {entry.actor} does not have"
    if passkey.get("removed") is not None:
        return f"{what} with a passkey that was removed before"
    if not _is_trusted(passkey):
        return f"{what} with a passkey for which nobody vouched"
    why = check_assertion(proof, str(passkey.get("public_key")), str(passkey.get("rp")), challenge)
    return f"{what} with a signature that does not hold: {why}" if why else ""


def _find_free_pass(state: ReplayState, entry: AuditEntry, details: Details) -> str:
    """Return why a request that was allowed without asking could not have been. Whether the policy allowed it is unknown
    here: the audit holds only the policy's digest."""
    request = state.get("request", entry.request)
    if request.get("high_risk"):
        return "allows a high-risk request without asking"
    if entry.actor != "whitelist":
        return ""
    row = state.get("whitelist entry", str(details.get("entry")))
    times, expires = row.get("times"), row.get("expires")
    holds = (
        row.get("action_key") == request.get("action_key")
        and row.get("digest") in ("", request.get("digest"))
        and row.get("removed") is None
        and isinstance(expires, int)
        and expires > entry.at
        and (not isinstance(times, int) or row.get("used", 0) < times)
    )
    return "" if holds else "allows a request by a whitelist entry that does not cover it"


def list_enrolled(state: ReplayState) -> list[EnrolledPasskey]:
    """Return every passkey of the audit, in the order of its entries."""
    passkeys = [
        EnrolledPasskey(
            id=id,
            subject=str(row.get("subject")),
            name=str(row.get("name")),
            fingerprint=fingerprint(str(row.get("public_key"))),
            sequence=int(row.get(FIRST_ENTRY, 0)),
            trusted=_is_trusted(row),
            removed=row.get("removed") is not None,
        )
        for id, row in state.list_rest("passkey")
    ]
    return sorted(passkeys, key=lambda passkey: passkey.sequence)


def _is_trusted(passkey: ExpectedRow) -> bool:
    return passkey.get("vouched") is not None and not passkey.get("forged")


def _state_approval(state: ReplayState, entry: AuditEntry, details: Details) -> tuple[str, bytes]:
    digest = str(state.get("request", entry.request).get("digest"))
    return "approves", state_approval(entry.request, digest, _read_terms(details))


def _state_allowance(state: ReplayState, entry: AuditEntry, details: Details) -> tuple[str, bytes]:
    terms = _read_terms(details) or Terms(0, 0)
    return "allows in advance", state_approval(entry.request, str(details.get("digest")), terms)


def _state_vouching(state: ReplayState, entry: AuditEntry, details: Details) -> tuple[str, bytes]:
    id = str(details.get("passkey"))
    return "vouches", state_vouching(id, str(state.get("passkey", id).get("public_key")))


_SIGNED = {
    "approved": _state_approval,
    "vote": _state_approval,
    "whitelisted": _state_allowance,
    "passkey_vouched": _state_vouching,
}


def _read_terms(details: Details) -> Terms | None:
    times, seconds = details.get("times"), details.get("seconds")
    return Terms(times, seconds) if isinstance(times, int) and isinstance(seconds, int) else None


def _read_proof(details: Details) -> Assertion | None:
    proof: Any = details.get("proof")
    try:
        return msgspec.convert(proof, Assertion)
    except msgspec.ValidationError:
        return None
