"""Verify the audit: the chain from its first entry to its last, the anchor, the triggers, and every row of the tables
against the entries.

Flaws that a person has accepted are counted apart from new ones. Each flaw has a mark, a hash of all that is wrong
about it, so that an acceptance covers nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.confirm.audit.chain import ZERO, ChainHead, hash_entry
from warmstart.confirm.audit.compare import compare_tables
from warmstart.confirm.audit.elsewhere import Witness, WitnessCheck
from warmstart.confirm.audit.expected_rows import ReplayState, read_details
from warmstart.confirm.audit.replay import replay_entry
from warmstart.confirm.audit.replay_passkeys import EnrolledPasskey, are_signed, find_forgery, list_enrolled
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.store.protocol import ConfirmStore

MOST_MARKS = 500  # flaws that are listed and accepted one by one; more are accepted by a digest of all


class Flaw(Struct, frozen=True):
    """Something that is wrong with the audit or the tables."""

    sequence: int | None  # of the entry; None for a flaw of the database as a whole
    problem: str
    mark: str = ""  # empty: accepting repairs it, so a later one like it is new
    forged: bool = False  # a missing signature or an anchor elsewhere proves it: cannot be accepted


class Acceptance(Struct, frozen=True):
    """A person looked at flaws and accepted them."""

    sequence: int  # of its entry
    at: int
    by: str
    flaws: int


class AuditVerdict(Struct, frozen=True, kw_only=True):
    """The result of a verification."""

    ok: bool  # there is no flaw that was not accepted
    entries: int
    head: ChainHead
    anchor: ChainHead | None  # None: there is none
    lag: int  # entries after the anchor
    flaws: int  # not accepted
    problems: list[Flaw]  # the flaws not accepted, or the first of them
    lasting: int  # flaws not accepted that cannot be repaired
    digest: str  # of the lasting flaws
    accepted: int  # flaws that exist and were accepted before
    acceptances: list[Acceptance]
    passkeys: list[EnrolledPasskey] = []  # all that were ever enrolled
    forgeries: int = 0  # of the flaws: those that cannot be accepted
    witnesses: int = 0  # anchors from elsewhere that were compared


def verify(
    store: ConfirmStore, anchored: ChainHead | None, *, unreadable: str = "", witnesses: Sequence[Witness] = ()
) -> AuditVerdict:
    """Verify everything. `unreadable` says why the anchor could not be read; `witnesses` are anchors from elsewhere."""
    with ReplayState() as state, store.snapshot():
        findings = _Findings(store)
        chain, elsewhere = _ChainCheck(anchored), WitnessCheck(witnesses)
        for row in store.stream("all_entries"):
            entry = AuditEntry(*row)
            elsewhere.see(entry.sequence, entry.hash)
            for flaw in chain.check(entry):
                findings.add(flaw)
            if forgery := find_forgery(state, entry):
                findings.add(Flaw(entry.sequence, forgery, forged=True))
            for problem in replay_entry(state, entry):
                findings.add(_mark(entry.sequence, problem, problem, entry.hash))
        passkeys = list_enrolled(state)
        signed = are_signed(state)
        for problem, evidence, forged in compare_tables(store, state):
            flaw = _mark(None, problem, *evidence)
            findings.add(Flaw(None, problem, forged=True) if signed and forged else flaw)
        for problem in store.check_guards():
            findings.add(Flaw(None, problem))
    for sequence, problem in elsewhere.find_contradictions():
        findings.add(Flaw(sequence, problem, forged=True))
    for flaw in chain.check_anchor(unreadable):
        findings.add(flaw)
    return msgspec.structs.replace(findings.conclude(chain), passkeys=passkeys, witnesses=len(witnesses))


def _mark(sequence: int | None, problem: str, *evidence: Any) -> Flaw:
    """Make a flaw whose mark stays the same as long as its evidence does."""
    return Flaw(sequence, problem, hashlib.sha256(msgspec.json.encode([sequence, *evidence])).hexdigest()[:32])


class _ChainCheck:
    """Checks the chain entry by entry, and whether it holds the anchored entry."""

    def __init__(self, anchored: ChainHead | None) -> None:
        self.anchored = anchored
        self.anchor_met = anchored is not None and anchored.sequence == 0
        self.head = ChainHead(0, ZERO)
        self.count = 0

    def check(self, entry: AuditEntry) -> Iterator[Flaw]:
        before, right = self.head, hash_entry(entry)
        if entry.sequence != before.sequence + 1:
            missing = f"follows entry {before.sequence}: entries are missing or out of order"
            yield _mark(entry.sequence, missing, "sequence", before.sequence, entry.hash)
        if entry.previous != before.hash:
            broken = "does not continue the entry before it"
            yield _mark(entry.sequence, broken, "previous", entry.previous, before.hash)
        if entry.hash != right:
            changed = "was changed: its hash does not match its content"
            yield _mark(entry.sequence, changed, "hash", entry.hash, right)
        self.head = ChainHead(entry.sequence, entry.hash)
        self.count += 1
        self.anchor_met = self.anchor_met or self.head == self.anchored

    def check_anchor(self, unreadable: str) -> Iterator[Flaw]:
        """Yield what is wrong with the anchor. Accepting repairs it by writing a new anchor."""
        if unreadable:
            yield Flaw(None, f"{unreadable}: a cut at the end could not be detected")
        elif self.anchored is None:
            yield Flaw(None, "the anchor is missing: a cut at the end could not be detected")
        elif not self.anchor_met:
            yield Flaw(self.anchored.sequence, "is not there as it was anchored: the end was cut or rewritten")


class _Findings:
    """Collects flaws: accepted ones are only counted, of the others the first are kept."""

    def __init__(self, store: ConfirmStore) -> None:
        self._acceptances: list[Acceptance] = []
        self._accepted_marks: set[str] = set()
        self._accepted_digests: set[tuple[int, str]] = set()  # (count, digest) of more flaws than MOST_MARKS
        for row in store.stream("acceptances"):
            self._read_acceptance(AuditEntry(*row))
        self._accepted = self._lasting = 0
        self._digest = hashlib.sha256()
        self._listed: list[Flaw] = []
        self._repairable: list[Flaw] = []
        self._forged: list[Flaw] = []

    def _read_acceptance(self, entry: AuditEntry) -> None:
        details = read_details(entry)
        flaws, marks = details.get("flaws", 0), details.get("marks", [])
        if not isinstance(flaws, int) or not isinstance(marks, list):
            return
        self._acceptances.append(Acceptance(entry.sequence, entry.at, entry.actor, flaws))
        if flaws > MOST_MARKS:
            self._accepted_digests.add((flaws, str(details.get("digest"))))
        else:
            self._accepted_marks.update(map(str, marks))

    def add(self, flaw: Flaw) -> None:
        if flaw.forged:
            self._forged.append(flaw)
        elif not flaw.mark:
            self._repairable.append(flaw)
        elif flaw.mark in self._accepted_marks:
            self._accepted += 1
        else:
            self._lasting += 1
            self._digest.update(flaw.mark.encode())
            if self._lasting <= MOST_MARKS:
                self._listed.append(flaw)

    def conclude(self, chain: _ChainCheck) -> AuditVerdict:
        digest = self._digest.hexdigest()
        if (self._lasting, digest) in self._accepted_digests:
            self._accepted, self._lasting, self._listed = self._accepted + self._lasting, 0, []
        return AuditVerdict(
            ok=not self._lasting and not self._repairable and not self._forged,
            entries=chain.count,
            head=chain.head,
            anchor=chain.anchored,
            lag=max(0, chain.head.sequence - (chain.anchored.sequence if chain.anchored else 0)),
            flaws=self._lasting + len(self._repairable) + len(self._forged),
            problems=self._forged[:MOST_MARKS] + self._listed + self._repairable,
            lasting=self._lasting,
            digest=digest,
            accepted=self._accepted,
            acceptances=self._acceptances,
            forgeries=len(self._forged),
        )
