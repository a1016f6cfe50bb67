"""Ids and names as they are kept: nothing secret in them, and nothing that cannot be stored."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from warmstart.names import could_hide_secret


class IdentifierRedactor:
    """Cleans what callers name sessions, models and projects. The user's own secrets are known to it."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = dict(secrets)

    def identify(self, name: str) -> str:
        """An id as it is kept. Two that hold secrets must not become one."""
        hidden = self.clean(name)
        if hidden == name:
            return name
        return f"{hidden} {hashlib.blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def clean(self, text: str) -> str:
        """Redaction takes a tenth of a second to load: only for what could hold a secret at all."""
        text = text.encode("utf-8", "replace").decode()  # half a character cannot be stored
        if not could_hide_secret(text) and not any(value in text for value in self._secrets.values()):
            return text
        from warmstart.redact import Redactor

        return Redactor(self._secrets).scope().identifier(text)
