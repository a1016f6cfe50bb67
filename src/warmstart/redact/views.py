"""Other readings of a text: without colour codes and with escapes decoded. Spans found there map back to the text."""

from __future__ import annotations

import binascii
from bisect import bisect_right

from warmstart.redact.matching import BytesPattern, Regex

# Each alternative starts with a literal and repeats up to a bound, so `re` takes linear time.
_ESCAPE = Regex(
    rb"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]"  # CSI: colours, cursor
    rb"|\x1b\][0-9]{1,4};[0-9;]{0,8}"  # OSC intro (titles, hyperlinks); its text stays visible
    rb"|\x1b[()#][0-9A-Za-z]|\x1b[=>78cDEHMNOZ\\]"
    rb"|\[[0-9]{0,3}(?:;[0-9]{1,3}){0,5}m"  # a colour that lost its ESC
    rb"|\x00"  # UTF-16 read as bytes
    rb"|\\{1,8}u00[0-9a-fA-F]{2}|\\{1,8}x[0-9a-fA-F]{2}|\\{1,8}u\{[0-9a-fA-F]{1,6}\}|\\{1,8}0?33\[|\\{1,8}e\["
    rb"|\\{1,8}[/\"'nrt]"
    rb"|%[0-9a-fA-F]{2}"
    rb"|&(?:amp|lt|gt|quot|apos|#[0-9]{2,3}|#[xX][0-9a-fA-F]{2});"
    rb"|\+"
)
_FORM = BytesPattern(r"[^\s\"'`<>]*%[2-7][0-9a-fA-F][^\s\"'`<>]*")
_COLOUR = Regex(rb"\x1b\[[0-?]{0,64}[ -/]{0,4}[@-~]")
# Escapes that are worth a second reading. `\n`, `\t`, `\r` and `\"` alone are not: see `flatten`.
WORTH = r"[\x1b\x00]|\[0?m|%[2-7][0-9a-fA-F]|\\(?:u00|x[2-7]|u\{|/|0?33\[|e\[)|&(?:amp|lt|gt|quot|apos|#[0-9xX])"
_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_CONTROL = {b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_TEXT_BYTES = bytes(range(32, 127)) + b"\t\n\r\x1b"


class View:
    """A text without colours and with escapes decoded, and the way back to the original."""

    __slots__ = ("_ends", "_escapes", "_sources", "_starts", "data")

    def __init__(self, source: bytes) -> None:
        self._starts: list[int] = []  # of each piece in the view
        self._sources: list[int] = []  # where the piece begins in the source
        self._ends: list[int] = []  # where it ends there
        self._escapes: list[bool] = []  # whether the piece is an escape, which is replaced as a whole
        pieces: list[bytes] = []
        forms = list(_FORM.spans(source)) if b"%" in source and b"+" in source else []
        form = 0  # only in a form is `+` a space
        at = length = 0
        for match in _ESCAPE.finditer(source):
            raw = match.group()
            begin, end = match.span()
            if raw == b"+":
                while form < len(forms) and forms[form][1] <= begin:
                    form += 1
                if form == len(forms) or begin < forms[form][0]:
                    continue
            for plain, start, stop, escape in ((source[at:begin], at, begin, False), (_decode(raw), begin, end, True)):
                if plain:
                    self._add(length, start, stop, escape)
                    pieces.append(plain)
                    length += len(plain)
            at = end
        if at < len(source):
            self._add(length, at, len(source), False)
            pieces.append(source[at:])
        self.data = b"".join(pieces)

    def _add(self, start: int, source: int, end: int, escape: bool) -> None:
        self._starts.append(start)
        self._sources.append(source)
        self._ends.append(end)
        self._escapes.append(escape)

    def back(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original that a span of the view was read from."""
        first = bisect_right(self._starts, start) - 1
        last = bisect_right(self._starts, end - 1) - 1
        begin = self._sources[first] + (0 if self._escapes[first] else start - self._starts[first])
        stop = self._ends[last] if self._escapes[last] else self._sources[last] + end - self._starts[last]
        return begin, stop


def flatten(data: bytes) -> bytes:
    r"""Replace colours and written-out `\n`, `\t`, `\r` with blanks of the same length, so that they join no token."""
    if b"\x1b" in data:
        data = _COLOUR.sub(lambda match: b"\x1b".ljust(len(match.group())), data)
    if b"\\" not in data:
        return data
    return data.replace(b"\\n", b"\n\n").replace(b"\\r", b"\n\n").replace(b"\\t", b"  ")


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
