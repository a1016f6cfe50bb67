"""Mask the secrets in the texts and arguments of one request.

A mask reads `{{SECRET:token#1}}⟨24 characters⟩`: the kind, a number that is the same for the same value, and the length
of the masked text. `cover.py` says what a mask may cover.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from warmstart.confirm.masking.cover import ENDS, LOOKS, PLACE, Cover, count_secrets, cover, cover_decoded, cover_named
from warmstart.plurals import format_count
from warmstart.redact import MASK, Hit, Scope
from warmstart.redact.values import NONE, STRONG, TOKEN, could_be_secret, is_stand_in, strength

_ROUNDS = 4  # masking one secret may make the next one recognisable
_DEEPEST = 3  # encodings inside encodings that are shown decoded
_PLACEHOLDER = re.compile(r"\{\{SECRET:[a-z0-9-]{1,24}#[0-9]{1,9}\}\}")  # a foreign mask that an agent quotes
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|digest|bot)\s+(?=\S)", re.I)
_SETTINGS = re.compile(r"\s*[\w .-]{1,64}=[^;]*;")  # `Server=db1;Password=...` names its secrets itself
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MAYBE_TARGETS = ("key", "keys", "hash", "session")  # may name a target: a cache key, a session
_TARGETS = frozenset(
    """
    to address recipient payee beneficiary iban account namespace ns bucket branch id name path file filename folder
    host hostname domain repo repository project cluster instance device channel table
    """.split()
)


class Masks:
    """Masks one request; `count` is the number of secrets so far. With a `key`, `fingerprints` tells equal values from
    others: it maps each mask (`token#1`) to a keyed hash of what it covers."""

    def __init__(self, scope: Scope, known: Iterable[str], key: bytes = b"") -> None:
        self._scope = scope
        self._key = key
        self.fingerprints: dict[str, str] = {}
        self._known = frozenset(value.strip() for value in known)
        self.count = 0

    def mask_text(self, text: str, *, prose: bool = False) -> str:
        """Mask the secrets in a text."""
        return self._mask(text, [], prose=prose)

    def mask_value(self, node: Any, hint: int = NONE, name: str = "") -> Any:
        """Mask the secrets in arguments, keys included. `hint` says how strongly the key `name` suggests a secret."""
        if isinstance(node, str):
            return self._mask_string(node, hint, name)
        if isinstance(node, Mapping):
            return self._mask_members(node)
        if isinstance(node, list | tuple):
            return [self.mask_value(item, max(hint, _read_flag(node, i)), name) for i, item in enumerate(node)]
        if isinstance(node, int) and not isinstance(node, bool) and hint == STRONG and abs(node) > 9999:
            return self._mask(str(node), [Cover(0, len(str(node)), PLACE, "password")])
        return node

    def _mask_members(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """Mask an object's members in the order shown. Masked keys stay distinct, or a member would vanish."""
        label = next(
            (node[key] for key in ("name", "key", "Name", "Key", "header") if isinstance(node.get(key), str)), ""
        )
        shown: dict[str, Any] = {}
        for key in sorted(node):
            hint = max(strength(key), strength(label) if label and key in ("value", "Value") else NONE)
            name = self.mask_text(key)
            while name in shown or (name != key and name in node):
                name += "′"
            shown[name] = self.mask_value(node[key], hint, key)
        return shown

    def _mask_string(self, text: str, hint: int, name: str) -> str:
        if hint == NONE:
            return self._mask(text, [], is_target=_names_target(name))
        if hint < TOKEN:
            is_secret = could_be_secret(text, hint) or name.lower().endswith("mnemonic")
            masked = text if is_secret and not name.lower().endswith(_MAYBE_TARGETS) else self.mask_text(text)
            return self._mask_named(text, "token") if is_secret and masked == text else masked
        if is_stand_in(text) or "://" in text or _SETTINGS.match(text):
            return self.mask_text(text)
        return self._mask_named(text, "password" if hint == STRONG else "token")

    def _mask_named(self, text: str, kind: str) -> str:
        """Mask a value whose key says that it is a secret."""
        scheme = _SCHEME.match(text)
        spans = cover_named(text, scheme.end() if scheme else 0)
        return self._mask(text, [Cover(start, end, PLACE, kind) for start, end in spans])

    def _mask(
        self, text: str, more: list[Cover], *, is_target: bool = False, prose: bool = False, depth: int = 0
    ) -> str:
        """Find and mask secrets, and look again at the rest. `more` is masked in any case."""
        left = _PLACEHOLDER.sub(lambda match: MASK * len(match.group()), text)
        masks: list[tuple[Cover, str]] = []
        for _ in range(_ROUNDS):
            hits = [hit for hit in self._scope.find(left) if not (is_target and _is_bare(hit, left))]
            covers = cover(left, hits, self._known, more, prose=prose)
            if not covers:
                break
            if depth == 0:
                whole = [Hit(more[0].start, more[-1].end, PLACE, "")] if more else []
                self.count += count_secrets([*hits, *whole], covers)
            masks += [(span, self._name_mask(text[span.start : span.end], span.kind)) for span in covers]
            left = _blank(left, covers)
            more = []
        return self._write(text, sorted(masks), depth) if masks else text

    def _name_mask(self, covered: str, kind: str) -> str:
        placeholder = self._scope.placeholder(covered, kind)
        if self._key:
            name = placeholder.removeprefix("{{SECRET:").removesuffix("}}")
            value = covered.encode("utf-8", "surrogatepass")
            self.fingerprints[name] = hashlib.blake2b(value, key=self._key, digest_size=16).hexdigest()
        return placeholder

    def _write(self, text: str, masks: list[tuple[Cover, str]], depth: int) -> str:
        parts = []
        at = 0
        for (start, end, _, kind, plain), placeholder in masks:
            size = _describe_size(text[start:end])
            if plain and depth < _DEEPEST:
                spans = [Cover(*span, PLACE, kind) for span in cover_decoded(plain)]
                size += f", decoded: {self._mask(plain, spans, depth=depth + 1)}"  # text.js parses this
            parts += [text[at:start], placeholder, f"⟨{size}⟩"]
            at = end
        return "".join((*parts, text[at:]))


