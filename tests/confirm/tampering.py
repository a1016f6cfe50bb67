"""Manipulate a database behind the daemon's back. Used by the tests and by bench/confirm.py."""

from __future__ import annotations

import random
import shutil
import time
from pathlib import Path

import apsw

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import hash_entry
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.canonical import digest_deed
from warmstart.confirm.desk.decide import DecisionRequest, decide, expire_due
from warmstart.confirm.desk.submit import submit
from warmstart.confirm.model import AuditEntry, Identity, NewRequest
from warmstart.confirm.policy.policy import Defaults, Policy
from warmstart.confirm.store.open import open_store
from warmstart.confirm.store.sqlite import MIGRATIONS
from warmstart.confirm.store.triggers import read_triggers
from warmstart.confirm.tokens.access import create_token

AGENT = Identity("agent", "agent", frozenset(["agent:submit"]), "t-agent")
BOSS = Identity("boss", "boss", frozenset(["approver:decide"]), "t-boss")
GUARDS = ("audit_is_never_changed", "audit_is_never_shortened", "audit_only_grows")
COLUMNS = AuditEntry.__struct_fields__


def anchor_of(path: Path) -> Anchor:
    return Anchor(path.with_name(path.name + ".anchor"))


def run_sql(path: Path, *statements: str) -> None:
    """Run statements on a file, without the daemon's settings."""
    db = apsw.Connection(str(path))
    db.set_busy_timeout(10_000)
    db.pragma("foreign_keys", False)
    for statement in statements:
        db.execute(statement).fetchall()
    db.close()


def drop_guards() -> str:
    """Return the statements that drop the triggers of the audit."""
    return "; ".join(f"DROP TRIGGER {guard}" for guard in GUARDS)


def make_history(path: Path, requests: int = 60) -> None:
    """Write a database with requests, votes and decisions."""
    dice = random.Random(1)
    with open_store(path) as store:
        anchor = Anchor.of(store)
        anchor.create(store)
        now = int(time.time() * 1000)
        with store.writing():
            tx = Transaction(store, now, Policy(defaults=Defaults(cool_down_seconds=0)))
            create_token(tx, "agent", ["agent:submit"], by="test")
            for n in range(requests):
                new = NewRequest(
                    f"act_{n}", f"act_{n}", f"do {n}", "{}", 0, digest_deed(f"act_{n}", {}), "", "", 30 + n
                )
                made = submit(tx, AGENT, new)
                assert not isinstance(made, Exception)
                if dice.random() < 0.6:
                    decide(tx, BOSS, made.id, DecisionRequest(dice.choice(("approved", "denied")), "because"))
            expire_due(tx._replace(now=now + 60_000))
        anchor.advance(store)


def tamper(path: Path, dice: random.Random) -> str:
    """Make one random change that `verify` must find, and describe it."""
    db = apsw.Connection(str(path))
    try:
        db.execute("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; BEGIN").fetchall()
        for guard in GUARDS:
            db.execute(f"DROP TRIGGER {guard}")
        (last,) = db.execute("SELECT max(sequence) FROM audit").fetchall()[0]
        what = dice.choice(("edit", "edit and rehash", "delete", "swap", "truncate", "insert", "rewrite", "requests"))
        at = dice.randint(1, last)
        _HANDS[what](db, dice, at, last)
        for sql in read_triggers(MIGRATIONS).values():  # to cover the tracks
            db.execute(sql)
        db.execute("COMMIT")
        return f"{what} at {at} of {last}"
    finally:
        db.close()


def _edit(db: apsw.Connection, dice: random.Random, at: int, last: int, left: tuple[str, ...] = ("sequence",)) -> None:
    column = dice.choice([name for name in COLUMNS if name not in left])
    old = db.execute(f"SELECT {column} FROM audit WHERE sequence = ?", (at,)).get
    new = old + dice.choice((-1, 1, 1000)) if isinstance(old, int) else _other_text(str(old), dice)
    db.execute(f"UPDATE audit SET {column} = ? WHERE sequence = ?", (new, at))


