"""Decide how much of a secret a mask may cover: nothing that could act.

People approve what they read, and the agent writes that text. The redactor reads a secret up to the next space, so
`API_KEY=abc;rm${IFS}-rf${IFS}~` is one hit: if all of it were masked, the agent could hide a command in it. Hence:

- A mask covers letters and digits, the characters that join them (`_ + ~ - .`), and escapes of these. Every character
  that a shell, a URL, SQL or a path treats as syntax stays, in order: no mask holds a space, a quote, a bracket,
  `; | & $ / = ..` or a `%0a`.
- A value that is secret because of its name or place is covered up to the first character that ends a word. The rest
  may be a command and is shown, and so are paths, options and anything that a shell would run (``PASSWORD=`reboot` ``).
  A password with `;` in a command is then partly visible, which is the lesser evil. Under a key of its own in the
  arguments (`{"password": ...}`) the value is not part of a command: there, words after such characters are shown too,
  but not those that look random.
- A vendor's format proves a secret anywhere, and the user's own values are known secrets.
- A value that merely looks random may be a key or a target: a namespace, an account, a file. Its middle is covered, a
  half or more, and both ends stay. Wallet addresses and values under a key that names a target stay whole.
- Encoded text that holds more than a secret is shown decoded.
- Of a private key the lines are covered, not the dashes around them.

A mask cannot act by itself, but something may act on it: `TOKEN=x9; $TOKEN`. The page warns people about that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warmstart.redact import Hit
from warmstart.redact.opaque import drawn_score, looks_random
from warmstart.redact.views import from_base64, from_hex

KNOWN, FORM, PLACE, LOOKS = range(4)  # the rank of a hit: the lower, the surer
_BY_PLACE = frozenset(
    "password token code cookie sessionid url-password url-token bearer basic-auth authorization mnemonic".split()
)
_SAMPLE = 512  # characters of a longer piece that are examined
ENDS = 8  # characters shown at each end of a value that merely looks random, at most

_SIGN = re.compile(
    r"(?P<letters>[^\W_]+)"
    r"|(?P<escape>\\{1,8}(?:u00|x)[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|&#(?:[0-9]{2,3}|[xX][0-9a-fA-F]{2});)"
    r"|(?P<colour>\x1b\[[0-9:]{0,64}m)"  # without `;`, which would end a command
    r"|(?P<sign>.)",
    re.S,
)
_JOINTS = frozenset("_+~-.")
_QUIET = frozenset("!#^:*=")  # these do not end a word, neither in a shell nor in SQL
_HEX = re.compile(r"[0-9a-fA-F]{2}")
_HOST = re.compile(r"@(?:[\w-]+(?:\.[\w-]+)+|[\w.-]*[:/])")
_IN_URL = re.compile(r"://[^\s\"'`<>,;|]*\Z")
_QUERY = re.compile(r"\?[\w.-]+=")
_RUN = re.compile(r"(?:[`|;&<>(){}\r\n]|\\[nr]|%0[adAD]|\balias[ \t]+[\w.-]{1,64}=|\w/)[ \t]*[\"']?\Z")
_END_TAG = re.compile(r"\s*</([\w:.-]{1,64})>[ \t]*(?:[<\r\n]|\Z)")
_NOUN = re.compile(r"(?:\A|\s)(?:secret|token|key)[ \t]+[\"'`]?\Z", re.I)  # `kubectl delete secret NAME`
_PHRASE_LEAD = re.compile(
    r"(?:mnemonic|phrase|words?)(?:[ \t:=\"'(\[]|is|are|was|%(?:20|22|27|3A|3D)|\x1b\[[0-9;]{0,16}m){0,12}\Z", re.I
)
_PHRASE = re.compile(r"\s*[a-z]{2,12}(?:[ ,]{1,2}[a-z]{2,12}){3,23}\s*\Z")
_PAIR = re.compile(r"(?:\A|; ?)[\w.-]{1,64}=([^\s;\"',|&$<>(){}`\\]+)")
_LOGIN = re.compile(r"[\w.@+-]{1,64}:(?=\S)")
_COMMAND = re.compile(r"\s|\$[{(]|`")  # occurs in commands, not in random passwords
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")  # of a wallet, whose key has 64 digits
_LABEL = re.compile(r"[^.]+")
_ATOM = re.compile(r"[^_+~-]+")
_KEY_LINE = re.compile(r"(?:(?<=\\[nr])|(?<![A-Za-z0-9+/\\]))[A-Za-z0-9+/]{4,}={0,2}")
_WIDE = 30  # characters in a line of a key at least; its last line may be shorter
_LINE_END = re.compile(r"(?:\\{1,4}[nr]|\s)+")
_KEY_END = re.compile(r"(?:\\{1,4}[nr]|\s){0,16}-{4,5} ?END ")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_ACTS = re.compile(r"[\s;|&$`<>(){}]")
_SURE = 24  # characters of base64 that do not decode to text by chance
_DEEPEST = 3  # encodings inside encodings


class Cover(NamedTuple):
    """A span to mask; `plain` is its decoded text if that is shown beside the mask."""

    start: int
    end: int
    rank: int
    kind: str
    plain: str = ""


class _Piece(NamedTuple):
    """A run of letters, digits and the characters that join them."""

    start: int
    end: int
    word: int  # how many word-ending characters stand before it
    in_path: bool
    is_option: bool


def cover(
    text: str, hits: Sequence[Hit], known: frozenset[str], more: Sequence[Cover], *, prose: bool = False
) -> list[Cover]:
    """Return the spans to mask, left to right. `known` are the user's own secrets. In `prose` nothing is executed."""
    covers = {Cover(*span, hit.rank, hit.kind) for hit in hits for span in _cover_hit(text, hit, known, prose)}
    return _unwrap(text, _merge(covers | set(more)))


