"""Lenient JSON reading: glued objects, NaN, bad UTF-8, lone surrogates, fields of a new shape, cut-off ends."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

import msgspec

from warmstart.mismatch import describe_mismatch

T = TypeVar("T")

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)  # ValidationError is a DecodeError
MAX_VALUE = 32 << 20  # bytes of one line or one element; longer ones are skipped and reported
_CHUNK = 1 << 20
_MAX_PRUNED = 6  # fields dropped from one record
_MAX_TRIED = 200  # list elements tried to find the one that does not fit

_loose = json.JSONDecoder(strict=False, parse_constant=lambda _name: None)
_space = re.compile(r"[\s,\x1e]*")
_surrogate = re.compile(r"[\ud800-\udfff]")
_path = re.compile(r" - at `(\$[^`]*)`$")
_part = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")


def scrub(value: Any) -> Any:
    """Replace lone surrogates with U+FFFD: no database or file accepts them."""
    if isinstance(value, str):
        return _surrogate.sub("�", value)
    if isinstance(value, list):
        return [scrub(v) for v in value]
    if isinstance(value, dict):
        return {scrub(k): scrub(v) for k, v in value.items()}
    return value


def loose_values(data: bytes) -> tuple[list[Any], str | None]:
    """Return every JSON value in `data`, glued together or not, and the problem that ended the reading, if any."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    values: list[Any] = []
    problem: str | None = None
    at = _skip_space(text, 0)
    while at < len(text):
        try:
            value, at = _loose.raw_decode(text, at)
        except json.JSONDecodeError as error:
            cut_off = error.pos >= len(text.rstrip()) or "Unterminated" in error.msg
            problem = "the JSON is cut off" if cut_off else f"invalid JSON at column {error.pos + 1}: {error.msg}"
            break
        except RecursionError:
            problem = "nested too deeply"
            break
        except ValueError:  # an integer with more digits than Python converts
            problem = "a number too long to read"
            break
        values.append(value)
        at = _skip_space(text, at)
    try:
        return [scrub(v) for v in values], problem
    except RecursionError:
        return [], "nested too deeply"


def _skip_space(text: str, at: int) -> int:
    space = _space.match(text, at)
    return space.end() if space else at


def convert(value: Any, kind: type[T]) -> tuple[T | None, str | None]:
    """Convert a value to a typed struct. A field of an unexpected shape is dropped and reported, not the whole record."""
    dropped: list[str] = []
    for _ in range(_MAX_PRUNED):
        record, problem = _fit(value, kind)
        if problem is None:
            return record, ", ".join(dropped) or None
        if not _prune(value, problem, kind):
            return None, describe_mismatch(problem, "the record")
        dropped.append(f"ignored: {describe_mismatch(problem)}")
    return None, "too many fields of an unexpected shape: " + ", ".join(dropped)


def _fit(value: Any, kind: type[T]) -> tuple[T | None, str | None]:
    try:
        return msgspec.convert(value, kind, strict=False), None
    except msgspec.ValidationError as error:
        return None, str(error)
    except RecursionError:
        return None, "nested too deeply"


def _prune(value: Any, problem: str, kind: type[Any]) -> bool:
    """Remove the part that msgspec's message complains about. It gives no list index, so each element is tried."""
    where = _path.search(problem)
    if where is None:
        return False
    parts = [name or (None if index == "..." else int(index)) for name, index in _part.findall(where[1])]
    for holder, key in _spots(value, parts):
        taken = holder.pop(key)
        if _fit(value, kind)[1] != problem:
            return True
        holder.insert(key, taken) if isinstance(holder, list) else holder.__setitem__(key, taken)
    return False


