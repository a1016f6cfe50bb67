"""How much of a secret a mask may cover: nothing that could act.

People approve what they read, and the agent writes what they read. What finds secrets reads on to the next space, so
that `API_KEY=abc;rm${IFS}-rf${IFS}~` is one find: were it masked whole, the agent could hide a command in it. Hence:

- A mask covers letters and digits, what joins them (`_ + ~ - .`), and escapes of these. Whatever a shell, a URL, SQL or
  a path reads as a sign stays, in its order: no mask holds a space, a quote, a bracket, `; | & $ / = ..` or a `%0a`.
- What the name or the place makes secret is covered up to the first sign that ends a word. What follows may be a
  command, whatever it looks like, and is shown; so is what reads like a path or an option, and what a shell would run
  (``PASSWORD=`reboot` ``). Part of a password with `;` in a command is then seen: that is the lesser evil. Under a key
  of its own in the arguments (`{"password": ...}`) it is no part of a command: words after signs are shown there too,
  but not what looks drawn.
- A vendor's form proves a secret wherever it stands; the user's own values are known to be some.
- What only looks random may be a key, or the target: a namespace, an account, a file. Of it the middle is covered, a
  half or more, and both ends stay. Addresses of wallets and what stands under a key that names a target stay whole.
- What is encoded and holds more than a secret is shown decoded.
- Of a private key the lines are covered, not the dashes around them.

What a mask covers cannot act by itself, but it may be acted on: `TOKEN=x9; $TOKEN`. People are told to look for that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from warmstart.redact import Hit
from warmstart.redact.opaque import drawn_score, looks_random
from warmstart.redact.views import from_base64, from_hex

KNOWN, FORM, PLACE, LOOKS = range(4)  # how sure a find is: its rank
_BY_PLACE = frozenset(
    "password token code cookie sessionid url-password url-token bearer basic-auth authorization mnemonic".split()
)
_SAMPLE = 512  # characters that decide about a longer piece
ENDS = 8  # characters that are shown at each end of what only looks random, at most

_SIGN = re.compile(
    r"(?P<letters>[^\W_]+)"
    r"|(?P<escape>\\{1,8}(?:u00|x)[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|&#(?:[0-9]{2,3}|[xX][0-9a-fA-F]{2});)"
    r"|(?P<colour>\x1b\[[0-9:]{0,64}m)"  # with `;` in it, it would be the end of a command
    r"|(?P<sign>.)",
    re.S,
)
_JOINTS = frozenset("_+~-.")
_QUIET = frozenset("!#^:*=")  # these end no word, neither in a shell nor in SQL
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
_COMMAND = re.compile(r"\s|\$[{(]|`")  # what a command has and a drawn password has not
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")  # of a wallet: its key has 64 digits
_LABEL = re.compile(r"[^.]+")
_ATOM = re.compile(r"[^_+~-]+")
_KEY_LINE = re.compile(r"(?:(?<=\\[nr])|(?<![A-Za-z0-9+/\\]))[A-Za-z0-9+/]{4,}={0,2}")
_WIDE = 30  # characters that a line of a key has at least; its last may be shorter
_LINE_END = re.compile(r"(?:\\{1,4}[nr]|\s)+")
_KEY_END = re.compile(r"(?:\\{1,4}[nr]|\s){0,16}-{4,5} ?END ")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_ACTS = re.compile(r"[\s;|&$`<>(){}]")
_SURE = 24  # characters of base64 that are no text by chance
_DEEPEST = 3  # encodings inside encodings


class Cover(NamedTuple):
    """A span that a mask stands for; `plain` is what it holds, where that is shown beside the mask."""

    start: int
    end: int
    rank: int
    kind: str
    plain: str = ""


class _Piece(NamedTuple):
    """Letters, digits and what joins them."""

    start: int
    end: int
    word: int  # 0: no sign that ends a word stands before it
    in_path: bool
    is_option: bool


def cover(
    text: str, hits: Sequence[Hit], known: frozenset[str], more: Sequence[Cover], *, prose: bool = False
) -> list[Cover]:
    """What of these finds is to be masked, from left to right. `known` are values that nobody but the user chose;
    prose is not run by anything."""
    found = {Cover(*span, hit.rank, hit.kind) for hit in hits for span in _cover_hit(text, hit, known, prose)}
    return _unwrap(text, _merge(found | set(more)))


def count_finds(hits: Sequence[Hit], covers: Sequence[Cover]) -> int:
    """How many secrets these covers belong to: a find may have several, and finds may overlap."""
    spans = sorted(hit[:2] for hit in hits)
    count, at, until = 0, 0, -1
    for one in covers:
        if one.start < until:
            continue
        count += 1
        until = one.end
        while at < len(spans) and spans[at][0] < until:
            until = max(until, spans[at][1])
            at += 1
    return count


def cover_named(text: str, start: int = 0) -> list[tuple[int, int]]:
    """What to mask of a value that has a telling name of its own."""
    pieces = _cut(text, start, len(text), _is_in_url(text, start))
    if _PHRASE.match(text, start):
        return [piece[:2] for piece in pieces]
    least = 8 if _COMMAND.search(text, start) else 2
    return [piece[:2] for piece in pieces if _is_first(text, piece) or (piece.word and _is_drawn(text, piece, least))]


def cover_decoded(plain: str) -> list[tuple[int, int]]:
    """What to mask of a text that was encoded, beside what is found in it: it may be a login, or a command."""
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
    """Whether nothing but its look says that it is secret, or a word that may as well say what it is a name of."""
    if hit.rank == LOOKS or hit.kind == "authorization":
        return True
    if hit.rank == KNOWN:
        return hit.kind != "env"  # a value seen under a telling name before: here it may be anything
    return hit.kind in _BY_PLACE and _NOUN.search(text[max(hit.start - 16, 0) : hit.start]) is not None


def _is_run(text: str, hit: Hit) -> bool:
    """Whether what a name or a place makes secret is what a shell would run, or the file that it would write to:
    ``PASSWORD=`reboot` ``, `cat token | x9`, `<password>db1</dev/null`. In a table it is a secret after all, and so it
    is between two tags at the end of a line, which a shell refuses."""
    if not (hit.rank == PLACE or hit.kind in _BY_PLACE) or text.startswith("@", hit.end):
        return False
    before = text[max(hit.start - 80, 0) : hit.start]
    tag = _END_TAG.match(text, hit.end)
    opened = tag and re.search(rf"<{re.escape(tag[1])}(?:\s[^<>]*)?>\s*\Z", before)
    return not opened and _RUN.search(before) is not None


def _is_in_url(text: str, start: int) -> bool:
    return _IN_URL.search(text[max(start - 512, 0) : start]) is not None


def _cut(text: str, start: int, end: int, in_url: bool = False) -> list[_Piece]:
    """The pieces of a span. In a URL every sign ends a word."""
    pieces: list[_Piece] = []
    word, word_start, in_path = 0, start, False
    begin = stop = -1  # of the piece that is being read
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
        return _HEX.match(text, match.end()) is None  # `%253b`: escaped twice
    if sign == "?":
        return _QUERY.match(text, match.start()) is None
    return sign in _QUIET


def _read_sign(match: re.Match[str]) -> str:
    """What a sign or an escape stands for; nothing for a colour."""
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
    """Whether it is where a value stands, and nothing that leads elsewhere."""
    return piece.word == 0 and (not (piece.in_path or piece.is_option) or _is_drawn(text, piece, 8))


def _is_drawn(text: str, piece: _Piece, least: int) -> bool:
    return _looks_drawn(text[piece.start : piece.end], least)


def _looks_drawn(word: str, least: int) -> bool:
    """Whether a word was drawn rather than made of words; a few characters prove little."""
    if len(word) < least:
        return False
    sample = word[:_SAMPLE]
    mixed = any(map(str.isdigit, sample)) and any(map(str.isalpha, sample))
    most = len(sample) / 5 if len(sample) >= 16 else 0  # hex has pairs that words have too
    return looks_random(word) or (mixed and drawn_score(sample) < most)


def _reads(word: str) -> bool:
    return len(word) >= 4 and word.isalpha() and drawn_score(word[:_SAMPLE]) > 0


def _cover_middles(text: str, start: int, end: int, *, whole: bool = False) -> Iterator[tuple[int, int]]:
    """What was drawn, without its ends unless `whole`; a name or a host around it stays."""
    pieces = _cut(text, start, end)
    least = 16 if pieces and pieces[-1].word else 8  # with signs between, each may be a word of its own
    for piece in pieces:
        for begin, stop in _split(text, piece.start, piece.end):
            atom = text[begin:stop]
            if not _looks_drawn(atom, least) or _ADDRESS.match(atom):
                continue
            yield (begin, stop) if whole else _middle(text, begin, stop)


def _middle(text: str, start: int, end: int) -> tuple[int, int]:
    """Without its ends; whole where an escape might be cut in two."""
    kept = 0 if set(text[start:end]) & set("\\%&") else min(ENDS, (end - start) // 4)
    return start + kept, end - kept


def _split(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """A piece at its dots, and where there are words in it at every joint."""
    for label in _LABEL.finditer(text, start, end):
        atoms = list(_ATOM.finditer(text, *label.span()))
        if any(_reads(atom.group()) for atom in atoms):
            yield from (atom.span() for atom in atoms)
        else:
            yield label.span()


def _cover_key(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The lines of a private key; a command between or after them is no such line."""
    first = last = -1  # of lines that follow each other
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
    yield from (piece[:2] for piece in _cut(text, start, end) if _is_drawn(text, piece, 16))  # where lines are escaped


def _is_path(line: str) -> bool:
    return line.startswith("/") or any(map(_reads, line.split("/") if "/" in line else ()))


def _merge(found: set[Cover]) -> list[Cover]:
    """Overlapping covers as one; the surest find names it."""
    merged: list[Cover] = []
    for one in sorted(found):
        if merged and one.start < merged[-1].end:
            last = merged[-1]
            sure = min(last, one, key=lambda cover: cover.rank)
            merged[-1] = Cover(last.start, max(last.end, one.end), sure.rank, sure.kind)
        else:
            merged.append(one)
    return merged


def _unwrap(text: str, covers: list[Cover]) -> list[Cover]:
    """The same, with what lies encoded under them beside it, where that is more than a secret."""
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
    """Runs that may be base64 or hex; lines of one text together."""
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
    """What could act in it; where slashes are none of base64, in a name between them."""
    return _decode(block) or "\n".join(filter(None, map(_decode, block.split("/") if "/" in block else ())))


def _decode(run: str, depth: int = 0) -> str:
    """The text behind a run that could act; empty if there is none."""
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
