"""Estimate the tokens of a text without a vocabulary: an upper bound in microseconds.

Providers count differently and their tokenizers are large (the one for OpenAI's models is a 41 MB download that takes most
of a second to load), while a budget needs a number that is never too small. So texts are cut as byte-pair tokenizers cut
them (words, numbers by threes, runs of punctuation, white space) and each piece is charged the most that it costs in
practice. `bench/tokens.py` compares with a real tokenizer: never below it on real transcripts, a third above it in the
median.
"""

from __future__ import annotations

from warmstart import lazy_regex as re

_PIECES = re.compile(
    r" ?[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d{1,3}|[ \t]{2,}|\n[ \t\n]*|[^\x00-\x7f]|\\[a-z\"\\]"
    r"|[\"'{}\[\](),:;=<>]{1,2}|\s|[^\sA-Za-z0-9]"
)
_BLOB = re.compile(r"[A-Za-z0-9+/]{24,}")  # base64, digests, ids: cut finer than words
_ACCENTED = re.compile(r"[^\W\d_\x00-\x7f]")
_FOREIGN = 1.15  # vocabularies are mostly English; words of other languages are cut shorter
_VOWELS = re.compile(r"[aeiouyAEIOUY]")
_CAPITALS = 2.2  # letters per token in a word of capitals, which vocabularies cut short
_UNSPEAKABLE = 2.0  # letters per token in words without vowels: "drwxr", ids
_USUAL, _LONG = 8, 4.0  # a word of up to 8 letters is one token; each 4 letters more cost another


def estimate(text: str) -> int:
    """Return an upper bound of a text's tokens."""
    foreign = _FOREIGN if _ACCENTED.search(text) else 1.0
    return int(_count(text) * foreign + sum(map(_surcharge, _BLOB.findall(text)))) + 2


def _count(text: str) -> float:
    return sum(map(_charge, _PIECES.findall(text)))


def _surcharge(run: str) -> float:
    """Return what a run of letters and digits costs beyond its pieces, unless it is a path or a long word."""
    digits = sum(map(run.count, "0123456789"))
    if digits * 20 < len(run):
        return 0.0
    each = 0.62 if run.islower() or run.isupper() else 0.75
    return max(0.0, each * len(run) - _count(run))


def _charge(piece: str) -> float:
    size = len(piece)
    first = piece[0]
    if first >= "\x80":
        return 1.6
    if piece.isspace():
        return 1 + size / 16
    if size <= 3:
        return 1.4 if size == 3 and piece.isupper() else 1.0
    if not piece[-1].isalpha():
        return 1.0
    if piece.isupper():
        return 1 + (size - 1) / _CAPITALS
    if len(_VOWELS.findall(piece)) * 4 < size - 1:
        return max(1.0, size / _UNSPEAKABLE)
    return 1.0 if size <= _USUAL else 1 + (size - _USUAL) / _LONG
