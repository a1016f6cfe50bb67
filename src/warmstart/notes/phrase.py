"""The sentence of a note: names, paths and counts; of messages only what is plain text."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from warmstart.notes.types import Note
from warmstart.notes.vocabulary import GAP, quote

_MASK = re.compile(r"\s*<(?:text|path|id|n|url|date|secret|email)>[\w()]*")
_PLAIN = re.compile(r"[\w .,:;!?'\"`()\[\]@/+*=%#|>…-]+")
_CLAUSE = re.compile(r"[.,;:!?\n]")
_PRIVATE = re.compile(r"\d|@|://")
_OWN, _LETTERS, _LONGEST = 8, 8, 80


class Details(Struct, frozen=True, kw_only=True):
    """The parts of a note's sentence that are not in the note itself."""

    form: str = ""  # of the command that failed most
    quote: str = ""  # the message, masked
    files: Sequence[str] = ()  # that were concerned most
    tools: Sequence[str] = ()  # whose calls failed


def phrase_note(note: Note, details: Details) -> str:
    """Return the sentence of a note, without its count; "" where there is nothing plain to say."""
    subject, fix = note.subject, note.fix
    quoted = state_quote(details.quote)
    match note.kind:
        case "path":
            return f"`{subject}` is not here" + (f"; `{fix}` is" if fix else "")
        case "large":
            return f"`{subject}` is too large for one Read: use offset and limit"
        case "environment":
            state = "is not set" if subject.isupper() else "is not available"
            return f"`{subject}` {state} here" + _state_fix(fix)
        case "check":
            return f"{f'`{details.form}` stops' if details.form else 'Checks stop'} on {subject}" + _state_fix(fix)
        case "baseline" if quoted or (not note.key.startswith("message:") and _PLAIN.fullmatch(subject)):
            call = _name_call(note, details)
            return f"{f'`{call}` fails' if call else 'A check fails'} with {quoted or subject[:_LONGEST]}"
        case "command" if (quoted or fix or note.subject in note.trigger.split()) and _name_call(note, details):
            return f"`{_name_call(note, details)}` fails" + (f": {quoted}" if quoted else "") + _state_fix(fix)
        case "slow":
            return f"`{details.form or subject}` is slow or times out" + _state_fix(fix)
        case "refusal":
            words = state_words(details.quote)
            return f"The user refuses `{subject}`" + (f": {words}" if words else "")
        case "tool" if quoted:
            where = f", most in `{details.files[0]}`" if details.files else ""
            first = f"; {fix} the file first" if fix else ""
            return f"{' and '.join(details.tools) or 'A tool'} can fail with {quoted}{where}{first}"
        case _:
            return ""


def _name_call(note: Note, details: Details) -> str:
    sort, _, call = note.trigger.partition(":")
    if note.subject in call.split():
        return call if sort == "run" or " -" in call else " … ".join(call.rsplit(" ", 1))
    if sort == "with" and note.certainty >= 0.5:  # an option that always fails, whatever else the command says
        return " … ".join(call.rsplit(" ", 1)) if " -" in call else call
    return details.form or call


def _state_fix(fix: str) -> str:
    if not fix:
        return ""
    return f"; run `{fix[:-6]}` first" if fix.endswith(" first") else f"; `{fix}` works"


def state_quote(message: str) -> str:
    """Return what may be quoted of a message, in quotation marks; "" where too little can."""
    text = quote(_MASK.sub(f" {GAP}", message))[:_LONGEST].strip(f" {GAP}:,;")
    return f'"{text}"' if sum(char.isalpha() for char in text) >= _LETTERS else ""


def state_words(words: str) -> str:
    """Return a person's own words at a refusal, in quotation marks: the first few, without numbers and addresses."""
    first = _CLAUSE.split(words.strip(), maxsplit=1)[0]
    kept = [word for word in first.split()[:_OWN] if not _PRIVATE.search(word)]
    text = " ".join(kept)
    return f'"{text}"' if _PLAIN.fullmatch(text) else ""
