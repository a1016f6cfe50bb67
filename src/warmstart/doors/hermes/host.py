"""Facts that only Hermes knows: its home, the parent of a session, the session that a command is meant for.

Only Hermes' own functions are used. Its database is open in this process, and a second SQLite library that opened and
closed the same file would drop Hermes' locks on it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from warmstart.model import SessionOwner
from warmstart.scopes import find_profile

_chat_session: ContextVar[str | None] = ContextVar("warmstart_gateway_session", default=None)
_chat_owner: ContextVar[SessionOwner | None] = ContextVar("warmstart_gateway_sender", default=None)


class HermesContext(Protocol):
    """The object that Hermes passes to a plugin's `register`."""

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
    """Return Hermes' home, that of the active profile."""
    return Path(import_module("hermes_constants").get_hermes_home())


def find_database() -> Path:
    """Return the database that this process writes: one for all profiles that a gateway serves."""
    path = getattr(import_module("hermes_state"), "DEFAULT_DB_PATH", None)
    return Path(path) if path else find_home() / "state.db"


def find_row(session: str) -> dict[str, Any]:
    """Return what Hermes has stored about a session; empty if nothing."""
    with _database() as database:
        row = database.get_session(session) if database is not None and session else None
    return dict(row) if row else {}


def find_parent(session: str) -> str | None:
    """Return the session that this one continues: compression and /branch start a new id with the same conversation."""
    parent = find_row(session).get("parent_session_id")
    return parent if isinstance(parent, str) and parent else None


def find_turn_start(session: str, turn: str, task: str) -> str | None:
    """Return the session in which a turn began if it is another one: it was compressed in the middle of the turn."""
    began, mark, _rest = turn.rpartition(f":{task}:")
    return began if mark and began and began != session else None


def find_folder() -> str | None:
    """Return the folder in which the running agent's tools work; None if they work on another machine."""
    if (os.environ.get("TERMINAL_ENV") or "local").strip().lower() != "local":
        return None
    try:
        return str(import_module("agent.runtime_cwd").resolve_agent_cwd())
    except (ImportError, AttributeError, OSError):  # another version of Hermes, or the folder is gone
        return None


def find_job(job: str) -> dict[str, Any]:
    """Return Hermes' record of a scheduled job; empty if it has been deleted."""
    record = import_module("cron.jobs").get_job(job)
    return record if isinstance(record, dict) else {}


@contextmanager
def _database() -> Iterator[Any]:
    """Yield Hermes' own read-only view of its database, or None if there is no database."""
    path = find_database()
    if not path.exists():
        yield None
        return
    database = import_module("hermes_state").SessionDB(path, read_only=True)
    try:
        yield database
    finally:
        database.close()


# The session that a command is meant for: Hermes passes a command's handler nothing but the words.


def remember_chat(event: Any, session_store: Any) -> None:
    """Remember the sender and the session of a message to the gateway: the message may be a command."""
    _chat_session.set(None)
    _chat_owner.set(_read_source(event.source))
    key = session_store._generate_session_key(event.source)
    _chat_session.set(session_store.peek_session_id(key))


def _read_source(source: Any) -> SessionOwner:
    platform = getattr(source, "platform", "")
    profile = str(getattr(source, "profile", None) or "") or find_profile(find_home())
    return SessionOwner(
        profile="" if profile == "default" else profile,
        platform=str(getattr(platform, "value", platform) or "unknown"),
        chat=str(getattr(source, "chat_id", None) or ""),
        user=str(getattr(source, "user_id", None) or ""),
    )


def find_chat() -> SessionOwner | None:
    """Return the sender of the message to the gateway that is being handled; None outside the gateway."""
    return _chat_owner.get()


def find_peer() -> SessionOwner:
    """Return the platform, chat and person that the gateway has bound to the running task; empty outside the gateway."""
    names = {"platform": "HERMES_SESSION_PLATFORM", "chat": "HERMES_SESSION_CHAT_ID", "user": "HERMES_SESSION_USER_ID"}
    return SessionOwner(**{field: _read_bound(name) for field, name in names.items()})


def find_session() -> str | None:
    """Return the session of the person at the keyboard or in the chat, if Hermes reveals it."""
    return _chat_session.get() or _find_keyboard_session() or _find_task_session()


def is_someone_at_the_keyboard() -> bool:
    return _interactive_cli() is not None


def _interactive_cli() -> Any:
    try:
        return import_module("hermes_cli.plugins").get_plugin_manager()._cli_ref
    except (ImportError, AttributeError):
        return None


def _find_keyboard_session() -> str | None:
    cli = _interactive_cli()
    agent = getattr(cli, "agent", None)
    return getattr(agent, "session_id", None) or getattr(cli, "session_id", None)


def _find_task_session() -> str | None:
    return _read_bound("HERMES_SESSION_ID") or None


def serves_others() -> bool:
    """Return whether this process runs sessions of several people: a gateway binds each task to its own."""
    try:
        return bool(import_module("gateway.session_context").session_context_engaged())
    except (ImportError, AttributeError):
        return False


def _read_bound(name: str) -> str:
    try:
        return str(import_module("gateway.session_context").get_session_env(name, "") or "")
    except (ImportError, AttributeError):
        return ""
