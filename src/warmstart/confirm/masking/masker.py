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
    from warmstart.confirm.masking.masks import Masks
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
        plain = strip_hidden(text, keep="\n\x1b")  # a secret may be coloured
        return strip_hidden(self._masks().text(plain, prose=True))

    def conceal(self, text: str) -> str:
        """What no agent wrote and nobody approves, such as the error of a channel: nothing of a secret stays."""
        return self._scope().text(strip_hidden(text))

    def details(self, value: Any) -> tuple[str, int]:
        """`(JSON, how many were masked)`."""
        masks = self._masks()
        masked = masks.value(value)
        return json.dumps(masked, sort_keys=True, separators=(",", ":"), ensure_ascii=False), masks.count

    def identify(self, name: str) -> str:
        """A name or an id. Two that hold secrets must not become one."""
        plain = strip_hidden(name)
        if could_hide_secret(plain) or any(value in plain for value in self._secrets.values()):
            plain = self._scope().identifier(plain)
        if plain == name:
            return name
        return f"{plain} {hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def _masks(self) -> Masks:
        scope = self._scope()
        from warmstart.confirm.masking.masks import Masks

        return Masks(scope, self._secrets.values())

    def _scope(self) -> Scope:
        with self._loading:
            if self._redactor is None:  # takes a moment to load
                from warmstart.redact import Redactor

                self._redactor = Redactor(self._secrets)
        return self._redactor.scope()


def strip_hidden(text: str, keep: str = "\n") -> str:
    """Without characters that show nothing or turn text around; control characters become spaces but for some."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for character in text:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Zl", "Zp"):
            kept.append(character if character in keep else " ")
        elif kind not in _HIDDEN:
            kept.append(character)
    return "".join(kept)


def is_turned(text: str) -> bool:
    """Whether it has letters that are written from right to left: what shows it may change the order of its words."""
    return not text.isascii() and any(map(_is_turned, text))


def write_turned(text: str) -> str:
    """With such letters as escapes, in the order in which they are stored."""
    return "".join(_escape(character) if _is_turned(character) else character for character in text)


def _is_turned(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("R", "AL", "AN")


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
