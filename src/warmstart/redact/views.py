"""Other readings of a text: without colour codes and with escapes decoded. Spans found there map back to the text."""

from __future__ import annotations

import binascii
from bisect import bisect_right

from warmstart.redact.matching import BytesPattern, Regex

# Each alternative starts with a literal, so that `re` skips quickly to the next one, and repeats up to a bound, so
# that it takes linear time.
_ESCAPES = (
    rb"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]"  # CSI: colours, cursor
    rb"|\x1b\][0-9]{1,4};[0-9;]{0,8}"  # OSC intro (titles, hyperlinks); its text stays visible
    rb"|\x1b[()#][0-9A-Za-z]|\x1b[=>78cDEHMNOZ\\]"
    rb"|\[[0-9]{0,3}(?:;[0-9]{1,3}){0,5}m"  # a colour that lost its ESC
    rb"|\x00"  # UTF-16 read as bytes
    rb"|\\\\{0,7}u00[0-9a-fA-F]{2}|\\\\{0,7}x[0-9a-fA-F]{2}|\\\\{0,7}u\{[0-9a-fA-F]{1,6}\}|\\\\{0,7}0?33\[|\\\\{0,7}e\["
    rb"|\\\\{0,7}[/\"'nrt]"
    rb"|%[0-9a-fA-F]{2}"
    rb"|&(?:amp|lt|gt|quot|apos|#[0-9]{2,3}|#[xX][0-9a-fA-F]{2});"
)
_ESCAPE, _ESCAPE_BUT_PLUS = Regex(rb"(" + _ESCAPES + rb"|\+)"), Regex(rb"(" + _ESCAPES + rb")")
_FORM = BytesPattern(r"[^\s\"'`<>]*%[2-7][0-9a-fA-F][^\s\"'`<>]*")
_COLOUR = Regex(rb"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]")
# Escapes that are worth a second reading. `\n`, `\t`, `\r` and `\"` alone are not: see `flatten`.
WORTH = r"[\x1b\x00]|\[0?m|%[2-7][0-9a-fA-F]|\\(?:u00|x[2-7]|u\{|/|0?33\[|e\[)|&(?:amp|lt|gt|quot|apos|#[0-9xX])"
_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PLAIN: dict[bytes, bytes] = {}  # escape -> plain text, of the first ones met
_KEPT = 4096
_TEXT_BYTES = bytes(range(32, 127)) + b"\t\n\r\x1b"


