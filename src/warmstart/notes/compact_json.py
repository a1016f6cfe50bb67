"""JSON for hooks: the scanner of the standard library without the rest of it, which takes most of an interpreter's start.

`json` imports `re`; its scanner and string encoder are C functions that need neither. Where they are missing or refuse a
text, `json` itself decides.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Context:
    """The options that the scanner asks for."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def _make_scanner() -> Any:
    try:
        import _json

        make_scanner: Any = _json.make_scanner
        return make_scanner(_Context())
    except (ImportError, AttributeError, TypeError):
        return None


_scan = _make_scanner()  # calling None is a TypeError, like a text that is none


def parse_json(data: bytes | str) -> Any:
    """Return the value of a JSON text. Raises ValueError."""
    text = data if isinstance(data, str) else data.decode("utf-8", "surrogatepass")
    text = text.strip(" \t\r\n")
    value: Any = None
    try:
        value, end = _scan(text, 0)
    except (TypeError, ValueError, StopIteration, SystemError):
        end = -1
    if end == len(text):
        return value
    import json

    return json.loads(text)


def dump_json(value: Any) -> str:
    """Return a value as one line of JSON in ASCII."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quote(str(name))}: {dump_json(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(dump_json, value)) + "]"
    if isinstance(value, (int, float)):
        return repr(value)
    return _quote(str(value))


def _quote(text: str) -> str:
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text)
    return encode_basestring_ascii(text)
