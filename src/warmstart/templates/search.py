"""Rank examples for a task: BM25 over their tasks, intents, tools and arguments; then diversity.

The store keeps for each word the examples that contain it, with a weight (`index_weights`). A query looks up its rarest
words first and stops when it has seen enough postings, so choosing does not slow down as templates grow.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from warmstart.calls.words import STOP_WORDS, find_words, stem
from warmstart.model import Example, Template

ENOUGH = 3_000  # maximum postings per query
TEMPLATES = 6  # templates whose examples are compared at once
MIN_SHARE = 0.25  # share of a sentence's known words that an example must contain to be similar
_LONG = 12  # known words; a longer sentence asks for no more
_SEVERAL = 0.7  # an example with n kinds of calls is worth more than one by n to the power of 1 minus this
_RELEVANT = 0.15  # minimum match of an example, relative to the best one
_NEAR = 0.7  # match, relative to the best one, of an example that is shown whatever it adds
_NEEDED = 0.1  # share of the similar requests that needed a kind of call for which a farther example is shown
_NEIGHBOURS = 10  # nearest options whose calls are compared
_AGAIN = 0.25  # factor for each time that a kind of call is already shown
_NEAREST = 3  # place among the chosen by which the nearest request is shown
_SAME_KIND = 0.2  # factor for another example of a kind that is already shown
_ALL_SHOWN = 0.9  # the same factor once the nearest template has no other kind to show
_FIT, _KIN, _USUAL = 0.9, 0.2, 0.4  # worth without a match of its own, of its template, and without support
_CORRECTED = 1.1  # factor for an example that corrects a known mistake
_FLOOR = 0.15  # minimum rarity of a word; a word in every example still says what the work is about

_EXCHANGE = {"tool": 0.5, "intent": 1.0, "task": 0.2, "arguments": 0.1, "template": 0.1}
_EXCHANGE_LENGTH = 25.0  # usual length of an exchange, each word counted by its field's weight
_FIELDS = {"tool": 2.0, "intent": 1.5, "task": 0.8, "arguments": 1.2, "template": 0.2}
_K1, _B, _USUAL_LENGTH = 1.2, 0.6, 80.0

_PARTS = ("test", "sql", "log", "lint")  # what pytest, psql, journalctl's syslog and pylint are about


class Match(Struct, frozen=True):
    """An example that contains words of the task."""

    id: int
    score: float  # BM25
    words: int  # number of the task's words that it contains


class Option(Struct, frozen=True):
    """A candidate for a seed."""

    example: Example
    kind: str = ""  # its tool, or the program that a shell runs; each is shown once before any twice
    match: float = 0.0  # its own BM25
    template: float = 0.0  # BM25 of its template: the mean of the template's best examples
    usual: float = 1.0  # 0-1: number of sessions with such a call, relative to the maximum in its template
    call: tuple[tuple[str, str], ...] | None = (
        None  # the same for calls that differ only in an id, a number or a file's name
    )
    kinds: tuple[str, ...] = ("",)  # as `kind`, of all its calls


def search_words(text: str) -> list[str]:
    """Return the words a text is found by: parts of snake_case and camelCase, stemmed, without stop words."""
    stems = [stem(word) for word in find_words(text, camel=True) if word not in STOP_WORDS]
    stems += [part for word in stems for part in _PARTS if word != part and word.endswith(part)]
    return [word for word in stems if len(word) > 1 and word not in STOP_WORDS]


def index_weights(example: Example, template: Template) -> dict[str, float]:
    """Return the words by which an example is found, each with its weight.

    An exchange is found by its request first, and a long one must contain more of the task's words: it is about more.
    """
    counts: Counter[str] = Counter()
    length = 0.0
    shown = example.shown
    fields = {
        "tool": " ".join(dict.fromkeys(call.tool for call in shown)),
        "intent": example.intent,
        "task": example.task if example.task[:100] != example.intent[:100] else "",
        "arguments": " ".join(_to_text(call.arguments) for call in shown),
        "template": f"{template.description} {' '.join(template.tags)}",
    }
    weights = _EXCHANGE if example.is_whole else _FIELDS
    for name, text in fields.items():
        for word in search_words(text[:2_000]):
            counts[word] += weights[name]  # type: ignore[assignment]
            length += weights[name] if example.is_whole else 1
    share, usual = (1.0, _EXCHANGE_LENGTH) if example.is_whole else (_B, _USUAL_LENGTH)
    norm = _K1 * (1 - share + share * length / usual)
    return {word: round(tf * (_K1 + 1) / (tf + norm), 4) for word, tf in counts.items()}


def _to_text(arguments: Any) -> str:
    if isinstance(arguments, dict):
        return " ".join(f"{k} {_to_text(v)}" for k, v in arguments.items())
    if isinstance(arguments, list):
        return " ".join(map(_to_text, arguments))
    return str(arguments)


def rarest(query: Iterable[str], frequency: Mapping[str, int]) -> list[str]:
    """Return the words to look up: rarest first, until there are enough postings; always at least one."""
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
    """Return examples by BM25, best first."""
    rarity = {word: max(_FLOOR, math.log((total + 1) / (frequency.get(word, 0) + 0.5))) for word in set(query)}
    scores: dict[int, float] = {}
    matched: Counter[int] = Counter()
    for word, examples in postings.items():
        for example, weight in examples:
            scores[example] = scores.get(example, 0.0) + rarity[word] * weight
            matched[example] += 1
    return [
        Match(example, scores[example], matched[example]) for example in sorted(scores, key=lambda e: (-scores[e], e))
    ]


def is_similar(match: Match, known: int, asked: int) -> bool:
    """Return whether an example is about a sentence of the task with so many known words and words at all.

    One word of many is chance, even if it is the only known word.
    """
    return match.words >= (1 if asked <= 2 else 2) and match.words >= MIN_SHARE * min(known, _LONG)


def weigh_by_neighbours(options: Iterable[Option]) -> list[Option]:
    """Return the options, the match of each exchange weighed by how far it makes the calls of those nearest to the request.

    Requests that share words by chance need different calls; those that are truly alike agree on theirs. A single call is
    only a part of what its request needed, so it neither votes nor loses more than the exchanges do on average.
    """
    options = list(options)
    nearest = sorted((option for option in options if option.example.is_whole), key=lambda option: -option.match)
    votes = [(option.match**2, set(option.kinds)) for option in nearest[:_NEIGHBOURS]]
    total = sum(vote for vote, _kinds in votes)
    if not total:
        return options

    def agree(kinds: set[str]) -> float:
        return sum(vote * len(kinds & other) / len(kinds | other) for vote, other in votes) / total

    mean = sum(agree(kinds) for _vote, kinds in votes) / len(votes)
    shares = (agree(set(option.kinds)) if option.example.is_whole else mean for option in options)
    return [
        structs.replace(option, match=option.match * (1 + share) / 2)
        for option, share in zip(options, shares, strict=True)
    ]


def complement(options: Sequence[Option], limit: int) -> list[int]:
    """Return the indices of the examples to show, in the order in which they are taken.

    An example is worth its own match times what it adds: kinds of calls that are not shown yet, each by how many of the
    similar requests needed it. So a request that says much is answered by what is like it; where many are alike, because it
    says little, the calls that such requests usually need come first. The nearest request itself is the third at the
    latest. The number of sessions behind an example only breaks ties. The same calls are shown once. An exchange that is
    farther from the request than the nearest is shown only for a kind of call that is not shown yet and that some similar
    requests needed, so a request that is clear gets few examples and a vague one many: small models copy what such an
    exchange does besides. A single call does nothing besides.
    """
    if not options:
        return []
    nearest = max(range(len(options)), key=lambda at: (options[at].match, -at))
    need = _share_kinds(options)
    taken: list[int] = []
    shown: Counter[str] = Counter()
    left = {at for at, option in enumerate(options) if option.match >= _RELEVANT * options[nearest].match}

    def earns_room(option: Option) -> bool:
        if not option.example.is_whole or option.match >= _NEAR * options[nearest].match:
            return True
        return any(need[kind] >= _NEEDED and not shown[kind] for kind in option.kinds)

    while len(taken) < limit and (worthy := [at for at in left if earns_room(options[at])]):
        best = max(worthy, key=lambda at: (_weigh_option(options[at], need, shown), options[at].usual, -at))
        if len(taken) == _NEAREST - 1 and nearest in left:
            best = nearest
        taken.append(best)
        call = options[best].call
        left -= {best, *(at for at in left if call is not None and options[at].call == call)}
        shown.update(set(options[best].kinds))
    return taken


def _share_kinds(options: Sequence[Option]) -> dict[str, float]:
    """Return for each kind of call the share of the options that make such calls, weighted by their match."""
    votes: Counter[str] = Counter()
    for option in options:
        for kind in set(option.kinds):
            votes[kind] += option.match  # type: ignore[assignment]
    total = sum(option.match for option in options) or 1.0
    return {kind: vote / total for kind, vote in votes.items()}


def _weigh_option(option: Option, need: Mapping[str, float], shown: Mapping[str, int]) -> float:
    kinds = set(option.kinds)
    new: float = sum(math.sqrt(need[kind]) * _AGAIN ** shown.get(kind, 0) for kind in kinds) / len(kinds) ** _SEVERAL
    return option.match * new * (_CORRECTED if option.example.correction else 1.0)


def diversify(options: Sequence[Option], limit: int) -> list[int]:
    """Return the indices of the examples to show, nearest to the task first.

    Examples that fit the task and are usual in such work win, each kind once before any twice: a session that needs
    several tools sees them all. The same call is shown once. Once the nearest template has shown all its kinds, more of
    the same beats other work.
    """
    best_match = max((option.match for option in options), default=0.0) or 1.0
    best_template = max((option.template for option in options), default=0.0) or 1.0

    nearest = {option.kind for option in options if option.template == best_template}

    def worth(option: Option) -> float:
        fit = _FIT + option.match / best_match
        kin = _KIN + option.template / best_template
        return fit * kin * (_USUAL + option.usual) * (_CORRECTED if option.example.correction else 1.0)

    def again(option: Option) -> float:
        """Return the factor for another example of a kind that is already shown."""
        return _SAME_KIND if option.template < best_template or not nearest <= shown.keys() else _ALL_SHOWN

    worths = [worth(option) for option in options]
    taken: list[int] = []
    shown: Counter[str] = Counter()
    left = set(range(len(options)))
    while len(taken) < limit and left:
        best = max(
            left, key=lambda index: (worths[index] * again(options[index]) ** shown[options[index].kind], -index)
        )
        taken.append(best)
        call = options[best].call
        left -= {best, *(index for index in left if call is not None and options[index].call == call)}
        shown[options[best].kind] += 1
    return sorted(taken, key=lambda index: (-options[index].match, taken.index(index)))
