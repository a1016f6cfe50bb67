"""Mask secrets and strip deceptive characters from the texts of an agent before they are stored.

The exact details are hashed and dropped. People see them with secrets masked, and the agent sends them again when it
acts. So the database holds no secret, and still only the approved arguments run.
"""

from __future__ import annotations

import hashlib
import json
import threading
import unicodedata
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warmstart.confirm.canonical import escape_character, is_ignorable
from warmstart.confirm.masking.submission import MOST_FINGERPRINTS, MaskedSubmission, Submission
from warmstart.names import could_hide_secret

if TYPE_CHECKING:
    from warmstart.confirm.masking.masks import Masks
    from warmstart.redact import Redactor, Scope

_HIDDEN = ("Cf", "Cs", "Co", "Cn")  # zero-width and direction marks, surrogates, private use, unassigned


class Masker:
    """Masks the user's own secrets, and others that it recognises by their form."""

    def __init__(self, secrets: Mapping[str, str] | None = None, key: str = "") -> None:
        """`key`, in hex: makes fingerprints of masked values; without one there are none."""
        self._secrets = dict(secrets or {})
        self._key = bytes.fromhex(key)
        self._redactor: Redactor | None = None
        self._loading = threading.Lock()

    def mask_text(self, text: str) -> str:
        """Mask prose, such as descriptions and reasons."""
        plain = strip_hidden(text, keep="\n\x1b")  # a secret may contain colour codes
        return strip_hidden(self._masks().mask_text(plain, prose=True))

    def conceal(self, text: str) -> str:
        """Remove secrets completely from a text that no agent wrote and nobody approves, such as a channel's error."""
        return self._scope().text(strip_hidden(text))

    def mask_details(self, value: Any) -> tuple[str, int]:
        """Return `(JSON, number of masked secrets)`."""
        masks = self._masks()
        masked = masks.mask_value(value)
        return json.dumps(masked, sort_keys=True, separators=(",", ":"), ensure_ascii=False), masks.count

    def mask_submission(self, given: Submission) -> MaskedSubmission:
        """Mask all texts of a submission."""
        masks = self._masks(self._key)
        masked = masks.mask_value({} if given.details is None else given.details)
        return MaskedSubmission(
            description=self.mask_text(given.description).strip() or "(nothing readable)",
            details=json.dumps(masked, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
            masked=masks.count,
            requester=self.mask_name(given.requester) if given.requester else "",
            session_key=self.mask_name(given.session_key) if given.session_key else "",
            fingerprints=sorted(masks.fingerprints.items())[:MOST_FINGERPRINTS],
        )

    def mask_name(self, name: str) -> str:
        """Mask a name or an id. A hash is appended so that two names with secrets stay different."""
        plain = strip_hidden(name)
        if could_hide_secret(plain) or any(value in plain for value in self._secrets.values()):
            plain = self._scope().identifier(plain)
        if plain == name:
            return name
        return f"{plain} {hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def _masks(self, key: bytes = b"") -> Masks:
        scope = self._scope()
        from warmstart.confirm.masking.masks import Masks

        return Masks(scope, self._secrets.values(), key)

    def _scope(self) -> Scope:
        with self._loading:
            if self._redactor is None:  # loading it takes a moment
                from warmstart.redact import Redactor

                self._redactor = Redactor(self._secrets)
        return self._redactor.scope()


def strip_hidden(text: str, keep: str = "\n") -> str:
    """Remove invisible and direction-changing characters; replace control characters not in `keep` by spaces."""
    if text.isascii() and text.isprintable():
        return text
    kept = []
    for character in text:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Zl", "Zp"):
            kept.append(character if character in keep else " ")
        elif kind not in _HIDDEN and not is_ignorable(character):
            kept.append(character)
    return "".join(kept)


def is_turned(text: str) -> bool:
    """Return whether a text has right-to-left letters: a terminal or page may then reorder its words."""
    return not text.isascii() and any(map(_is_turned, text))


def write_turned(text: str) -> str:
    """Replace right-to-left letters by escapes, in stored order."""
    return "".join(escape_character(character) if _is_turned(character) else character for character in text)


def _is_turned(character: str) -> bool:
    return unicodedata.bidirectional(character) in ("R", "AL", "AN")
