"""The purpose of a call: its own note, the sentence that announced it, or the latest request that names work.

An announcement belongs to the calls of its own answer. Where several calls follow one text, a call takes only a sentence
that fits it; otherwise it takes the request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from itertools import groupby
from operator import attrgetter

from msgspec import Struct

from warmstart.calls import tools
from warmstart.calls.prose import (
    count_meaning,
    gist,
    iterate_sentences,
    join_sentences,
    plain,
    split_sentences,
    without_greeting,
)
from warmstart.calls.shapes import command_of, strings_in
from warmstart.calls.words import FILLER_WORDS, find_parts, find_runs, split_camel, stem
from warmstart.model import Arguments, Message, PastCall, Step, ToolCall

INTENT = 200  # maximum characters
_SENTENCES = 16  # sentences of an announcement that are compared with its calls, from its end
_VALUE = 300  # characters of an argument that are compared with a sentence
_MOST_ROOTS = 20_000  # words whose roots are remembered
_SUBSTANTIVE = 2  # words with a meaning that make a request

_PLAN = re.compile(
    r"\b(?:let me|let's|let us|i'll|i will|i need to|i'm going to|i am going to|i should|i want to|i have to|now i"
    r"|we need to|we should|next,|first,|going to)\b",
    re.I,
)
_NARRATION = re.compile(r"\b(?:let me|i'll|i will|i'm going to|i am going to|now i)\b", re.I)  # no person asks so
_PLAN_HINTS = (
    "let",
    "i'll",
    "i will",
    "i need",
    "i'm",
    "i am",
    "i should",
    "i want",
    "i have",
    "now i",
    "we ",
    "t,",
    "going",
)
_VERBS: dict[str, frozenset[str]] = {
    tools.READ: frozenset("read look check view examine inspect see open review understand show load".split()),
    tools.SEARCH: frozenset("search find look grep check locate explore list where discover scan".split()),
    tools.TERMINAL: frozenset(
        "run execut test check install build commit push start verify launch compile lint".split()
    ),
    tools.CODE: frozenset("run execut test calculat comput verify analyz check".split()),
    tools.WRITE: frozenset("write creat add sav generat document draft".split()),
    tools.PATCH: frozenset("edit fix updat chang replac modify add remov delet renam refactor correct adjust".split()),
    tools.WEB_SEARCH: frozenset("search find look research google".split()),
    tools.WEB_READ: frozenset("fetch read look check open visit load".split()),
    tools.BROWSE: frozenset("open visit browse navigat click go".split()),
}


class _Wanted(Struct):
    """The messages before a call."""

    call: ToolCall
    announcement: int  # index of the text that the calls of this answer follow; -1: none
    requests: int  # number of requests so far


class _Announcement:
    """The text before the calls of one answer: its sentences, and how well each fits each call."""

    def __init__(self, text: str, calls: Sequence[ToolCall]) -> None:
        self.calls = calls
        self.opens = text.rstrip().endswith(":")
        self.sentences = [
            sentence for sentence in split_sentences(text)[-_SENTENCES:] if count_meaning(sentence, most=1)
        ]
        self.plans = [sentence for sentence in self.sentences if _is_plan(sentence)]

    @cached_property
    def fits(self) -> list[list[int]]:
        """The fit of each call with each sentence."""
        return self.measure(self.sentences)

    def measure(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the fit of each call with each of these sentences."""
        said = [_stems(sentence) for sentence in sentences]
        return [_measure_fits(said, call) for call in self.calls]

    @cached_property
    def best(self) -> list[int]:
        """The best fit of each sentence with any call."""
        return [max(column) for column in zip(*self.fits, strict=True)]


