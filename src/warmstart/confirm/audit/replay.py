"""What the audit tells, entry by entry: each is played, and noted is what the tables must say after it.

Older entries tell less; what they do not tell is not asked of the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from warmstart.confirm.audit.expected_rows import Facts, ReplayState, Told, pick, plain, read_details
from warmstart.confirm.audit.replay_access import ACCESS, find_action, find_person
from warmstart.confirm.model import ALLOWED, AuditEntry


def play(book: ReplayState, entry: AuditEntry) -> Iterable[str]:
    """Note what an entry tells. What is wrong with it, given those before."""
    known = _PLAYS.get(entry.event)
    return known(book, entry, read_details(entry)) if known else ()


def _submitted(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    if "born" in book.get("request", entry.request):
        yield "submits a request that was submitted before"
    facts: Facts = {
        "born": entry.sequence,
        "sequence": entry.sequence,
        "action": entry.action,
        "action_key": find_action(entry.action),
        "subject": entry.actor,
        "subject_key": find_person(entry.actor),
        "credential": entry.credential,
        "created": entry.at,
        **pick(told, "digest", "high_risk", "timeout", "quorum", "shown"),
    }
    if isinstance(timeout := facts.get("timeout"), int) and abs(timeout) < 1 << 40:
        facts["deadline"] = entry.at + timeout * 1000
    book.note("request", entry.request, facts)


def _voted(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    facts = book.get("request", entry.request)
    yield from _check_decision(facts, entry, told)
    _note_vote(book, entry, told, facts)
    book.note("request", entry.request, facts)


def _approved(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    facts = book.get("request", entry.request)
    yield from _check_decision(facts, entry, told)
    given, quorum = _note_vote(book, entry, told, facts), facts.get("quorum")
    if isinstance(quorum, int) and given < quorum:
        yield f"approves with {given} of {quorum} votes"
    _note_decision(book, entry, told, facts)


def _decided(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    """Otherwise than by a person's yes: denied, out of time, allowed in advance."""
    facts = book.get("request", entry.request)
    yield from _check_decision(facts, entry, told)
    _note_decision(book, entry, told, facts)


def _check_decision(facts: Facts, entry: AuditEntry, told: Told) -> Iterator[str]:
    if "status" in facts:
        yield f"is about a request that was {facts['status']} before"
    if "digest" in facts and entry.event != "expired" and told.get("digest") != facts["digest"]:
        yield "is about other details than were submitted"
    if entry.credential and find_person(entry.actor) == facts.get("subject_key"):
        yield "is a decision of who asked for it"


def _note_decision(book: ReplayState, entry: AuditEntry, told: Told, facts: Facts) -> None:
    """The first one counts."""
    reason = "nobody decided in time" if entry.event == "expired" else plain(told.get("reason"))
    decision = {"status": entry.event, "decided": entry.at, "decided_by": entry.actor, "reason": reason}
    book.note("request", entry.request, decision | pick(told, "execute_by") | facts)


def _note_vote(book: ReplayState, entry: AuditEntry, told: Told, facts: Facts) -> int:
    """How many different people have approved."""
    key = find_person(entry.actor)
    vote = {
        "born": entry.sequence,
        "subject": entry.actor,
        "credential": entry.credential,
        "reason": plain(told.get("reason")),
        "at": entry.at,
    }
    book.note("vote", f"{entry.request} {key}", vote)
    facts["voters"] = sorted({*facts.get("voters", ()), key})
    return len(facts["voters"])


def _executed(book: ReplayState, entry: AuditEntry, told: Told) -> Iterator[str]:
    facts = book.get("request", entry.request)
    if facts.get("status") not in ALLOWED:
        yield "takes up what was not approved"
    if "executed" in facts:
        yield "takes an approval up a second time"
    if "digest" in facts and told.get("digest") != facts["digest"]:
        yield "takes up other details than were submitted"
    book.note("request", entry.request, {"executed": entry.at} | facts)


_PLAYS: dict[str, Callable[[ReplayState, AuditEntry, Told], Iterable[str]]] = {
    "submitted": _submitted,
    "vote": _voted,
    "approved": _approved,
    "auto_approved": _decided,
    "denied": _decided,
    "expired": _decided,
    "executed": _executed,
    **ACCESS,
}
