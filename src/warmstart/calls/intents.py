"""What a call was for: its own note, the sentence that announced it, or the latest request that names work.

An announcement belongs to the calls of its own answer. Where several calls follow one text, a call takes only a sentence
that fits it; otherwise it takes the request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from warmstart.calls import tools
from warmstart.calls.prose import count_meaning, gist, join_sentences, plain, split_sentences, without_greeting
from warmstart.calls.shapes import command_of, strings_in
from warmstart.calls.words import FILLER_WORDS, find_words, stem
from warmstart.model import Arguments, Message, Step, ToolCall

INTENT = 200  # maximum characters
_SENTENCES = 16  # sentences of an announcement that are compared with its calls, from its end
_VALUE = 300  # characters of an argument that are compared with a sentence
_SUBSTANTIVE = 2  # words with a meaning that make a request

_PLAN = re.compile(
    r"\b(?:let me|let's|let us|i'll|i will|i need to|i'm going to|i am going to|i should|i want to|i have to|now i"
    r"|we need to|we should|next,|first,|going to)\b",
    re.I,
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
    """What was said before a call."""

    call: ToolCall
    announcement: int  # index of the text that the calls of this answer follow; -1: none
    requests: int  # number of requests so far


def state_intents(steps: Iterable[Step], redact: Callable[[str], str]) -> list[str]:
    """Return what each call was for, in the order of the calls; "" if nobody said it.

    `redact` is given whole messages, before a sentence is picked: half a secret would not be recognised.
    """
    wanted, announcements, requests = _collect(steps)
    shared = Counter(entry.announcement for entry in wanted)
    group: list[_Wanted] = []
    redacted: dict[str, str] = {}

    def clean(text: str) -> str:
        if text not in redacted:
            redacted[text] = redact(text)
        return redacted[text]

    intents: list[str] = []
    for entry in wanted:
        if not group or entry.announcement != group[0].announcement:
            group = wanted[len(intents) : len(intents) + shared[entry.announcement]]
        intent = _own_note(entry.call.tool, entry.call.arguments)
        intent = redact(intent) if intent else ""
        if not intent and entry.announcement >= 0:
            calls = [other.call for other in group]
            intent = _find_announcement(clean(announcements[entry.announcement]), entry.call, calls)
        intents.append(intent or _find_request(requests[: entry.requests], entry.call, clean))
    return intents


def restate_intent(tool: str, arguments: Arguments, intent: str, task: str) -> str:
    """Return what a stored call was for: its own note, else the stored intent, or the task if that names no work."""
    if note := _own_note(tool, arguments):
        return note
    if count_meaning(intent) < _SUBSTANTIVE and (first_request := gist(task, INTENT)):
        return first_request
    return _finish(join_sentences(split_sentences(intent), INTENT))


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
    return _finish(join_sentences(split_sentences(note), INTENT)) if isinstance(note, str) else ""


def _find_announcement(text: str, call: ToolCall, calls: Sequence[ToolCall]) -> str:
    """Return the sentence of a text that announces a call; "" if there is none."""
    sentences = [sentence for sentence in split_sentences(text)[-_SENTENCES:] if count_meaning(sentence)]
    if not sentences:
        return ""
    plans = [sentence for sentence in sentences if _PLAN.search(sentence)]
    if len(calls) == 1:
        pool = plans or sentences
        at = max(range(len(pool)), key=lambda index: (_fit(pool[index], call), index))
        announces = plans or _fit(pool[at], call) or len(sentences) == 1
        chosen = pool[at] if announces else sentences[-1] if text.rstrip().endswith(":") else ""
    else:
        own = [sentence for sentence in sentences if _belongs(sentence, call, calls)]
        chosen = max(own, key=lambda sentence: (_fit(sentence, call), sentence in plans), default="")
    return _finish(join_sentences([chosen], INTENT))


def _belongs(sentence: str, call: ToolCall, calls: Sequence[ToolCall]) -> bool:
    """Return whether a sentence is about a call and not about another call of the same answer."""
    fit = _fit(sentence, call)
    best = max(_fit(sentence, other) for other in calls)
    return fit > 0 and (fit >= best or (fit > 1 and 2 * fit >= best))


def _fit(sentence: str, call: ToolCall) -> int:
    """Return how well a sentence fits a call: two for each word that both name, one for a verb of the tool."""
    said = _stems(sentence)
    verbs = _VERBS.get(tools.base_tool(call.tool) or "", frozenset())
    return 2 * len(said & _words_of(call)) + bool(said & verbs)


def _words_of(call: ToolCall) -> frozenset[str]:
    values = call.arguments.values() if isinstance(call.arguments, dict) else (call.arguments,)
    texts = [text[:_VALUE] for value in values for text in strings_in(value)]
    return _stems(" ".join((call.tool, *texts[:12])))


@lru_cache(256)
def _weigh(text: str) -> int:
    """Return how much a request says; every call of an answer asks for it."""
    return count_meaning(plain(text))


@lru_cache(2_048)
def _stems(text: str) -> frozenset[str]:
    words = (word for word in find_words(text, camel=True) if word not in FILLER_WORDS and len(word) > 1)
    return frozenset(stem(word).removesuffix("e") for word in words)


def _find_request(requests: Sequence[str], call: ToolCall, redact: Callable[[str], str]) -> str:
    """Return the latest request that names work; a single word must be about the call."""
    for text in reversed(requests):
        meaning = _weigh(text)
        if meaning >= _SUBSTANTIVE or (meaning and _fit(text, call) > 1):
            return _finish(gist(redact(text), INTENT))
    last = next((text for text in reversed(requests) if _weigh(text)), "")
    return _finish(gist(redact(last), INTENT)) if last else ""


def _finish(sentence: str) -> str:
    return without_greeting(sentence).rstrip(": ")
