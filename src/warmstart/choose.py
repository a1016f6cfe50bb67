"""Task in, ranked examples out: BM25 over what was asked, wanted, called and passed; then diversity.

The store keeps, for each word, the examples it stands in and how much they are about it (`index_weights`). A query looks
up its rarest words first and stops when it has seen enough, so that choosing does not slow down as templates grow.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from warmstart.model import Example, Template

ENOUGH = 600  # postings looked at for one query
SHORTLIST = 64  # examples read for one query
MIN_COVERAGE = 0.12  # share of the task's words, rare ones counting more, that an example must speak of
_SAME_TOOL = 0.3  # what another example of a tool already shown is worth
_CORRECTED = 1.25  # an example that mends a known mistake is worth a little more

_FIELDS = {"tool": 2.0, "intent": 1.5, "task": 1.0, "arguments": 0.6, "template": 0.5}
_K1, _B, _USUAL_LENGTH = 1.2, 0.6, 80.0

_WORD = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[a-z]+|\d{2,}|[^\W\d_a-zA-Z]+")
_STOP = frozenset(
    "a about after again all also am an and any are as at be because been but by can could did do does doing done for from "
    "get give go had has have he help her here hi hello hey him his how i if in into is it its just let like make me more my "
    "need no not now of ok okay on one only or our out over please see she should so some sure than thank thanks that the "
    "their them then there these they this those to too up us use using very want was we well were what when where which "
    "while who why will with would yes you your there's i'm it's don".split()
)


class Candidate(Struct, frozen=True):
    """An example that speaks of the task."""

    id: int
    score: float  # BM25
    coverage: float  # 0-1: how much of the task it speaks of


def words(text: str) -> list[str]:
    """Words as they are compared: lower case, parts of snake_case and camelCase, roughly stemmed, no filler."""
    found = (_stem(word.lower()) for word in _WORD.findall(text))
    return [word for word in found if len(word) > 1 and word not in _STOP]


def _stem(word: str) -> str:
    for end, least in (
        ("ations", 4),
        ("ation", 4),
        ("ings", 4),
        ("ing", 4),
        ("ies", 3),
        ("ed", 4),
        ("es", 4),
        ("s", 3),
    ):
        if word.endswith(end) and len(word) - len(end) >= least and not word.endswith("ss"):
            return word[: -len(end)] + ("y" if end == "ies" else "")
    return word


def index_weights(example: Example, template: Template) -> dict[str, float]:
    """The words an example is found by, and how much it is about each."""
    counts: Counter[str] = Counter()
    length = 0.0
    fields = {
        "tool": example.tool,
        "intent": example.intent,
        "task": example.task,
        "arguments": _said(example.arguments),
        "template": f"{template.description} {' '.join(template.tags)}",
    }
    for name, text in fields.items():
        for word in words(text[:2_000]):
            counts[word] += _FIELDS[name]  # type: ignore[assignment]
            length += 1
    norm = _K1 * (1 - _B + _B * length / _USUAL_LENGTH)
    return {word: round(tf * (_K1 + 1) / (tf + norm), 4) for word, tf in counts.items()}


def _said(arguments: Any) -> str:
    if isinstance(arguments, dict):
        return " ".join(f"{k} {_said(v)}" for k, v in arguments.items())
    if isinstance(arguments, list):
        return " ".join(map(_said, arguments))
    return str(arguments)


def rarest(query: Iterable[str], frequency: Mapping[str, int]) -> list[str]:
    """The words to look up: the rarest first, until enough postings are seen; always at least one."""
    known = sorted((word for word in set(query) if frequency.get(word)), key=lambda word: (frequency[word], word))
    taken: list[str] = []
    seen = 0
    for word in known:
        if taken and seen + frequency[word] > ENOUGH:
            break
        taken.append(word)
        seen += frequency[word]
    return taken


def rank(
    query: Sequence[str],
    postings: Mapping[str, Iterable[tuple[int, float]]],
    frequency: Mapping[str, int],
    total: int,
) -> list[Candidate]:
    """Examples by BM25, best first, with how much of the task each speaks of."""
    rarity = {word: math.log(1 + (total - (n := frequency.get(word, 0)) + 0.5) / (n + 0.5)) for word in set(query)}
    whole = sum(rarity.values()) or 1.0
    scores: dict[int, float] = {}
    covered: dict[int, float] = {}
    for word, found in postings.items():
        for example, weight in found:
            scores[example] = scores.get(example, 0.0) + rarity[word] * weight
            covered[example] = covered.get(example, 0.0) + rarity[word]
    ranked = sorted(scores, key=lambda example: (-scores[example], example))
    return [Candidate(example, scores[example], covered[example] / whole) for example in ranked]


def diversify(
    found: Sequence[tuple[Example, float]], most: int, effect: Mapping[int, float] | None = None
) -> list[int]:
    """Places of the examples to show, best first: relevant ones, each tool once before any twice."""
    worth = [
        score * (_CORRECTED if example.correction else 1.0) * (1.0 + (effect or {}).get(place, 0.0))
        for place, (example, score) in enumerate(found)
    ]
    taken: list[int] = []
    shown: Counter[str] = Counter()
    while len(taken) < min(most, len(found)):
        best = max(
            (place for place in range(len(found)) if place not in taken),
            key=lambda place: (worth[place] * _SAME_TOOL ** shown[found[place][0].tool], -place),
        )
        taken.append(best)
        shown[found[best][0].tool] += 1
    return taken
