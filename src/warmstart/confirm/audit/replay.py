"""Replay the audit entry by entry: check each entry against those before it and record the rows that the tables must hold
after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from warmstart.confirm.audit.expected_rows import (
    FIRST_ENTRY,
    Details,
    ExpectedRow,
    Replay,
    ReplayState,
    make_plain,
    pick,
    read_details,
)
from warmstart.confirm.audit.replay_access import REPLAY_ACCESS, key_action, key_person
from warmstart.confirm.audit.replay_passkeys import REPLAY_PASSKEYS
from warmstart.confirm.lookalikes import is_lookalike
from warmstart.confirm.model import ALLOWED, AuditEntry


def replay_entry(state: ReplayState, entry: AuditEntry) -> Iterable[str]:
    """Record what the entry changes. Yield what is wrong with it, given the entries before."""
    replay = _REPLAY.get(entry.event)
    return replay(state, entry, read_details(entry)) if replay else ()


def _replay_submitted(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    if FIRST_ENTRY in state.get("request", entry.request):
        yield "submits a request that was submitted before"
    row: ExpectedRow = {
        FIRST_ENTRY: entry.sequence,
        "sequence": entry.sequence,
        "action": entry.action,
        "action_key": key_action(entry.action),
        "subject": entry.actor,
        "subject_key": key_person(entry.actor),
        "credential": entry.credential,
        "created": entry.at,
        **pick(details, "digest", "high_risk", "timeout", "quorum", "shown", "masks"),
    }
    if isinstance(timeout := row.get("timeout"), int) and abs(timeout) < 1 << 40:
        row["deadline"] = entry.at + timeout * 1000
    state.put("request", entry.request, row)


def _replay_vote(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    row = state.get("request", entry.request)
    yield from _check_decision(row, entry, details)
    _expect_vote(state, entry, details, row)
    state.put("request", entry.request, row)


def _replay_approved(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    row = state.get("request", entry.request)
    yield from _check_decision(row, entry, details)
    given, quorum = _expect_vote(state, entry, details, row), row.get("quorum")
    if isinstance(quorum, int) and given < quorum:
        yield f"approves with {given} of {quorum} votes"
    _expect_decision(state, entry, details, row)


def _replay_decided(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    """Replay a decision other than a person's approval: denied, expired or allowed in advance."""
    row = state.get("request", entry.request)
    yield from _check_decision(row, entry, details)
    _expect_decision(state, entry, details, row)


def _replay_allowed(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    """Replay a request that was allowed without asking: count the use of the whitelist entry."""
    yield from _replay_decided(state, entry, details)
    if "entry" in details:
        id = str(details["entry"])
        row = state.get("whitelist entry", id)
        state.put("whitelist entry", id, row | {"used": row.get("used", 0) + 1})


def _check_decision(row: ExpectedRow, entry: AuditEntry, details: Details) -> Iterator[str]:
    if "status" in row:
        yield f"decides a request that was already {row['status']}"
    if "digest" in row and entry.event != "expired" and details.get("digest") != row["digest"]:
        yield "decides other details than were submitted"
    if entry.event == "withdrawn":
        if key_person(entry.actor) != row.get("subject_key"):
            yield "withdraws the request of somebody else"
    elif entry.credential and "subject" in row and is_lookalike(entry.actor, str(row["subject"])):
        yield "is a decision by the requester"


def _expect_decision(state: ReplayState, entry: AuditEntry, details: Details, row: ExpectedRow) -> None:
    """Expect this decision unless there was one before: the first one counts."""
    reason = "nobody decided in time" if entry.event == "expired" else make_plain(details.get("reason"))
    decision = {"status": entry.event, "decided": entry.at, "decided_by": entry.actor, "reason": reason}
    state.put("request", entry.request, decision | pick(details, "execute_by") | row)


def _expect_vote(state: ReplayState, entry: AuditEntry, details: Details, row: ExpectedRow) -> int:
    """Expect the vote's row and return how many different people have approved."""
    key = key_person(entry.actor)
    vote = {
        FIRST_ENTRY: entry.sequence,
        "subject": entry.actor,
        "credential": entry.credential,
        "reason": make_plain(details.get("reason")),
        "at": entry.at,
    }
    state.put("vote", f"{entry.request} {key}", vote)
    row["voters"] = sorted({*row.get("voters", ()), key})
    return len(row["voters"])


def _replay_executed(state: ReplayState, entry: AuditEntry, details: Details) -> Iterator[str]:
    row = state.get("request", entry.request)
    if row.get("status") not in ALLOWED:
        yield "executes a request that was not approved"
    if "executed" in row:
        yield "executes an approval a second time"
    if "digest" in row and details.get("digest") != row["digest"]:
        yield "executes other details than were submitted"
    state.put("request", entry.request, {"executed": entry.at} | row)


_REPLAY: dict[str, Replay] = {
    "submitted": _replay_submitted,
    "vote": _replay_vote,
    "approved": _replay_approved,
    "auto_approved": _replay_allowed,
    "denied": _replay_decided,
    "expired": _replay_decided,
    "withdrawn": _replay_decided,
    "executed": _replay_executed,
    **REPLAY_ACCESS,
    **REPLAY_PASSKEYS,
}
