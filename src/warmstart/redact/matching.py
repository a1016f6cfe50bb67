"""The one place that knows google-re2 and ahocorasick-rs: linear-time matching over bytes, compiled on first use.

Texts are matched as bytes of the same length as the string (see `as_bytes`), so every offset found is an offset
into the string itself. Neither library is imported before something is matched: the command line starts fast.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

_MEMORY = 64 << 20  # RE2's automaton cache; the default of 8 MB thrashes on the combined patterns


class Found(NamedTuple):
    """A span to replace, and what it is."""

    start: int
    end: int
    kind: str


def as_bytes(text: str) -> bytes:
    """One byte a character: whatever is not ASCII (lone surrogates too) reads as `?`."""
    return text.encode("ascii", "replace")


def _compile(source: str) -> Any:
    re2 = importlib.import_module("re2")
    options = re2.Options()
    options.max_mem = _MEMORY
    return re2.compile(source.encode(), options)


class Pattern:
    """An RE2 pattern over bytes."""

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: Any = None

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Spans of the matches, left to right, never overlapping."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        for match in self._compiled.finditer(data):
            yield match.span()

    def search(self, data: bytes, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Span of the first match between start and end."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        match = self._compiled.search(data, start, len(data) if end is None else end)
        return None if match is None else match.span()

    def groups_at(self, data: bytes, start: int, end: int) -> list[tuple[int, int]] | None:
        """Spans of the whole match and its groups for a match that begins at start."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        match = self._compiled.match(data, start, end)
        if match is None:
            return None
        return [match.span(group) for group in range(self._compiled.groups + 1)]


class Choice:
    """Many patterns matched in one pass; says which of them begin at a place."""

    __slots__ = ("_finder", "_set", "sources")

    def __init__(self, sources: Sequence[str]) -> None:
        self.sources = sources
        self._finder = Pattern("|".join(f"(?:{source})" for source in map(_uncaptured, sources)))
        self._set: Any = None

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Spans where one of the patterns matches."""
        return self._finder.spans(data)

    def which(self, matched: bytes) -> list[int]:
        """Indexes of the patterns that match at the start of what was matched, in their order."""
        if self._set is None:
            re2 = importlib.import_module("re2")
            options = re2.Options()
            options.max_mem = _MEMORY
            self._set = re2.Set.MatchSet(options)
            for source in self.sources:
                self._set.Add(_uncaptured(source).encode())
            self._set.Compile()
        return sorted(self._set.Match(matched) or ())


def _uncaptured(source: str) -> str:
    """The same pattern without capturing groups: with them RE2 leaves its fast automaton."""
    return source.replace("(?P<v>", "(?:")


class Literals:
    """Exact strings found in one pass, the longest first."""

    __slots__ = ("_automaton", "literals")

    def __init__(self, literals: Iterable[bytes]) -> None:
        self.literals = list(literals)
        self._automaton: Any = None

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """(index of the literal, start, end), never overlapping."""
        if not self.literals:
            return []
        if self._automaton is None:
            library = importlib.import_module("ahocorasick_rs")
            self._automaton = library.BytesAhoCorasick(self.literals, matchkind=library.MatchKind.LeftmostLongest)
        found: list[tuple[int, int, int]] = self._automaton.find_matches_as_indexes(data)
        return found