class View:
    """A text without colours and with escapes decoded, and the way back to the original."""

    __slots__ = ("_ends", "_escapes", "_plain", "_raw", "_sources", "_starts", "data")

    def __init__(self, source: bytes) -> None:
        self._starts: list[int] = []  # of each piece in the view
        self._sources: list[int] = []  # where the piece begins in the source
        self._ends: list[int] = []  # where it ends there
        self._escapes: list[bool] = []  # whether the piece is an escape, which is replaced as a whole
        forms = list(_FORM.spans(source)) if b"%" in source and b"+" in source else []
        self._raw = (_ESCAPE if forms else _ESCAPE_BUT_PLUS).split(source)  # text, escape, text, escape, ... text
        self._plain = self._raw.copy()
        self._plain[1::2] = map(_decode_kept, self._raw[1::2])
        if forms:
            self._keep_pluses(_Forms(forms))
        self.data = b"".join(self._plain)

    def _keep_pluses(self, forms: _Forms) -> None:
        at = 0
        for number, raw in enumerate(self._raw):
            if number % 2 and raw == b"+" and not forms.hold(at):
                self._plain[number] = raw
            at += len(raw)

    def _map(self) -> None:
        """Map the pieces of the view to the source. Few views hold a secret, so this waits until it is asked for."""
        at = length = 0
        for number, (raw, plain) in enumerate(zip(self._raw, self._plain, strict=True)):
            if plain:
                self._add(length, at, at + len(raw), bool(number % 2))
                length += len(plain)
            at += len(raw)

    def _add(self, start: int, source: int, end: int, escape: bool) -> None:
        self._starts.append(start)
        self._sources.append(source)
        self._ends.append(end)
        self._escapes.append(escape)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a span of the view was read from."""
        if not self._starts:
            self._map()
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        begin = self._sources[first] + (0 if self._escapes[first] else start - self._starts[first])
        stop = self._ends[last] if self._escapes[last] else self._sources[last] + end - self._starts[last]
        return begin, stop


class _Forms:
    """The URL-encoded forms of a text, asked in order: only in one of them is `+` a space."""

    __slots__ = ("_at", "_spans")

    def __init__(self, spans: list[tuple[int, int]]) -> None:
        self._spans = spans
        self._at = 0

    def hold(self, offset: int) -> bool:
        while self._at < len(self._spans) and self._spans[self._at][1] <= offset:
            self._at += 1
        return self._at < len(self._spans) and self._spans[self._at][0] <= offset


def flatten(data: bytes) -> bytes:
    r"""Replace colours and written-out `\n`, `\t`, `\r` with blanks of the same length, so that they join no token."""
    if b"\x1b" in data:
        data = _COLOUR.sub(lambda match: b"\x1b".ljust(len(match.group())), data)
    if b"\\" not in data:
        return data
    return data.replace(b"\\n", b"\n\n").replace(b"\\r", b"\n\n").replace(b"\\t", b"  ")


def _decode_kept(raw: bytes) -> bytes:
    """Decode an escape; the first ones met are remembered."""
    plain = _PLAIN.get(raw)
    if plain is None:
        plain = _decode(raw)
        if len(_PLAIN) < _KEPT:
            _PLAIN[raw] = plain
    return plain


def _decode(raw: bytes) -> bytes:
    """Return the character that an escape stands for."""
    head = raw[:1]
    if head == b"\x1b":
        return b" " if raw[1:2] in b"]\\" else b""
    if head in b"\x00[":
        return b""
    if head == b"+":
        return b" "
    if head == b"%":
        return _byte(int(raw[1:], 16))
    if head == b"&":
        name = raw[1:-1]
        if name.startswith(b"#"):
            return _byte(int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:]))
        return _ENTITIES[name]
    body = raw.lstrip(b"\\")
    if body.endswith(b"["):  # \033[ and \e[ written out: the next reading drops the colour
        return b"\x1b["
    if body[:1] in b"ux":
        return _byte(int(body[1:].strip(b"{}"), 16))
    return _CONTROL.get(body, body)


def _byte(code: int) -> bytes:
    return bytes((code,)) if code < 128 else b"?"


def from_base64(run: bytes) -> bytes | None:
    """Decode a base64 run (either alphabet, with or without padding); None if the result is not text."""
    body = run.rstrip(b"=").translate(None, b"\r\n")
    if len(body) % 4 == 1:
        body = body[:-1]  # cut off in the middle of a group
    try:
        plain = binascii.a2b_base64(body.replace(b"-", b"+").replace(b"_", b"/") + b"=" * (-len(body) % 4))
    except binascii.Error:
        return None
    return _as_text(plain)


def from_hex(run: bytes) -> bytes | None:
    """Decode a run of hex digits; None if the result is not text (a digest almost never is)."""
    try:
        return _as_text(binascii.unhexlify(run[: len(run) & ~1]))
    except binascii.Error:
        return None


def _as_text(plain: bytes) -> bytes | None:
    if len(plain) >= 4 and plain[1::2].count(0) * 2 >= len(plain) - 1:
        plain = plain[::2]  # UTF-16, as PowerShell encodes its commands
    if not plain.isascii():
        try:
            plain = plain.decode().encode("ascii", "replace")
        except UnicodeDecodeError:
            return None
    return None if plain.translate(None, _TEXT_BYTES) else plain
