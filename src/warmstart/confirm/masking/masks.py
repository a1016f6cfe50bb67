"""The masks of one request, in texts and in arguments.

A mask reads `{{SECRET:token#1}}⟨24 characters⟩`: the kind, a number that is the same for the same value, and how much
it stands for. What it may stand for is said in `covering.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from warmstart.confirm.masking.cover import ENDS, LOOKS, PLACE, Cover, count_finds, cover, cover_decoded, cover_named
from warmstart.redact import MASK, Hit, Scope
from warmstart.redact.values import NONE, STRONG, TOKEN, could_be_secret, is_stand_in, strength

_ROUNDS = 4  # a mask may uncover the next secret
_DEEPEST = 3  # encodings inside encodings that are shown decoded
_PLACEHOLDER = re.compile(r"\{\{SECRET:[a-z0-9-]{1,24}#[0-9]{1,9}\}\}")  # of somebody else's, in what an agent quotes
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey|digest|bot)\s+(?=\S)", re.I)
_SETTINGS = re.compile(r"\s*[\w .-]{1,64}=[^;]*;")  # `Server=db1;Password=...` names its secrets itself
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_MAYBE_TARGETS = ("key", "keys", "hash", "session")  # a key of a cache as well as of a door
_TARGETS = frozenset(
    """
    to address recipient payee beneficiary iban account namespace ns bucket branch id name path file filename folder
    host hostname domain repo repository project cluster instance device channel table
    """.split()
)


class Masks:
    """`count` is how many secrets were found so far."""

    def __init__(self, scope: Scope, known: Iterable[str]) -> None:
        self._scope = scope
        self._known = frozenset(value.strip() for value in known)
        self.count = 0

    def text(self, text: str, *, prose: bool = False) -> str:
        """A text with its secrets masked."""
        return self._mask(text, [], prose=prose)

    def value(self, node: Any, says: int = NONE, name: str = "") -> Any:
        """Arguments with their secrets masked, keys too; `says` is what `name`, under which they stand, says of them."""
        if isinstance(node, str):
            return self._string(node, says, name)
        if isinstance(node, Mapping):
            return self._members(node)
        if isinstance(node, list | tuple):
            return [self.value(item, max(says, _flag_says(node, i)), name) for i, item in enumerate(node)]
        if isinstance(node, int) and not isinstance(node, bool) and says == STRONG and abs(node) > 9999:
            return self._mask(str(node), [Cover(0, len(str(node)), PLACE, "password")])
        return node

    def _members(self, node: Mapping[str, Any]) -> dict[str, Any]:
        """In the order in which they are shown. No two names become one: a member would vanish."""
        label = next(
            (node[key] for key in ("name", "key", "Name", "Key", "header") if isinstance(node.get(key), str)), ""
        )
        shown: dict[str, Any] = {}
        for key in sorted(node):
            says = max(strength(key), strength(label) if label and key in ("value", "Value") else NONE)
            name = self.text(key)
            while name in shown or (name != key and name in node):
                name += "′"
            shown[name] = self.value(node[key], says, key)
        return shown

    def _string(self, text: str, says: int, name: str) -> str:
        if says == NONE:
            return self._mask(text, [], is_target=_names_target(name))
        if says < TOKEN:
            is_secret = could_be_secret(text, says) or name.lower().endswith("mnemonic")
            masked = text if is_secret and not name.lower().endswith(_MAYBE_TARGETS) else self.text(text)
            return self._named(text, "token") if is_secret and masked == text else masked
        if is_stand_in(text) or "://" in text or _SETTINGS.match(text):
            return self.text(text)
        return self._named(text, "password" if says == STRONG else "token")

    def _named(self, text: str, kind: str) -> str:
        scheme = _SCHEME.match(text)
        spans = cover_named(text, scheme.end() if scheme else 0)
        return self._mask(text, [Cover(start, end, PLACE, kind) for start, end in spans])

    def _mask(
        self, text: str, more: list[Cover], *, is_target: bool = False, prose: bool = False, depth: int = 0
    ) -> str:
        """Find, cover, and look again at what is left. `more` is covered whatever is found."""
        left = _PLACEHOLDER.sub(lambda found: MASK * len(found.group()), text)
        masks: list[tuple[Cover, str]] = []
        for _ in range(_ROUNDS):
            hits = [hit for hit in self._scope.find(left) if not (is_target and _is_bare(hit, left))]
            covers = cover(left, hits, self._known, more, prose=prose)
            if not covers:
                break
            if depth == 0:
                whole = [Hit(more[0].start, more[-1].end, PLACE, "")] if more else []
                self.count += count_finds([*hits, *whole], covers)
            masks += [(one, self._scope.placeholder(text[one.start : one.end], one.kind)) for one in covers]
            left = _blank(left, covers)
            more = []
        return self._write(text, sorted(masks), depth) if masks else text

    def _write(self, text: str, masks: list[tuple[Cover, str]], depth: int) -> str:
        parts = []
        at = 0
        for (start, end, _, kind, plain), placeholder in masks:
            size = _say_size(text[start:end])
            if plain and depth < _DEEPEST:
                spans = [Cover(*span, PLACE, kind) for span in cover_decoded(plain)]
                size += f", which read decoded: {self._mask(plain, spans, depth=depth + 1)}"
            parts += [text[at:start], placeholder, f"⟨{size}⟩"]
            at = end
        return "".join((*parts, text[at:]))


def _flag_says(items: list[Any] | tuple[Any, ...], i: int) -> int:
    """What a flag before an item says of it."""
    before = items[i - 1] if i else None
    return strength(before) if isinstance(before, str) and before.startswith("--") and "=" not in before else NONE


def _names_target(name: str) -> bool:
    """Whether a name (`to_address`, `bucketName`) says what something is done to; not so `session_id`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or (words[-1] not in _TARGETS and words[-1].removesuffix("s") not in _TARGETS):
        return False
    return strength("_".join(words[:-1])) == NONE


def _is_bare(hit: Hit, text: str) -> bool:
    """Whether all that speaks for a secret is that the whole text looks random."""
    return hit.rank == LOOKS and hit.kind == "opaque" and not any(map(str.isspace, text))


def _blank(text: str, covers: list[Cover]) -> str:
    """Without what is masked, and without its ends where these are shown: they are not looked at again."""
    parts = []
    at = 0
    for one in covers:
        start, end = max(one.start, at), max(one.end, at)
        while start > at and one.start - start < ENDS and text[start - 1].isalnum():
            start -= 1
        while end < len(text) and end - one.end < ENDS and text[end].isalnum():
            end += 1
        parts += [text[at:start], MASK * (end - start)]
        at = end
    return "".join((*parts, text[at:]))


def _say_size(covered: str) -> str:
    size = "1 character" if len(covered) == 1 else f"{len(covered):,} characters"
    lines = covered.count("\n") + 1
    return f"{size} on {lines} lines" if lines > 1 else size
