"""The search for secrets in a text and in its other readings."""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, chain
from urllib.parse import quote, quote_plus

from warmstart.redact.context import find_flagged, find_named
from warmstart.redact.forms import find_cut, find_forms, find_key_blocks
from warmstart.redact.gate import CUTS, EDGE, FLAGS, FORMS, GATE, KEYS, NAMES, NOTHING, READINGS, FoundParts, SearchGate
from warmstart.redact.matching import Literals, Regex, as_bytes, word_set
from warmstart.redact.opaque import HARMLESS, LINE, Part, is_hinted, is_public, remember_harmless
from warmstart.redact.opaque import parts as find_parts
from warmstart.redact.personal import find_personal
from warmstart.redact.scope import Hit, Scope, occurrences
from warmstart.redact.values import TOKEN, is_filler, is_reference, is_wordy, strength
from warmstart.redact.views import View, flatten, from_base64, from_hex

_DEEPEST = 3  # readings inside readings
_BATCH = 256 << 10  # characters that are searched together

_PLAIN_NAMES = word_set(
    """
    PATH HOME USER LOGNAME USERNAME LANG LANGUAGE SHELL TERM PWD OLDPWD HOSTNAME EDITOR VISUAL PAGER TZ DISPLAY
    MAIL SHLVL COLORTERM TERM_PROGRAM HOSTTYPE OSTYPE MACHTYPE XDG_SESSION_TYPE
    """
)
_COMMON_VALUES = word_set(
    """
    true false none null undefined production development staging testing default localhost enabled disabled
    debug info warning error always never public private password username secret xterm xterm-256color
    screen-256color truecolor postgres mysql sqlite redis docker kubernetes github gitlab google amazon
    microsoft ubuntu debian alpine linux darwin windows python nodejs example english utf-8 en_us.utf-8 c.utf-8
    us-east-1 us-west-2 eu-west-1 master
    """
)
_VERSION_OR_NUMBER = Regex(r"v?[\d.,:_+-]+\Z")


_FINDERS = (
    (KEYS, 1, find_key_blocks),
    (CUTS, 2, find_cut),
    (NAMES, 2, find_named),
    (FLAGS, 2, find_flagged),
)


