"""The audit chain: one entry a transition, each hashed together with the hash before it, the newest hash kept in a
file beside the database.

An edit, a deletion or a swap breaks the chain; whoever computes the whole chain anew, or cuts its end off, no longer
agrees with the file. The file is replaced after commits and so may lag behind the table, but never lead it: where the
anchored entry is missing or another, someone was here. It can be copied elsewhere, and `verify` takes such a copy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.confirm.model import AuditEntry
from warmstart.confirm.store import ConfirmStore
from warmstart.errors import StoreError
from warmstart.whole_files import sweep_unfinished, write_beside

ZERO = "0" * 64  # what stands before the first entry
_AT_ONCE = 5_000  # entries read at a time
_MOST_PROBLEMS = 100

# What a request's last entry of these must agree with its status.
_RESULTS = {
    "submitted": "pending",
    "approved": "approved",
    "auto_approved": "auto_approved",
    "denied": "denied",
    "expired": "expired",
}


class Head(Struct, frozen=True, forbid_unknown_fields=True):
    """The newest entry."""

    sequence: int
    hash: str


class Flaw(Struct, frozen=True):
    """Something that must not be."""

    sequence: int | None  # of the entry; None where it is about the whole
    problem: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What a look through the whole chain found."""

    ok: bool
    entries: int
    head: Head
    anchor: Head | None  # None: there is none
    lag: int  # entries after the anchor
    problems: list[Flaw]


def hash_entry(entry: AuditEntry) -> str:
    """Over the hash before and every column but the hash itself."""
    fields = (
        entry.previous,
        entry.sequence,
        entry.at,
        entry.event,
        entry.request,
        entry.action,
        entry.actor,
        entry.credential,
        entry.details,
    )
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()


def append(
    store: ConfirmStore,
    event: str,
    *,
    at: int,
    actor: str,
    credential: str = "",
    request: str = "",
    action: str = "",
    details: dict[str, Any] | None = None,
) -> int:
    """Add an entry, inside the transaction of the change that it tells of. Its sequence."""
    head = read_head(store)
    entry = AuditEntry(
        sequence=head.sequence + 1,
        at=at,
        event=event,
        request=request,
        action=action,
        actor=actor,
        credential=credential,
        details=msgspec.json.encode(details or {}, order="sorted").decode(),
        previous=head.hash,
        hash="",
    )
    columns = dict(zip(AuditEntry.__struct_fields__, msgspec.structs.astuple(entry), strict=True))
    store.rows("put_entry", columns | {"hash": hash_entry(entry)})
    return entry.sequence


def read_head(store: ConfirmStore) -> Head:
    found = store.row("head")
    return Head(*found) if found else Head(0, ZERO)


class Anchor:
    """The file that holds the newest hash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, store: ConfirmStore) -> Anchor:
        return cls(store.anchor_path)

    def read(self) -> Head | None:
        """What was anchored last; None where there is no file."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=Head)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(f"{self.path}: the audit's anchor cannot be read: {error}") from error

    def create(self, store: ConfirmStore) -> None:
        """For a new database: before its first entry, so that a missing file always means that it was taken away."""
        sweep_unfinished(self.path.parent)
        with store.alone():
            if self.read() is None and read_head(store).sequence == 0:
                self.write(Head(0, ZERO))

    def advance(self, store: ConfirmStore) -> None:
        """Anchor the newest entry. Refuses to paper over a chain that no longer holds what was anchored before.

        Nobody is held up while the disk writes: only the change of names needs to be alone, so that of several
        processes none sets the anchor back.
        """
        head, anchored = read_head(store), self.read()
        if anchored == head:
            return
        check_anchored(store, anchored, self.path)
        with self._written(head) as unfinished, store.alone():
            current = self.read()
            if current is None or current.sequence < head.sequence:
                unfinished.replace(self.path)

    def write(self, head: Head) -> None:
        with self._written(head) as unfinished:
            unfinished.replace(self.path)

    @contextmanager
    def _written(self, head: Head) -> Iterator[Path]:
        """Beside ours, on the disk, to be renamed. Without waiting for the folder: after a power cut the older file may
        be back, which is a lag."""
        try:
            with write_beside(self.path, msgspec.json.encode(head) + b"\n", synced=True) as unfinished:
                yield unfinished
        except OSError as error:
            raise StoreError(f"{self.path}: the audit's anchor cannot be written: {error}") from error


