"""Whether an approval in the tables is proven by signed entries of the audit. Nothing else is believed once there is a
passkey: rows can be written by everybody who can write the database."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from warmstart.confirm.audit.expected_rows import read_details
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.model import Allowance, AuditEntry, Request, Vote
from warmstart.confirm.passkeys.key_ring import KeyRing, read_ring, read_terms
from warmstart.confirm.passkeys.statements import state_approval
from warmstart.confirm.policy.policy import Ruling
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.names import name_key

log = logging.getLogger("warmstart.confirm")
NOT_BELIEVED = "approval_not_believed"  # the audit's event


def need_passkeys(store: ConfirmStore) -> bool:
    """Return whether approvals must be signed: as soon as there ever was a passkey, in the table or in the audit."""
    return store.row("any_passkey") is not None or read_ring(store).since is not None


def find_unproven(store: ConfirmStore, request: Request, ruling: Ruling, now: int) -> str:
    """Return why the approval of a request is not proven, or an empty text: it is, or no signature is needed."""
    if not need_passkeys(store):
        return ""
    ring, entries = read_ring(store), _read_entries(store, request)
    if request.status == "auto_approved":
        if why := _check_free_pass(store, request, entries, ring):
            return why
        is_usable = request.executed is None and (request.execute_by or 0) > now
        by_policy = request.decided_by != "whitelist"
        if is_usable and by_policy and (ruling.high_risk or ruling.decision != "allow"):
            return "allows by a policy that does not allow it"
        return ""
    if request.status != "approved":
        return ""
    approval = next((entry for entry in entries if entry.event == "approved"), None)
    if approval is None:
        return "approves without the signature of a passkey"
    if why := _check_vote(ring, approval, request):
        return f"approves {why}"
    given, quorum = len(_list_signers(ring, entries, request)), _read_quorum(entries, request)
    return f"approves with the signatures of {given} of {quorum} people" if given < quorum else ""


def keep_proven(store: ConfirmStore, request: Request, votes: Iterable[Vote]) -> list[Vote]:
    """Return the votes that are proven; all of them while no signature is needed."""
    given = list(votes)
    if not given or not need_passkeys(store):
        return given
    signers = _list_signers(read_ring(store), _read_entries(store, request), request)
    return [vote for vote in given if vote.key in signers]


def keep_signed(store: ConfirmStore, entries: Iterable[Allowance]) -> list[Allowance]:
    """Return the whitelist entries that count: from the first passkey on only those that somebody signed."""
    listed = list(entries)
    if not listed or not need_passkeys(store):
        return listed
    ring = read_ring(store)
    return [entry for entry in listed if ring.allows(entry)]


def report_unproven(tx: Transaction, request: Request, why: str) -> None:
    """Record once for each request that its approval is not believed."""
    if any(entry.event == NOT_BELIEVED for entry in _read_entries(tx.store, request)):
        return
    log.error("request %s: its approval by %s is not believed: it %s", request.id, request.decided_by, why)
    tx.log(NOT_BELIEVED, "daemon", request, why=why, status=request.status, decided_by=request.decided_by)


def _read_entries(store: ConfirmStore, request: Request) -> list[AuditEntry]:
    return [AuditEntry(*row) for row in store.rows("entries_of", {"request": request.id})]


def _check_vote(ring: KeyRing, entry: AuditEntry, request: Request) -> str:
    """Return why an entry is not a person's approval of exactly this request. Before the first passkey none is signed."""
    details = read_details(entry)
    if details.get("digest") != request.digest:
        return "other details than were submitted"
    if ring.since is not None and entry.sequence < ring.since:
        return ""
    return ring.check(entry, state_approval(request.id, request.digest, read_terms(details)))


def _list_signers(ring: KeyRing, entries: Iterable[AuditEntry], request: Request) -> set[str]:
    votes = (entry for entry in entries if entry.event in ("vote", "approved"))
    return {name_key(entry.actor) for entry in votes if not _check_vote(ring, entry, request)}


def _read_quorum(entries: Iterable[AuditEntry], request: Request) -> int:
    """Return how many people had to approve: as submitted, even if the row names fewer."""
    recorded = [read_details(entry).get("quorum") for entry in entries if entry.event == "submitted"]
    return max(request.quorum, *(one for one in recorded if isinstance(one, int)), 1)


def _check_free_pass(store: ConfirmStore, request: Request, entries: Iterable[AuditEntry], ring: KeyRing) -> str:
    """Return why a request could not have been allowed without asking."""
    entry = next((entry for entry in entries if entry.event == "auto_approved"), None)
    if entry is None or read_details(entry).get("digest") != request.digest:
        return "allows without asking, but the audit does not record it"
    if ring.since is not None and entry.sequence < ring.since:
        return ""
    if request.decided_by != "whitelist":
        return ""
    row = store.row("allowance_by_id", {"id": str(read_details(entry).get("entry"))})
    if row is None or not ring.allows(Allowance(*row)) or Allowance(*row).digest != request.digest:
        return "allows by a whitelist entry without the signature of a passkey"
    return ""
