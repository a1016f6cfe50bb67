"""Who may see the pages: one-time links, logins kept in memory, and the second secret that every change needs.

Cookies ignore ports: another server on this machine, even an agent's own, gets the cookie of a person who opens it under the
same host name. So a cookie alone only reads. A change needs the token as well, which the browser keeps for our address and
port alone.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from warmstart.confirm.tokens.tokens import digest_secret, is_same, make_secret

LINK_LASTS = 600.0  # seconds
LOGIN_LASTS = 12 * 3600.0
LOCAL = frozenset(("127.0.0.1", "localhost", "::1"))

Role = Literal["owner", "guest"]


class Viewer(Struct, frozen=True):
    """A logged-in browser. A guest only reads, and only what is neither personal nor a transcript."""

    role: Role
    token: str  # must come with every change
    until: float  # seconds since the epoch


class Access:
    """Hands out links and knows the browsers that have used one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._codes: dict[str, float] = {}  # digest of an owner's code -> when it expires
        self._guests = ""  # digest of the code that all guests share
        self._viewers: dict[str, Viewer] = {}  # by the digest of the cookie

    def make_owner_code(self) -> str:
        """Return a code for one login, good for ten minutes."""
        code = make_secret("")
        with self._lock:
            self._codes[digest_secret(code)] = self._clock() + LINK_LASTS
        return code

    def make_guest_code(self) -> str:
        """Return the code that lets guests read, until the server ends. The one before it is void."""
        code = make_secret("")
        self._guests = digest_secret(code)
        return code

    def log_in(self, code: str, host: str) -> tuple[str, Viewer] | None:
        """Return a cookie's secret and its viewer; None for a code that is unknown, used or too old.

        An owner logs in only on the machine itself: elsewhere the line may be read by others.
        """
        digest, now = digest_secret(code), self._clock()
        with self._lock:
            role: Role
            if self._guests and is_same(digest, self._guests):
                role = "guest"
            elif host in LOCAL and self._codes.pop(digest, 0.0) > now:
                role = "owner"
            else:
                return None
            secret = make_secret("")
            viewer = Viewer(role, make_secret(""), now + LOGIN_LASTS)
            self._viewers = {key: known for key, known in self._viewers.items() if known.until > now}
            self._viewers[digest_secret(secret)] = viewer
        return secret, viewer

    def find(self, secret: str, host: str) -> Viewer | None:
        """Return the viewer of a cookie; None if it is unknown or too old, or an owner's that came from elsewhere."""
        viewer = self._viewers.get(digest_secret(secret)) if secret else None
        if viewer is None or viewer.until <= self._clock() or (viewer.role == "owner" and host not in LOCAL):
            return None
        return viewer
