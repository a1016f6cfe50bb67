"""The statements of queries.sql as PostgreSQL reads them, and the values that go in and out."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg.abc import AdaptContext
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.types.numeric import Int8Dumper

_LONGEST_WORD = 250  # characters; PostgreSQL takes 2,046 bytes
_MOST_TEXT = 900_000  # bytes of one session's words; PostgreSQL takes 1 MB
_WORD = re.compile(r"[^\W_]+")
_VALUE = re.compile(r"'(?:[^']|'')*'|--[^\n]*|(?<!:):([a-z_]+)|\?(\d*)")

# What SQLite writes otherwise, in this order. Functions that PostgreSQL lacks are made by its first migration.
_WORDS = (
    (r"\((\?\d+|:[a-z_]+) IS NULL OR ([^()]+)\)", r"(\2 OR \1 IS NULL)"),  # the comparison tells the value's type
    (r"\bLIKE\b", "ILIKE"),  # SQLite's ignores the case of ASCII letters, as ours does: the columns collate as "C"
    (r"\bCROSS JOIN\b", "JOIN"),  # keeps SQLite's order of joins
    (r"(?<=[\s(])\+(?=[a-z]\.)", ""),  # keeps SQLite from an index
    (  # places on somebody's disk, and counts of what she may see, are her own
        r"\bON CONFLICT \((uri|folder|name|kind, project, scope, agent, level, number)\)",
        r"ON CONFLICT (\1, owner)",
    ),
    (r"\bjson_each\(", "json_list("),
    (r"\bjson_extract\((?=[a-z.]+, '\$\.tokens')", "json_number("),
    (r"\bjson_extract\(", "json_get("),
    (r"\bjson_set\(", "json_put("),
    (r"\bjson_valid\(", "is_json("),
    (r"\binstr\(", "strpos("),
    (r"\bchar\(", "chr("),
    (r"\b(?:f\.)?session_words MATCH (\?\d+|:[a-z_]+)", r"words @@ CAST(\1 AS tsquery)"),
    (r"\bf\.rowid\b", "f.id"),
)


def translate(sql: str) -> str:
    """Return a statement for PostgreSQL, with $1, $2 ... in the order in which SQLite binds values."""
    for pattern, words in _WORDS:
        sql = re.sub(pattern, words, sql)
    numbers: dict[str, int] = {}

    def number(match: re.Match[str]) -> str:
        name, place = match.groups()
        if name is None and place is None:
            return match[0] if match[0].startswith("'") else ""  # a text; a comment
        if name is None and not place:
            name = f"?{len(numbers)}"
        return f"${place or numbers.setdefault(name, len(numbers) + 1)}"

    return _VALUE.sub(number, sql).strip()


def fold(text: str) -> str:
    """Return a text in lower case and without accents, as SQLite's word index reads it."""
    text = text.lower()
    if text.isascii():
        return text
    return "".join(char for char in unicodedata.normalize("NFD", text) if unicodedata.category(char) != "Mn")


def list_words(texts: Iterable[str | None]) -> list[str]:
    """Return the different words of some texts, as many as PostgreSQL keeps for one session."""
    words: dict[str, None] = {}
    size = 0
    for text in texts:
        for word in _WORD.findall(fold(text or "")):
            word = word[:_LONGEST_WORD]
            if word not in words:
                size += len(word.encode("utf-8", "replace")) + 1
                if size > _MOST_TEXT:
                    return list(words)
                words[word] = None
    return list(words)


def match_words(words: Iterable[str]) -> str:
    """Return the tsquery for texts with every one of the words; the last may be the beginning of one."""
    return " & ".join(f"'{word}'" for word in list_words(words)) + ":*"


class TextDumper(Dumper):
    """Texts as they are, but for NUL and half surrogate pairs, which PostgreSQL cannot hold."""

    def dump(self, obj: str) -> bytes:
        return obj.encode("utf-8", "replace").replace(b"\0", b"\xef\xbf\xbd")


class FlagDumper(Dumper):
    """Booleans as the integers of our columns."""

    oid = psycopg.postgres.types["int8"].oid

    def dump(self, obj: bool) -> bytes:
        return b"1" if obj else b"0"


class NumberLoader(Loader):
    """Sums as the numbers that SQLite returns, instead of decimals."""

    def load(self, data: Any) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text or b"N" in text else int(text)


def make_adapters() -> AdaptContext:
    """Return how values become columns and columns values."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, TextDumper)
    adapters.register_dumper(bool, FlagDumper)
    adapters.register_dumper(int, Int8Dumper)  # always of one type, so that a statement is prepared once
    adapters.register_loader("numeric", NumberLoader)
    return adapters
