"""Linear-time matching over bytes with google-re2 and ahocorasick-rs, which only this module uses.

A text is matched as bytes of the same length (see `as_bytes`), so every offset is also an offset into the string. Both
libraries are imported and patterns compiled on first use, so that the command line starts fast.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, AnyStr, Generic, NamedTuple

# Bytes for the automata of one pattern. With 16 MB the automaton of the vendors' rules is rebuilt all the time on text
# full of secrets, which takes seven times as long. Ordinary transcripts take 7 MB in all, hostile text about 100.
_MEMORY = 160 << 20
_COUNTED = 6  # larger counts of repetitions are loosened in a prefilter


class Span(NamedTuple):
    """A span to replace, and its kind."""

    start: int
    end: int
    kind: str


def word_set(text: str) -> frozenset[str]:
    """Return the set of words of a text."""
    return frozenset(text.split())


def as_bytes(text: str) -> bytes:
    """Encode a text with one byte per character; characters outside ASCII, lone surrogates too, become `?`."""
    return text.encode("ascii", "replace")


class Regex(Generic[AnyStr]):
    """An `re` pattern, compiled on first use; only for short inputs and patterns that cannot backtrack far."""

    __slots__ = ("_compiled", "_flags", "_source")

    def __init__(self, source: AnyStr, flags: int = 0) -> None:
        self._source: AnyStr = source
        self._flags = flags
        self._compiled: re.Pattern[AnyStr] | None = None

    def _pattern(self) -> re.Pattern[AnyStr]:
        if self._compiled is None:
            self._compiled = re.compile(self._source, self._flags)
        return self._compiled

    def match(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None:
        return (self._compiled or self._pattern()).match(text, start, end)

    def fullmatch(self, text: AnyStr, start: int = 0) -> re.Match[AnyStr] | None:
        return (self._compiled or self._pattern()).fullmatch(text, start)

    def search(self, text: AnyStr, start: int = 0, end: int = sys.maxsize) -> re.Match[AnyStr] | None:
        return (self._compiled or self._pattern()).search(text, start, end)

    def findall(self, text: AnyStr) -> list[AnyStr]:
        return (self._compiled or self._pattern()).findall(text)

    def finditer(self, text: AnyStr) -> Iterator[re.Match[AnyStr]]:
        return (self._compiled or self._pattern()).finditer(text)

    def split(self, text: AnyStr) -> list[AnyStr]:
        return (self._compiled or self._pattern()).split(text)

    def sub(self, replace: Callable[[re.Match[AnyStr]], AnyStr], text: AnyStr) -> AnyStr:
        return (self._compiled or self._pattern()).sub(replace, text)


def _options(re2: Any) -> Any:
    options = re2.Options()
    options.max_mem = _MEMORY
    options.encoding = re2.Options.Encoding.LATIN1
    return options


def _compile(source: str) -> Any:
    re2 = importlib.import_module("re2")
    return re2.compile(source.encode(), _options(re2))


class BytesPattern:
    """An RE2 pattern over bytes."""

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: Any = None

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the spans of the matches, left to right, without overlaps."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        for match in self._compiled.finditer(data):
            yield match.span()

    def search(self, data: bytes, start: int = 0, end: int | None = None) -> tuple[int, int] | None:
        """Return the span of the first match between start and end."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        match = self._compiled.search(data, start, len(data) if end is None else end)
        return None if match is None else match.span()

    def groups_at(self, data: bytes, start: int, end: int) -> list[tuple[int, int]] | None:
        """Return the spans of a match that begins at start: the whole and its groups."""
        if self._compiled is None:
            self._compiled = _compile(self.source)
        match = self._compiled.match(data, start, end)
        if match is None:
            return None
        return [match.span(group) for group in range(self._compiled.groups + 1)]


class Prefilter:
    """Finds in one pass which of many patterns may occur in a text; most texts hold none."""

    __slots__ = ("_anchored", "_loosened", "_set", "_sources")

    def __init__(self, sources: Sequence[str], *, anchored: bool = False, loosened: bool = True) -> None:
        self._anchored = anchored
        self._loosened = loosened and not anchored
        self._sources = sources
        self._set: Any = None

    def which(self, data: bytes) -> Sequence[int]:
        """Return the indexes of the patterns that occur (anchored: at the start)."""
        if self._set is None:
            re2 = importlib.import_module("re2")
            patterns = (re2.Set.MatchSet if self._anchored else re2.Set.SearchSet)(_options(re2))
            for source in map(strip_groups, self._sources):
                patterns.Add((loosen(source) if self._loosened else source).encode())
            patterns.Compile()
            self._set = patterns  # set last: an unfinished set would match nothing for another thread
        return self._set.Match(data) or ()


def strip_groups(source: str) -> str:
    """Return a pattern without capturing groups: with them RE2 does not use its fast automaton."""
    return source.replace("(?P<v>", "(?:")


def loosen(source: str) -> str:
    """Return a pattern that matches wherever this one does, without its large counts, which slow an automaton down."""
    return re.sub(r"(?<!\\)\{(\d+)(?:,(\d*))?\}", _loosen_count, source)


def _loosen_count(count: re.Match[str]) -> str:
    least = int(count[1])
    most = count[2] if count[2] is not None else count[1]
    if most and int(most) <= _COUNTED:
        return count[0]
    return f"{{{min(least, _COUNTED)},}}"


class Literals:
    """Exact strings searched in one pass; the longest match wins."""

    __slots__ = ("_automaton", "literals")

    def __init__(self, literals: Iterable[bytes]) -> None:
        self.literals = list(literals)
        self._automaton: Any = None

    def find(self, data: bytes) -> list[tuple[int, int, int]]:
        """Return `(index of the literal, start, end)` of the matches, without overlaps."""
        if not self.literals:
            return []
        if self._automaton is None:
            library = importlib.import_module("ahocorasick_rs")
            self._automaton = library.BytesAhoCorasick(self.literals, matchkind=library.MatchKind.LeftmostLongest)
        matches: list[tuple[int, int, int]] = self._automaton.find_matches_as_indexes(data)
        return matches
