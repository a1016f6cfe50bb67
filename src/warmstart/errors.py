"""The exceptions that Warmstart raises on purpose.

WarmstartError
 ├── SourceError          a file cannot be read
 │    └── UnknownFormat   the file can be read, but no reader knows its format
 ├── StoreError           the database cannot be used
 │    ├── StoreTooNew     a newer Warmstart wrote it; it was left untouched
 │    ├── StoreFull       the disk is full; acknowledged changes are safe
 │    ├── StoreDenied     the role may not see or change that
 │    ├── StoreTooLong    an id, name or path is too long for the database's index
 │    └── StoreUnreachable  the database server does not answer, or the connection was lost
 ├── ConfigError          a setting is wrong
 ├── NotFound             no session or template has that name
 ├── BadName              the name cannot be stored
 ├── ModelContextError    the model's context window is too small; also a ValueError
 └── Refused              the request was understood and declined, with a reason
      └── NotWorthLearning  a session failed or mostly failed; a person may capture it anyway
"""

from __future__ import annotations


class WarmstartError(Exception):
    """The base class of Warmstart's exceptions."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or self.__doc__)


class SourceError(WarmstartError):
    """A file cannot be read."""

    def __init__(self, path: str, reason: str, line: int | None = None) -> None:
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {reason}")


class UnknownFormat(SourceError):
    """No reader knows the format of the file."""


class StoreError(WarmstartError):
    """The store cannot be used."""


class StoreTooNew(StoreError):
    """The store was written by a newer Warmstart; it was left untouched."""


class StoreFull(StoreError):
    """The disk is full; changes acknowledged before are safe."""


class StoreDenied(StoreError):
    """The database role may not see or change that."""


class StoreTooLong(StoreError):
    """The database's index cannot hold so long an id, name or path; nothing of the change was kept."""


class StoreUnreachable(StoreError):
    """The database server cannot be reached; a change in progress may or may not have been committed."""


class ConfigError(WarmstartError):
    """A setting is wrong."""


class NotFound(WarmstartError):
    """Nothing has that name."""


class BadName(WarmstartError):
    """That name cannot be stored."""


class ModelContextError(WarmstartError, ValueError):
    """A model's context window is too small."""

    def __init__(self, model: str, window: int, minimum: int) -> None:
        self.model = model
        self.window = window
        self.minimum = minimum
        super().__init__(
            f"{model} has a context window of {window:,} tokens; at least {minimum:,} are needed: choose a larger"
            " model, or set model.context_length if the window is larger than that"
        )


class Refused(WarmstartError):
    """The request was understood and declined."""


class NotWorthLearning(Refused):
    """The session failed, so that no template is made of it; a person may overrule that."""


def explain(error: OSError) -> str:
    """Return the reason of a system error, as it stands in Warmstart's messages."""
    return (error.strerror or str(error)).lower()
