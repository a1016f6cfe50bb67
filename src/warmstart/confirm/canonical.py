"""Canonical JSON: one way to write a value, so that the digest of approved arguments identifies them.

Strict where JSON is loose: duplicate keys, NaN, infinities and lone surrogates are refused, because two parsers could
read them differently. Keys are sorted by code point. 1 and 1.0 are different values.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections import Counter
from functools import lru_cache
from itertools import groupby
from typing import Any, NoReturn

from warmstart.confirm.errors import BadRequest

MAX_BODY = 256 << 10
MAX_DEPTH = 64


def parse_json(body: bytes) -> Any:
    """Parse a body. Raise BadRequest if it is ambiguous or cannot be stored."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except BadRequest:
        raise
    except UnicodeDecodeError:
        raise BadRequest("the body is not UTF-8") from None
    except RecursionError:
        raise BadRequest(f"the body is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:  # also numbers with thousands of digits
        raise BadRequest(f"the body is not valid JSON: {error}") from None
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """Raise BadRequest for values without exactly one canonical form: too deep, lone surrogates, not JSON."""
    work: list[tuple[Any, int]] = [(value, 1)]
    while work:
        node, depth = work.pop()
        if isinstance(node, str):
            if not node.isascii():
                _check_text(node)
        elif isinstance(node, dict | list | tuple):
            if depth > MAX_DEPTH:
                raise BadRequest(f"nested more than {MAX_DEPTH} levels deep")
            if isinstance(node, dict):
                for key in node:
                    if not isinstance(key, str):
                        raise BadRequest(f"a key that is not a string: {key!r}")
                    _check_text(key)
                node = list(node.values())
            work.extend((inner, depth + 1) for inner in node)
        elif isinstance(node, float):
            if node != node or node in (float("inf"), float("-inf")):
                raise BadRequest("a number that is not finite")
        elif node is not None and not isinstance(node, int):
            raise BadRequest(f"a value that JSON cannot hold: {type(node).__name__}")


def write_canonical(value: Any) -> str:
    """Write a checked value in its canonical form."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_value(value: Any) -> str:
    return hashlib.sha256(write_canonical(value).encode("utf-8")).hexdigest()


def digest_deed(action: str, details: Any) -> str:
    """Return the digest that a decision is bound to: of the exact action and details."""
    return digest_value({"action": action, "details": details})


def write_readable(value: Any) -> str:
    """Write a value for people: indented, sorted, invisible and direction-changing characters as escapes."""
    return show_hidden(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False))


def show_hidden(text: str) -> str:
    """Replace every invisible or direction-changing character by an escape; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return _SUSPECT.sub(_write_run, text)


# A superset of what is hidden, so that most characters are passed over at once.
_SUSPECT = re.compile(r"[^\x20-\x7e\n]+")
_LONGEST_RUN = 16  # hidden characters that are written out one by one; of more, how many there are

# Default-ignorable characters (Unicode's DerivedCoreProperties), which fonts show as nothing, and the blank of Braille.
_IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F),
    (0x202A, 0x202E), (0x2060, 0x206F), (0x2800, 0x2800), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


def is_ignorable(character: str) -> bool:
    """Return whether fonts show the character as nothing."""
    code = ord(character)
    return any(first <= code <= last for first, last in _IGNORABLE)


@lru_cache(4096)
def _is_hidden(character: str) -> bool:
    if character in "\n ":
        return False
    return unicodedata.category(character)[0] in "CZ" or is_ignorable(character)


def _write_run(match: re.Match[str]) -> str:
    """Write a run of suspect characters: visible ones as they are, hidden ones as escapes, many of them as a number."""
    parts = []
    for is_hidden, characters in groupby(match.group(), _is_hidden):
        run = list(characters)
        if not is_hidden:
            parts += run
            continue
        parts += map(escape_character, run[:_LONGEST_RUN])
        if len(run) > _LONGEST_RUN:
            parts.append(f"⟨{len(run):,} invisible characters⟩")
    return "".join(parts)


def escape_character(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise BadRequest(f"the key {twice[:60]!r} appears twice in one object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadRequest(f"{text[:30]} is too large a number")
    return number


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRequest("a lone surrogate (half a character)") from None
