"""Changes made on the database itself, without the daemon: tokens, login links, the whitelist.

Who can write the file can do these; that is why it is readable by its owner only, and why a daemon that is to hold
against the agents of a machine runs as another user than they.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

from warmstart.confirm.audit import Anchor, check_anchored, read_head
from warmstart.confirm.policy import Policy
from warmstart.confirm.store import Database, ServerAddress, locate, open_store
from warmstart.confirm.turns import Turn
from warmstart.errors import NotFound

T = TypeVar("T")


def name_local_user() -> str:
    """For the audit: who did it without a token."""
    try:
        import pwd

        return f"local:{pwd.getpwuid(os.getuid()).pw_name}"
    except (ImportError, KeyError):
        return "local:user"


def change_database(path: Database, make: Callable[[Turn], T | Exception], policy: Policy | None = None) -> T:
    """One change with its audit entry, anchored. Makes the database where there is none."""
    with open_store(path) as store:
        anchor = Anchor.of(store)
        anchor.create(store)
        check_anchored(store, anchor.read(), anchor.path)
        with store.writing():
            result = make(Turn(store, int(time.time() * 1000), policy or Policy()))
        anchor.advance(store)
    if isinstance(result, Exception):
        raise result
    return result


def accept_audit(path: Database) -> None:
    """A person has looked at what `verify` found and goes on: recorded, and anchored anew."""
    with open_store(path) as store:
        anchor = Anchor.of(store)
        before = anchor.read()
        told = {"sequence": before.sequence, "hash": before.hash} if before else None
        with store.writing():
            Turn(store, int(time.time() * 1000), Policy()).log("audit_accepted", name_local_user(), anchor=told)
        with store.alone():
            anchor.write(read_head(store))


def find_database(where: Database) -> Database:
    """Raises NotFound where there is none: to look at it is not to make it."""
    place = locate(where)
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store_postgres import has_schema

        if not has_schema(place):
            raise NotFound("that server holds no confirmation database; start one: warmstart confirm serve --db ...")
    elif not place.exists():
        raise NotFound(f"{place}: there is no confirmation database; start one: warmstart confirm serve")
    return place
