"""Which names may be stored. A template's name is never a path; it must not become one by accident either.

A name may end up in a file name, a URL or a terminal on any system, so it is refused if any of them would read it as
something else: a way out of a folder, a device, an option, text that shows otherwise than it is. What is refused is
refused in all its spellings: compatibility forms (`．．／`, `ＣＯＮ`, `COM¹`) count as what they stand for.
"""

from __future__ import annotations

import re
import unicodedata

from warmstart.errors import BadName

__all__ = ["MAX_BYTES", "check_name", "could_hide_secret", "name_key"]

MAX_BYTES = 200
_MAX_CHARACTERS = 4 * MAX_BYTES  # composing shortens a name to a third at most; longer ones are not even looked at

_SEPARATORS = frozenset("/\\:")
_LIKE_SEPARATORS = frozenset("⁄∕⧸∖⧵⧹꞉∶˸")  # no file system takes them for one, but every reader does
_HIDDEN = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
_HIDDEN_REASONS = {
    "Cc": "a control character",
    "Cs": "half a character",
    "Co": "a private character",
    "Cn": "no character",
}
_UNSEEN = re.compile(  # letters and marks that show nothing: fillers, joiners, variation selectors
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9]|conin\$|conout\$|clock\$)\Z")
_ROUNDS = 6  # folding and composing feed each other; two rounds are the most ever seen


_UUID = re.compile(r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![\w-])", re.I)
_COULD_HIDE = re.compile(r"[A-Za-z0-9+_=~-]{16,}|[^\x20-\x7e]|[@%&?]|pass|pwd|secret|token|key|auth|bearer", re.I)


def could_hide_secret(text: str) -> bool:
    """Whether an id, a path or a name is worth the price of a real search: most plainly are not."""
    return _COULD_HIDE.search(_UUID.sub(" ", text)) is not None


def check_name(name: str) -> str:
    """The name as it is to be stored, composed (NFC). Raises BadName with the reason."""
    if len(name) > _MAX_CHARACTERS:
        raise BadName(f"the name is longer than {MAX_BYTES} bytes")
    stored = unicodedata.normalize("NFC", name)
    reason = _what_is_wrong(stored)
    if reason:
        raise BadName(reason)
    return stored


def name_key(name: str) -> str:
    """What must be unique among names: alike for names that differ only in case, in how accents are written, in
    compatibility forms or in the width of their spaces, so that no file system and no eye takes one for the other."""
    key = _fold(name)
    for _ in range(_ROUNDS):
        further = _fold(key)
        if further == key:
            break
        key = further
    return key


def _fold(text: str) -> str:
    """Upper case first: file systems fold by it, and it joins letters that lower case keeps apart (ı and i)."""
    cased = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).upper().casefold())
    return " ".join(_UNSEEN.sub("", cased).split())


def _what_is_wrong(name: str) -> str | None:
    if not name or name.isspace():
        return "the name is empty"
    hidden = _hidden_character(name)
    if hidden:
        return hidden
    if len(name.encode()) > MAX_BYTES:
        return f"the name is longer than {MAX_BYTES} bytes"
    plain = unicodedata.normalize("NFKC", name)
    return _wrong_way(name, plain) or _wrong_ends(name) or _wrong_ends(plain)


def _hidden_character(name: str) -> str | None:
    for character in name:
        kind = unicodedata.category(character)
        if kind in _HIDDEN or _UNSEEN.match(character):
            what = _HIDDEN_REASONS.get(kind, "an invisible character")
            return f"the name holds {what} (U+{ord(character):04X})"
        if kind == "Zs" and character != " ":
            return f"the name holds an unusual space (U+{ord(character):04X})"
    return None


def _wrong_way(name: str, plain: str) -> str | None:
    """Whether it leads elsewhere: up, down, to a drive or to a device."""
    found = next((c for c in name if c in _SEPARATORS or c in _LIKE_SEPARATORS), None)
    found = found or next((c for c in plain if c in _SEPARATORS), None)
    if found:
        return f"the name holds a separator ({found!r}); a name is not a path"
    if ".." in plain:
        return "the name holds '..'; a name is not a path"
    stem = plain.split(".", 1)[0].strip().casefold()
    if _DEVICE.match(stem):
        return "the name is that of a device on Windows"
    return None


def _wrong_ends(name: str) -> str | None:
    if name[0] in ".-~":
        return f"the name begins with {name[0]!r}"
    if name[0] == " ":
        return "the name begins with a space"
    if name[-1] in ". ":
        return "the name ends with a dot or a space"
    if unicodedata.category(name[0]).startswith("M"):
        return "the name begins with a mark that belongs to a letter before it"
    return None
