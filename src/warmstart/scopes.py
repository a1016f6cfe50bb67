"""Scopes: whose session it is. A scope names an agent's profile and the person or chat behind a session.

The machine's own user in the default profile has the empty scope. Every other scope is a text such as
`profile:work/telegram:3fa94c0d17b2e865`. Ids of people and chats are stored only as keyed hashes; the key is a file under
the home that never leaves the machine. What is learned in a scope is used in that scope only, until a person shares it.
"""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from warmstart.atomic_files import write_once
from warmstart.digests import blake2b
from warmstart.model import SessionOwner

EVERYWHERE = "*"  # all projects
SHARED = "*"  # the scope of a template that a person shared with everyone, in every project
KEY_FILE = "scope.key"
_PLAIN = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_HASH, _MARK = 16, 6  # hex digits


class ScopeNamer:
    """Names the scopes of owners. The key is made on first need; without a home it lives as long as the namer."""

    def __init__(self, home: Path | None = None) -> None:
        self._home = home

    def name(self, owner: SessionOwner, session: str) -> str:
        """Return the scope of a session.

        A session on a platform for other people that names neither chat nor person has a scope of its own: two unknown
        people are never taken for one.
        """
        parts = [f"profile:{_name_plainly(owner.profile)}"] if owner.profile else []
        if owner.platform:
            known = (owner.chat, owner.user) if owner.chat or owner.user else ("", "", session)
            parts.append(f"{_name_plainly(owner.platform)}:{self._hash(owner.platform, *known)}")
        return "/".join(parts)

    def _hash(self, *parts: str) -> str:
        text = "\0".join((str(len(parts)), *parts)).encode("utf-8", "replace")
        return blake2b(text, key=self._key, digest_size=_HASH // 2).hexdigest()

    @cached_property
    def _key(self) -> bytes:
        return os.urandom(32) if self._home is None else _load_key(self._home)


def _name_plainly(name: str) -> str:
    """Return a profile's or platform's name; a digest if it could be mistaken for something else."""
    if _PLAIN.fullmatch(name):
        return name
    return "h-" + blake2b(name.encode("utf-8", "replace"), digest_size=_HASH // 2).hexdigest()


def _load_key(home: Path) -> bytes:
    """Return the key of a home. Of several processes that make it at the same time, the first wins."""
    path = home / KEY_FILE
    if not path.exists():
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_once(path, os.urandom(32))
    return path.read_bytes()[:64]


def find_profile(folder: Path) -> str:
    """Return the profile whose home, `.../profiles/NAME`, is this folder or the one above; empty: the default profile."""
    return next((place.name for place in (folder, folder.parent) if place.parent.name == "profiles"), "")


def name_profile(profile: str) -> str:
    """Return the scope of the machine's own user in a profile."""
    return ScopeNamer().name(SessionOwner(profile=profile), "")


class Border(NamedTuple):
    """The border of a session: it sees its own scope, in its own project and of no project; and whatever a person shared."""

    scope: str = ""
    project: str | None = None  # None: only what belongs to no project; "*": all projects

    def admits(self, scope: str, project: str) -> bool:
        """Return whether something of a scope and project may be shown."""
        if scope == SHARED:
            return True
        return scope == self.scope and (project == "" or self.project in (project, EVERYWHERE))


def mark_name(name: str, scope: str) -> str:
    """Return a template's name in its scope. Outside the empty scope a mark ends it, so that no two scopes share a name."""
    if not scope or scope == SHARED:
        return name
    mark = "-" + blake2b(scope.encode(), digest_size=_MARK // 2).hexdigest()
    return name if name.endswith(mark) else name + mark
