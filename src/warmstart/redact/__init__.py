"""Nothing secret is stored or leaves: secrets in texts and values are replaced by typed, numbered placeholders.

A text is searched as it stands, then again with escapes, colours and encodings undone. Each reading is searched for the
user's own secret values, for vendors' secret formats, for values that a name beside them makes secret, and last for
opaque tokens. The module is pure: the secret values of the environment are passed in. Matching takes linear time.
"""

from __future__ import annotations

from warmstart.redact.redactor import Redactor
from warmstart.redact.scope import MASK, Hit, Scope

__all__ = ["MASK", "Hit", "Redactor", "Scope"]