def _spots(value: Any, parts: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield every place that a path with open indices may mean: the container and the key in it."""
    if not parts:
        return
    part, rest = parts[0], parts[1:]
    keys: list[Any]
    if part is None:
        keys = list(range(min(len(value), _MAX_TRIED))) if isinstance(value, list) else []
    elif isinstance(part, int):
        keys = [part] if isinstance(value, list) and part < len(value) else []
    else:
        keys = [part] if isinstance(value, dict) and part in value else []
    for key in keys:
        if rest:
            yield from _spots(value[key], rest)
        else:
            yield value, key


_between = re.compile(r"[ \t\n\r\f\v,:\x1e]*+")
_bare = re.compile(r"[^ \t\n\r\f\v,\]}]++")
_CUT_OFF = 8  # characters of a word or an escape that the end of a text may cut off


class NotPlain(Exception):
    """A text is not the beginning of plain JSON."""


class _CutOff(Exception):
    """The text ends inside a value."""


def plain_pieces(text: str, arrays: frozenset[str]) -> Iterator[tuple[str, Any]]:
    """Yield the decoded pieces of the beginning of a JSON text, cut as by `Scanner`, at the speed of `json.loads`.

    A value that is cut off by the end is left out. Raises NotPlain where only `Scanner` can go on.
    """
    at = _past_blank(text, 0)
    try:
        while at < len(text):
            if text[at] == "[":
                at = yield from _plain_elements(text, at, "")
            elif text[at] == "{":
                at = yield from _plain_members(text, at, arrays)
            else:
                raise NotPlain
    except _CutOff:
        return


def _plain_members(text: str, at: int, arrays: frozenset[str]) -> Generator[tuple[str, Any], None, int]:
    at = _past_blank(text, at + 1)
    while at < len(text) and text[at] != "}":
        if text[at] != '"':
            raise NotPlain
        key, at = _decode_piece(text, at)
        if at < len(text) and text[at] == "[" and key in arrays:
            at = yield from _plain_elements(text, at, key)
        elif at < len(text):
            value, at = _decode_piece(text, at)
            yield key, value
    return _past_blank(text, at + 1)


def _plain_elements(text: str, at: int, key: str) -> Generator[tuple[str, Any], None, int]:
    at = _past_blank(text, at + 1)
    while at < len(text) and text[at] != "]":
        value, at = _decode_piece(text, at)
        yield key, value
    return _past_blank(text, at + 1)


def _decode_piece(text: str, at: int) -> tuple[Any, int]:
    """Return the value at a place, and the place of the next."""
    if text[at] not in '{["':
        word = _bare.match(text, at)
        if word is None:
            raise NotPlain
        return _decode_bare(word[0]), _past_blank(text, word.end())
    try:
        value, end = _loose.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise (_CutOff if _is_cut(text, error) else NotPlain) from error
    except (RecursionError, ValueError) as error:
        raise NotPlain from error
    return value, _past_blank(text, end)


def _is_cut(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether JSON is fine as far as the text goes."""
    if "Unterminated" in error.msg or error.pos >= len(text.rstrip()):
        return True
    rest = text[error.pos :]
    return len(rest) <= _CUT_OFF and (error.msg.startswith("Invalid") or rest.isalpha() or rest == "-")


def _decode_bare(word: str) -> Any:
    try:
        return _loose.raw_decode(word)[0]
    except ValueError:
        return None


def _past_blank(text: str, at: int) -> int:
    blank = _between.match(text, at)
    return blank.end() if blank else at


_token = re.compile(rb'"|[{\[]++|[}\]]++')
_string = re.compile(rb'(?:[^"\\]++|\\.)*+("?)', re.S)
_blank = re.compile(rb"[\s,:\x1e]*+")
_scalar = re.compile(rb"[^\s,\]}]*+")


class Scanner:
    """Walks a JSON text of any size in bounded memory and yields the pieces a reader wants.

    A piece is `(key, bytes, line)`. For an object at the root: each value under its key, and the arrays named in
    `arrays` element by element. For a list at the root: its elements, under the key "". Values over 32 MB are skipped
    and reported.
    """

    def __init__(self, read: Callable[[int], bytes], report: Callable[[int, str], None]) -> None:
        self._read = read
        self._report = report
        self._buffer = b""
        self._at = 0
        self._line = 1
        self._reported = False

    def _report_cut_off(self) -> None:
        if not self._reported:
            self._reported = True
            self._report(self._line, "the JSON is cut off")

    def pieces(self, arrays: frozenset[str]) -> Iterator[tuple[str, bytes, int]]:
        """Yield the pieces of the text, with `arrays` element by element."""
        while self._skip_blank():
            opening = self._buffer[self._at : self._at + 1]
            if opening == b"[":
                yield from self._elements("")
            elif opening == b"{":
                yield from self._members(arrays)
            else:
                self._report(self._line, "not a JSON object or list")
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
                self._report(self._line, "invalid JSON: expected a key")
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
        self._report_cut_off()

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
                    self._report(line, "invalid JSON: expected a value")
                    return
                yield key, value, line
        self._report_cut_off()

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
        """Return the value at the cursor; None when the text ends inside it or it is too long (then it is skipped)."""
        started = self._line
        depth, in_string, cursor, kept, size = 0, False, self._at, True, 0
        while True:
            buffer = self._buffer
            if in_string:
                string = _string.match(buffer, cursor)
                cursor = string.end() if string else cursor
                in_string = not (string and string[1])
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
                    mark = token[0]
                    if mark == b'"':
                        cursor, in_string = token.end(), True
                        continue
                    opens = mark[0] in b"{["
                    count = len(mark) if opens else min(len(mark), depth) or 1  # no further than the value's end
                    cursor = token.start() + count
                    depth += count if opens else -count
            if depth <= 0 and not in_string and cursor > self._at:
                if kept:
                    return self._cut(cursor, kept)
                self._drop(cursor, started, size)
                return None
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
        self._report(line, f"skipped a value of {size >> 20} MB; the limit is {MAX_VALUE >> 20} MB")
