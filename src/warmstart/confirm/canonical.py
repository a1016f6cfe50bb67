"""Canonical JSON: one way to write a value, so that the digest of approved arguments identifies them.

Strict where JSON is loose: duplicate keys, NaN, infinities and lone surrogates are refused, because two parsers could
read them differently. Keys are sorted by code point. 1 and 1.0 are different values.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
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
    return "".join(escape_character(character) if _is_hidden(character) else character for character in text)


_SHOWN_AS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def _is_hidden(character: str) -> bool:
    if character in "\n ":
        return False
    kind = unicodedata.category(character)
    return kind[0] in "CZ" or character in _SHOWN_AS_NOTHING or "\ufe00" <= character <= "\ufe0f"


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
