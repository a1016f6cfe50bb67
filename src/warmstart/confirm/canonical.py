"""One way to write a value down, so that what was approved can be told from what is about to run.

Strict where JSON is loose: duplicate keys, NaN, infinities and half characters are refused, because two readers would
understand two things. Keys are sorted by code point. Whole numbers and fractions are different values: 1 is not 1.0.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import Any, NoReturn

from warmstart.confirm.errors import BadRequest

MAX_BODY = 256 << 10
MAX_DEPTH = 64


def parse_json(body: bytes) -> Any:
    """The value that a body holds. Raises BadRequest where it could be read in two ways or cannot be stored."""
    try:
        text = body.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite)
    except BadRequest:
        raise
    except UnicodeDecodeError:
        raise BadRequest("the body is no UTF-8") from None
    except RecursionError:
        raise BadRequest(f"the body is nested more than {MAX_DEPTH} deep") from None
    except ValueError as error:  # also numbers with thousands of digits
        raise BadRequest(f"the body is no valid JSON: {error}") from None
    check_value(value)
    return value


def check_value(value: Any) -> None:
    """Refuse what cannot be written down in exactly one way: too deep, half characters, values that are no JSON."""
    work: list[tuple[Any, int]] = [(value, 1)]
    while work:
        node, depth = work.pop()
        if isinstance(node, str):
            if not node.isascii():
                _check_text(node)
        elif isinstance(node, dict | list | tuple):
            if depth > MAX_DEPTH:
                raise BadRequest(f"nested more than {MAX_DEPTH} deep")
            if isinstance(node, dict):
                for key in node:
                    if not isinstance(key, str):
                        raise BadRequest(f"a key that is no text: {key!r}")
                    _check_text(key)
                node = list(node.values())
            work.extend((inner, depth + 1) for inner in node)
        elif isinstance(node, float):
            if node != node or node in (float("inf"), float("-inf")):
                raise BadRequest("a number that is not finite")
        elif node is not None and not isinstance(node, int):
            raise BadRequest(f"a value that is no JSON: {type(node).__name__}")


def write_canonical(value: Any) -> str:
    """The one way to write a checked value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest_value(value: Any) -> str:
    return hashlib.sha256(write_canonical(value).encode("utf-8")).hexdigest()


def digest_deed(action: str, details: Any) -> str:
    """What a decision is bound to: the exact action and details."""
    return digest_value({"action": action, "details": details})


def write_readable(value: Any) -> str:
    """For people: indented and sorted; what shows nothing or turns the text around is written out."""
    return show_hidden(json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False))


def show_hidden(text: str) -> str:
    """Text with every invisible or direction-changing character written as an escape; line ends stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape(character) if _is_hidden(character) else character for character in text)


_SHOWN_AS_NOTHING = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def _is_hidden(character: str) -> bool:
    if character in "\n ":
        return False
    kind = unicodedata.category(character)
    return kind[0] in "CZ" or character in _SHOWN_AS_NOTHING or "\ufe00" <= character <= "\ufe0f"


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise BadRequest(f"the key {twice[:60]!r} stands twice in one object")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise BadRequest(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise BadRequest(f"{text[:30]} is too large a number")
    return number


def _check_text(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadRequest("half a character (a lone surrogate)") from None
