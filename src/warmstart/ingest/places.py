"""Sessions in their places: some agents record neither the working folder nor the person, but their programs know both.

The plugin in Hermes stores both while a session runs. Without them, the work of a chat in one project would belong to no
project, and every other project of that chat would see it.
"""

from __future__ import annotations

from msgspec import structs

from warmstart.model import Session
from warmstart.store import PlaceStore, Store

_AGENTS = frozenset(("hermes",))  # whose programs name places; other agents' files are read without looking


def may_have_place(session: Session) -> bool:
    """Return whether a program may have named the session's place."""
    return session.agent in _AGENTS


def add_place(store: Store, session: Session) -> Session:
    """Return a session with its folder, where its file names none, and with the scope that its program named."""
    if not may_have_place(session):
        return session
    place = PlaceStore(store).find(session.id, session.agent)
    if place is None:
        return session
    return structs.replace(session, project=session.project or place.folder, scope=place.scope or session.scope)
