"""Secrets recognised by their form: the rules of `vendors.py`, private key blocks, tokens cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heapreplace

from warmstart.redact.matching import BytesPattern, Prefilter, Regex, Span, loosen, strip_groups
from warmstart.redact.opaque import looks_random
from warmstart.redact.values import is_drawn, is_filler, is_reference, is_wordy
from warmstart.redact.vendors import CUT_SHORT, RULES, VendorRule
from warmstart.redact.views import from_base64

RULE_SOURCES = tuple(strip_groups(rule.head or rule.pattern) for rule in RULES)
_DRAWN = r"(?:[^\s\x01]*[0-9]|(?:[^\s\x01]{5}){4})"  # a value that `is_drawn` may accept: a digit or 20 characters


def _make_strict(rule: VendorRule) -> str:
    """Return a pattern that occurs wherever the rule finds a secret, and more seldom than the rule itself; "": none."""
    if rule.head:
        return rule.head + loosen(strip_groups(rule.pattern))
    if rule.check in ("sentence-drawn", "sentence-token"):
        return re.sub(r"\(\?P<v>(.*?)(\[\^[^\]]*\])\{\d+,\}\)\Z", lambda match: f"(?:{match[1]}{_DRAWN})", rule.pattern)
    return ""


# Number of a rule -> its stricter pattern: a text without it needs no search by this rule.
STRICT = {index: strict for index, rule in enumerate(RULES) if (strict := _make_strict(rule))}
_FINDERS = [BytesPattern(source) for source in RULE_SOURCES]
_PRESENT = Prefilter(RULE_SOURCES)
_AT_START = Prefilter(RULE_SOURCES, anchored=True)
_PATTERNS = [BytesPattern((f"(?:{rule.head})" if rule.head else "") + rule.pattern) for rule in RULES]
_WINDOW = 640
_PAUSE = 64
_LONG = 64 << 10  # bytes of a text in which every rule may occur
_SHORT = 4096  # a rejected match longer than this is not searched again
CUT = BytesPattern(rf"{CUT_SHORT}\??\s{{0,4}}(?:\z|\[\.\.\.)")  # an ellipsis is read as `?`
_MARKER = BytesPattern(r"-{4,5} ?(?:BEGIN|END) (?:[A-Z0-9 ]{0,40}PRIVATE KEY[A-Z ]{0,10}|OpenVPN Static key V1)-{4,5}")
_LARGEST_KEY = 64 << 10
# A line of a key block, also in a listing or a diff: a line number or quote mark, then a header or base64.
_KEY_LINE = Regex(
    rb"[ \t>|+:#*0-9?-]{0,16}(?:[A-Za-z0-9+/=\\\",]*|(?:Proc-Type|DEK-Info|Comment|Version|Charset|Hash"
    rb"|Subject): ?[ -~]{0,100})[ \t\\\"',]{0,4}\Z"
)
_KEY_BODY = Regex(rb"[A-Za-z0-9+/=]{16}")  # markers without it are only mentioned
_REST_OF_LINE = Regex(rb"[ \t]*(?:[A-Za-z0-9+/=]{20,}[ \t]*)*[A-Za-z0-9+/=]*")
_HASHED = Regex(rb"(?:hash|tx|block|root|topic|digest|receipt|txid)[a-zA-Z]{0,12}[\"'`]?[ \t]*[:=(]?[ \t\"'`]*\Z", re.I)
_PORTS = Regex(r"[\d.:/,-]+(?:tcp|udp)?\Z")
_QUOTES = "\"'`"


def find_forms(data: bytes, rules: Sequence[int] | None = None) -> Iterator[Span]:
    """Yield the matches of the rules with these numbers; of all rules that may occur, if none are given."""
    if rules is None:
        rules = (_PRESENT.which(data) if len(data) <= _LONG else ()) or range(len(RULES))
    search = _Leftmost(data, rules)
    tried: dict[int, int] = {}  # rule that looks far ahead -> the offset before which it is not tried again
    at = 0
    while (span := search.find(at)) is not None:
        start, end = span
        at = end
        for index in sorted(_AT_START.which(data[start:end])):
            if RULES[index].head:
                if start < tried.get(index, 0):
                    continue
                tried[index] = start + _PAUSE
            begin, stop = _value_span(index, data, start, end)
            secret = _apply(index, data, begin, stop) if stop > begin else None
            if secret is not None:
                yield secret
                at = max(end, secret.end)
                break
            if start < begin < at and end - start <= _SHORT:
                at = begin  # the rejected value may be a secret of another form


class _Leftmost:
    """The leftmost match of many rules, the first rule's if several begin there.

    Each rule is searched by itself, once over the text: the automaton of all of them, which RE2 runs backwards to find
    where a match begins, has a new state for nearly every character of a random token.
    """

    def __init__(self, data: bytes, rules: Iterable[int]) -> None:
        self._data = data
        self._waiting = [(-1, index, -1) for index in rules]  # by the start of the next match
        heapify(self._waiting)

    def find(self, at: int) -> tuple[int, int] | None:
        """Return the first span at or after an offset, which never decreases."""
        while self._waiting and self._waiting[0][0] < at:
            index = self._waiting[0][1]
            span = _FINDERS[index].search(self._data, at)
            if span is None:
                heappop(self._waiting)
            else:
                heapreplace(self._waiting, (span[0], index, span[1]))
        return (self._waiting[0][0], self._waiting[0][2]) if self._waiting else None


def _value_span(index: int, data: bytes, start: int, end: int) -> tuple[int, int]:
    rule = RULES[index]
    if not rule.head and "(?P<v>" not in rule.pattern:
        return start, end
    spans = _PATTERNS[index].groups_at(data, start, min(start + _WINDOW, len(data)) if rule.head else end)
    return spans[1] if spans is not None else (start, start)


def _apply(index: int, data: bytes, start: int, end: int) -> Span | None:
    rule = RULES[index]
    value = data[start:end].decode("ascii")
    bare = value.rstrip("\\")
    end -= len(value) - len(bare)
    if not bare:
        return None
    if rule.check.startswith("sentence"):
        return _find_in_sentence(rule.kind, bare, start, rule.check)
    return Span(start, end, rule.kind) if _passes(rule.check, bare, data, start) else None


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
        return any(is_drawn(pair.partition("=")[2]) for pair in value.split(";"))
    return not is_filler(value)


def _find_in_sentence(kind: str, value: str, start: int, check: str) -> Span | None:
    """Find the password that a sentence names: quoted, or clearly not a word of the sentence."""
    quoted = value[0] in _QUOTES
    bare = value[1:].split(value[0])[0] if quoted else value.rstrip(".,;:!?)\"'`*\\")
    begin = start + quoted
    if is_reference(bare) or is_filler(bare) or len(bare) < 4:
        return None
    if check == "sentence":
        good = quoted or not is_wordy(bare)
    elif check == "sentence-token":
        good = is_drawn(bare) or (len(bare) >= 12 and not is_wordy(bare) and any(map(str.isdigit, bare)))
    else:
        good = is_drawn(bare)
    return Span(begin, begin + len(bare), kind) if good else None


def find_cut(data: bytes) -> Iterator[Span]:
    """Yield the tokens cut short by the end of the text or of an excerpt in it."""
    for start, end in CUT.spans(data):
        token = data[start:end].split(b"[")[0].rstrip(b"?. \t\r\n")
        if not is_filler(token.decode("ascii")):
            yield Span(start, start + len(token), "cut-token")


def find_key_blocks(data: bytes) -> Iterator[Span]:
    """Yield private key blocks, also those without their first or last line."""
    done = 0
    begin: int | None = None
    after = 0
    for start, end in _MARKER.spans(data):
        opens = b"BEGIN" in data[start:end]
        if begin is not None:
            whole = not opens and start - begin <= _LARGEST_KEY
            done = end if whole else _key_end(data, after, start)
            if _KEY_BODY.search(data, after, start if whole else done):
                yield Span(begin, done, "pem")
        elif not opens:
            top = _key_begin(data, done, start)
            done = end
            if _KEY_BODY.search(data, top, start):
                yield Span(top, end, "pem")
        begin, after = (start, end) if opens else (None, 0)
    if begin is not None:
        done = _key_end(data, after, len(data))
        if _KEY_BODY.search(data, after, done):
            yield Span(begin, done, "pem")


def _key_end(data: bytes, at: int, limit: int) -> int:
    """Return where the base64 lines after a BEGIN line end."""
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
    """Return where the base64 lines before an END line start."""
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
