"""Nothing secret is stored or leaves: secrets in texts and values are replaced by typed, numbered placeholders.

A text is searched as it stands, then again with escapes, colours and encodings undone. Each reading is searched for the
user's own secret values, for vendors' secret formats, for values that a name beside them makes secret, and last for
opaque tokens. The module is pure, but for the patterns that Hyperscan keeps compiled: the secret values of the
environment are passed in. Matching takes linear time.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from typing import Any

    from warmstart.redact.redactor import Redactor
    from warmstart.redact.scope import MASK, Hit, Scope

__all__ = ["MASK", "Hit", "Redactor", "Scope"]


def __getattr__(name: str) -> Any:
    """Load the search when it is first used: most ids need none, and agents wait for every import."""
    if name not in __all__:
        raise AttributeError(f"module 'warmstart.redact' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("warmstart.redact.redactor" if name == "Redactor" else "warmstart.redact.scope"), name)
