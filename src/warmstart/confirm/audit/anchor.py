"""The audit: its chain (chain.py), its newest hash kept in a file beside the database, and whether all of it is sound
(verifying.py).

An edit, a deletion or a swap breaks the chain; whoever computes the whole chain anew, or cuts its end off, no longer
agrees with the file. The file is replaced after commits and so may lag behind the table, but never lead it: where the
anchored entry is missing or another, someone was here. It can be copied elsewhere, and `verify` takes such a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from warmstart.atomic_files import sweep_unfinished, write_beside
from warmstart.confirm.audit.chain import ZERO, ChainHead, append, hash_entry, read_head
from warmstart.confirm.audit.verify import AuditVerdict, Flaw, verify
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError

__all__ = [
    "ZERO",
    "Anchor",
    "AnchorUnreadable",
    "AuditVerdict",
    "ChainHead",
    "Flaw",
    "append",
    "check_anchored",
    "hash_entry",
    "inspect",
    "read_head",
    "verify",
]


class AnchorUnreadable(StoreError):
    """There is an anchor, but it makes no sense."""

    def __init__(self, path: Path, why: Exception) -> None:
        self.why = f"{path}: the audit's anchor cannot be read: {why}"
        super().__init__(f"{self.why}. See: warmstart confirm verify")


class Anchor:
    """The file that holds the newest hash."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, store: ConfirmStore) -> Anchor:
        return cls(store.anchor_path)

    def read(self) -> ChainHead | None:
        """What was anchored last; None where there is no file."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=ChainHead)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise AnchorUnreadable(self.path, error) from error

    def create(self, store: ConfirmStore) -> None:
        """For a new database: before its first entry, so that a missing file always means that it was taken away."""
        sweep_unfinished(self.path.parent)
        with store.alone():
            if self.read() is None and read_head(store).sequence == 0:
                self.write(ChainHead(0, ZERO))

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

    def write(self, head: ChainHead) -> None:
        with self._written(head) as unfinished:
            unfinished.replace(self.path)

    @contextmanager
    def _written(self, head: ChainHead) -> Iterator[Path]:
        """Beside ours, on the disk, to be renamed. Without waiting for the folder: after a power cut the older file may
        be back, which is a lag."""
        try:
            with write_beside(self.path, msgspec.json.encode(head) + b"\n", synced=True) as unfinished:
                yield unfinished
        except OSError as error:
            raise StoreError(f"{self.path}: the audit's anchor cannot be written: {error}") from error


def check_anchored(store: ConfirmStore, anchored: ChainHead | None, path: Path) -> None:
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


def inspect(store: ConfirmStore, anchor: Anchor) -> AuditVerdict:
    """Verify against an anchor; one that cannot be read is a flaw, and no dead end.

    It is read before the chain, never after: a daemon that goes on writing must not look like a thief.
    """
    try:
        return verify(store, anchor.read())
    except AnchorUnreadable as error:
        return verify(store, None, unreadable=error.why)