class Redactor:
    """Finds secrets. `known` holds the user's own secret values by name; `share` also hides people and machines."""

    def __init__(self, known: Mapping[str, str] = {}, *, share: bool = False, gate: SearchGate = GATE) -> None:
        self._share = share
        self._gate = gate
        values = [value for name, value in known.items() if _is_worth_hiding(name, value)]
        spelled = {form: value for value in values for form in _spellings(value)}
        self._values = list(spelled.values())
        self._exact = Literals(spelled)
        self._stretched = Literals(dict.fromkeys(core for value in values for core in _base64_cores(value)))
        self._wide = {
            form: value
            for value in values
            if not value.isascii()
            for form in (value, json.dumps(value, ensure_ascii=False)[1:-1])
        }

    def scope(self) -> Scope:
        """Start a new numbering of placeholders, for one session or template."""
        return Scope(self._find, self._find_many)

    def _find(self, text: str, opaque: bool) -> list[Hit]:
        hits = self._search_one(as_bytes(text), opaque, 0)
        for form, value in self._wide.items():
            hits.extend(occurrences(text, form, "env", value))
        return hits

    def _find_many(self, texts: Sequence[str]) -> list[list[Hit]]:
        """Return what `_find` returns for each text, opaque tokens included."""
        if self._wide:
            return [self._find(text, True) for text in texts]
        hits: list[list[Hit]] = []
        for some in _batch(texts):
            hits.extend(self._search_many([as_bytes(text) for text in some], True, 0))
        return hits

    def _search_one(self, data: bytes, opaque: bool, depth: int) -> list[Hit]:
        """Return the secrets of a text and of its other readings."""
        flat = flatten(data)
        found = self._gate.find(flat)
        if found is NOTHING and not self._exact.literals and not self._share:
            return []
        hits = self._search_found(data, flat, found, opaque, depth)
        if READINGS in found.parts and depth < _DEEPEST:
            view = View(data)
            hits += [_map_back(view, hit) for hit in self._search_one(view.data, opaque, depth + 1)]
        return hits

    def _search_many(self, texts: Sequence[bytes], opaque: bool, depth: int) -> list[list[Hit]]:
        """Return what `_search_one` returns for each text."""
        if len(texts) == 1:
            return [self._search_one(texts[0], opaque, depth)]
        flat = [flatten(data) for data in texts]
        hits: list[list[Hit]] = [[] for _text in texts]
        found = self._gate.find_many(flat)
        if self._share or self._exact.literals:
            found = dict.fromkeys(self._find_known(texts), NOTHING) | found
        views: list[tuple[int, View]] = []
        for at, seen in found.items():
            hits[at] = self._search_found(texts[at], flat[at], seen, opaque, depth)
            if READINGS in seen.parts and depth < _DEEPEST:
                views.append((at, View(texts[at])))
        if views:
            inside = self._search_many([view.data for _at, view in views], opaque, depth + 1)
            for (at, view), inner in zip(views, inside, strict=True):
                hits[at] += [_map_back(view, hit) for hit in inner]
        return hits

    def _search_found(self, data: bytes, flat: bytes, found: FoundParts, opaque: bool, depth: int) -> list[Hit]:
        """Return the secrets of a text in which the gate found something, without its other readings."""
        hits = self._search_known(data, flat)
        if found.runs:
            hits += self._search_runs(flat, found.runs, opaque, depth)
        if found.parts:
            hits += _search_parts(flat, found.parts, found.rules)
        return hits

    def _find_known(self, texts: Sequence[bytes]) -> Collection[int]:
        """Return the numbers of the texts that `_search_known` must see."""
        literals = [*self._exact.literals, *self._stretched.literals]
        if self._share or any(EDGE in literal for literal in literals):
            return range(len(texts))
        joined = EDGE.join(texts)
        starts = list(accumulate((len(data) + 1 for data in texts), initial=0))
        matches = chain(self._exact.find(joined), self._stretched.find(joined))
        return {bisect_right(starts, start) - 1 for _index, start, _end in matches}

    def _search_known(self, data: bytes, flat: bytes) -> list[Hit]:
        """Return the user's own values in a text; when sharing, people and machines too."""
        hits: list[Hit] = []
        if self._exact.literals:
            for index, start, end in self._exact.find(data):
                hits.append(Hit(start, end, 0, "env", self._values[index]))
            hits.extend(Hit(*_base64_run(data, start, end), 0, "env") for _, start, end in self._stretched.find(data))
        if self._share:
            hits.extend(Hit(span.start, span.end, 4, span.kind) for span in find_personal(flat))
        return hits

    def _search_runs(self, data: bytes, runs: Iterable[tuple[int, int]], opaque: bool, depth: int) -> list[Hit]:
        hits: list[Hit] = []
        lines: list[tuple[int, int]] = []  # consecutive lines of base64
        for start, end in runs:
            run = data[start:end]
            if run in HARMLESS and not lines:
                continue
            if lines and (data[lines[-1][1] : start].strip() or start - lines[-1][1] > 8):
                hits.extend(self._search_wrapped(data, lines, opaque, depth))
                lines.clear()
            if LINE <= end - start <= 80 or lines:
                lines.append((start, end))
            parts = find_parts(run.decode("ascii"))
            if not parts:
                remember_harmless(run)
            for part in parts:
                hit = self._judge_part(data, start, part, opaque, depth)
                if hit is not None:
                    hits.append(hit)
        hits.extend(self._search_wrapped(data, lines, opaque, depth))
        return hits

    def _judge_part(self, data: bytes, offset: int, part: Part, opaque: bool, depth: int) -> Hit | None:
        start, end = offset + part.start, offset + part.end
        if part.nature == "encoded":
            run = data[start:end]
            plain = from_hex(run) or from_base64(run)
            kind = self._kind_inside(plain, opaque, depth) if plain else ""
            return Hit(start, end, 3, kind) if kind else None
        if (
            (not opaque and part.nature in ("opaque", "hinted"))
            or (part.nature == "hinted" and not is_hinted(data, start))
            or is_public(data, start)
        ):
            return None
        return Hit(start, end, 3, "opaque" if part.nature == "hinted" else part.nature)

    def _kind_inside(self, plain: bytes, opaque: bool, depth: int) -> str:
        """Return the kind of secret in a decoded text; "" if there is none."""
        inner = self._search_one(plain, opaque, depth + 1) if depth < _DEEPEST else []
        if inner:
            return min(inner, key=lambda hit: hit.rank).kind
        text = plain.decode("ascii").strip()
        single = (
            opaque
            and not re.search(r"\s", text)
            and not is_wordy(text)
            and not is_reference(text)
            and text[:1] not in "{[<"
        )
        return "opaque" if single and len(text) >= 8 else ""

    def _search_wrapped(self, data: bytes, lines: list[tuple[int, int]], opaque: bool, depth: int) -> list[Hit]:
        """Search base64 that is broken into lines: a secret may span two of them."""
        if len(lines) < 2:
            return []
        plain = from_base64(b"".join(data[start:end] for start, end in lines))
        kind = self._kind_inside(plain, opaque, depth) if plain else ""
        return [Hit(lines[0][0], lines[-1][1], 3, kind)] if kind else []