def count_secrets(hits: Sequence[Hit], covers: Sequence[Cover]) -> int:
    """Count the secrets behind these covers: a hit may have several covers, and hits may overlap."""
    spans = sorted(hit[:2] for hit in hits)
    count, at, until = 0, 0, -1
    for span in covers:
        if span.start < until:
            continue
        count += 1
        until = span.end
        while at < len(spans) and spans[at][0] < until:
            until = max(until, spans[at][1])
            at += 1
    return count


def cover_named(text: str, start: int = 0) -> list[tuple[int, int]]:
    """Return the spans to mask in a value whose key says that it is a secret."""
    pieces = _cut(text, start, len(text), _is_in_url(text, start))
    if _PHRASE.match(text, start):
        return [piece[:2] for piece in pieces]
    least = 8 if _COMMAND.search(text, start) else 2
    return [piece[:2] for piece in pieces if _is_first(text, piece) or (piece.word and _is_drawn(text, piece, least))]


def cover_decoded(plain: str) -> list[tuple[int, int]]:
    """Return the spans to mask in a decoded text, besides the redactor's hits: it may be a login or a command."""
    login = _LOGIN.match(plain)
    if login:
        return cover_named(plain, login.end())
    least = 8 if _COMMAND.search(plain) else 2
    return [piece[:2] for piece in _cut(plain, 0, len(plain)) if _is_drawn(plain, piece, least)]


def _cover_hit(text: str, hit: Hit, known: frozenset[str], prose: bool) -> Iterator[tuple[int, int]]:
    start, end, rank, kind, _ = hit
    if not prose and _is_run(text, hit):
        yield from _cover_middles(text, start, end)
    elif _is_a_guess(text, hit):
        yield from _cover_middles(text, start, end, whole=rank == LOOKS and kind != "opaque")
    elif kind in ("pem", "ssh"):
        yield from _cover_key(text, start, end)
    elif kind == "mnemonic":
        if _PHRASE_LEAD.search(text[max(start - 40, 0) : start]):
            yield from (piece[:2] for piece in _cut(text, start, end))
    elif kind == "cookie":
        for pair in _PAIR.finditer(text[start:end]):
            yield from _cover_middles(text, start + pair.start(1), start + pair.end(1), whole=True)
    else:
        certain = rank < PLACE and kind not in _BY_PLACE
        for piece in _cut(text, start, end, _is_in_url(text, start)):
            if (
                _is_first(text, piece)
                or (rank == KNOWN and text[start:end] in known)
                or (certain and piece.word and _is_drawn(text, piece, 16))
            ):
                yield piece[:2]


def _is_a_guess(text: str, hit: Hit) -> bool:
    """Return whether a hit is uncertain: it merely looks random, or the word before it may just name an object."""
    if hit.rank == LOOKS or hit.kind == "authorization":
        return True
    if hit.rank == KNOWN:
        return hit.kind != "env"  # a value seen before under a secret's name: here it may be anything
    return hit.kind in _BY_PLACE and _NOUN.search(text[max(hit.start - 16, 0) : hit.start]) is not None


