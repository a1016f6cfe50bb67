"""Reading JSON that real writers left: glued objects, NaN, bad UTF-8, lone surrogates, drifted fields, cut-off ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # ValidationError is a DecodeError
MAX_VALUE = 32 << 20  # bytes of one line or one element; longer ones are skipped and reported
_CHUNK = 1 << 20
_MAX_PRUNED = 6

_loose = json.JSONDecoder(strict=False, parse_constant=lambda _name: None)
_space = re.compile(r"[\s,\x1e]*")
_surrogate = re.compile(r"[\ud800-\udfff]")
_path = re.compile(r" - at `(\$[^`]*)`$")
_part = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def scrub(value: Any) -> Any:
    """Lone surrogates become U+FFFD: no database or file takes them."""
    if isinstance(value, str):
        return _surrogate.sub("�", value)
    if isinstance(value, list):
        return [scrub(v) for v in value]
    if isinstance(value, dict):
        return {scrub(k): scrub(v) for k, v in value.items()}
    return value


def loose_values(data: bytes) -> tuple[list[Any], str | None]:
    """Every JSON value in `data`, glued or not, and what was wrong with the rest (None: nothing)."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    values: list[Any] = []
    at = _end_of_space(text, 0)
    while at < len(text):
        try:
            value, at = _loose.raw_decode(text, at)
        except json.JSONDecodeError as error:
            cut_off = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
            return values, "the JSON is cut off" if cut_off else f"no JSON at column {error.pos + 1}: {error.msg}"
        except RecursionError:
            return values, "nested too deeply"
        values.append(value)
        at = _end_of_space(text, at)
    try:
        return [scrub(v) for v in values], None
    except RecursionError:
        return [], "nested too deeply"


def _end_of_space(text: str, at: int) -> int:
    found = _space.match(text, at)
    return found.end() if found else at


def convert(value: Any, kind: type[T]) -> tuple[T | None, str | None]:
    """Fit a value to a typed struct; a field of an unexpected shape is dropped and named, not the whole record."""
    dropped: list[str] = []
    for _ in range(_MAX_PRUNED):
        try:
            return msgspec.convert(value, kind, strict=False), ", ".join(dropped) or None
        except msgspec.ValidationError as error:
            where = _path.search(str(error))
            if where is None or where[1] == "$" or not _prune(value, where[1]):
                return None, str(error)
            dropped.append(f"ignored {str(error)}")
        except RecursionError:
            return None, "nested too deeply"
    return None, "too many fields of an unexpected shape: " + ", ".join(dropped)


def _prune(value: Any, path: str) -> bool:
    parts: list[str | int] = [name or (int(index) if index != "..." else 0) for name, index in _part.findall(path)]
    for part in parts[:-1]:
        try:
            value = value[part]
        except (KeyError, IndexError, TypeError):
            return False
    last = parts[-1] if parts else None
    if isinstance(value, dict) and last in value:
        del value[last]
        return True
    if isinstance(value, list) and isinstance(last, int) and last < len(value):
        del value[last]
        return True
    return False


_token = re.compile(rb'["{}\[\]]')
_string = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.S)
_blank = re.compile(rb"[\s,:\x1e]*+")
_scalar = re.compile(rb"[^\s,\]}]*+")


