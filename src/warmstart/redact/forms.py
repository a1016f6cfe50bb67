"""Finds the secrets that show by their form: the rules of `vendors.py`, private key blocks, tokens cut short."""

from __future__ import annotations

import re
from collections.abc import Iterator

from warmstart.redact.matching import Choice, Found, Pattern
from warmstart.redact.opaque import looks_random
from warmstart.redact.values import is_filler, is_reference, is_wordy
from warmstart.redact.vendors import CUT_SHORT, RULES
from warmstart.redact.views import from_base64

FINDER = Choice([rule.head or rule.pattern for rule in RULES])
_PATTERNS = [Pattern((f"(?:{rule.head})" if rule.head else "") + rule.pattern) for rule in RULES]
_WINDOW = 640
_PAUSE = 64
CUT = Pattern(rf"{CUT_SHORT}(?:\.\.\.)?\s*\z")
_MARKER = Pattern(r"-{4,5} ?(?:BEGIN|END) [A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}-{4,5}")
_LARGEST_KEY = 64 << 10
# A line of a key block as it may stand in a listing or a diff: its number or quote mark, then header or base64.
_KEY_LINE = re.compile(rb"[ \t>|+:#*0-9?-]{0,16}(?:[A-Za-z0-9+/=\\\",]*|(?:Proc-Type|DEK-Info|Comment|Version|Charset|Hash|Subject): ?[ -~]{0,100})[ \t\\\"',]{0,4}\Z")
_REST_OF_LINE = re.compile(rb"[ \t]*(?:[A-Za-z0-9+/=]{20,}[ \t]*)*[A-Za-z0-9+/=]*")
_HASHED = re.compile(rb"(?:hash|tx|block|root|topic|digest|receipt|txid)[a-zA-Z]{0,12}[\"'`]?[ \t]*[:=(]?[ \t\"'`]*\Z", re.I)
_PORTS = re.compile(r"[\d.:/,-]+(?:tcp|udp)?\Z")
_QUOTES = "\"'`"


def find_forms(data: bytes) -> Iterator[Found]:
    """Every rule's matches."""
    tried: dict[int, int] = {}  # where a rule that looks far ahead was tried last: not again in the next words
    for start, end in FINDER.spans(data):
        for index in FINDER.which(data[start:end]):
            if RULES[index].head and start < tried.get(index, 0):
                continue
            tried[index] = start + _PAUSE
            found = _apply(index, data, start, end)
            if found is not None:
                yield found
                break


def _apply(index: int, data: bytes, start: int, end: int) -> Found | None:
    rule = RULES[index]
    if rule.head or "(?P<v>" in rule.pattern:
        limit = min(start + _WINDOW, len(data)) if rule.head else end
        spans = _PATTERNS[index].groups_at(data, start, limit)
        if spans is None:
            return None
        start, end = spans[1]
    value = data[start:end].decode("ascii")
    bare = value.rstrip("\\")
    end -= len(value) - len(bare)
    if rule.check in ("told", "told-token"):
        return _told(rule.kind, bare, start, rule.check == "told-token")
    if not _passes(rule.check, bare, data, start):
        return None
    return Found(start, end, rule.kind)


def _passes(check: str, value: str, data: bytes, start: int) -> bool:
    if check == "random":
        return looks_random(value) and not is_filler(value)
    if check == "secret":
        return not is_reference(value) and not is_filler(value)
    if check == "flagged":
        return not (is_reference(value) or is_filler(value) or _PORTS.match(value) or value[0] in "-/=")
    if check == "mixed":
        return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not is_filler(value)
    if check == "pair":
        plain = from_base64(value.encode())
        return (plain is not None and b":" in plain) or looks_random(value)
    if check == "unhashed":
        return _HASHED.search(data[max(start - 40, 0) : start]) is None and not is_filler(value)
    if check == "cookie":
        return any(len(pair.partition("=")[2]) >= 8 and not is_wordy(pair.partition("=")[2]) for pair in value.split(";"))
    return not is_filler(value)


def _told(kind: str, value: str, start: int, token: bool) -> Found | None:
    """What a sentence says the password is: quoted, or visibly no word of the sentence."""
    quoted = value[0] in _QUOTES
    bare = value[1:].split(value[0])[0] if quoted else value.rstrip(".,;:!?)\"'`*")
    begin = start + quoted
    if is_reference(bare) or is_filler(bare) or len(bare) < 3:
        return None
    if token:
        good = looks_random(bare) or (len(bare) >= 12 and not is_wordy(bare) and any(map(str.isdigit, bare)))
    else:
        good = not is_wordy(bare) if not quoted else len(bare) >= 4 and not is_filler(bare)
        good = good and (quoted or len(bare) >= 4)
    return Found(begin, begin + len(bare), kind) if good else None


def find_cut(data: bytes) -> Iterator[Found]:
    """A token that the end of the text cut short."""
    span = CUT.search(data, max(len(data) - 200, 0))
    if span is not None:
        end = len(data[: span[1]].rstrip())
        if not is_filler(data[span[0] : end].decode("ascii")):
            yield Found(span[0], end, "cut-token")


def find_key_blocks(data: bytes) -> Iterator[Found]:
    """Private key blocks, those that lost their first or last line too."""
    done = 0
    begin: int | None = None
    after = 0
    for start, end in _MARKER.spans(data):
        opens = b"BEGIN" in data[start:end]
        if begin is not None:
            if not opens and start - begin <= _LARGEST_KEY:
                yield Found(begin, end, "private-key")
                done, begin = end, None
                continue
            done = _key_end(data, after, start)
            yield Found(begin, done, "private-key")
        elif not opens:
            yield Found(_key_begin(data, done, start), end, "private-key")
            done = end
        begin, after = (start, end) if opens else (None, 0)
    if begin is not None:
        yield Found(begin, _key_end(data, after, len(data)), "private-key")


def _key_end(data: bytes, at: int, limit: int) -> int:
    """Where the base64 lines after a BEGIN line stop."""
    limit = min(limit, at + _LARGEST_KEY)
    rest = _REST_OF_LINE.match(data, at, limit)
    end = at = rest.end() if rest else at
    while at < limit:
        line_end = data.find(b"\n", at, limit)
        line_end = limit if line_end < 0 else line_end
        line = data[at:line_end]
        if not _KEY_LINE.match(line):
            break
        if line.strip():
            end = line_end
        at = line_end + 1
    return end


def _key_begin(data: bytes, floor: int, at: int) -> int:
    """Where the base64 lines before an END line start."""
    floor = max(floor, at - _LARGEST_KEY)
    begin = at
    while at > floor:
        line_start = data.rfind(b"\n", floor, at - 1) + 1 if at - 1 > floor else floor
        line_start = max(line_start, floor)
        line = data[line_start:at].strip(b"\r\n")
        if line and (not _KEY_LINE.match(line) or (len(line) < 24 and b"=" not in line)):
            break
        if line:
            begin = line_start
        at = line_start
    return begin
