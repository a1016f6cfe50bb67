"""The brief: the notes worth most per token, in a few lines for the start of a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from warmstart import lazy_regex as re
from warmstart.calls.prose import shorten
from warmstart.calls.words import GENERIC_WORDS, find_words, stem
from warmstart.model import Brief, NoteOmission
from warmstart.notes.types import LONGEST_SENTENCE, Note, NoteKind

if TYPE_CHECKING:
    from warmstart.notes.where import Where

BUDGET = 300
HEADING = "Known in this project from earlier sessions (in brackets: how many met it):"
PLACES = "From earlier sessions in this project:"
_LARGEST_PART = 3  # the line about files takes a third of the budget at most
LEAST = 0.05  # share of recent sessions that meet a note: a rarer one is not worth a line for everyone
_DEAR: dict[NoteKind, float] = {"refusal": 3.0, "slow": 2.0, "baseline": 1.3, "check": 1.2, "where": 1.5, "works": 0.5}
_FULL = "the budget is used up"
_GROUPS: dict[NoteKind, str] = {
    "path": "Not here: ",
    "environment": "Not available here: ",
    "baseline": "Tests that failed in several sessions before yours: ",
    "works": "Usual commands: ",
    "large": "Too large for one Read, use offset and limit: ",
}
_CODE = re.compile(r"[A-Z]{1,3}\d{3,5}")  # of a compiler: every change causes its own, so few are typical of a project
_CODES = 0.4  # the weight of such a code, relative to a rule
_NAME = 60  # characters of a test's name
_ITEMS = 8  # notes in the line of a group
_MOST: dict[NoteKind, int] = {"baseline": 3}
_CHOSEN = 0.25  # the least rate by which a note is weighed that a person decided to use
_FIT = 2.0  # how much more a note is worth that shares a rare word with the task


class _Item(Struct, frozen=True):
    """A note as it stands in the brief: its own line, or a part of the line of its group."""

    note: Note
    group: str
    text: str
    value: float


def write_brief(
    notes: Iterable[Note],
    count: Callable[[str], int],
    *,
    task: str = "",
    budget: int = BUDGET,
    said: str = "",
    project: str | None = None,
) -> Brief:
    """Return the brief of a task. `count` counts tokens; `said`: the instructions in the repository's own files.

    Sentences that a person wrote come first, each on a line of its own.
    """
    omitted: list[NoteOmission] = []
    items: list[_Item] = []
    for note in notes:
        if reason := _find_objection(note, said):
            omitted.append(NoteOmission(note.id, reason))
        else:
            items.append(_make_item(note, task))
    items.sort(key=lambda item: (not item.note.is_written, -item.value))
    chosen: list[_Item] = []
    tokens, text, is_full = 0, "", False
    for item in items:
        most = _MOST.get(item.note.kind, _ITEMS)
        if item.group and sum(other.group == item.group for other in chosen) >= most:
            omitted.append(NoteOmission(item.note.id, f"its line names {most} others already"))
            continue
        longer = "" if is_full else _compose([*chosen, item])
        size = 0 if is_full else count(longer)
        if is_full or size > budget:
            is_full = is_full or tokens > budget * 0.95
            omitted.append(NoteOmission(item.note.id, _FULL))
        else:
            chosen.append(item)
            tokens, text = size, longer
    return Brief(
        project=project,
        text=text,
        tokens=tokens,
        budget=budget,
        notes=tuple(item.note.id for item in chosen),
        omitted=tuple(omitted),
    )


def reserve_line(where: Where, count: Callable[[str], int], budget: int) -> int:
    """Return the tokens to keep free for the files of similar requests; 0 where their line is too long."""
    needed = count(f"\n- {where.line}") if where.line else 0
    return needed if needed * _LARGEST_PART <= budget else 0


def add_where(brief: Brief, where: Where, count: Callable[[str], int], budget: int) -> Brief:
    """Return a brief with the files that similar requests led to, if the line fits."""
    brief = structs.replace(brief, budget=budget)
    text = f"{brief.text or PLACES}\n- {where.line}"
    tokens = count(text)
    if not where.line or tokens > budget:
        return brief
    return structs.replace(brief, text=text, tokens=tokens, files=where.named)


def _find_objection(note: Note, said: str) -> str:
    """Return why a note is not worth a line, whatever the budget; "" if it is. A person's decision overrides rarity."""
    if not note.text:
        return "it has no sentence"
    is_code = note.kind == "check" and _CODE.fullmatch(note.subject) is not None
    least = LEAST / _CODES if is_code else LEAST
    if note.rate < least and not note.is_chosen:
        return f"too rare: fewer than {least:.1%} of the recent sessions met it"
    return "the repository's own instructions say it" if said and _is_said(note, said) else ""


def _is_said(note: Note, said: str) -> bool:
    """Return whether the repository's own instructions already say it: they name the subject and its fix."""
    if note.text in said:  # published
        return True
    return bool(note.fix) and not note.is_written and note.subject in said and note.fix in said


def _make_item(note: Note, task: str) -> _Item:
    group, text = _place(note)
    cost = len(text) / 4 + 2
    worth = _DEAR.get(note.kind, 1.0) * (_CODES if note.kind == "check" and _CODE.fullmatch(note.subject) else 1.0)
    rate = max(note.rate, _CHOSEN) if note.is_chosen else note.rate
    return _Item(note, group, text, rate * worth * _fit(note, task) / cost**0.5)


def _fit(note: Note, task: str) -> float:
    if not task:
        return 1.0
    words = {stem(word) for word in find_words(task, camel=True)} - GENERIC_WORDS
    own = {stem(word) for word in find_words(f"{note.subject} {note.fix}", camel=True)} - GENERIC_WORDS
    return _FIT if words & own else 1.0


def _place(note: Note) -> tuple[str, str]:
    """Return the group of a note and its text inside that group; "" for a line of its own."""
    where = "" if note.project else " in all projects"
    if note.is_written:  # as written: a group would replace the person's sentence by the note's subject
        return "", f"{shorten(' '.join(note.text.split()), LONGEST_SENTENCE)} ({note.support}{where})"
    heading = _GROUPS.get(note.kind, "")
    if note.kind == "check":
        use = f", `{note.fix}` mends it" if note.fix else ""
        return "Checks stop most on: ", f"{note.subject}{use} ({note.support})"
    if note.kind == "works":
        return heading, note.text
    if note.kind == "baseline":  # a test by its name; a message has a line of its own
        is_test = not note.key.startswith("message:")
        return (
            (heading, f"{shorten(note.subject, _NAME)} ({note.support})")
            if is_test
            else ("", f"{note.text} ({note.support})")
        )
    if heading:
        use = f", use `{note.fix}`" if note.fix else ""
        if note.fix.endswith(" first"):
            use = f", run `{note.fix[:-6]}` first"
        return heading, f"`{note.subject}`{use} ({note.support})"
    return "", f"{note.text} ({note.support}{where})"


def _compose(items: Sequence[_Item]) -> str:
    lines: dict[str, list[str]] = {}
    for item in items:
        lines.setdefault(item.group or item.note.id, []).append(item.text)
    singles = {item.note.id for item in items if not item.group}
    return "\n".join(
        (HEADING, *(f"- {'' if key in singles else key}{', '.join(texts)}" for key, texts in lines.items()))
    )
