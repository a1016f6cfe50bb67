"""Reasons why a person must look at a note before it is used: it was made of text that anyone may have written."""

from __future__ import annotations

import unicodedata

from warmstart import lazy_regex as re
from warmstart.notes.types import Note
from warmstart.notes.vocabulary import orders_in
from warmstart.templates.suspicion import gives_orders

_FETCHES = re.compile(
    r"\b(?:npx|bunx|uvx|pipx|dlx|curl|wget)\b|\b(?:pip3?|uv|npm|pnpm|yarn|bun|cargo|go|gem|brew|apt|apt-get)\s+(?:-\S+\s+)*"
    r"(?:install|add|i|get|pip install)\s+(?:-\S+\s+)*(?!first\b)[\w@]"
)
_NAMED = frozenset(("path", "large", "baseline", "environment"))  # shown by names that anyone may have chosen
_LONGEST = 200
_QUIET = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))  # control, format, private, surrogate, line separators


def find_suspicions(note: Note) -> tuple[str, ...]:
    """Return what is suspicious about a note; a suspicious note stays proposed."""
    reasons = []
    parts = f"{note.subject}\n{note.fix}\n{note.text}"
    flat = parts.replace("\n", " ")
    if any(unicodedata.category(char) in _QUIET for char in flat):
        reasons.append("it contains invisible or control characters")
    if gives_orders(note.text) or gives_orders(note.subject.replace("-", " ").replace("_", " ").replace("/", " ")):
        reasons.append("it reads like an instruction")
    if note.kind in _NAMED and orders_in(note.subject) >= 2:
        reasons.append("its name reads like an order")
    if _FETCHES.search(note.fix):
        reasons.append("its fix downloads and runs or installs a package by name")
    if len(note.text) > _LONGEST:
        reasons.append(f"its text is longer than {_LONGEST} characters")
    if _mixes_scripts(flat):
        reasons.append("a word in it mixes letters of several scripts")
    return tuple(reasons)


def is_harmless(path: str) -> bool:
    """Return whether a path may be shown without a person's look: no hidden characters, orders or look-alikes."""
    if len(path) > _LONGEST or any(unicodedata.category(char) in _QUIET for char in path) or _mixes_scripts(path):
        return False
    return not gives_orders(path.replace("-", " ").replace("_", " ").replace("/", " "))


def _mixes_scripts(text: str) -> bool:
    for word in text.replace("/", " ").split():
        scripts = {unicodedata.name(char, "?").split()[0] for char in word if char.isalpha()}
        if "LATIN" in scripts and scripts & {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE"}:
            return True
    return False
