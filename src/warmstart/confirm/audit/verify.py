"""Whether the audit is sound: the chain from its first entry to its last, the anchor, the triggers, and every row of the
tables against what the entries tell of it.

A flaw that a person has accepted is told apart from one that is new. Each is known by a mark, a hash of all that is
wrong about it, so that what was accepted covers nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.confirm.audit.chain import ZERO, ChainHead, hash_entry
from warmstart.confirm.audit.compare import compare_tables
from warmstart.confirm.audit.expected_rows import ReplayState, read_details
from warmstart.confirm.audit.replay import play
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.store.protocol import ConfirmStore

MOST_MARKS = 500  # flaws that are told and accepted one by one; of more there is only a digest


class Flaw(Struct, frozen=True):
    """Something that must not be."""

    sequence: int | None  # of the entry; None where it is about the whole
    problem: str
    mark: str = ""  # empty: accepting mends it, so that another one like it is new


class Acceptance(Struct, frozen=True):
    """Somebody has looked at flaws and goes on."""

    sequence: int  # of its entry
    at: int
    by: str
    flaws: int


class AuditVerdict(Struct, frozen=True, kw_only=True):
    """What a look through everything found."""

    ok: bool  # nothing is wrong but what was accepted
    entries: int
    head: ChainHead
    anchor: ChainHead | None  # None: there is none
    lag: int  # entries after the anchor
    flaws: int  # that nobody has accepted
    problems: list[Flaw]  # those, or the first of them
    lasting: int  # of them, that cannot be mended
    digest: str  # of those
    accepted: int  # flaws that were found, and accepted before
    acceptances: list[Acceptance]


def verify(store: ConfirmStore, anchored: ChainHead | None, *, unreadable: str = "") -> AuditVerdict:
    """Look through everything. `unreadable`: why there is no telling what was anchored."""
    with ReplayState() as book, store.snapshot():
        found = _Findings(store)
        walk = _Walk(anchored)
        for row in store.stream("all_entries"):
            entry = AuditEntry(*row)
            for flaw in walk.take(entry):
                found.add(flaw)
            for problem in play(book, entry):
                found.add(_mark(entry.sequence, problem, problem, entry.hash))
        for problem, evidence in compare_tables(store, book):
            found.add(_mark(None, problem, *evidence))
        for problem in store.check_guards():
            found.add(Flaw(None, problem))
    for flaw in walk.end(unreadable):
        found.add(flaw)
    return found.conclude(walk)


def _mark(sequence: int | None, problem: str, *evidence: Any) -> Flaw:
    """A flaw with its mark: the same as long as nothing about it changes, however it is worded."""
    return Flaw(sequence, problem, hashlib.sha256(msgspec.json.encode([sequence, *evidence])).hexdigest()[:32])


class _Walk:
    """Along the chain, and past the anchor."""

    def __init__(self, anchored: ChainHead | None) -> None:
        self.anchored = anchored
        self.met = anchored is not None and anchored.sequence == 0  # the anchored entry
        self.head = ChainHead(0, ZERO)
        self.count = 0

    def take(self, entry: AuditEntry) -> Iterator[Flaw]:
        before, right = self.head, hash_entry(entry)
        if entry.sequence != before.sequence + 1:
            missing = f"follows entry {before.sequence}: entries are missing or out of order"
            yield _mark(entry.sequence, missing, "sequence", before.sequence, entry.hash)
        if entry.previous != before.hash:
            broken = "does not continue the entry before it"
            yield _mark(entry.sequence, broken, "previous", entry.previous, before.hash)
        if entry.hash != right:
            changed = "was changed: its hash does not fit what it says"
            yield _mark(entry.sequence, changed, "hash", entry.hash, right)
        self.head = ChainHead(entry.sequence, entry.hash)
        self.count += 1
        self.met = self.met or self.head == self.anchored

    def end(self, unreadable: str) -> Iterator[Flaw]:
        """What is wrong with the anchor: mended by anchoring anew."""
        if unreadable:
            yield Flaw(None, f"{unreadable}: a cut at the end could not be seen")
        elif self.anchored is None:
            yield Flaw(None, "the anchor is missing: a cut at the end could not be seen")
        elif not self.met:
            yield Flaw(self.anchored.sequence, "is not there as it was anchored: the end was cut or rewritten")


class _Findings:
    """Flaws as they are found: those that were accepted are only counted, of the others the first are kept."""

    def __init__(self, store: ConfirmStore) -> None:
        self._acceptances: list[Acceptance] = []
        self._marks: set[str] = set()
        self._wholes: set[tuple[int, str]] = set()  # of more flaws than are named: how many, and their digest
        for row in store.stream("acceptances"):
            self._read(AuditEntry(*row))
        self._accepted = self._lasting = 0
        self._digest = hashlib.sha256()
        self._named: list[Flaw] = []
        self._mendable: list[Flaw] = []

    def _read(self, entry: AuditEntry) -> None:
        told = read_details(entry)
        flaws, marks = told.get("flaws", 0), told.get("marks", [])
        if not isinstance(flaws, int) or not isinstance(marks, list):
            return
        self._acceptances.append(Acceptance(entry.sequence, entry.at, entry.actor, flaws))
        if flaws > MOST_MARKS:
            self._wholes.add((flaws, str(told.get("digest"))))
        else:
            self._marks.update(str(one) for one in marks)

    def add(self, flaw: Flaw) -> None:
        if not flaw.mark:
            self._mendable.append(flaw)
        elif flaw.mark in self._marks:
            self._accepted += 1
        else:
            self._lasting += 1
            self._digest.update(flaw.mark.encode())
            if self._lasting <= MOST_MARKS:
                self._named.append(flaw)

    def conclude(self, walk: _Walk) -> AuditVerdict:
        digest = self._digest.hexdigest()
        if (self._lasting, digest) in self._wholes:
            self._accepted, self._lasting, self._named = self._accepted + self._lasting, 0, []
        return AuditVerdict(
            ok=not self._lasting and not self._mendable,
            entries=walk.count,
            head=walk.head,
            anchor=walk.anchored,
            lag=max(0, walk.head.sequence - (walk.anchored.sequence if walk.anchored else 0)),
            flaws=self._lasting + len(self._mendable),
            problems=self._named + self._mendable,
            lasting=self._lasting,
            digest=digest,
            accepted=self._accepted,
            acceptances=self._acceptances,
        )
