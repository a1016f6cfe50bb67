"""A scope: one session or template in which the same value always gets the same placeholder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from warmstart.redact.matching import Literals, Regex
from warmstart.redact.opaque import looks_random
from warmstart.redact.values import STRONG, TOKEN, could_be_secret, is_reference, is_stand_in, strength

_PLACEHOLDER = Regex(r"\{\{SECRET:[a-z0-9-]{1,24}#[0-9]{1,9}\}\}")
_START = "{{SECRET:"
_SCHEME = Regex(r"(?i)(?:bearer|basic|token|apikey|digest|bot)\s+(?=\S)")
MASK = "\x01"  # stands for a placeholder in the searched bytes; no value may contain it
_ROUNDS = 4  # a replacement may uncover the next secret; more than two rounds are rare
_REMEMBERED = 64  # secrets learned from their context that are then known everywhere in the scope
_REPEATED = 500  # replaced values that are looked for in other texts
_ANY_KIND = "key"  # shown instead of a kind that would repeat part of the value; shorter than any such part
_PUBLIC_KINDS = frozenset({"home", "email", "phone", "host", "address"})


class Hit(NamedTuple):
    """A span of the searched text; `value` is its decoded text where that differs."""

    start: int
    end: int
    rank: int  # known value, form, context, opaque, personal; the lowest rank gives a merged span its kind
    kind: str
    value: str = ""


class Scope:
    """One session or template: the same value gets the same placeholder, which reveals nothing of the value.

    `search` returns the secrets of a text; its flag says whether opaque tokens count. `search_many` returns those of each
    text, opaque tokens included.
    """

    def __init__(
        self, search: Callable[[str, bool], list[Hit]], search_many: Callable[[Sequence[str]], list[list[Hit]]]
    ) -> None:
        self._search = search
        self._search_many = search_many
        self._screened: dict[str, list[Hit]] = {}
        self._placeholders: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._learned: dict[str, str] = {}
        self._learned_words = Literals(())
        self._repeated: re.Pattern[str] | None = None  # finds the replaced values, made when it is needed
        self._repeated_at = 0  # number of placeholders when it was made
        self.kinds: dict[str, int] = {}  # how many secrets of each kind were replaced

    def text(self, text: str) -> str:
        """Return a text with every secret replaced."""
        return self._redact(text, opaque=True)

    def texts(self, texts: Sequence[str]) -> list[str]:
        """Return many texts as `text` returns them one after the other, several times as fast."""
        self.screen(texts)
        hits = self._screened
        return [text if hits.get(text) == [] and not self._learned else self.text(text) for text in texts]

    def screen(self, texts: Iterable[str]) -> None:
        """Search texts together, before they are redacted in whatever order: `text` then knows what they hold."""
        waiting = [text for text in dict.fromkeys(texts) if text not in self._screened and _START not in text]
        self._screened.update(zip(waiting, self._search_many(waiting), strict=True))

    def forget(self, texts: Iterable[str]) -> None:
        """Drop what `screen` knows about texts that will not be redacted again, to save memory."""
        for text in texts:
            self._screened.pop(text, None)

    def identifier(self, text: str) -> str:
        """Redact an id, a tool or model name or a path: its opaque parts are left, because they belong there."""
        return self._redact(text, opaque=False)

    def value(self, value: Any) -> Any:
        """Return JSON-like data with every secret replaced, in keys too; under a secret's name any value is replaced."""
        top: list[Any] = [None]
        work: list[tuple[Any, Any, Any, int]] = [(value, top, 0, 0)]  # an explicit stack: nesting may be hostile
        while work:
            node, target, slot, level = work.pop()
            if isinstance(node, str):
                target[slot] = self._redact_named(node, level) if level else self.text(node)
            elif isinstance(node, Mapping):
                copy: dict[Any, Any] = {}
                target[slot] = copy
                work.extend(reversed(self._members(node, copy)))
            elif isinstance(node, list | tuple | set | frozenset):
                items = list(node)
                target[slot] = row = [None] * len(items)
                work.extend(reversed(self._items(items, row, level)))
            elif isinstance(node, bytes):
                target[slot] = self.text(node.decode("latin-1")).encode("latin-1")
            elif isinstance(node, int) and not isinstance(node, bool) and level == STRONG and abs(node) > 9999:
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
            level = strength(key) if isinstance(key, str) else 0
            if key in ("value", "Value"):
                level = max(level, labelled)
            copy[name] = None
            members.append((member, copy, name, level))
        return members

    def _items(self, items: list[Any], row: list[Any], level: int) -> list[tuple[Any, Any, Any, int]]:
        work = []
        for i, item in enumerate(items):
            before = items[i - 1] if i else None
            flag = strength(before) if isinstance(before, str) and before.startswith("--") and "=" not in before else 0
            work.append((item, row, i, max(level, flag)))
        return work

    def _redact_named(self, value: str, level: int) -> str:
        """Redact a value under a name that announces a secret."""
        if level < TOKEN:
            text = self._redact(value, opaque=True)
            return self.placeholder(value, "token") if text == value and could_be_secret(value, level) else text
        if is_stand_in(value):
            return value
        scheme = _SCHEME.match(value)
        start = scheme.end() if scheme else 0
        if _PLACEHOLDER.fullmatch(value, start):
            return value
        kind = "password" if level == STRONG else "token"
        if _PLACEHOLDER.search(value):
            return self._redact(value, opaque=True)
        hits = self._search(value[start:], False)
        if hits:
            kind = min(hits, key=lambda hit: hit.rank).kind
        return value[:start] + self.placeholder(value[start:], kind)

    def replaced(self, text: str) -> str:
        """Hide every value that was replaced before in this scope, also where nothing but its repetition tells it.

        A request says `use ab12cd` and the call `{"token": "ab12cd"}`: only the call names it. Short values and plain
        words are left, because they may stand for something else.
        """
        if self._repeated_at != len(self._placeholders):
            self._repeated_at = len(self._placeholders)
            values = sorted(filter(_may_repeat, self._placeholders), key=lambda value: (-len(value), value))
            joined = "|".join(map(re.escape, values[:_REPEATED]))
            self._repeated = re.compile(rf"(?<!\w)(?:{joined})(?!\w)") if joined else None
        if self._repeated is None:
            return text
        return self._repeated.sub(lambda match: self._placeholders[match[0]], text)

    def find(self, text: str, *, opaque: bool = True) -> list[Hit]:
        """Return the secrets of a text, unmerged, for callers that replace them otherwise.

        Spans that are already replaced must be masked with `MASK`.
        """
        known = self._screened.get(text) if self._screened else None
        hits = self._search(text, opaque) if known is None or (known and not opaque) else known.copy()
        if self._learned and self._learned_words.find(_as_utf8(text)):  # one pass: there may be many
            for value, kind in self._learned.items():
                if value in text:
                    hits.extend(occurrences(text, value, kind, value))
        return hits

    def _redact(self, text: str, *, opaque: bool) -> str:
        if self._screened and not self._learned and self._screened.get(text) == []:
            return text
        for _ in range(_ROUNDS):
            masked = _PLACEHOLDER.sub(lambda match: MASK * len(match.group()), text) if _START in text else text
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
        """Return the placeholder of a value, always the same one."""
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
                self._learned_words = Literals(map(_as_utf8, self._learned))
        return placeholder


