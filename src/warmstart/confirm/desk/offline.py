"""Changes on the database itself, without the daemon: tokens, login links, the whitelist.

Everyone who can write the file can make them. That is why the file is readable by its owner only, and why a daemon
that must withstand the agents on its machine runs as another user.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from warmstart.confirm.audit.anchor import Anchor, check_anchored, inspect
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.elsewhere import read_witnesses
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.audit.verify import AuditVerdict
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store.open import locate, open_store, open_to_read
from warmstart.confirm.store.protocol import ConfirmStore, Database, ServerAddress
from warmstart.errors import NotFound, Refused, StoreError

log = logging.getLogger("warmstart.confirm")
T = TypeVar("T")


def name_local_user() -> str:
    """Return the audit's name for a person who acts without a token."""
    try:
        import pwd

        return f"local:{pwd.getpwuid(os.getuid()).pw_name}"
    except (ImportError, KeyError):
        return "local:user"


def change_database(path: Database, make: Callable[[Transaction], T | Exception], policy: Policy | None = None) -> T:
    """Make one change with its audit entry and anchor it. Create the database if there is none."""
    with open_store(path) as store:
        anchor = Anchor.of(store)
        anchor.create(store)
        check_anchored(store, anchor.read(), anchor.path)
        result = _change(store, make, policy)
        anchor.advance(store)
    if isinstance(result, Exception):
        raise result
    return result


def shut_out(path: Database, make: Callable[[Transaction], T]) -> T:
    """Make a change that revokes somebody's access, whatever state the audit is in: nobody must keep access by damaging
    it."""
    with open_store(path) as store:
        result = _change(store, make)
        try:
            Anchor.of(store).advance(store)
        except StoreError as error:
            log.warning("%s", error)
    return result


def _change(store: ConfirmStore, make: Callable[[Transaction], T], policy: Policy | None = None) -> T:
    with store.writing():
        return make(Transaction(store, int(time.time() * 1000), policy or Policy()))


def verify_database(path: Database, anchor: Path | None = None, sources: Sequence[str] = ()) -> AuditVerdict:
    """Verify everything and change nothing. `anchor` is a copy that was kept elsewhere, `sources` are places that hold
    anchors, or anchors written out."""
    with open_to_read(path) as store:
        witnesses = read_witnesses(sources, store.anchor_path.parent, store)
        return inspect(store, _find_anchor(store, anchor), witnesses)


def accept_audit(path: Database, shown: AuditVerdict | None = None, anchor: Path | None = None) -> None:
    """Accept the flaws that a person has seen: record them, repair what can be repaired, and anchor the chain again.

    Only the flaws `shown` to that person are accepted.
    """
    with open_store(path) as store:
        verdict = inspect(store, _find_anchor(store, anchor))
        if shown is not None and (verdict.lasting, verdict.digest) != (shown.lasting, shown.digest):
            raise Refused("the flaws changed since you looked; nothing was accepted. Look again")
        head = verdict.head
        with store.writing():
            if head.sequence and store.row("hash_at", {"sequence": head.sequence}) != (head.hash,):
                raise Refused("the audit was cut or changed just now; nothing was accepted. Look again")
            store.restore_guards()
            tx = Transaction(store, int(time.time() * 1000), Policy())
            tx.log("audit_accepted", name_local_user(), **_describe_flaws(verdict))
        with store.alone():
            Anchor.of(store).write(read_head(store))


def _describe_flaws(verdict: AuditVerdict) -> dict[str, Any]:
    """Return the details of an acceptance: the number of flaws, their marks, and a digest of all."""
    lasting = [flaw for flaw in verdict.problems if flaw.mark]
    return {
        "anchor": {"sequence": verdict.anchor.sequence, "hash": verdict.anchor.hash} if verdict.anchor else None,
        "flaws": verdict.lasting,
        "digest": verdict.digest,
        "marks": [flaw.mark for flaw in lasting] if verdict.lasting == len(lasting) else [],
        "entries": sorted({flaw.sequence for flaw in lasting if flaw.sequence is not None}),
        "mended": [flaw.problem for flaw in verdict.problems if not flaw.mark and not flaw.forged],
    }


def _find_anchor(store: ConfirmStore, elsewhere: Path | None) -> Anchor:
    return Anchor(elsewhere) if elsewhere else Anchor.of(store)


def find_database(where: Database) -> Database:
    """Return the place of an existing database. Raise NotFound if there is none: a look must not create one."""
    place = locate(where)
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store.postgres import has_schema

        if not has_schema(place):
            raise NotFound("that server holds no confirmation database; start one: warmstart confirm serve --db ...")
    elif not place.exists():
        raise NotFound(f"{place}: there is no confirmation database; start one: warmstart confirm serve")
    return place