def _other_text(old: str, dice: random.Random) -> str:
    at = dice.randint(0, len(old))
    return dice.choice((old + " ", old[:at] + "x" + old[at:], "", old.upper() + "!")) or ("y" if not old else "")


def _edit_and_rehash(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    """Edit an entry and recompute its hash, but not that of the next entry."""
    _edit(db, dice, at, last, ("sequence", "previous", "hash"))
    entry = AuditEntry(*db.execute("SELECT * FROM audit WHERE sequence = ?", (at,)).fetchall()[0])
    db.execute("UPDATE audit SET hash = ? WHERE sequence = ?", (hash_entry(entry), at))


def _delete(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    db.execute("DELETE FROM audit WHERE sequence = ?", (at,))
    if dice.random() < 0.5:  # and close the gap
        db.execute("UPDATE audit SET sequence = -sequence WHERE sequence > ?", (at,))
        db.execute("UPDATE audit SET sequence = -sequence - 1 WHERE sequence < 0")


def _swap(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    other = dice.choice([n for n in range(1, last + 1) if n != at])
    db.execute("UPDATE audit SET sequence = -1 WHERE sequence = ?", (at,))
    db.execute("UPDATE audit SET sequence = ? WHERE sequence = ?", (at, other))
    db.execute("UPDATE audit SET sequence = ? WHERE sequence = -1", (other,))


def _truncate(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    db.execute("DELETE FROM audit WHERE sequence >= ?", (at,))
    if dice.random() < 0.5:  # together with its requests
        db.execute("DELETE FROM votes; DELETE FROM requests WHERE sequence >= ?", (at,)).fetchall()


def _insert(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    row = list(db.execute("SELECT * FROM audit WHERE sequence = ?", (at,)).fetchall()[0])
    row[0] = dice.choice((0, -5, last + 2, last + 1))
    db.execute(f"INSERT INTO audit VALUES ({','.join('?' * len(row))})", row)


def _rewrite(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    """Edit an entry and recompute the whole chain after it: only the anchor contradicts."""
    _edit(db, dice, at, last, ("sequence", "previous", "hash"))
    previous = db.execute("SELECT hash FROM audit WHERE sequence = ?", (at - 1,)).get or "0" * 64
    for n in range(at, last + 1):
        db.execute("UPDATE audit SET previous = ? WHERE sequence = ?", (previous, n))
        entry = AuditEntry(*db.execute("SELECT * FROM audit WHERE sequence = ?", (n,)).fetchall()[0])
        previous = hash_entry(entry)
        db.execute("UPDATE audit SET hash = ? WHERE sequence = ?", (previous, n))


def _requests(db: apsw.Connection, dice: random.Random, at: int, last: int) -> None:
    """Change the requests but not the audit."""
    if dice.random() < 0.3:
        db.execute("DELETE FROM requests WHERE id IN (SELECT id FROM requests ORDER BY random() LIMIT 1)")
    elif dice.random() < 0.5:
        db.execute("UPDATE requests SET executed = 1 WHERE id IN (SELECT id FROM requests ORDER BY random() LIMIT 1)")
    else:
        db.execute(
            "UPDATE requests SET status = CASE status WHEN 'approved' THEN 'denied' ELSE 'approved' END "
            "WHERE id IN (SELECT id FROM requests ORDER BY random() LIMIT 1)"
        )


_HANDS = {
    "edit": _edit,
    "edit and rehash": _edit_and_rehash,
    "delete": _delete,
    "swap": _swap,
    "truncate": _truncate,
    "insert": _insert,
    "rewrite": _rewrite,
    "requests": _requests,
}


def copy_database(path: Path, to: Path) -> None:
    """Copy a database with its anchor, after a checkpoint."""
    db = apsw.Connection(str(path))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    for old in to.parent.glob(f"{to.name}*"):
        old.unlink()
    shutil.copy(path, to)
    shutil.copy(anchor_of(path).path, anchor_of(to).path)
