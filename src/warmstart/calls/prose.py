"""Requests and announcements as sentences: without code and markup, split, and shortened at a word.

Requests that name no work ("yes", "ok, continue", "good morning") are recognised by the words that are left when filler
is removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

from warmstart import lazy_regex as re
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
_SENTENCE_END = re.compile(r"([.!?:])[\"')*_]{0,3}\s+(?=[^\sa-z])")
_WIDE_SENTENCE_END = re.compile(r"(?<=[。！？])\s*(?=\S)")
_WIDE_STOP = re.compile("[。！？]")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(.*)$", re.M)
_HEADING_LABEL = re.compile(r"\A\w+:\s+(?=\S)")  # "Plan: Pass the original error on"
_LEAST_HEADING = 3  # words; a shorter heading ("Context", "Next steps") says nothing outside its document
_BLANKS = re.compile(r"[ \t]{2,}|\t")
_MARK = re.compile(r"\A(?:[-*•+#>]+|\d{1,2}[.)])\s+")
_GREETING = re.compile(
    r"^(?:\W*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening)|bonjour)"
    r"(?: there| again)?[\s,.!:—-]+|(?:thanks?(?: you)?(?: so much| again)?"
    r"|sure|great|good|perfect|excellent|ok(?:ay)?|now)[,.!:—-]+\s*))+",
    re.I,
)
_RUN = re.compile(r"\S+")
_TO_LAST_SIGN, _TO_LAST_DIGIT = re.compile(r"\S*[/\\@#]"), re.compile(r"\S*\d")
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")  # scripts whose words no space separates


def count_wide(text: str) -> int:
    """Return how many characters are of scripts whose words no space separates."""
    return 0 if text.isascii() else len(_WIDE.findall(text))


def _find_last_wide(text: str) -> int:
    """Return the offset of the last character of a wide script; -1 if there is none."""
    return -1 if text.isascii() else max((found.start() for found in _WIDE.finditer(text)), default=-1)


def strip_markup(text: str) -> str:
    """Return a text without the reminders, tags, code and marks that the agent's program added; lines stay as they are."""
    if "<" in text:
        text = _TAG.sub(" ", _REMINDER.sub(" ", text))
    return _NOT_SAID.sub(" ", text) if "[" in text or "```" in text or "Caveat: " in text else text


def strip_programs(text: str) -> str:
    """Return a request without the blocks that programs put before it."""
    blocks = _PROGRAM_BLOCKS.match(text)  # a substitution would look for the text's start at every character
    return text[blocks.end() :] if blocks else text


def plain(text: str) -> str:
    """Return a text without markup and without needless spaces."""
    stripped = strip_markup(text)
    if "  " in stripped or "\t" in stripped:
        stripped = _BLANKS.sub(" ", stripped)
    return stripped.strip(" \n❯>*-")


def end_headings(text: str) -> str:
    """Return a text whose Markdown headings are sentences, without those that only name a part; its title stays."""
    return _HEADING.sub(_end_heading, text) if "# " in text else text


def _end_heading(found: re.Match[str]) -> str:
    words = _HEADING_LABEL.sub("", found[1].strip(" *#\r"))
    if not words or (found.start() and len(words.split()) < _LEAST_HEADING and not count_wide(words)):
        return ""
    return f"\n{words}\n" if words[-1] in ".!?:。！？" else f"\n{words}.\n"


@lru_cache(256)
def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text. Sentences at the edge of a gap in a long text are cut and therefore left out."""
    return tuple(iterate_sentences(text))


def iterate_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; those that nobody asks for are not worked out."""
    parts = _GAP.split(text) if "characters left out" in text else [text]
    last = len(parts) - 1
    for at, part in enumerate(parts):
        sentences = _split_part(part)
        if at:
            next(sentences, None)
        if at == last:
            yield from sentences
        else:
            yield from _leave_last(sentences)


def _leave_last(sentences: Iterator[str]) -> Iterator[str]:
    """Yield all sentences but the last."""
    before = next(sentences, None)
    for sentence in sentences:
        if before is not None:
            yield before
        before = sentence


def _split_part(text: str) -> Iterator[str]:
    for block in _split_blocks(end_headings(plain(text))):
        for sentence in _split_block(" ".join(block.split())):
            if not sentence[:1].isalpha() and (mark := _MARK.match(sentence)):
                sentence = sentence[mark.end() :]
            if "**" in sentence:
                sentence = sentence.replace("**", "")
            if sentence.strip(" .:*#-_"):
                yield sentence


def _split_blocks(text: str) -> Iterator[str]:
    """Yield the paragraphs, list items and headings of a text; often only the first is wanted."""
    at = 0
    if "\n" in text:
        for end in _BLOCK.finditer(text):
            yield text[at : end.start()]
            at = end.end()
    yield text[at:]


