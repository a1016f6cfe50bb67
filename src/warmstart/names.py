"""The check of names to be stored. A template's name is not a path and must not become one by accident.

A name may end up in a file name, a URL or a terminal on any system, so it is refused if any of them would read it as
something else: a path out of a folder, a device, an option, or text that displays differently. Compatibility forms
(`．．／`, `ＣＯＮ`, `COM¹`) count as the characters they stand for.
"""

from __future__ import annotations

import unicodedata

from warmstart import lazy_regex as re
from warmstart.errors import BadName

__all__ = ["MAX_BYTES", "check_name", "could_hide_secret", "name_key"]

MAX_BYTES = 200
_MAX_CHARACTERS = 4 * MAX_BYTES  # composing shortens a name to a third at most; longer ones are refused unread

_SEPARATORS = frozenset("/\\:")
_LIKE_SEPARATORS = frozenset("⁄∕⧸∖⧵⧹꞉∶˸")  # to a file system these are no separators, to a reader they are
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_HIDDEN_REASONS = {
    "Cc": "a control character",
    "Cs": "half a character",
    "Co": "a private-use character",
    "Cn": "an unassigned character",
}
_UNSEEN = re.compile(  # letters and marks that show nothing: fillers, joiners, variation selectors
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$|clock\$)\Z")
_ROUNDS = 6  # folding and composing feed each other; two rounds are the most seen so far


_RANDOM_ID = re.compile(  # UUIDs, and the ids of OpenCode's sessions: a time and 14 random characters
    r"(?<![\w-])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}|ses_[0-9a-f]{12}[0-9A-Za-z]{14})(?![\w-])"
)
_COULD_HIDE = re.compile(r"[A-Za-z0-9+_=~-]{16,}|[^\x20-\x7e]|[@%&?]|pass|pwd|secret|token|key|auth|bearer", re.I)


def could_hide_secret(text: str) -> bool:
    """Return whether an id, a path or a name is worth the cost of a search for secrets; most are not."""
    return _COULD_HIDE.search(_RANDOM_ID.sub(" ", text)) is not None


def check_name(name: str) -> str:
    """Return the name as it is stored, composed (NFC). Raises BadName with the reason."""
    if len(name) > _MAX_CHARACTERS:
        raise BadName(f"the name is longer than {MAX_BYTES} bytes")
    stored = unicodedata.normalize("NFC", name)
    reason = _find_fault(stored)
    if reason:
        raise BadName(reason)
    return stored


def name_key(name: str) -> str:
    """Return the key that must be unique among names.

    Names have the same key if they differ only in case, in how accents are written, in compatibility forms or in the
    width of their spaces, so that no file system and no reader takes one for the other.
    """
    key = _fold(name)
    for _ in range(_ROUNDS):
        further = _fold(key)
        if further == key:
            break
        key = further
    return key


def _fold(text: str) -> str:
    """Fold a name. Upper case comes first: file systems fold by it, and it joins letters that lower case separates (ı, i)."""
    cased = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).upper().casefold())
    return " ".join(_UNSEEN.sub("", cased).split())


def _find_fault(name: str) -> str | None:
    if not name or name.isspace():
        return "the name is empty"
    hidden = _find_hidden(name)
    if hidden:
        return hidden
    if len(name.encode()) > MAX_BYTES:
        return f"the name is longer than {MAX_BYTES} bytes"
    plain = unicodedata.normalize("NFKC", name)
    return _find_path(name, plain) or _find_bad_end(name) or _find_bad_end(plain)


def _find_hidden(name: str) -> str | None:
    for character in name:
        kind = unicodedata.category(character)
        if kind in _HIDDEN or _UNSEEN.match(character):
            what = _HIDDEN_REASONS.get(kind, "an invisible character")
            return f"the name contains {what} (U+{ord(character):04X})"
        if kind == "Zs" and character != " ":
            return f"the name contains an unusual space (U+{ord(character):04X})"
    return None


def _find_path(name: str, plain: str) -> str | None:
    """Return the reason if a system could read the name as a path: up, down, to a drive or to a device."""
    separator = next((c for c in name if c in _SEPARATORS or c in _LIKE_SEPARATORS), None)
    separator = separator or next((c for c in plain if c in _SEPARATORS), None)
    if separator:
        return f"the name contains a separator ({separator!r}); a name is not a path"
    if ".." in plain:
        return "the name contains '..'; a name is not a path"
    stem = plain.split(".", 1)[0].strip().casefold()
    if _DEVICE.match(stem):
        return "the name is reserved for a device on Windows"
    return None


def _find_bad_end(name: str) -> str | None:
    if name[0] in ".-~":
        return f"the name begins with {name[0]!r}"
    if name[0] == " ":
        return "the name begins with a space"
    if name[-1] in ". ":
        return "the name ends with a dot or a space"
    if unicodedata.category(name[0]).startswith("M"):
        return "the name begins with a combining mark"
    return None
