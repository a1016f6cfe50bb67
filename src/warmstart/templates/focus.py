"""The part of a prompt that states the request.

A prompt may hold a request, and beside it pasted logs, code, traces and courtesies. Similarity is decided on the request:
lines that no person wrote are left out, and of the sentences those count that come near to the library, with the others of
a short paragraph: what is asked for may be in the one that says least ("How much is that in gallons?"). So the same
request leads to the same examples, however long the prompt around it is; and small talk leads to none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from warmstart import lazy_regex as re
from warmstart.calls.prose import split_sentences, strip_markup
from warmstart.calls.words import FILLER_WORDS, GENERIC_WORDS, stem
from warmstart.templates.search import Match, is_similar, rank, rarest, search_words

_HEAD, _TAIL = 14_000, 6_000  # characters of a very long prompt that are looked at
_SENTENCES = 12  # sentences that are compared with the library
_NEAR = 0.4  # score of a sentence, relative to the best one, that makes it part of the request
_LEAD = 0.85  # factor per sentence: what is said first is more likely the request
_INFORMED = 2  # known words that make a sentence informative, if any sentence has as many
_SHORT = 60  # words of a paragraph that counts as a whole
_TELLING = 6  # words of a sentence by which it is compared before it is looked up
_LETTERS = 0.72  # minimum share of letters and spaces in a line that a person wrote

_FRAME = re.compile(
    r"""\s*(?:at\s[\w.$<>/@-]+\s*[(:]|File\s"|\#\d+\s|Traceback\b|\.{3}\s\d+\smore|Caused\sby:|goroutine\s\d|@@|diff\s--git|index\s[0-9a-f]{7}
    |[\w.$]*(?:Error|Exception|Warning|Panic)\b\S*(?::|\s*$)|[>$%❯]\s|[-+]\s{2,}\S|---\s|\+\+\+\s|[|+]\s?[-=|+]|\[\d|<\?|</?\w+[^>]*>\s*$)""",
    re.X,
)
_STAMP = re.compile(
    r"\d{1,2}:\d\d:\d\d|\d{4}-\d\d-\d\d[T ]\d|\b(?:DEBUG|INFO|WARN|WARNING|ERROR|TRACE|FATAL|PASSED|FAILED)\b"
)
_URL = re.compile(r"\[?\w{1,12}://\S+")
_CODE = re.compile(r"[{};=<>|\\$]|\w\(|::|\)\.|=>|->|\w\[")
_FILLER = FILLER_WORDS | {stem(word) for word in FILLER_WORDS}
_PARAGRAPH = re.compile(r"(?<=[.!?:。！？])[ \t]*\n|\n\s*\n")
_INDENTED = re.compile(r"(?: {4}|\t)")


class Sentence(Struct, frozen=True):
    """The search words of a sentence."""

    words: tuple[str, ...]
    paragraph: int  # its number in the prompt


class Passage(Struct, frozen=True):
    """The words of the sentences that make the request, and the examples that come near to one of them."""

    words: tuple[str, ...] = ()
    near: frozenset[int] = frozenset()


def split_request(text: str) -> list[Sentence]:
    """Return the sentences that a person wrote, without filler; those of all lines if there is none."""
    if len(text) > _HEAD + _TAIL:
        text = f"{text[:_HEAD]}\n{text[-_TAIL:]}"
    said = strip_markup(text)
    written = "\n".join(line if _is_prose(line) else "" for line in said.splitlines())
    return _split_words(written) or _split_words(said) or _split_words(text)


def _split_words(text: str) -> list[Sentence]:
    said: dict[tuple[str, ...], int] = {}
    for number, paragraph in enumerate(_PARAGRAPH.split(text)):
        for sentence in split_sentences(paragraph):
            said.setdefault(tuple(dict.fromkeys(w for w in search_words(sentence) if w not in _FILLER)), number)
    return [Sentence(words, number) for words, number in said.items() if words]


def _is_prose(line: str) -> bool:
    """Return whether a person may have written a line: no log, code, trace, diff or data."""
    text = _URL.sub("", line).strip()
    if not text:
        return True
    if _FRAME.match(line) or _STAMP.search(text[:60]):
        return False
    code = len(_CODE.findall(text))
    if code >= 3 or (code and (_INDENTED.match(line) or text[-1] in "{};,([" or 25 * code > len(text))):
        return False
    return sum(char.isalpha() or char == " " for char in text) >= _LETTERS * len(text)


Lookup = Callable[[str], Sequence[tuple[int, float]]]


def find_passage(sentences: Sequence[Sentence], frequency: Mapping[str, int], look_up: Lookup) -> Passage:
    """Return the request among some sentences: those that come nearest to an example of the library, and what is said with
    them.

    `frequency`: for each word the number of examples that contain it; "" counts all examples.
    """
    total = frequency.get("", 0)
    known = [[word for word in sentence.words if frequency.get(word)] for sentence in sentences]
    most = max((_count_specific(words) for words in known), default=0)
    if not most:
        return Passage()
    informative = [at for at, words in enumerate(known) if _count_specific(words) >= min(_INFORMED, most)]
    lead = {at: _LEAD**place for place, at in enumerate(informative)}
    promise = {at: lead[at] * _sum_rarity(known[at], frequency, total) for at in informative}
    promising = sorted(sorted(informative, key=lambda at: (-promise[at], at))[:_SENTENCES])
    ranked = {at: _rank(known[at], frequency, total, look_up) for at in promising}
    scores = {at: lead[at] * matches[0].score for at, matches in ranked.items() if matches}
    best = max(scores.values(), default=0.0)
    kept = [at for at in promising if scores.get(at, 0.0) >= _NEAR * best]
    near = {
        match.id for at in kept for match in ranked[at] if is_similar(match, len(known[at]), len(sentences[at].words))
    }
    asked = [sentences[at].words for at in kept]
    for number in dict.fromkeys(sentences[at].paragraph for at in kept):
        words = _join(sentence.words for sentence in sentences if sentence.paragraph == number)
        if len(words) <= _SHORT and words not in asked:
            met = [word for word in words if frequency.get(word)]
            near |= {
                match.id for match in _rank(met, frequency, total, look_up) if is_similar(match, len(met), len(words))
            }
            asked.append(words)
    return Passage(_join(asked), frozenset(near))


def _join(parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for words in parts for word in words))


def find_similar(passage: Passage, frequency: Mapping[str, int], look_up: Lookup) -> list[Match]:
    """Return the examples that are similar to a sentence of the request, best first by all its words."""
    ranked = _rank(passage.words, frequency, frequency.get("", 0), look_up)
    return [match for match in ranked if match.id in passage.near]


def _rank(words: Sequence[str], frequency: Mapping[str, int], total: int, look_up: Lookup) -> list[Match]:
    return rank(words, {word: look_up(word) for word in rarest(words, frequency)}, frequency, total)


def _count_specific(words: Sequence[str]) -> int:
    return sum(word not in GENERIC_WORDS for word in words) or (len(words) > 1)


def _sum_rarity(words: Sequence[str], frequency: Mapping[str, int], total: int) -> float:
    rarity = sorted((math.log((total + 1) / (frequency[word] + 0.5)) for word in words), reverse=True)
    return sum(max(0.1, value) for value in rarity[:_TELLING])
