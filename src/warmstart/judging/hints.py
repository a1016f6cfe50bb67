"""Gates: one pass over a text finds whether a slow search can succeed at all. RE2 does it in linear time, in C.

A gate may open for nothing, and never stays closed where the search would find something.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from warmstart.redact.matching import BytesPattern, Prefilter

_FEW = 40  # texts asked about before an automaton is built: a hook judges one result, and loading RE2 takes longer
_SPACE = r"\t\n\v\f\r \x1c-\x1f"  # as `re` sees it in ASCII; RE2 knows fewer
_LOOK_AROUND = ("(?=", "(?!", "(?<=", "(?<!")
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*+\]|\(\?<?[=!]|\(\?[a-z]*:|\{\d*(?:,\d*)?\}|.", re.S)
_UNSUPPORTED = re.compile(r"\\[0-9BG]|\A\[.*\\[SBG]|\A\[\^.*\\[WD]|\A\(\?[P>(]", re.S)
_TOKENS = {r"\s": f"[{_SPACE}]", r"\S": f"[^{_SPACE}]", r"\Z": r"\z"}
_WIDE = r"?\x80-\xff"  # what stands for a character outside ASCII
_WIDE_TOKENS = {
    r"\s": f"[{_SPACE}{_WIDE}]",
    r"\S": f"[^{_SPACE}]",
    r"\w": rf"[\w{_WIDE}]",
    r"\d": rf"[\d{_WIDE}]",
    r"\b": "",
    r"\Z": r"\z",
}
_FOLDED = "\u0130\u0131\u017f\u212a"  # letters that equal ASCII ones where case does not count
_QUANTIFIERS = ("*", "+", "?", "{")


class HintGate:
    """Finds whether a text holds any of many words. `folded`: in any case; the words are in lower case then."""

    __slots__ = ("_asked", "_folded", "_hints", "_pattern")

    def __init__(self, hints: Iterable[str], *, folded: bool = False) -> None:
        self._hints = tuple(hints)
        self._folded = folded
        self._asked = 0
        words = "|".join(re.escape(hint) for hint in self._hints)
        self._pattern = BytesPattern(f"(?i){words}" if folded else words)

    def opens(self, text: str) -> bool:
        """Return whether the text holds one of the words."""
        if self._asked > _FEW:
            if self._folded and not text.isascii():  # RE2 folds bytes; outside ASCII there is more to fold
                text = text.lower()
            return self._pattern.search(text.encode("utf-8", "replace")) is not None
        self._asked += 1
        lowered = text.lower() if self._folded else text
        return any(hint in lowered for hint in self._hints)


class PatternGate:
    """Finds whether any of some patterns of `re` may match a text."""

    __slots__ = ("_all", "_asked", "_filter", "_wide")

    def __init__(self, *patterns: re.Pattern[str]) -> None:
        self._asked = 0
        self._all = range(len(patterns))
        self._filter = Prefilter([translate(pattern) for pattern in patterns])
        self._wide = Prefilter([translate(pattern, wide=True) for pattern in patterns])

    def opens(self, text: str) -> bool:
        """Return whether one of the patterns may match somewhere in the text."""
        return bool(self.which(text))

    def which(self, text: str) -> Sequence[int]:
        """Return the indexes of the patterns that may match somewhere in the text."""
        if self._asked <= _FEW:
            self._asked += 1
            return self._all
        if text.isascii():
            return self._filter.which(text.encode())
        if any(letter in text for letter in _FOLDED):
            return self._all
        return self._wide.which(text.encode("latin-1", "replace"))


def translate(pattern: re.Pattern[str], *, wide: bool = False) -> str:
    """Return a pattern for RE2 that matches wherever this one does in ASCII text, and perhaps elsewhere.

    It drops conditions on what follows or precedes. `wide`: in any text, encoded in Latin-1 with `?` for what that lacks.
    Raises ValueError for back references and the like.
    """
    flags = "".join(letter for letter, flag in (("i", re.I), ("m", re.M), ("s", re.S)) if pattern.flags & flag)
    source, end = pattern.pattern, r"$" if pattern.flags & re.M else r"\n?\z"
    pieces: list[str] = []
    at = 0
    while at < len(source):
        token = _take_token(source, at)
        at += len(token)
        if token.startswith(_LOOK_AROUND):
            at = _find_end(source, at)
        elif token == "+" and pieces and pieces[-1].startswith(_QUANTIFIERS):  # possessive: gives nothing back
            continue
        elif token.startswith("["):
            pieces.append(_widen_class(token) if wide else token.replace(r"\s", _SPACE))
        elif wide:
            pieces.append(end if token == "$" else _WIDE_TOKENS.get(token, token if token.isascii() else f"[{_WIDE}]"))
        else:
            pieces.append(end if token == "$" else _TOKENS.get(token, token))
    return f"(?{flags}:{''.join(pieces)})" if flags else "".join(pieces)


def _find_end(source: str, at: int) -> int:
    """Return the place after the bracket that closes a group."""
    depth = 1
    while depth:
        token = _take_token(source, at)
        depth += token.startswith("(") - (token == ")")
        at += len(token)
    return at


def _widen_class(token: str) -> str:
    """Return a class of characters that also matches the stand-in where it may match a character outside ASCII."""
    members = "".join(character for character in token if character.isascii()).replace(r"\s", _SPACE)
    if members.startswith("[^"):
        return members.replace(r"\?", "").replace("?", "")
    is_wide = not token.isascii() or any(member in token for member in (r"\w", r"\d", r"\s", r"\W"))
    return f"[{_WIDE}{members[1:]}" if is_wide else members


def _take_token(source: str, at: int) -> str:
    """Return the next part of a pattern: an escape, a class, the opening of a group, or a character."""
    token = _TOKEN.match(source, at)
    if token is None or _UNSUPPORTED.search(token[0]):
        raise ValueError(f"the pattern {source!r} cannot be translated at {at}")
    return token[0]