def _is_run(text: str, hit: Hit) -> bool:
    """Return whether a shell would run a value that looks secret by name or place, or write to a file of that name:
    ``PASSWORD=`reboot` ``, `cat token | x9`, `<password>db1</dev/null`. In a table it is a secret after all, and also
    between two tags at the end of a line, which a shell refuses."""
    if not (hit.rank == PLACE or hit.kind in _BY_PLACE) or text.startswith("@", hit.end):
        return False
    before = text[max(hit.start - 80, 0) : hit.start]
    tag = _END_TAG.match(text, hit.end)
    opened = tag and re.search(rf"<{re.escape(tag[1])}(?:\s[^<>]*)?>\s*\Z", before)
    return not opened and _RUN.search(before) is not None


def _is_in_url(text: str, start: int) -> bool:
    return _IN_URL.search(text[max(start - 512, 0) : start]) is not None


def _cut(text: str, start: int, end: int, in_url: bool = False) -> list[_Piece]:
    """Return the pieces of a span. In a URL every syntax character ends a word."""
    pieces: list[_Piece] = []
    word, word_start, in_path = 0, start, False
    begin = stop = -1  # of the current piece
    before = ""
    for match in _SIGN.finditer(text, start, end):
        sign = _read_sign(match)
        if sign.isalnum():
            begin, stop = match.start() if begin < 0 else begin, match.end()
        elif sign not in _JOINTS or sign == before == ".":
            if begin >= 0:
                pieces.append(_Piece(begin, stop, word, in_path, text.startswith("-", word_start)))
                begin = -1
            if sign in ("/", "."):
                in_path = True
            elif sign and ((in_url and match.lastgroup == "sign") or not _is_quiet(sign, text, match)):
                word, word_start, in_path = word + 1, match.end(), False
        before = sign
    if begin >= 0:
        pieces.append(_Piece(begin, stop, word, in_path, text.startswith("-", word_start)))
    return pieces


def _is_quiet(sign: str, text: str, match: re.Match[str]) -> bool:
    if sign == "@":
        return _HOST.match(text, match.start()) is None
    if sign == "%":
        return _HEX.match(text, match.end()) is None  # `%253b` is escaped twice
    if sign == "?":
        return _QUERY.match(text, match.start()) is None
    return sign in _QUIET


def _read_sign(match: re.Match[str]) -> str:
    """Return the character that a match stands for, decoding escapes; empty for a colour code."""
    raw = match.group()
    if match.lastgroup == "colour":
        return ""
    if match.lastgroup != "escape":
        return raw
    if raw[0] == "&":
        code = int(raw[3:-1], 16) if raw[2] in "xX" else int(raw[2:-1])
    else:
        code = int(raw[-2:], 16)
    return chr(code) if code < 128 else "\0"


def _is_first(text: str, piece: _Piece) -> bool:
    """Return whether a piece is in the value's place and is not a path or an option."""
    return piece.word == 0 and (not (piece.in_path or piece.is_option) or _is_drawn(text, piece, 8))


def _is_drawn(text: str, piece: _Piece, least: int) -> bool:
    return _looks_drawn(text[piece.start : piece.end], least)


def _looks_drawn(word: str, least: int) -> bool:
    """Return whether a word looks randomly drawn. Fewer than `least` characters prove nothing."""
    if len(word) < least:
        return False
    sample = word[:_SAMPLE]
    mixed = any(map(str.isdigit, sample)) and any(map(str.isalpha, sample))
    most = len(sample) / 5 if len(sample) >= 16 else 0  # hex contains letter pairs that words have too
    return looks_random(word) or (mixed and drawn_score(sample) < most)


def _reads(word: str) -> bool:
    return len(word) >= 4 and word.isalpha() and drawn_score(word[:_SAMPLE]) > 0


def _cover_middles(text: str, start: int, end: int, *, whole: bool = False) -> Iterator[tuple[int, int]]:
    """Yield random-looking parts, without their ends unless `whole`; a name or a host around them stays."""
    pieces = _cut(text, start, end)
    least = 16 if pieces and pieces[-1].word else 8  # with syntax between, each piece may be a word of its own
    for piece in pieces:
        for begin, stop in _split(text, piece.start, piece.end):
            atom = text[begin:stop]
            if not _looks_drawn(atom, least) or _ADDRESS.match(atom):
                continue
            yield (begin, stop) if whole else _find_middle(text, begin, stop)


