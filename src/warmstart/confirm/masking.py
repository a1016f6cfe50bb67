"""What is kept of what an agent says: nothing secret, nothing that shows otherwise than it is.

The exact details are hashed and forgotten; people see them with secrets masked, and the agent sends them once more
when it acts. So the database holds no secret, and still what runs is what was approved.
"""

from __future__ import annotations

import hashlib
import json
import threading
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warmstart.names import could_hide_secret

if TYPE_CHECKING:
    from warmstart.redact import Redactor, Scope

_HIDDEN = ("Cf", "Cs", "Co", "Cn")  # zero-width, direction marks, halves, private and no characters


class Masker:
    """Knows the user's own secrets; finds others by their look."""

    def __init__(self, secrets: Mapping[str, str] | None = None) -> None:
        self._secrets = dict(secrets or {})
        self._redactor: Redactor | None = None
        self._loading = threading.Lock()

    def text(self, text: str) -> str:
        """Prose, such as descriptions and reasons."""
        return self._scope().text(strip_hidden(text))

    def details(self, value: Any) -> tuple[str, int]:
        """`(JSON, how many were masked)`."""
        scope = self._scope()
        masked = scope.value(value)
        return json.dumps(masked, sort_keys=True, separators=(",", ":"), ensure_ascii=False), scope.found

    def identify(self, name: str) -> str:
        """A name or an id. Two that hold secrets must not become one."""
        plain = strip_hidden(name)
        if could_hide_secret(plain) or any(value in plain for value in self._secrets.values()):
            plain = self._scope().identifier(plain)
        if plain == name:
            return name
        return f"{plain} {hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def _scope(self) -> Scope:
        with self._loading:
            if self._redactor is None:  # takes a moment to load
                from warmstart.redact import Redactor

                self._redactor = Redactor(self._secrets)
        return self._redactor.scope()


def strip_hidden(text: str) -> str:
    """Without characters that show nothing or turn text around; control characters become spaces, line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for character in text:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Zl", "Zp"):
            kept.append(character if character == "\n" else " ")
        elif kind not in _HIDDEN:
            kept.append(character)
    return "".join(kept)
