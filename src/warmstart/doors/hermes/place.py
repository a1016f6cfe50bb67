"""Whose a Hermes session is and where it runs, by the same rules as the reader of its database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, structs

from warmstart.doors.hermes import host
from warmstart.doors.hermes.latest import Latest
from warmstart.formats.fields import string_of
from warmstart.formats.hermes_rows import AGENT, CRON_RUN, HermesSession, find_owner, inherit_owner, trace_owner
from warmstart.model import SessionOwner
from warmstart.pipeline import Warmstart
from warmstart.scopes import EVERYWHERE, Border, ScopeNamer, find_profile

_REMEMBERED = 2_000  # sessions
_GENERATIONS = 20  # of sessions that started each other
_UNKNOWN = "unknown"  # the platform of a caller about whom Hermes reveals nothing


class SessionPlace(Struct, frozen=True):
    """The owner and the working folder of a session."""

    owner: SessionOwner = SessionOwner()
    project: str | None = None
    session: str = ""
    is_stored: bool = False  # Hermes' database names both, so that its reader finds them

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
    """Return the place of a session. While Hermes has not stored it, what the gateway knows about it counts.

    Hermes stores the folder of sessions in a terminal only. Others work where their parent works, or where the running
    agent does.
    """
    home = host.find_home()
    row = _find_row(session)
    if row is None or not (row.chat_id or row.user_id):
        named = host.find_peer()
        row = row or HermesSession(source=platform or named.platform)
        if row.source == named.platform:
            row = structs.replace(row, chat_id=named.chat or None, user_id=named.user or None)
    owner = inherit_owner(row, find_owner(row, home), _find_owner)
    ancestors = _list_ancestors(row)
    if not owner.platform and (sender := _find_sender([session, *(string_of(one.id) for one in ancestors)])):
        owner = structs.replace(sender, profile=owner.profile)
    stored = _read_folder(row)
    folder = stored or next(filter(None, map(_read_folder, ancestors)), None) or host.find_folder()
    return SessionPlace(owner, folder, session, bool(stored))


def find_asker() -> SessionPlace:
    """Return the place of the person who typed a command, or whose agent called a tool without naming its session."""
    session = host.find_session() or ""
    peer = host.find_chat()
    if peer is not None:
        return SessionPlace(peer, host.find_folder(), session)
    if session:
        return find_place(session)
    profile = find_profile(host.find_home())
    if host.is_someone_at_the_keyboard() or not host.serves_others():
        return SessionPlace(SessionOwner(profile=profile), EVERYWHERE)
    return SessionPlace(SessionOwner(profile=profile, platform=_UNKNOWN), None, session)


class PlaceKeeper:
    """Stores the places that Hermes' database does not name, once per session. Thread-safe."""

    def __init__(self, open: Callable[[], Warmstart], find_place: FindPlace) -> None:
        self._open = open
        self._find_place = find_place
        self._kept: Latest[str, bool] = Latest(_REMEMBERED)

    def keep(self, session: str, platform: str) -> None:
        """Store the place of a session that begins a turn."""
        if session and session not in self._kept:
            self._kept.put(session, True)
            store_place(self._open(), self._find_place(session, platform))


def store_place(ws: Warmstart, place: SessionPlace, summary: str = "") -> None:
    """Store a session's place, and the digest of the summary that it began with, if Hermes' database lacks them."""
    if not place.is_stored or summary:
        ws.place_session(place.session, AGENT, place.project, place.name_scope(ws), summary=summary)


def _find_sender(sessions: Iterable[str]) -> SessionOwner | None:
    """Return the person and chat that created the scheduled job which one of the sessions runs; None without a job."""
    for run in filter(None, map(CRON_RUN.fullmatch, sessions)):
        origin = host.find_job(run[1]).get("origin")
        if isinstance(origin, dict):
            platform, chat, user = (string_of(origin.get(name)) for name in ("platform", "chat_id", "user_id"))
            return SessionOwner(platform=platform or _UNKNOWN, chat=chat, user=user) if chat or user else None
    return None


def _read_folder(row: HermesSession) -> str | None:
    return string_of(row.cwd) or string_of(row.git_repo_root) or None


def _list_ancestors(row: HermesSession) -> list[HermesSession]:
    """Return the sessions that a session continues or works for, the nearest first."""
    ancestors: list[HermesSession] = []
    while len(ancestors) < _GENERATIONS and (parent := _find_row(string_of(row.parent_session_id))) is not None:
        ancestors.append(parent)
        row = parent
    return ancestors


def _find_row(session: str) -> HermesSession | None:
    facts = host.find_row(session)
    return _read_row(facts) if facts else None


def _read_row(facts: dict[str, Any]) -> HermesSession:
    return HermesSession(**{name: facts.get(name) for name in HermesSession.__struct_fields__})


def _find_owner(session: str) -> SessionOwner | None:
    return trace_owner(session, _find_row, host.find_home())
