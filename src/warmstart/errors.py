"""Everything Warmstart raises on purpose.

WarmstartError
 ├── SourceError          a transcript cannot be read at all
 │    └── UnknownFormat   readable, but no reader knows it
 ├── StoreError           the database cannot be used
 │    ├── StoreTooNew     written by a newer Warmstart; left untouched
 │    ├── StoreFull       the disk is full; nothing acknowledged was lost
 │    └── StoreUnreachable  the database server does not answer, or the connection was lost
 ├── ConfigError          a setting is wrong
 ├── NotFound             no session or template of that name
 ├── BadName              a name that must not be stored
 ├── ModelContextError    a model's context window is too small for the work; a ValueError too
 └── Refused              understood, and declined with a reason
"""

from __future__ import annotations


class WarmstartError(Exception):
    """Something went wrong in Warmstart."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class SourceError(WarmstartError):
    """The transcript cannot be read."""

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {reason}")


class UnknownFormat(SourceError):
    """No reader knows this kind of file."""


class StoreError(WarmstartError):
    """The store cannot be used."""


class StoreTooNew(StoreError):
    """The store was written by a newer Warmstart; it was left untouched."""


class StoreFull(StoreError):
    """The disk is full; what was acknowledged before is safe."""


class StoreUnreachable(StoreError):
    """The database server cannot be reached; a change that was under way may or may not have been kept."""


class ConfigError(WarmstartError):
    """A setting is wrong."""


class NotFound(WarmstartError):
    """There is nothing of that name."""


class BadName(WarmstartError):
    """That name cannot be stored."""


class ModelContextError(WarmstartError, ValueError):
    """A model's context window is too small."""

    def __init__(self, model: str, window: int, minimum: int) -> None:
        self.model = model
        self.window = window
        self.minimum = minimum
        super().__init__(
            f"{model} has a context window of {window:,} tokens, and at least {minimum:,} are needed: choose a larger"
            " model, or, if the window is really larger, set it as model.context_length"
        )


class Refused(WarmstartError):
    """Understood, and declined."""