def _read_flag(items: list[Any] | tuple[Any, ...], i: int) -> int:
    """Return how strongly a flag such as `--password` before an item suggests a secret."""
    before = items[i - 1] if i else None
    return strength(before) if isinstance(before, str) and before.startswith("--") and "=" not in before else NONE


def _names_target(name: str) -> bool:
    """Return whether a name is a target's, such as `to_address` or `bucketName`, but not `session_id`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (words[-1] not in _TARGETS and words[-1].removesuffix("s") not in _TARGETS):
        return False
    return strength("_".join(words[:-1])) == NONE


def _is_bare(hit: Hit, text: str) -> bool:
    """Return whether the only sign of a secret is that the whole text looks random."""
    return hit.rank == LOOKS and hit.kind == "opaque" and not any(map(str.isspace, text))


def _blank(text: str, covers: list[Cover]) -> str:
    """Blank masked spans and the ends shown beside them, so that later rounds do not look at them again."""
    parts = []
    at = 0
    for span in covers:
        start, end = max(span.start, at), max(span.end, at)
        while start > at and span.start - start < ENDS and text[start - 1].isalnum():
            start -= 1
        while end < len(text) and end - span.end < ENDS and text[end].isalnum():
            end += 1
        parts += [text[at:start], MASK * (end - start)]
        at = end
    return "".join((*parts, text[at:]))


def _describe_size(covered: str) -> str:
    size = format_count(len(covered), "character")
    lines = covered.count("\n") + 1
    return f"{size} on {lines} lines" if lines > 1 else size