def check_anchored(store: ConfirmStore, anchored: Head | None, path: Path) -> None:
    """Raises StoreError where the table does not hold what the anchor says."""
    if anchored is None:
        if read_head(store).sequence:
            raise StoreError(f"{path}: the audit's anchor is gone. See: warmstart confirm verify")
        return
    if anchored.sequence == 0:
        return
    found = store.row("hash_at", {"sequence": anchored.sequence})
    if found is None or found[0] != anchored.hash:
        raise StoreError(
            f"{store.place}: the audit does not hold entry {anchored.sequence} as it was anchored; "
            "it was cut or changed. See: warmstart confirm verify"
        )


def verify(store: ConfirmStore, anchored: Head | None) -> Verdict:
    """Walk the whole chain, compare it with the anchor and the requests with the chain.

    The anchor is read before the chain, never after: a daemon that goes on writing must not look like a thief.
    """
    with store.snapshot():
        walk = _Walk(anchored)
        for entry in _entries(store):
            walk.take(entry)
        problems = walk.problems + list(walk.compare(store.rows("statuses")))
    problems += [Flaw(None, f"the trigger {name} is gone from the database") for name in store.missing_guards()]
    if anchored is None:
        problems.append(Flaw(None, "the anchor is missing: a cut at the end could not be seen"))
    elif not walk.met:
        problems.append(Flaw(anchored.sequence, "is not there as it was anchored: the end was cut or rewritten"))
    return Verdict(
        ok=not problems,
        entries=walk.count,
        head=walk.head,
        anchor=anchored,
        lag=max(0, walk.head.sequence - (anchored.sequence if anchored else 0)),
        problems=problems[:_MOST_PROBLEMS],
    )


class _Walk:
    """From the first entry to the last, and what was seen on the way."""

    def __init__(self, anchored: Head | None) -> None:
        self.anchored = anchored
        self.met = anchored is not None and anchored.sequence == 0  # the anchored entry
        self.head = Head(0, ZERO)
        self.count = 0
        self.problems: list[Flaw] = []
        self._results: dict[str, str] = {}
        self._executed: set[str] = set()

    def take(self, entry: AuditEntry) -> None:
        self.problems.extend(_check_entry(entry, self.head))
        self.head = Head(entry.sequence, entry.hash)
        self.count += 1
        self.met = self.met or self.head == self.anchored
        if entry.request and entry.event in _RESULTS:
            self._results[entry.request] = _RESULTS[entry.event]
        elif entry.event == "executed":
            self._executed.add(entry.request)

    def compare(self, statuses: list[tuple[str, str, int]]) -> Iterator[Flaw]:
        """Whether the table of requests says what the chain says."""
        for request, status, executed in statuses:
            told = self._results.pop(request, "nothing")
            if told != status:
                yield Flaw(None, f"request {request} is {status}, but the audit says {told}")
            if bool(executed) != (request in self._executed):
                yield Flaw(None, f"request {request}: whether it was executed differs from the audit")
        for request in self._results:
            yield Flaw(None, f"request {request} is in the audit, but no longer in the table")


def _entries(store: ConfirmStore) -> Iterator[AuditEntry]:
    since = -(1 << 62)  # entries below 1 are none of ours: they must be seen to be reported
    while rows := store.rows("entries", {"since": since, "limit": _AT_ONCE}):
        yield from (AuditEntry(*row) for row in rows)
        since = rows[-1][0]


def _check_entry(entry: AuditEntry, before: Head) -> Iterator[Flaw]:
    if entry.sequence != before.sequence + 1:
        yield Flaw(entry.sequence, f"follows entry {before.sequence}: entries are missing or out of order")
    if entry.previous != before.hash:
        yield Flaw(entry.sequence, "does not continue the entry before it")
    if entry.hash != hash_entry(entry):
        yield Flaw(entry.sequence, "was changed: its hash does not fit what it says")
