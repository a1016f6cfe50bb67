"""What only Hermes knows: its home, where a session comes from, which session a command is meant for.

Asked by Hermes' own functions alone. Its database is open in this process, and another SQLite library that opened
and closed the same file would drop Hermes' locks on it; through Hermes' own library nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

_MOST_SESSIONS = 10_000

_asked_by_chat: ContextVar[str | None] = ContextVar("warmstart_gateway_session", default=None)


class HermesContext(Protocol):
    """What Hermes hands to a plugin's `register`."""

    def register_hook(self, hook_name: str, callback: Callable[..., Any]) -> None: ...
    def register_middleware(self, kind: str, callback: Callable[..., Any]) -> None: ...
    def register_tool(
        self, name: str, toolset: str, schema: dict[str, Any], handler: Callable[..., str], **more: Any
    ) -> None: ...
    def register_command(self, name: str, handler: Callable[[str], str], **more: Any) -> None: ...
    def register_cli_command(
        self, name: str, help: str, setup_fn: Callable[..., None], handler_fn: Callable[..., Any], **more: Any
    ) -> None: ...


def find_home() -> Path:
    """Hermes' home: of the profile that is active just now, where there are several."""
    return Path(import_module("hermes_constants").get_hermes_home())


def find_database() -> Path:
    return find_home() / "state.db"


def find_parent(session: str) -> str | None:
    """The session that this one goes on from: compression and /branch begin a new id and keep the conversation."""
    with _database() as database:
        row = database.get_session(session) if database is not None else None
    parent = (row or {}).get("parent_session_id")
    return parent if isinstance(parent, str) and parent else None


def find_turn_start(session: str, turn: str, task: str) -> str | None:
    """The session in which a turn began, where that is another: it was compressed in the middle of the turn."""
    began, mark, _rest = turn.rpartition(f":{task}:")
    return began if mark and began and began != session else None


def list_sessions(source: str) -> frozenset[str] | None:
    """Ids of the sessions that came in by a way that Hermes names (cli, telegram, cron ...); None where there are none."""
    with _database() as database:
        rows = database.search_sessions(source=source, limit=_MOST_SESSIONS) if database is not None else ()
    return frozenset(str(row["id"]) for row in rows) or None


@contextmanager
def _database() -> Iterator[Any]:
    """Hermes' own read-only view of its database, or None where there is none."""
    path = find_database()
    if not path.exists():
        yield None
        return
    database = import_module("hermes_state").SessionDB(path, read_only=True)
    try:
        yield database
    finally:
        database.close()


# Which session a command is meant for. Hermes gives a command's words to its handler and nothing else.


def remember_chat(event: Any, session_store: Any) -> None:
    """A message has come to the gateway: should it be a command, this is its session."""
    _asked_by_chat.set(None)
    key = session_store._generate_session_key(event.source)
    _asked_by_chat.set(session_store.peek_session_id(key))


def find_session() -> str | None:
    """The session that the person at the keyboard or in the chat is in, as far as Hermes lets it be known."""
    return _asked_by_chat.get() or _at_the_keyboard() or _in_this_task()


def is_someone_at_the_keyboard() -> bool:
    return _interactive_cli() is not None


def _interactive_cli() -> Any:
    try:
        return import_module("hermes_cli.plugins").get_plugin_manager()._cli_ref
    except (ImportError, AttributeError):
        return None


def _at_the_keyboard() -> str | None:
    cli = _interactive_cli()
    agent = getattr(cli, "agent", None)
    return getattr(agent, "session_id", None) or getattr(cli, "session_id", None)


def _in_this_task() -> str | None:
    try:
        found = import_module("gateway.session_context").get_session_env("HERMES_SESSION_ID", "")
    except (ImportError, AttributeError):
        return None
    return found or None
