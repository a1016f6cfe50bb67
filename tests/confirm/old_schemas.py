"""Open databases as earlier programs did, and fill them."""

from __future__ import annotations

from typing import Any

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.model import Identity, Request
from warmstart.confirm.policy.policy import Policy
from warmstart.confirm.store import sqlite
from warmstart.confirm.store.protocol import ServerAddress

NOW = 1_800_000_000_000
OLD_COLUMNS = Request.__struct_fields__[: Request.__struct_fields__.index("size")]


def open_at(place: Any, number: int) -> Any:
    """Open a database as a program with only the first `number` migrations would."""
    if isinstance(place, ServerAddress):
        from warmstart.confirm.store import postgres
        from warmstart.confirm.store.postgres_address import read_address

        store = postgres.ConfirmPostgresStore(read_address(place), 5.0, postgres.MIGRATIONS[:number])
        store.migrate()
        return store
    migrations = sqlite.MIGRATIONS[:number]
    sqlite.create_file(place)
    kind = sqlite.KIND._replace(schema=number, load_migrations=lambda: migrations)
    return sqlite.ConfirmSqliteStore(place, kind, 5.0)


def put_old_request(store: Any) -> Request:
    """Record a request as the first schema's program did."""
    agent = Identity("agent", "agent", frozenset(["agent:submit"]), "credential-1")
    request = Request("r" * 32, 0, "send_mail", "send_mail", "Größe", '{"to":"me"}', 0, "d" * 64, agent.subject,
                      agent.key, agent.credential, "", "", False, 1, NOW, 300, NOW + 300_000, "pending", None, "", "",
                      None, None)  # fmt: skip
    with store.writing():
        tx = Transaction(store, NOW, Policy())
        known = {name: getattr(request, name) for name in ("digest", "high_risk", "quorum", "shown", "timeout")}
        sequence = tx.log("submitted", agent, request, **known)
        values = {name: getattr(request, name) for name in OLD_COLUMNS} | {"sequence": sequence, "high_risk": 0}
        mark = "%({})s" if "Postgres" in type(store).__name__ else ":{}"
        marks = ", ".join(mark.format(name) for name in OLD_COLUMNS)
        store._db.execute(f"INSERT INTO requests ({', '.join(OLD_COLUMNS)}) VALUES ({marks})", values)
    store.anchor_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    Anchor.of(store).write(read_head(store))
    return request
