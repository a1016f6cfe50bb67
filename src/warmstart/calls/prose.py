"""Requests and announcements as sentences: without code and markup, split, and shortened at a word.

Requests that name no work ("yes", "ok, continue", "good morning") are told apart by the words that are left when filler
is removed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from warmstart.calls.words import FILLER_WORDS, GENERIC_WORDS, find_words, singular

ELLIPSIS = "…"

_REMINDER = re.compile(
    r"<(system-reminder|ide_\w+|local-command-\w+|task-notification|command-(?:message|args|contents))>.*?(?:</\1>|\Z)",
    re.S,
)
_PROGRAM_BLOCKS = re.compile(  # <system_instruction>, <environment_context>, <recommended_plugins> ...
    r"\A(?:\s*<([a-z_-]*(?:system|instruction|context|environment|reminder|plugins|notification)[a-z_-]*)>"
    r".*?(?:</\1>|\Z))+\s*",
    re.S,
)
_TAG = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,200})?/?>")
_NOT_SAID = re.compile(
    r"\[Request interrupted by user[^\]]*\]|Caveat: The messages below[^\n]*|```.*?(?:```|\Z)|\[\.\.\.\]", re.S
)
_GAP = re.compile(r"\s*\[\.\.\. \d+ characters left out \.\.\.\]\s*")
_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*•+#>]|\d{1,2}[.)])\s)")  # a paragraph, a list item or a heading ends
_SENTENCE_END = re.compile(r"(?<=[.!?:])[\"')*_]{0,3}\s+(?=[^\sa-z])|(?<=[。！？])\s*(?=\S)")
_MARK = re.compile(r"\A(?:[-*•+#>]+|\d{1,2}[.)])\s+")
_GREETING = re.compile(
    r"^(?:\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|bonjour)"
    r"(?: there| again)?[\s,.!:—-]+|(?:thanks?(?: you)?(?: so much| again)?"
    r"|sure|great|good|perfect|excellent|ok(?:ay)?|now)[,.!:—-]+\s*))+",
    re.I,
)
_OPAQUE = re.compile(r"\S+://\S+|\S*[/\\@#]\S*|\{\{[^}]*\}\}|\S*\d\S*")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts whose words are not separated by spaces


def strip_markup(text: str) -> str:
    """Return a text without the reminders, tags, code and marks that the agent's program added; lines stay as they are."""
    if "<" in text:
        text = _TAG.sub(" ", _REMINDER.sub(" ", text))
    return _NOT_SAID.sub(" ", text)


def strip_programs(text: str) -> str:
    """Return a request without the blocks that programs put before it."""
    return _PROGRAM_BLOCKS.sub("", text)


def plain(text: str) -> str:
    """Return a text without markup and without needless spaces."""
    return re.sub(r"[ \t]+", " ", strip_markup(text)).strip(" \n❯>*-")


@lru_cache(256)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text. Sentences at the edge of a gap in a long text are cut and therefore left out."""
    parts = [_split_part(part) for part in _GAP.split(text)]
    last = len(parts) - 1
    whole = [part[1 if at else 0 : len(part) if at == last else -1] for at, part in enumerate(parts)]
    return tuple(sentence for part in whole for sentence in part)


def _split_part(text: str) -> list[str]:
    blocks = (" ".join(block.split()) for block in _BLOCK.split(plain(text)))
    sentences = (
        _MARK.sub("", sentence).replace("**", "") for block in blocks for sentence in _SENTENCE_END.split(block)
    )
    return [sentence for sentence in sentences if sentence.strip(" .:*#-_")]


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, cut after a word and with an ellipsis if it had to be cut."""
    if len(text) <= limit:
        return text
    room = text[:limit]  # the character after the kept ones is part of the cut: it shows whether a word ends there
    at = max(room.rfind(" "), max((found.start() for found in _WIDE.finditer(room)), default=-1))
    kept = room[:at].rstrip(" ,;:.—-([") if at > 0 else ""
    return f"{kept}{ELLIPSIS}" if kept else ELLIPSIS


def join_sentences(sentences: Sequence[str], limit: int) -> str:
    """Return the first sentences, as many as fit; a first sentence that is too long is shortened."""
    kept = ""
    for sentence in sentences:
        if kept and len(kept) + 1 + len(sentence) > limit:
            break
        kept = f"{kept} {sentence}".strip()
    return shorten(kept, limit)


@lru_cache(256)
def opening(text: str, limit: int) -> str:
    """Return the first sentences, as many as fit."""
    return join_sentences(split_sentences(text), limit)


@lru_cache(256)
def gist(text: str, limit: int) -> str:
    """Return the sentences that fit, beginning with the first one that has a topic word."""
    sentences = split_sentences(text)
    start = next((at for at, sentence in enumerate(sentences) if find_topic_words(sentence)), 0)
    return without_greeting(join_sentences(sentences[start:], limit))


def without_greeting(text: str) -> str:
    """Return a text without its greeting."""
    rest = _GREETING.sub("", text, count=1)
    return rest[:1].upper() + rest[1:] if rest != text and len(rest) > 15 else text


def find_topic_words(text: str) -> list[str]:
    """Return the words that set one task apart from another, in the singular."""
    specific = (word for word in find_words(_OPAQUE.sub(" ", text)) if word not in GENERIC_WORDS)
    return [word for word in map(singular, specific) if word not in GENERIC_WORDS and 2 < len(word) < 25]


def count_meaning(text: str) -> int:
    """Return how many words, paths and ids of a text say something: "ok, please continue" has none.

    A run of a script without spaces counts by its length, three characters for a word.
    """
    opaque = len(_OPAQUE.findall(text))
    words = [word for word in find_words(_OPAQUE.sub(" ", text)) if word not in FILLER_WORDS]
    return opaque + sum(1 + len(_WIDE.findall(word)) // 3 for word in words if len(word) > 1)