def _as_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def occurrences(text: str, form: str, kind: str, value: str) -> list[Hit]:
    """Return a hit for every occurrence of `form` in a text."""
    hits = []
    at = text.find(form)
    while at >= 0:
        hits.append(Hit(at, at + len(form), 0, kind, value))
        at = text.find(form, at + len(form))
    return hits


def _unmasked(masked: str, start: int, end: int) -> tuple[int, int]:
    """Return the longest part of a span that touches no placeholder."""
    best = (start, start)
    at = start
    for run in masked[start:end].split(MASK):
        if len(run) > best[1] - best[0]:
            best = (at, at + len(run))
        at += len(run) + 1
    return best


def _merge(hits: list[Hit], text: str) -> list[tuple[int, int, str, str]]:
    """Merge overlapping hits; the hit with the lowest rank gives the kind."""
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
    """Return whether the kind repeats four characters of the value."""
    lower = value[:4096].lower()
    return any(kind[i : i + 4] in lower for i in range(len(kind) - 3))


def _may_repeat(value: str) -> bool:
    """Return whether a replaced value is long enough, and no plain lower-case word, to be hidden wherever it occurs."""
    return 4 <= len(value) <= 256 and not (value.isalpha() and value.islower() and len(value) < 8) and "\n" not in value


def _is_distinct(value: str) -> bool:
    """Return whether a learned value is distinctive enough to be replaced wherever it occurs."""
    if not 8 <= len(value) <= 256 or is_reference(value):
        return False
    mixed = any(map(str.isdigit, value)) and any(map(str.isalpha, value))
    return looks_random(value) or (mixed and any(not c.isalnum() and c not in "_-./" for c in value))
