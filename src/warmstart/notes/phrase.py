"""The sentence of a note: names, paths and counts; of messages only what is plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from warmstart.notes.types import Note

_MASK = re.compile(r"\s*<(?:text|path|id|n|url|date|secret|email)>[\w()]*")
_PLAIN = re.compile(r"[\w .,:;!?'\"`()\[\]@/+*=%#|>…-]+")
_QUOTES = re.compile(r"(?<!\w)'|'(?!\w)")  # not an apostrophe inside a word
_WORDS, _LONGEST = 10, 80


class Details(Struct, frozen=True, kw_only=True):
    """The parts of a note's sentence that are not in the note itself."""

    form: str = ""  # of the command that failed most
    quote: str = ""  # the message, masked
    files: Sequence[str] = ()  # that were concerned most
    tools: Sequence[str] = ()  # whose calls failed


def phrase_note(note: Note, details: Details) -> str:
    """Return the sentence of a note, without its count; "" where there is nothing plain to say."""
    subject, fix = note.subject, note.fix
    quote = state_quote(details.quote)
    match note.kind:
        case "path":
            return f"`{subject}` is not here" + (f"; `{fix}` is" if fix else "")
        case "large":
            return f"`{subject}` is too large for one Read: use offset and limit"
        case "environment":
            state = "is not set" if subject.isupper() else "is not available"
            return f"`{subject}` {state} here" + _state_fix(fix)
        case "check":
            return f"`{details.form or 'the check'}` stops on {subject}" + _state_fix(fix)
        case "baseline" if quote or _PLAIN.fullmatch(subject):
            return f"`{_name_call(note, details) or 'the check'}` fails with {quote or subject[:_LONGEST]}"
        case "command" if (quote or fix) and _name_call(note, details):
            return f"`{_name_call(note, details)}` fails" + (f": {quote}" if quote else "") + _state_fix(fix)
        case "slow":
            return f"`{details.form or subject}` is slow or times out" + _state_fix(fix)
        case "refusal":
            quote = state_quote(details.quote, least=2)
            return f"a person refuses `{subject}`" + (f": {quote}" if quote else "")
        case "tool" if quote:
            where = f", most in `{details.files[0]}`" if details.files else ""
            first = f"; {fix} the file again first" if fix else ""
            return f"{' and '.join(details.tools) or 'A tool'} can fail with {quote}{where}{first}"
        case _:
            return ""


def _name_call(note: Note, details: Details) -> str:
    sort, _, call = note.trigger.partition(":")
    if note.subject in call.split():
        return call
    if sort == "with" and note.certainty >= 0.5:  # an option that always fails, whatever else the command says
        return " … ".join(call.rsplit(" ", 1)) if " -" in call else call
    return details.form or call


def _state_fix(fix: str) -> str:
    if not fix:
        return ""
    return f"; run `{fix[:-6]}` first" if fix.endswith(" first") else f"; `{fix}` works"


def state_quote(quote: str, least: int = 8) -> str:
    """Return the first words of a message in quotation marks; "" unless it is plain text with enough letters."""
    words = _MASK.sub(" …", quote).split()
    text = " ".join(words[:_WORDS])[:_LONGEST].strip(" …:,")
    if len(_QUOTES.findall(text)) % 2:
        text = _QUOTES.sub("", text)
    if sum(char.isalpha() for char in text) < least or not _PLAIN.fullmatch(text):
        return ""
    return '"' + text.replace('"', "'") + '"'
