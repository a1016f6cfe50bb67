"""Ids and names as they are stored: without secrets, and without characters that cannot be stored."""

from __future__ import annotations

from collections.abc import Mapping

from warmstart.digests import blake2b
from warmstart.names import could_hide_secret


class IdentifierRedactor:
    """Redacts the ids of sessions, models and projects. `secrets` holds the user's own secret values by name."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._secrets = dict(secrets)

    def identify(self, name: str) -> str:
        """Redact an id. A digest keeps two ids apart that differ only in their secrets."""
        hidden = self.clean(name)
        if hidden == name:
            return name
        return f"{hidden} {blake2b(name.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"

    def clean(self, text: str) -> str:
        """Redact a name or a path. The search, which takes a tenth of a second to set up, runs only if it could help."""
        text = text.encode("utf-8", "replace").decode()  # half a character cannot be stored
        if not could_hide_secret(text) and not any(value in text for value in self._secrets.values()):
            return text
        from warmstart.redact.redactor import Redactor

        return Redactor(self._secrets).scope().identifier(text)
