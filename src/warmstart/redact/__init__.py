"""Nothing secret is stored or leaves: secrets in texts and values give way to typed, numbered placeholders.

A text is read as it stands, then again with escapes, colours and encodings undone; in every reading it is searched for
the user's own secret values, for forms that vendors gave their secrets, for values that a name makes secret, and last
for opaque tokens. Pure: the secret values of the environment are passed in. Matching takes linear time.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from warmstart.redact.context import FLAG, NAMED, SETTING, find_flagged, find_named
from warmstart.redact.forms import CUT, FINDER, find_cut, find_forms, find_key_blocks
from warmstart.redact.matching import Literals, Prefilter, Regex, as_bytes, word_set
from warmstart.redact.opaque import Part, find_runs, is_hinted, is_public, looks_random, parts
from warmstart.redact.personal import find_personal
from warmstart.redact.values import (
    STRONG,
    TOKEN,
    could_be_secret,
    is_filler,
    is_reference,
    is_stand_in,
    is_wordy,
    strength,
)
from warmstart.redact.views import WORTH, View, flatten, from_base64, from_hex

__all__ = ["MASK", "Hit", "Redactor", "Scope"]

_PLACEHOLDER = Regex(r"\{\{SECRET:[a-z0-9-]{1,24}#[0-9]{1,9}\}\}")
_SCHEME = Regex(r"(?i)(?:bearer|basic|token|apikey|digest|bot)\s+(?=\S)")
MASK = "\x01"  # stands for a placeholder in the searched bytes; no value may hold it
_DEEPEST = 3  # readings inside readings
_ROUNDS = 4  # a replacement may uncover the next; more than two rounds are rare
_REMEMBERED = 64  # secrets learned from their context that are then known everywhere in the scope
_ANY_KIND = "key"  # shorter than any fragment that could give a value away

_PUBLIC_KINDS = frozenset({"home", "email", "phone", "host", "address"})

_UNTELLING_NAMES = word_set(
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


_FORMS, _KEYS, _CUTS, _NAMES, _FLAGS, _READINGS = range(6)
_GATE = Prefilter(
    [
        FINDER.finder.source,
        "PRIVATE KEY|Static key",
        CUT.source,
        NAMED.source,
        f"{FLAG.source}|{SETTING.source}",
        WORTH,
    ]
)
_FINDERS = (
    (_FORMS, 1, find_forms),
    (_KEYS, 1, find_key_blocks),
    (_CUTS, 2, find_cut),
    (_NAMES, 2, find_named),
    (_FLAGS, 2, find_flagged),
)


class Hit(NamedTuple):
    """A span of the searched text; `value` is what it reads as where that differs from the text."""

    start: int
    end: int
    rank: int  # known, form, context, opaque: the lowest gives a merged span its kind
    kind: str
    value: str = ""


class Redactor:
    """Finds secrets. `known` are the user's own secret values by name; `share` also hides people and machines."""

    def __init__(self, known: Mapping[str, str] = {}, *, share: bool = False) -> None:
        self._share = share
        values = [value for name, value in known.items() if _is_worth_hiding(name, value)]
        spelled = {form: value for value in values for form in _spellings(value)}
        self._meant = list(spelled.values())
        self._exact = Literals(spelled)
        self._stretched = Literals(dict.fromkeys(core for value in values for core in _base64_cores(value)))
        self._wide = {
            form: value
            for value in values
            if not value.isascii()
            for form in (value, json.dumps(value, ensure_ascii=False)[1:-1])
        }

    def scope(self) -> Scope:
        """A fresh numbering, for one session or template."""
        return Scope(self)

    def _find(self, text: str, *, opaque: bool) -> list[Hit]:
        hits = self._search(as_bytes(text), opaque, 0)
        for form, value in self._wide.items():
            hits.extend(_occurrences(text, form, "env", value))
        return hits

    def _search(self, data: bytes, opaque: bool, depth: int) -> list[Hit]:
        flat = flatten(data)
        hits: list[Hit] = []
        if self._exact.literals:
            for index, start, end in self._exact.find(data):
                hits.append(Hit(start, end, 0, "env", self._meant[index]))
            hits.extend(Hit(*_base64_run(data, start, end), 0, "env") for _, start, end in self._stretched.find(data))
        if self._share:
            hits.extend(Hit(*found[:2], 4, found.kind) for found in find_personal(flat))
        hits.extend(self._search_runs(flat, opaque, depth))
        present = _GATE.which(flat)
        if not present:
            return hits
        for part, rank, find in _FINDERS:
            if part in present:
                hits.extend(Hit(start, end, rank, kind) for start, end, kind in find(flat))
        if _READINGS in present and depth < _DEEPEST:
            view = View(data)
            for hit in self._search(view.data, opaque, depth + 1):
                value = hit.value or view.data[hit.start : hit.end].decode("ascii")
                hits.append(Hit(*view.back(hit.start, hit.end), hit.rank, hit.kind, value))
        return hits

    def _search_runs(self, data: bytes, opaque: bool, depth: int) -> list[Hit]:
        hits: list[Hit] = []
        lines: list[tuple[int, int]] = []  # base64 lines that belong together
        for start, end in find_runs(data):
            if lines and (data[lines[-1][1] : start].strip() or start - lines[-1][1] > 8):
                hits.extend(self._wrapped(data, lines, opaque, depth))
                lines.clear()
            if 56 <= end - start <= 80 or lines:
                lines.append((start, end))
            for part in parts(data[start:end].decode("ascii")):
                hit = self._weigh(data, start, part, opaque, depth)
                if hit is not None:
                    hits.append(hit)
        hits.extend(self._wrapped(data, lines, opaque, depth))
        return hits

    def _weigh(self, data: bytes, offset: int, part: Part, opaque: bool, depth: int) -> Hit | None:
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
        """The kind of secret that an encoded text holds; empty if none."""
        inner = self._search(plain, opaque, depth + 1) if depth < _DEEPEST else []
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

    def _wrapped(self, data: bytes, lines: list[tuple[int, int]], opaque: bool, depth: int) -> list[Hit]:
        """Base64 broken into lines: a secret may stand across two of them."""
        if len(lines) < 2:
            return []
        plain = from_base64(b"".join(data[start:end] for start, end in lines))
        kind = self._kind_inside(plain, opaque, depth) if plain else ""
        return [Hit(lines[0][0], lines[-1][1], 3, kind)] if kind else []


