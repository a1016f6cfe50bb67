"""The anchor: a file beside the database that holds the newest hash of the audit chain.

An edit, a deletion or a swap breaks the chain. Recomputing the whole chain or cutting off its end contradicts the
anchor. The file is replaced after commits, so it may lag behind the table but never lead it: if the anchored entry is
missing or different, somebody changed the audit. A copy can be kept elsewhere, and `verify` accepts such a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from warmstart.atomic_files import sweep_unfinished, write_beside
from warmstart.confirm.audit.chain import ZERO, ChainHead, read_head
from warmstart.confirm.audit.elsewhere import Witness
from warmstart.confirm.audit.verify import AuditVerdict, verify
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import StoreError


class AnchorUnreadable(StoreError):
    """The anchor file exists but cannot be read or parsed."""

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
        """Return the entry that was anchored last, or None if there is no file."""
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=ChainHead)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            raise AnchorUnreadable(self.path, error) from error

    def create(self, store: ConfirmStore) -> None:
        """Write the file for a new database, before its first entry: a missing file then always means a removed one."""
        sweep_unfinished(self.path.parent)
        with store.alone():
            if self.read() is None and read_head(store).sequence == 0:
                self.write(ChainHead(0, ZERO))

    def advance(self, store: ConfirmStore) -> None:
        """Anchor the newest entry. Raise StoreError if the chain no longer holds the entry anchored before.

        The file is written without a lock. Only the rename takes the store's lock, so that no process sets the anchor
        of another one back.
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
        """Write and sync a sibling file for the caller to rename. The folder is not synced: if a power cut brings the
        older file back, the anchor only lags."""
        try:
            with write_beside(self.path, msgspec.json.encode(head) + b"\n", synced=True) as unfinished:
                yield unfinished
        except OSError as error:
            raise StoreError(f"{self.path}: the audit's anchor cannot be written: {error}") from error


def check_anchored(store: ConfirmStore, anchored: ChainHead | None, path: Path) -> None:
    """Raise StoreError unless the table holds the anchored entry."""
    if anchored is None:
        if read_head(store).sequence:
            raise StoreError(f"{path}: the audit's anchor is gone. See: warmstart confirm verify")
        return
    if anchored.sequence == 0:
        return
    row = store.row("hash_at", {"sequence": anchored.sequence})
    if row is None or row[0] != anchored.hash:
        raise StoreError(
            f"{store.place}: the audit does not hold entry {anchored.sequence} as it was anchored; "
            "it was cut or changed. See: warmstart confirm verify"
        )


def inspect(store: ConfirmStore, anchor: Anchor, witnesses: Sequence[Witness] = ()) -> AuditVerdict:
    """Verify the audit against an anchor, and those elsewhere. An unreadable anchor is reported as a flaw.

    The anchor is read before the chain: entries that a running daemon adds meanwhile are then no contradiction.
    """
    try:
        return verify(store, anchor.read(), witnesses=witnesses)
    except AnchorUnreadable as error:
        return verify(store, None, unreadable=error.why, witnesses=witnesses)
