r"""A quick look at a run of letters: most are names, and a name needs no closer judgement.

`ODD` occurs in every run of letters, dots and slashes of which `opaque.parts` keeps anything. Three things make it odd:

- It may be base64 of text. Four characters are three bytes; each byte is ASCII (its first bit is 0), begins a longer
  character of UTF-8 (11) or continues one (10), and a continuation follows no ASCII.
- It may be a digest or an id.
- It holds three odd places: two letters that are rare side by side, or a word of one or two letters before a capital.
  With fewer, `opaque.drawn_score` stays above every threshold.
"""

from __future__ import annotations

import string

_BASE64 = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_SORTS = ("ascii", "ascii", "next", "first")  # of a byte, by its first two bits
_AFTER = {"ascii": ("ascii", "first"), "first": ("next",), "next": ("ascii", "first", "next")}


def make_odd(pairs: set[str]) -> str:
    """Return the RE2 pattern `ODD`. `pairs` are the letter pairs of words."""
    place = f"(?:{_make_rare(pairs)}|[a-z][A-Z][a-z]?[A-Z]|{_SHORT_EDGES})"
    return "|".join(
        [
            rf"\A[./]*(?:{_make_encoded()})",
            "[a-f]{16}|[A-F]{16}|c[a-z]{24}",
            rf"(?:{place}[A-Za-z/]*){{2}}{place}",
        ]
    )


# A word of one or two letters at either end of letters in a row, before or after a capital.
_SHORT_EDGES = r"\b[A-Za-z][a-z]?[A-Z]|[a-z][A-Z][a-z]?\b"


def _make_rare(pairs: set[str]) -> str:
    """Return a pattern of the letter pairs within a word that are rare in words."""
    alternatives = []
    for first in string.ascii_lowercase:
        rare = "".join(letter for letter in string.ascii_lowercase if first + letter not in pairs)
        alternatives.append(f"[{first}{first.upper()}][{rare}]|{first.upper()}[{rare.upper()}]")
    return "|".join(alternatives)


def _make_encoded() -> str:
    """Return a pattern of base64 that may be text: its first 16 characters, or half a UTF-16 text."""
    wide = r"[A-Za-z/][AQgw][A-D][A-Za-z/]A[A-P][AEIMQUYcgkosw]A"
    return _make_group(("ascii", "first")) + _make_group(tuple(_AFTER)) * 3 + "|" + wide


def _make_group(begins: tuple[str, ...]) -> str:
    """Return a pattern of four characters of base64 whose first byte is of one of these sorts."""
    alternatives = [
        _make_class(4, (first,)) + _make_class(2, (second,)) + _make_class(0, _AFTER[second])
        for first in begins
        for second in _AFTER[first]
    ]
    return f"(?:{'|'.join(alternatives)})[A-Za-z/]"


def _make_class(shift: int, sorts: tuple[str, ...]) -> str:
    """Return the class of the characters in which a byte of one of these sorts begins, `shift` bits above their last."""
    chars = [char for code, char in enumerate(_BASE64) if _SORTS[(code >> shift) & 3] in sorts]
    return f"[{''.join(char for char in chars if char.isalpha() or char == '/')}]"