def _occurrences(text: str, form: str, kind: str, value: str) -> list[Hit]:
    hits = []
    at = text.find(form)
    while at >= 0:
        hits.append(Hit(at, at + len(form), 0, kind, value))
        at = text.find(form, at + len(form))
    return hits


def _is_worth_hiding(name: str, value: str) -> bool:
    value = value.strip()
    if len(value) < 6 or name.upper() in _UNTELLING_NAMES or value.lower() in _COMMON_VALUES:
        return False
    if is_filler(value) or (_VERSION_OR_NUMBER.match(value) and len(value) < 10):
        return False
    return not is_reference(value) or (strength(name) >= TOKEN and "/" not in value)


def _spellings(value: str) -> list[bytes]:
    """A value as it stands, and as JSON and URLs spell it."""
    value = value.strip()
    forms = [json.dumps(value)[1:-1], quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")]
    forms += [json.dumps(form)[1:-1] for form in forms[:1]]
    if value.isascii():
        forms.insert(0, value)
    return [form.encode() for form in forms if form.isascii()]


def _base64_cores(value: str) -> list[bytes]:
    """The base64 of a value at each of the three alignments, without the characters its neighbours share."""
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
    """The whole base64 run that a span lies in."""
    match = _BASE64_AFTER.match(data, end)
    floor = max(start - (64 << 10), 0)
    before = data[floor:start]
    kept = len(before.rstrip(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"))
    return floor + kept, match.end() if match else end


class Scope:
    """One session or template: the same value gets the same placeholder, which carries nothing of the value."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._placeholders: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._learned: dict[str, str] = {}
        self.found = 0
        self.kinds: dict[str, int] = {}

    def text(self, text: str) -> str:
        """The text with every secret replaced."""
        return self._redact(text, opaque=True)

    def identifier(self, text: str) -> str:
        """The same for ids, tool and model names and paths, whose opaque parts are meant to be there."""
        return self._redact(text, opaque=False)

    def value(self, value: Any) -> Any:
        """JSON-like data with every secret replaced, keys too; under a telling name whatever it looks like."""
        top: list[Any] = [None]
        work: list[tuple[Any, Any, Any, int]] = [(value, top, 0, 0)]  # a stack of our own: nesting may be hostile
        while work:
            node, target, slot, says = work.pop()
            if isinstance(node, str):
                target[slot] = self._named(node, says) if says else self.text(node)
            elif isinstance(node, Mapping):
                copy: dict[Any, Any] = {}
                target[slot] = copy
                work.extend(reversed(self._members(node, copy)))
            elif isinstance(node, list | tuple | set | frozenset):
                items = list(node)
                target[slot] = row = [None] * len(items)
                work.extend(reversed(self._items(items, row, says)))
            elif isinstance(node, bytes):
                target[slot] = self.text(node.decode("latin-1")).encode("latin-1")
            elif isinstance(node, int) and not isinstance(node, bool) and says == STRONG and abs(node) > 9999:
                target[slot] = self.placeholder(str(node), "password")
            else:
                target[slot] = node
        return top[0]

    def _members(self, node: Mapping[Any, Any], copy: dict[Any, Any]) -> list[tuple[Any, Any, Any, int]]:
        label = next(
            (node[key] for key in ("name", "key", "Name", "Key", "header") if isinstance(node.get(key), str)), ""
        )
        labelled = strength(label) if label else 0
        members = []
        for key, member in node.items():
            name = self.text(key) if isinstance(key, str) else key
            says = strength(key) if isinstance(key, str) else 0
            if key in ("value", "Value"):
                says = max(says, labelled)
            copy[name] = None
            members.append((member, copy, name, says))
        return members

    def _items(self, items: list[Any], row: list[Any], says: int) -> list[tuple[Any, Any, Any, int]]:
        work = []
        for i, item in enumerate(items):
            before = items[i - 1] if i else None
            flag = strength(before) if isinstance(before, str) and before.startswith("--") and "=" not in before else 0
            work.append((item, row, i, max(says, flag)))
        return work

    def _named(self, value: str, says: int) -> str:
        """A value under a telling name."""
        if says < TOKEN:
            text = self._redact(value, opaque=True)
            return self.placeholder(value, "token") if text == value and could_be_secret(value, says) else text
        if is_stand_in(value):
            return value
        scheme = _SCHEME.match(value)
        start = scheme.end() if scheme else 0
        if _PLACEHOLDER.fullmatch(value, start):
            return value
        kind = "password" if says == STRONG else "token"
        if _PLACEHOLDER.search(value):
            return self._redact(value, opaque=True)
        found = self._redactor._find(value[start:], opaque=False)
        if found:
            kind = min(found, key=lambda hit: hit.rank).kind
        return value[:start] + self.placeholder(value[start:], kind)

    def find(self, text: str, *, opaque: bool = True) -> list[Hit]:
        """What is secret in a text, span by span and unmerged, for who replaces it otherwise; `MASK` stands for what is
        replaced already."""
        hits = self._redactor._find(text, opaque=opaque)
        for value, kind in self._learned.items():
            if value in text:
                hits.extend(_occurrences(text, value, kind, value))
        return hits

    def _redact(self, text: str, *, opaque: bool) -> str:
        for _ in range(_ROUNDS):
            masked = _PLACEHOLDER.sub(lambda match: MASK * len(match.group()), text) if "{{SECRET:" in text else text
            hits = self.find(masked, opaque=opaque)
            if not hits:
                break
            text = self._replace_all(text, masked, hits)
        return text

    def _replace_all(self, text: str, masked: str, hits: list[Hit]) -> str:
        pieces = []
        at = 0
        for start, end, kind, value in _merge(hits, masked):
            if MASK in masked[start:end]:
                start, end = _unmasked(masked, start, end)
                if end - start < 3:
                    continue
                value = masked[start:end]
            pieces.append(text[at:start])
            pieces.append(self.placeholder(value, kind))
            at = end
        pieces.append(text[at:])
        return "".join(pieces)

    def placeholder(self, value: str, kind: str) -> str:
        """What stands for a value: always the same."""
        self.found += 1
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        placeholder = self._placeholders.get(value)
        if placeholder is None:
            shown = _ANY_KIND if kind not in _PUBLIC_KINDS and _gives_away(kind, value) else kind
            number = self._numbers[shown] = self._numbers.get(shown, 0) + 1
            placeholder = self._placeholders[value] = f"{{{{SECRET:{shown}#{number}}}}}"
            if (
                kind in ("password", "token", "url-password")
                and len(self._learned) < _REMEMBERED
                and _is_distinct(value)
            ):
                self._learned[value] = kind
        return placeholder


def _unmasked(masked: str, start: int, end: int) -> tuple[int, int]:
    """The longest stretch of a span that touches no placeholder."""
    best = (start, start)
    at = start
    for run in masked[start:end].split(MASK):
        if len(run) > best[1] - best[0]:
            best = (at, at + len(run))
        at += len(run) + 1
    return best


def _merge(hits: list[Hit], text: str) -> list[tuple[int, int, str, str]]:
    """Overlapping spans as one: the surest finder names it."""
    merged: list[tuple[int, int, str, str]] = []
    group: list[Hit] = []
    stop = -1
    for hit in sorted(hits):
        if hit.start >= stop and group:
            merged.append(_join(group, stop, text))
            group = []
        if not group:
            stop = hit.end
        group.append(hit)
        stop = max(stop, hit.end)
    merged.append(_join(group, stop, text))
    return merged


def _join(group: list[Hit], stop: int, text: str) -> tuple[int, int, str, str]:
    start = group[0].start
    kind = min(group, key=lambda hit: hit.rank).kind
    value = next((hit.value for hit in group if hit.value and (hit.start, hit.end) == (start, stop)), "")
    return start, stop, kind, value or text[start:stop]


def _gives_away(kind: str, value: str) -> bool:
    """Whether the kind repeats four characters of the value."""
    lower = value[:4096].lower()
    return any(kind[i : i + 4] in lower for i in range(len(kind) - 3))


def _is_distinct(value: str) -> bool:
    """Whether a learned value is so much its own that it may be hidden wherever it stands."""
    if not 8 <= len(value) <= 256 or is_reference(value):
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return looks_random(value) or (mixed and any(not c.isalnum() and c not in "_-./" for c in value))
