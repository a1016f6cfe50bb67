"""Task in, ranked examples out: BM25 over what was asked, wanted, called and passed; then diversity.

The store keeps, for each word, the examples it stands in and how much they are about it (`index_weights`). A query looks
up its rarest words first and stops when it has seen enough, so that choosing does not slow down as templates grow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from warmstart.calls.words import STOP_WORDS, find_words, stem
from warmstart.model import Example, Template

ENOUGH = 600  # postings looked at for one query
TEMPLATES = 6  # templates whose examples are looked at for one query
MIN_SHARE = 0.25  # of the words looked up, how many an example must speak of for its template to be similar
_SAME_KIND = 0.2  # what another example of a kind already shown is worth
_ALL_SHOWN = 0.9  # the same where the nearest template has no other kind left to show
_FIT, _KIN, _USUAL = 0.9, 0.2, 0.4  # what an example is worth without any match of its own, of its template, of use
_CORRECTED = 1.1  # an example that mends a known mistake is worth a little more
_FLOOR = 0.15  # rarity of a word that stands everywhere: it still says what the work is about

_FIELDS = {"tool": 2.0, "intent": 1.5, "task": 0.8, "arguments": 1.2, "template": 0.2}
_K1, _B, _USUAL_LENGTH = 1.2, 0.6, 80.0

_PARTS = ("test", "sql", "log", "lint")  # what pytest, psql, journalctl's syslog and pylint are about


class Match(Struct, frozen=True):
    """An example that has words of the task."""

    id: int
    score: float  # BM25
    words: int  # of the task's, that it has


class Option(Struct, frozen=True):
    """An example that may be shown."""

    example: Example
    kind: str = ""  # its tool, or the program a shell runs: each is shown once before any twice
    match: float = 0.0  # its own BM25
    template: float = 0.0  # its template's: the mean of its best
    usual: float = 1.0  # 0-1: how many sessions made such a call, the most usual of its template being 1


def words(text: str) -> list[str]:
    """Return the words a text is found by: parts of snake_case and camelCase, stemmed, without stop words."""
    stems = [stem(word) for word in find_words(text, camel=True) if word not in STOP_WORDS]
    stems += [part for word in stems for part in _PARTS if word != part and word.endswith(part)]
    return [word for word in stems if len(word) > 1 and word not in STOP_WORDS]


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
    query: Iterable[str],
    postings: Mapping[str, Iterable[tuple[int, float]]],
    frequency: Mapping[str, int],
    total: int,
) -> list[Match]:
    """Examples by BM25, best first."""
    rarity = {word: max(_FLOOR, math.log((total + 1) / (frequency.get(word, 0) + 0.5))) for word in set(query)}
    scores: dict[int, float] = {}
    matched: Counter[int] = Counter()
    for word, found in postings.items():
        for example, weight in found:
            scores[example] = scores.get(example, 0.0) + rarity[word] * weight
            matched[example] += 1
    return [
        Match(example, scores[example], matched[example]) for example in sorted(scores, key=lambda e: (-scores[e], e))
    ]


def is_similar(match: Match, looked_up: int, asked: int) -> bool:
    """Whether an example speaks of the task at all: one word of many is chance, also where it is the only one known."""
    return match.words >= (1 if asked <= 2 else 2) and match.words >= MIN_SHARE * looked_up


def diversify(options: Sequence[Option], most: int) -> list[int]:
    """Places of the examples to show, the nearest to the task first.

    Taken is what fits the task and is usual in such work, each kind once before any twice: a session that needs several
    tools sees them all. Where the nearest template has shown all its kinds, more of the same beats other work's.
    """
    best_match = max((option.match for option in options), default=0.0) or 1.0
    best_template = max((option.template for option in options), default=0.0) or 1.0

    nearest = {option.kind for option in options if option.template == best_template}

    def worth(option: Option) -> float:
        fit = _FIT + option.match / best_match
        kin = _KIN + option.template / best_template
        return fit * kin * (_USUAL + option.usual) * (_CORRECTED if option.example.correction else 1.0)

    def again(option: Option) -> float:
        """What another of a kind already shown is worth."""
        return _SAME_KIND if option.template < best_template or not nearest <= shown.keys() else _ALL_SHOWN

    worths = [worth(option) for option in options]
    taken: list[int] = []
    shown: Counter[str] = Counter()
    while len(taken) < min(most, len(options)):
        best = max(
            (place for place in range(len(options)) if place not in taken),
            key=lambda place: (worths[place] * again(options[place]) ** shown[options[place].kind], -place),
        )
        taken.append(best)
        shown[options[best].kind] += 1
    return sorted(taken, key=lambda place: (-options[place].match, taken.index(place)))