def _search_parts(flat: bytes, parts: Collection[int], rules: Sequence[int] | None) -> list[Hit]:
    hits: list[Hit] = []
    if FORMS in parts:
        hits.extend(Hit(start, end, 1, kind) for start, end, kind in find_forms(flat, rules))
    for part, rank, find in _FINDERS:
        if part in parts:
            hits.extend(Hit(start, end, rank, kind) for start, end, kind in find(flat))
    return hits


def _map_back(view: View, hit: Hit) -> Hit:
    """Return where a secret of another reading stands in the text."""
    value = hit.value or view.data[hit.start : hit.end].decode("ascii")
    return Hit(*view.back(hit.start, hit.end), hit.rank, hit.kind, value)


def _batch(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the texts in groups of moderate size."""
    first = size = 0
    for at, text in enumerate(texts):
        size += len(text)
        if size >= _BATCH:
            yield texts[first : at + 1]
            first, size = at + 1, 0
    if first < len(texts):
        yield texts[first:]


def _is_worth_hiding(name: str, value: str) -> bool:
    value = value.strip()
    if len(value) < 6 or name.upper() in _PLAIN_NAMES or value.lower() in _COMMON_VALUES:
        return False
    if is_filler(value) or (_VERSION_OR_NUMBER.match(value) and len(value) < 10):
        return False
    return not is_reference(value) or (strength(name) >= TOKEN and "/" not in value)


def _spellings(value: str) -> list[bytes]:
    """Return the spellings of a value: plain, in JSON and in URLs."""
    value = value.strip()
    forms = [json.dumps(value)[1:-1], quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")]
    forms += [json.dumps(form)[1:-1] for form in forms[:1]]
    if value.isascii():
        forms.insert(0, value)
    return [form.encode() for form in forms if form.isascii()]


def _base64_cores(value: str) -> list[bytes]:
    """Return the base64 of a value at each of the three alignments, without the characters it shares with its neighbours."""
    raw = value.strip().encode("utf-8", "replace")
    cores = []
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        core = encoded[(0, 2, 3)[shift] : -1]
        if len(core) >= 7:
            cores += [core, core.replace(b"+", b"-").replace(b"/", b"_")]
    return cores


_BASE64_AFTER = Regex(rb"[A-Za-z0-9+/_-]*={0,2}")


def _base64_run(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return the whole base64 run around a span."""
    match = _BASE64_AFTER.match(data, end)
    floor = max(start - (64 << 10), 0)
    before = data[floor:start]
    kept = len(before.rstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"))
    return floor + kept, match.end() if match else end