def _find_middle(text: str, start: int, end: int) -> tuple[int, int]:
    """Return a span without its ends, or all of it if an escape could be cut in two."""
    kept = 0 if set(text[start:end]) & set("\\%&") else min(ENDS, (end - start) // 4)
    return start + kept, end - kept


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a piece at its dots, and a label that contains words at every joining character."""
    for label in _LABEL.finditer(text, start, end):
        atoms = list(_ATOM.finditer(text, *label.span()))
        if any(_reads(atom.group()) for atom in atoms):
            yield from (atom.span() for atom in atoms)
        else:
            yield label.span()


def _cover_key(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the lines of a private key; a command between or after them is not such a line."""
    first = last = -1  # of consecutive lines
    for line in _KEY_LINE.finditer(text, start, end):
        is_wide = line.end() - line.start() >= _WIDE and not _is_path(line.group())
        if first >= 0 and _LINE_END.fullmatch(text, last, line.start()):
            if is_wide or (_KEY_END.match(text, line.end()) and not _reads(line.group())):
                last = line.end()
            if is_wide:
                continue
        if first >= 0:
            yield first, last
        first, last = line.span() if is_wide else (-1, -1)
    if first >= 0:
        yield first, last
    yield from (piece[:2] for piece in _cut(text, start, end) if _is_drawn(text, piece, 16))  # if lines are escaped


def _is_path(line: str) -> bool:
    return line.startswith("/") or any(map(_reads, line.split("/") if "/" in line else ()))


def _merge(covers: set[Cover]) -> list[Cover]:
    """Merge overlapping covers; the surest one gives the kind."""
    merged: list[Cover] = []
    for span in sorted(covers):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            surest = min(last, span, key=lambda cover: cover.rank)
            merged[-1] = Cover(last.start, max(last.end, span.end), surest.rank, surest.kind)
        else:
            merged.append(span)
    return merged


def _unwrap(text: str, covers: list[Cover]) -> list[Cover]:
    """Add the decoded text to covers over encoded text that holds more than a secret."""
    at = 0
    for block in _find_encoded(text) if covers else ():
        start, end = block[0][0], block[-1][1]
        while at < len(covers) and covers[at].end <= start:
            at += 1
        if at == len(covers):
            break
        if covers[at].start < end and (plain := _decode_block("".join(text[a:b] for a, b in block))):
            covers[at] = covers[at]._replace(plain="\n".join(filter(None, (covers[at].plain, plain))))
    return covers


def _find_encoded(text: str) -> Iterator[list[tuple[int, int]]]:
    """Yield runs that may be base64 or hex; consecutive lines of one text form one block."""
    block: list[tuple[int, int]] = []
    for run in _ENCODED.finditer(text):
        if block:
            width, gap = block[-1][1] - block[-1][0], text[block[-1][1] : run.start()]
            if not 56 <= width <= 80 or len(gap) > 8 or gap.strip():
                yield block
                block = []
        block.append(run.span())
    if block:
        yield block


def _decode_block(block: str) -> str:
    """Return decoded text that could act; also try the parts between slashes, which may not belong to base64."""
    return _decode(block) or "\n".join(filter(None, map(_decode, block.split("/") if "/" in block else ())))


def _decode(run: str, depth: int = 0) -> str:
    """Return a run's decoded text if it could act, else an empty text."""
    raw = run.encode() if len(run) >= 12 else b""
    plain = (from_hex(raw) or from_base64(raw) or b"").decode("ascii")
    if _could_act(plain.strip(), len(run)):
        return plain
    deeper = _ENCODED.fullmatch(plain.strip()) if depth < _DEEPEST else None
    return _decode(deeper.group(), depth + 1) if deeper else ""


def _could_act(plain: str, size: int) -> bool:
    if _ACTS.search(plain) is None:
        return False
    if plain[0] in "{[":
        try:
            json.loads(plain)
        except (ValueError, RecursionError):
            pass
        else:
            return False  # data, such as the parts of a JWT
    return size >= _SURE or 2 * sum(sign.isalpha() or sign == " " for sign in plain) >= len(plain)
