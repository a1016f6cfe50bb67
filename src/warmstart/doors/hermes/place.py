"""Whose a Hermes session is and where it runs, by the same rules as the reader of its database."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from warmstart.doors.hermes import host
from warmstart.formats.fields import string_of
from warmstart.formats.hermes_rows import HermesSession, find_owner, inherit_owner, trace_owner
from warmstart.model import SessionOwner
from warmstart.pipeline import Warmstart
from warmstart.scopes import EVERYWHERE, Border, ScopeNamer, find_profile

_UNKNOWN = "unknown"  # the platform of a caller about whom Hermes reveals nothing


class SessionPlace(Struct, frozen=True):
    """The owner and the working folder of a session."""

    owner: SessionOwner = SessionOwner()
    project: str | None = None
    session: str = ""

    @property
    def is_personal(self) -> bool:
        """Whether a person of a gateway owns the session, not the machine's own user."""
        return bool(self.owner.platform)

    def name_scope(self, ws: Warmstart) -> str:
        return ScopeNamer(ws.settings.home).name(self.owner, self.session)

    def draw_border(self, ws: Warmstart) -> Border:
        """Return what this session may see."""
        return ws.draw_border(self.name_scope(ws), self.project)


FindPlace = Callable[[str, str], SessionPlace]  # session, platform -> its place


def find_place(session: str, platform: str = "") -> SessionPlace:
    """Return the place of a session. While Hermes has not stored it, what the gateway knows about it counts."""
    home = host.find_home()
    row = _find_row(session)
    if row is None or not (row.chat_id or row.user_id):
        named = host.find_peer()
        row = row or HermesSession(source=platform or named.platform)
        if row.source == named.platform:
            row = msgspec.structs.replace(row, chat_id=named.chat or None, user_id=named.user or None)
    owner = inherit_owner(row, find_owner(row, home), _find_owner)
    return SessionPlace(owner, string_of(row.cwd) or string_of(row.git_repo_root) or None, session)


def find_asker() -> SessionPlace:
    """Return the place of the person who typed a command, or whose agent called a tool without naming its session."""
    session = host.find_session() or ""
    peer = host.find_chat()
    if peer is not None:
        return SessionPlace(peer, None, session)
    if session:
        return find_place(session)
    profile = find_profile(host.find_home())
    if host.is_someone_at_the_keyboard() or not host.serves_others():
        return SessionPlace(SessionOwner(profile=profile), EVERYWHERE)
    return SessionPlace(SessionOwner(profile=profile, platform=_UNKNOWN), None, session)


def _find_row(session: str) -> HermesSession | None:
    facts = host.find_row(session)
    return _read_row(facts) if facts else None


def _read_row(facts: dict[str, Any]) -> HermesSession:
    return HermesSession(**{name: facts.get(name) for name in HermesSession.__struct_fields__})


def _find_owner(session: str) -> SessionOwner | None:
    return trace_owner(session, _find_row, host.find_home())
