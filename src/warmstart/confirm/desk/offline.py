"""Changes made on the database itself, without the daemon: tokens, login links, the whitelist.

Who can write the file can do these; that is why it is readable by its owner only, and why a daemon that is to hold
against the agents of a machine runs as another user than they.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from warmstart.confirm.audit.anchor import Anchor, AuditVerdict, check_anchored, inspect, read_head
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store.open import locate, open_store, open_to_read
from warmstart.confirm.store.protocol import ConfirmStore, Database, ServerAddress
from warmstart.errors import NotFound, Refused, StoreError

log = logging.getLogger("warmstart.confirm")
T = TypeVar("T")


def name_local_user() -> str:
    """For the audit: who did it without a token."""
    try:
        import pwd

        return f"local:{pwd.getpwuid(os.getuid()).pw_name}"
    except (ImportError, KeyError):
        return "local:user"


def change_database(path: Database, make: Callable[[Transaction], T | Exception], policy: Policy | None = None) -> T:
    """One change with its audit entry, anchored. Makes the database where there is none."""
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
    """A change that takes something away from somebody. It is made whatever state the audit is in: who did something to
    that must not stay in by it."""
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


def verify_database(path: Database, anchor: Path | None = None) -> AuditVerdict:
    """Look through everything and change nothing. `anchor`: a copy kept elsewhere."""
    with open_to_read(path) as store:
        return inspect(store, _find_anchor(store, anchor))


def accept_audit(path: Database, shown: AuditVerdict | None = None, anchor: Path | None = None) -> None:
    """A person has looked at what `verify` found and goes on: recorded, mended as far as it can be, anchored anew.

    Nothing but what was `shown` to them is accepted.
    """
    with open_store(path) as store:
        found = inspect(store, _find_anchor(store, anchor))
        if shown is not None and (found.lasting, found.digest) != (shown.lasting, shown.digest):
            raise Refused("something else is wrong now than a moment ago; nothing was accepted. Look again")
        with store.writing():
            if found.head.sequence and store.row("hash_at", {"sequence": found.head.sequence}) != (found.head.hash,):
                raise Refused("the audit was cut or changed just now; nothing was accepted. Look again")
            store.restore_guards()
            Transaction(store, int(time.time() * 1000), Policy()).log(
                "audit_accepted", name_local_user(), **_describe_flaws(found)
            )
        with store.alone():
            Anchor.of(store).write(read_head(store))


def _describe_flaws(found: AuditVerdict) -> dict[str, Any]:
    """What is accepted: how many flaws, each by its mark, and of more than can be named a digest of all."""
    lasting = [flaw for flaw in found.problems if flaw.mark]
    return {
        "anchor": {"sequence": found.anchor.sequence, "hash": found.anchor.hash} if found.anchor else None,
        "flaws": found.lasting,
        "digest": found.digest,
        "marks": [flaw.mark for flaw in lasting] if found.lasting == len(lasting) else [],
        "entries": sorted({flaw.sequence for flaw in lasting if flaw.sequence is not None}),
        "mended": [flaw.problem for flaw in found.problems if not flaw.mark],
    }


def _find_anchor(store: ConfirmStore, elsewhere: Path | None) -> Anchor:
    return Anchor(elsewhere) if elsewhere else Anchor.of(store)


def find_database(where: Database) -> Database:
    """Raises NotFound where there is none: to look at it is not to make it."""
    place = locate(where)
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store.postgres import has_schema

        if not has_schema(place):
            raise NotFound("that server holds no confirmation database; start one: warmstart confirm serve --db ...")
    elif not place.exists():
        raise NotFound(f"{place}: there is no confirmation database; start one: warmstart confirm serve")
    return place