def _split_block(block: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, each with its full stop."""
    is_wide = not block.isascii() and _WIDE_STOP.search(block) is not None
    at = 0
    for stop in chain(_SENTENCE_END.finditer(block), (None,)):
        sentence = block[at:] if stop is None else block[at : stop.end(1)]
        if is_wide:
            yield from _WIDE_SENTENCE_END.split(sentence)
        else:
            yield sentence
        at = stop.end() if stop is not None else at


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters, cut after a word and with an ellipsis if it had to be cut."""
    if len(text) <= limit:
        return text
    room = text[:limit]  # the character after the kept ones is part of the cut: it shows whether a word ends there
    at = max(room.rfind(" "), _find_last_wide(room))
    kept = room[:at].rstrip(" ,;:.—-([") if at > 0 else ""
    return f"{kept}{ELLIPSIS}" if kept else ELLIPSIS


def join_sentences(sentences: Iterable[str], limit: int) -> str:
    """Return the first sentences, as many as fit; a first sentence that is too long is shortened."""
    kept = ""
    for sentence in sentences:
        if kept and len(kept) + 1 + len(sentence) > limit:
            break
        kept = f"{kept} {sentence}".strip()
        if len(kept) >= limit:
            break
    return shorten(kept, limit)


@lru_cache(256)
def opening(text: str, limit: int) -> str:
    """Return the first sentences, as many as fit."""
    return join_sentences(iterate_sentences(text), limit)


@lru_cache(256)
def gist(text: str, limit: int) -> str:
    """Return the sentences that fit, beginning with the first one that has a topic word."""
    sentences = iterate_sentences(text)
    before: list[str] = []
    for sentence in sentences:
        if _has_topic(sentence):
            return without_greeting(join_sentences(chain((sentence,), sentences), limit))
        before.append(sentence)
    return without_greeting(join_sentences(before, limit))


def without_greeting(text: str) -> str:
    """Return a text without its greeting."""
    greeting = _GREETING.match(text)
    if greeting is None or len(text) - greeting.end() <= 15:
        return text
    return text[greeting.end()].upper() + text[greeting.end() + 1 :]


def _has_topic(text: str) -> bool:
    """Return whether a text has a topic word. A word between spaces needs no search for ids and paths."""
    if "{{" not in text:
        for word in text.split():
            if word.isalpha() and _is_topic(word.lower()):
                return True
    return bool(find_topic_words(text))


@lru_cache(4_096)
def _is_topic(word: str) -> bool:
    single = singular(word)
    return word not in GENERIC_WORDS and single not in GENERIC_WORDS and 2 < len(single) < 25


def find_topic_words(text: str) -> list[str]:
    """Return the words that set one task apart from another, in the singular."""
    readable, _opaque = _split_opaque(text)
    specific = (word for word in find_words(readable) if word not in GENERIC_WORDS)
    return [word for word in map(singular, specific) if word not in GENERIC_WORDS and 2 < len(word) < 25]


def count_meaning(text: str, most: int | None = None) -> int:
    """Return how many words, paths and ids of a text say something: "ok, please continue" has none.

    A run of a script without spaces counts by its length, three characters for a word. The count stops at `most`.
    """
    if most is not None and "{{" not in text and _has_plain_words(text, most):
        return most
    readable, opaque = _split_opaque(text)
    words = [word for word in find_words(readable) if word not in FILLER_WORDS]
    count = len(opaque) + sum(1 + count_wide(word) // 3 for word in words if len(word) > 1)
    return count if most is None else min(count, most)


def _has_plain_words(text: str, wanted: int) -> bool:
    """Return whether a text has so many words of letters alone that say something; most texts do."""
    for word in text.split():
        if word.isalpha() and len(word) > 1 and word.lower() not in FILLER_WORDS:
            wanted -= 1
            if not wanted:
                return True
    return False


def _split_opaque(text: str) -> tuple[str, list[str]]:
    """Return a text without its paths, addresses, ids and `{{placeholders}}`, and these. Takes linear time."""
    readable: list[str] = []
    opaque: list[str] = []
    at = end = last_sign = last_digit = kept_from = 0
    braces = _find_braces(text, 0)
    while True:
        if at >= end:
            run = _RUN.search(text, at)
            if run is None:
                break
            at, end = run.span()
            last_sign = _find_last(_TO_LAST_SIGN, text, at, end)
            last_digit = _find_last(_TO_LAST_DIGIT, text, at, end)
        if braces[0] < at:
            braces = _find_braces(text, at)
        if at < last_sign or (at < last_digit and braces[0] > at):
            start, stop = at, end
        elif braces[0] < end:
            start, stop = braces
        else:
            at = end
            continue
        readable.append(text[kept_from:start])
        opaque.append(text[start:stop])
        at = kept_from = stop
    return " ".join([*readable, text[kept_from:]]), opaque


def _find_last(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    match = pattern.match(text, start, end)
    return match.end() if match else -1


def _find_braces(text: str, start: int) -> tuple[int, int]:
    """Return where the next `{{...}}` without an inner brace that closes starts and ends; the text's end if there is none."""
    while (start := text.find("{{", start)) >= 0 and (close := text.find("}", start + 2)) >= 0:
        if text.startswith("}}", close):
            return start, close + 2
        start = close
    return len(text), len(text)