class Purposes:
    """What each call of a session was for. `texts` are the messages and notes that nearly all of it comes from."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._wanted, self._announcements, self._requests = _collect(steps)
        self._notes = [_own_note(entry.call.tool, entry.call.arguments) for entry in self._wanted]
        self._asked: dict[int, str] = {}  # intents of requests that say enough for any call, by number

    def texts(self) -> list[str]:
        """Return the texts that `state` redacts, so that they can be searched together first; others are rare."""
        unnamed = [entry for entry, note in zip(self._wanted, self._notes, strict=True) if not note]
        announcing = dict.fromkeys(entry.announcement for entry in unnamed if entry.announcement >= 0)
        asking = dict.fromkeys(entry.requests - 1 for entry in unnamed if entry.requests)
        return [
            *filter(None, self._notes),
            *(self._announcements[index] for index in announcing),
            *(self._requests[index] for index in asking),
        ]

    def state(self, redact: Callable[[str], str]) -> list[str]:
        """Return what each call was for, in the order of the calls; "" if nobody said it.

        `redact` is given whole messages, before a sentence is picked: half a secret would not be recognised.
        """
        intents: list[str] = []
        notes = iter(self._notes)
        for index, group in groupby(self._wanted, key=attrgetter("announcement")):
            entries = list(group)
            announcement: _Announcement | None = None
            for at, entry in enumerate(entries):
                note = next(notes)
                intent = redact(note) if note else ""
                if not intent and index >= 0:
                    if announcement is None:
                        text = redact(self._announcements[index])
                        announcement = _Announcement(text, [other.call for other in entries])
                    intent = _find_announcement(announcement, at)
                intents.append(intent or self._find_request(entry, redact))
        return intents

    def _find_request(self, entry: _Wanted, redact: Callable[[str], str]) -> str:
        """Return the latest request that names work; a single word must be about the call."""
        if entry.requests in self._asked:
            return self._asked[entry.requests]
        last = ""
        for at in range(entry.requests - 1, -1, -1):
            text = self._requests[at]
            meaning = _weigh(text)
            if meaning >= _SUBSTANTIVE:
                intent = _finish(gist(redact(text), INTENT))
                if not last:
                    self._asked[entry.requests] = intent
                return intent
            if meaning and _measure_fits([_stems(text)], entry.call)[0] > 1:
                return _finish(gist(redact(text), INTENT))
            last = last or (text if meaning else "")
        return _finish(gist(redact(last), INTENT)) if last else ""


def restate_intent(call: PastCall, asked: str, task: str) -> str:
    """Return what a stored call was for: its own note, else the stored intent, or the task if that names no work.

    "Now let me run it" is no request: what the agent said to itself is replaced by the message that the call serves,
    `asked`, or by the task; "" without either.
    """
    if note := _own_note(call.tool, call.arguments):
        return note
    intent = call.intent
    if _is_plan(intent) and (asked or _NARRATION.search(intent)):
        return _finish(gist(asked if count_meaning(asked, most=_SUBSTANTIVE) == _SUBSTANTIVE else task, INTENT))
    if count_meaning(intent, most=_SUBSTANTIVE) < _SUBSTANTIVE and (first_request := gist(task, INTENT)):
        return first_request
    return _finish(join_sentences(iterate_sentences(intent), INTENT))


def _collect(steps: Iterable[Step]) -> tuple[list[_Wanted], list[str], list[str]]:
    wanted: list[_Wanted] = []
    announcements: list[str] = []
    requests: list[str] = []
    is_open, goes_on = False, False  # whether the answer has a text; whether that text may still grow
    for step in steps:
        if isinstance(step, ToolCall):
            wanted.append(_Wanted(step, len(announcements) - 1 if is_open else -1, len(requests)))
            goes_on = False
        elif not isinstance(step, Message):
            is_open = goes_on = False  # a result: the next answer begins
        elif step.role == "assistant":
            if goes_on:
                announcements[-1] += f"\n\n{step.text}"
            else:
                announcements.append(step.text)
            is_open = goes_on = True
        elif step.role == "user":
            requests.append(step.text)
            is_open = goes_on = False
    return wanted, announcements, requests


def _own_note(tool: str, arguments: Arguments) -> str:
    """Return the description that an agent gave to a command."""
    if not isinstance(arguments, dict) or command_of(tool, arguments) is None:
        return ""
    note = arguments.get("description")
    return _finish(join_sentences(iterate_sentences(note), INTENT)) if isinstance(note, str) else ""


def _find_announcement(announcement: _Announcement, at: int) -> str:
    """Return the sentence that announces the call at a place of an answer; "" if there is none."""
    sentences, plans = announcement.sentences, announcement.plans
    if not sentences:
        return ""
    if len(announcement.calls) > 1:
        chosen = _choose_own(announcement, at)
    elif len(pool := plans or sentences) == 1:
        chosen = pool[0]
    else:
        fits = dict(zip(pool, announcement.measure(pool)[0], strict=True))
        chosen = max(reversed(pool), key=fits.__getitem__)
        if not plans and not fits[chosen]:
            chosen = sentences[-1] if announcement.opens else ""
    return _finish(join_sentences([chosen], INTENT))


def _choose_own(announcement: _Announcement, at: int) -> str:
    """Return the sentence that is about a call and not about another call of the same answer."""
    sentences, fits = announcement.sentences, announcement.fits[at]
    own = [
        place
        for place, (fit, best) in enumerate(zip(fits, announcement.best, strict=True))
        if fit > 0 and (fit >= best or (fit > 1 and 2 * fit >= best))
    ]
    chosen = max(own, key=lambda place: (fits[place], sentences[place] in announcement.plans), default=None)
    return "" if chosen is None else sentences[chosen]


def _is_plan(sentence: str) -> bool:
    lowered = sentence.lower()
    return any(hint in lowered for hint in _PLAN_HINTS) and _PLAN.search(sentence) is not None


def _measure_fits(said: Sequence[frozenset[str]], call: ToolCall) -> list[int]:
    """Return how well sentences fit a call: two for each word that both name, one for a verb of the tool."""
    words = _words_of(call)
    verbs = _VERBS.get(tools.base_tool(call.tool) or "", frozenset())
    return [2 * len(stems & words) + (not verbs.isdisjoint(stems)) for stems in said]


def _words_of(call: ToolCall) -> frozenset[str]:
    values = call.arguments.values() if isinstance(call.arguments, dict) else (call.arguments,)
    texts = [text[:_VALUE] for value in values for text in ((value,) if isinstance(value, str) else strings_in(value))]
    return _stems(" ".join((call.tool, *texts[:12])))


@lru_cache(256)
def _weigh(text: str) -> int:
    """Return how much a request says, up to what makes it substantive; every call of an answer asks for it."""
    return count_meaning(plain(text), most=_SUBSTANTIVE)


@lru_cache(512)
def _stems(text: str) -> frozenset[str]:
    return frozenset().union(*map(_ROOTS.__getitem__, find_runs(text)))


class _Roots(dict[str, frozenset[str]]):
    """What words are compared by: the stems of their parts without those that say nothing. Texts repeat their words."""

    def __missing__(self, run: str) -> frozenset[str]:
        if len(self) >= _MOST_ROOTS:
            self.clear()
        words = [run] if run.isalpha() else find_parts(run)
        parts = words if run.islower() else [part for word in words for part in split_camel(word)]
        said = [part for part in parts if len(part) > 1 and part not in FILLER_WORDS]
        roots = self[run] = frozenset([root for part in said if (root := stem(part).removesuffix("e"))])
        return roots

    cache_clear = dict.clear


_ROOTS = _Roots()


def _finish(sentence: str) -> str:
    return without_greeting(sentence).rstrip(": ")
