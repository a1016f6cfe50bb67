"""The store: sessions, calls, templates, notes, trials, usage and proposals, in a SQLite file or in PostgreSQL."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from warmstart.addresses import SERVERS, could_be_mistyped
from warmstart.errors import ConfigError, StoreError
from warmstart.store.protocol import Store
from warmstart.store.rows import (
    CallRow,
    Change,
    CounterRow,
    ExampleRow,
    ExperimentRow,
    FoundRow,
    LiveRow,
    PlaceRow,
    ProjectNameRow,
    ProposalRow,
    SessionRow,
    SourceRow,
    SpentRow,
    TemplateRow,
    TrialRow,
)
from warmstart.store.sqlite import KIND, SqliteStore
from warmstart.store.sqlite_file import explain

if TYPE_CHECKING:
    from warmstart.store.places import PlaceStore
    from warmstart.store.projects import ProjectFolder, ProjectStore
    from warmstart.store.proposals import ProposalStore
    from warmstart.store.templates import TemplateStore, name_shelf
    from warmstart.store.trials import TrialStore
    from warmstart.store.usage import UsageStore

__all__ = [
    "CallRow",
    "Change",
    "CounterRow",
    "ExampleRow",
    "ExperimentRow",
    "FoundRow",
    "LiveRow",
    "PlaceRow",
    "PlaceStore",
    "ProjectFolder",
    "ProjectNameRow",
    "ProjectStore",
    "ProposalRow",
    "ProposalStore",
    "SessionRow",
    "SourceRow",
    "SpentRow",
    "SqliteStore",
    "Store",
    "TemplateRow",
    "TemplateStore",
    "TrialRow",
    "TrialStore",
    "UsageStore",
    "locate_store",
    "may_exist",
    "name_shelf",
    "open_file",
    "open_store",
]

_LATER = {  # name -> its module, loaded when the name is first used: a command for which an agent waits needs few
    "PlaceStore": "places",
    "ProjectFolder": "projects",
    "ProjectStore": "projects",
    "ProposalStore": "proposals",
    "TemplateStore": "templates",
    "TrialStore": "trials",
    "UsageStore": "usage",
    "name_shelf": "templates",
}
SCHEME = "sqlite:///"
SAFE_SQLITE = (3, 51, 3)  # older versions can corrupt a WAL database under two writers
MAGIC = b"SQLite format 3\0"


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
    return value


def open_store(url: str | Path, *, patience: float = 60.0) -> Store:
    """Open the store at a path, `sqlite:///path` (`sqlite:////path` if absolute) or `postgresql://user@host/database`.

    Create it if there is none. `patience`: seconds that a call waits for another process's write.
    """
    path = locate_store(url)
    if path is None:
        try:
            from warmstart.store.postgres import open_server
        except ModuleNotFoundError as error:
            raise ConfigError("PostgreSQL needs psycopg; install it with: pip install 'warmstart[postgres]'") from error
        return open_server(str(url), patience)
    return open_file(path, patience=patience)


def open_file(path: Path, *, patience: float = 60.0) -> SqliteStore:
    """Open the store in a SQLite file; create it if there is none."""
    check_library(apsw.sqlite_lib_version())
    check_header(path)
    create_file(path)
    return SqliteStore(path, patience=patience)


def locate_store(url: str | Path) -> Path | None:
    """Return the file of a store, whether or not it exists; None if a server holds the store."""
    text = str(url)
    if text.startswith(SERVERS):
        return None
    if text.startswith(SCHEME):
        text = text.removeprefix(SCHEME)
    elif "://" in text:  # which may hold a password
        kind = text.partition("://")[0]
        raise ConfigError(f"{kind}://: not the address of a store; give a path, sqlite:///path or postgresql://...")
    elif could_be_mistyped(text):
        raise ConfigError("neither a path nor the address of a server; give postgresql://USER@HOST:PORT/DATABASE")
    if not text or "\0" in text:
        raise ConfigError(f"{str(url)!r} names no file; give a path or sqlite:///path")
    return Path(text).expanduser().resolve()


def may_exist(url: str | Path) -> bool:
    """Return whether a store may be there: its file is, or a server holds it, which is not asked."""
    path = locate_store(url)
    return path is None or path.exists()


def check_library(version: str) -> None:
    """Raise StoreError for a SQLite library that can corrupt a store."""
    if tuple(int(part) for part in version.split(".")) < SAFE_SQLITE:
        needed = ".".join(map(str, SAFE_SQLITE))
        raise StoreError(f"SQLite {version} can corrupt a store; install {needed} or newer: pip install -U apsw")


def check_header(path: Path) -> None:
    """Raise StoreError for a foreign, damaged or too new file before anything touches it.

    The header is read through SQLite's own file layer: a plain open and close of the file would drop the locks that
    other connections of this process hold on it (POSIX locks belong to the process, not to the descriptor).
    """
    try:
        if not path.exists():
            return
        if not path.is_file():
            raise StoreError(f"{path}: not a file")
        file = apsw.VFSFile("", str(path), [apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_MAIN_DB, 0])
        try:
            header, size = file.xRead(100, 0), file.xFileSize()
        finally:
            file.xClose()
    except (apsw.Error, OSError) as error:
        raise KIND.explain(error, path) from error
    if size == 0:
        return
    if not header.startswith(MAGIC) or size < 100:
        raise StoreError(f"{path}: not a SQLite database; it was left untouched. Choose another path")
    number, application, pages = (int.from_bytes(header[at : at + 4]) for at in (60, 68, 28))
    page = int.from_bytes(header[16:18])
    if Path(f"{path}-wal").exists() or (application == number == 0 and pages <= 1):
        return  # another process has it open or is creating it: the connection checks it
    if page and size % page:
        raise KIND.explain(apsw.CorruptError("its end is missing"), path)
    KIND.check_owner(path, application, number)


creating = threading.Lock()


def create_file(path: Path) -> None:
    """Create the folder and an empty file that only the owner can read; SQLite gives the WAL the same permissions.

    The lock is needed because closing the new file would drop a lock that another thread just took on it.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with creating:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass  # another process was first
    except OSError as error:
        raise explain(error, path) from error