class Scanner:
    """Walks a JSON text of any size in bounded memory and hands out the pieces a reader wants.

    Yields `(key, bytes, line)`: for an object at the root each value under its key, arrays named in `arrays` element
    by element; for a list at the root its elements under the key "". Values too long to hold are skipped and told.
    """

    def __init__(self, read: Callable[[int], bytes], tell: Callable[[int, str], None]) -> None:
        self._read = read
        self._tell = tell
        self._buffer = b""
        self._at = 0
        self._line = 1

    def pieces(self, arrays: frozenset[str]) -> Iterator[tuple[str, bytes, int]]:
        while self._skip_blank():
            opening = self._buffer[self._at : self._at + 1]
            if opening == b"[":
                yield from self._elements("")
            elif opening == b"{":
                yield from self._members(arrays)
            else:
                self._tell(self._line, "no JSON object or list")
                return

    def _members(self, arrays: frozenset[str]) -> Iterator[tuple[str, bytes, int]]:
        self._advance(1)
        while self._skip_blank():
            if self._buffer[self._at : self._at + 1] == b"}":
                self._advance(1)
                return
            raw_key = self._take()
            if raw_key is None:
                return
            try:
                key = msgspec.json.decode(raw_key, type=str)
            except DECODE_ERRORS:
                self._tell(self._line, "no JSON: a key was expected")
                return
            if not self._skip_blank():
                break
            if key in arrays and self._buffer[self._at : self._at + 1] == b"[":
                yield from self._elements(key)
                continue
            line = self._line
            value = self._take()
            if value is not None:
                yield key, value, line
        else:
            self._tell(self._line, "the JSON is cut off")
            return
        self._tell(self._line, "the JSON is cut off")

    def _elements(self, key: str) -> Iterator[tuple[str, bytes, int]]:
        self._advance(1)
        while self._skip_blank():
            if self._buffer[self._at : self._at + 1] == b"]":
                self._advance(1)
                return
            line = self._line
            value = self._take()
            if value is not None:
                if not value:
                    self._tell(line, "no JSON: a value was expected")
                    return
                yield key, value, line
        self._tell(self._line, "the JSON is cut off")

    def _fill(self) -> bool:
        chunk = self._read(_CHUNK)
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        return bool(chunk)

    def _advance(self, count: int) -> None:
        self._line += self._buffer.count(b"\n", self._at, self._at + count)
        self._at += count

    def _skip_blank(self) -> bool:
        while True:
            blank = _blank.match(self._buffer, self._at)
            if blank:
                self._advance(blank.end() - self._at)
            if self._at < len(self._buffer):
                return True
            if not self._fill():
                return False

    def _take(self) -> bytes | None:
        """The value at the cursor, or None when it is cut off (at the end) or too long (skipped)."""
        started = self._line
        depth, in_string, cursor, kept, size = 0, False, self._at, True, 0
        while True:
            buffer = self._buffer
            if in_string:
                found = _string.match(buffer, cursor)
                cursor = found.end() if found else cursor
                in_string = not (found and found[1])
            elif depth == 0 and buffer[cursor : cursor + 1] not in (b"{", b"[", b'"'):
                scalar = _scalar.match(buffer, cursor)
                cursor = scalar.end() if scalar else cursor
                if cursor < len(buffer):
                    return self._cut(cursor, kept)
            else:
                token = _token.search(buffer, cursor)
                if token is None:
                    cursor = len(buffer)
                else:
                    cursor = token.end()
                    mark = token[0]
                    if mark == b'"':
                        in_string = True
                        continue
                    depth += 1 if mark in b"{[" else -1
            if depth <= 0 and not in_string and cursor > self._at:
                return self._cut(cursor, kept) if kept else self._drop(cursor, started, size)
            if cursor >= len(buffer) or in_string:
                if kept and len(buffer) - self._at > MAX_VALUE:
                    kept = False
                if not kept:
                    size += cursor - self._at
                    self._advance(cursor - self._at)
                offset = cursor - self._at
                if not self._fill():
                    if depth == 0 and not in_string and kept and self._at < len(self._buffer):
                        return self._cut(len(self._buffer), kept)
                    self._advance(len(self._buffer) - self._at)
                    return None
                cursor = self._at + offset

    def _cut(self, end: int, kept: bool) -> bytes:
        value = self._buffer[self._at : end] if kept else b""
        self._advance(end - self._at)
        return value

    def _drop(self, end: int, line: int, size: int) -> None:
        size += end - self._at
        self._advance(end - self._at)
        self._tell(line, f"a value of {size >> 20} MB is longer than {MAX_VALUE >> 20} MB; skipped")
