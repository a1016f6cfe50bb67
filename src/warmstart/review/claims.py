"""Check that a transcript shows what a proposal claims.

Nothing here understands a sentence. It checks what can be checked: the cited steps exist, they share the claim's content
words, and they contain every number, path, option or quoted command of a note. A claim that passes may still be wrong, so a
person decides; a claim that fails is certainly not shown.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from warmstart.calls.words import AGENT_WORDS, find_words, stem
from warmstart.review.snapshot import Snapshot

_TOKEN = re.compile(r"[^\W_][\w.:/@+-]*[^\W_]|[^\W_]")
_HARD = re.compile(r"[\d/_@\\]|--\w")
_QUOTED = re.compile(r"`([^`\n]{2,200})`")
_OPTION = re.compile(r"(?<!\S)--?[A-Za-z][\w-]*")
_SENTENCE = re.compile(r"[.!?]\s+|\n+")
_TITLE = re.compile(r"(?m)^(?:#.*$|---$|name:.*$|description:.*$|\s*\d+[.)]\s)")  # and the numbers of a list
_RARE = 0.5  # a word in more than this share of the steps proves nothing about one of them
_SHARED = {
    "memory": 0.25,
    "skill": 0.08,
    "template": 0.0,
}  # share of the claim's content words that the steps must have
_HARD_SHOWN = {"memory": 1.0, "skill": 0.5, "template": 0.0}  # the same for numbers, paths, options, quoted commands
_RESTATED = 0.8  # share of a claim's content words in one sentence of the prompt


def find_fault(snapshot: Snapshot, kind: str, claim: str, cites: Sequence[int], instruction: str = "") -> str | None:
    """Return why a claim must not be kept, or None."""
    if not cites:
        return 'it cites no steps; add "steps": [numbers of the steps that show it]'
    try:
        shown = "\n".join(snapshot.text_of(number) for number in cites)
    except IndexError:
        return f"it cites a step that is not there; there are steps 1 to {len(snapshot.session.steps)}"
    if all(snapshot.is_prompt(number) for number in cites) or restates(claim, f"{snapshot.prompt}\n{instruction}"):
        return "it only restates the prompt"
    return _find_unshown(snapshot, kind, claim, shown)


def restates(claim: str, prompt: str) -> bool:
    """Whether a claim says no more than one sentence of the prompt does."""
    words = content_words(claim)
    if not words or not prompt:
        return False
    if normalise(claim) in normalise(prompt):
        return True
    return any(len(words & content_words(part)) >= _RESTATED * len(words) for part in _SENTENCE.split(prompt))


def _find_unshown(snapshot: Snapshot, kind: str, claim: str, shown: str) -> str | None:
    hard, plain = find_hard(claim), shown.casefold()
    missing = sorted(word for word in hard if word.casefold() not in plain)
    if hard and 1 - len(missing) / len(hard) < _HARD_SHOWN[kind]:
        return f"the cited steps do not show: {', '.join(missing[:3])}"
    words = content_words(claim)
    if not words:
        return None if kind == "template" else "it says nothing in particular"
    shared = (words & content_words(shown)) - _find_common(snapshot)
    if len(shared) < min(2, len(words)) * (kind != "template") or len(shared) < _SHARED[kind] * len(words):
        return "the cited steps do not speak of it"
    return None


def content_words(text: str) -> set[str]:
    """Return the words that say what a text is about, stemmed."""
    return {stem(word) for word in find_words(text) if len(word) > 2 and word not in AGENT_WORDS}


def find_hard(text: str) -> set[str]:
    """Return the words that can only be right or wrong: numbers, paths, options, the words of quoted commands."""
    body = _TITLE.sub("", text)
    quoted = {word for command in _QUOTED.findall(body) for word in _TOKEN.findall(command) if len(word) > 1}
    return {word for word in _TOKEN.findall(body) if _HARD.search(word)} | quoted | set(_OPTION.findall(body))


def normalise(text: str) -> str:
    """Normalise case, white space, and punctuation around words, so that equal claims compare equal."""
    return " ".join(word.casefold() for word in _TOKEN.findall(text))


def _find_common(snapshot: Snapshot) -> set[str]:
    """Return words of so many steps that sharing them proves nothing."""
    steps = len(snapshot.session.steps)
    if steps < 8:
        return set()
    seen = Counter(word for number in range(1, steps + 1) for word in content_words(snapshot.text_of(number)))
    return {word for word, count in seen.items() if count > _RARE * steps}
