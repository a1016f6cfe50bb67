"""The one place that knows google-re2 and ahocorasick-rs: linear-time matching over bytes, compiled on first use.

Texts are matched as bytes of the same length as the string (see `as_bytes`), so every offset found is an offset
into the string itself. Neither library is imported before something is matched: the command line starts fast.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, AnyStr, Generic, NamedTuple

_MEMORY = 16 << 20  # bytes for the automata of one pattern, at most

_COUNTED = 6  # repetitions that a gate still counts


class Span(NamedTuple):
    """A span to replace, and what it is."""

    start: int
    end: int
    kind: str


def word_set(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def as_bytes(text: str) -> bytes:
    """One byte a character: whatever is not ASCII (lone surrogates too) reads as `?`."""
    return text.encode("ascii", "replace")


class Regex(Generic[AnyStr]):
    """A pattern of `re`, compiled on first use; only for short inputs or where it cannot backtrack far."""

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

    def split(self, text: AnyStr, most: int = 0) -> list[AnyStr | Any]:
        return (self._compiled or self._pattern()).split(text, most)

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


class Prefilter:
    """Says in one pass which of many patterns may occur in a text: most texts hold none."""

    __slots__ = ("_anchored", "_set", "_sources")

    def __init__(self, sources: Sequence[str], *, anchored: bool = False) -> None:
        self._anchored = anchored
        self._sources = sources
        self._set: Any = None

    def which(self, data: bytes) -> Sequence[int]:
        """Indexes of the patterns that occur (anchored: at the start)."""
        if self._set is None:
            re2 = importlib.import_module("re2")
            patterns = (re2.Set.MatchSet if self._anchored else re2.Set.SearchSet)(_options(re2))
            for source in map(_uncaptured, self._sources):
                patterns.Add((source if self._anchored else loosen(source)).encode())
            patterns.Compile()
            self._set = patterns  # only now: to another thread an unfinished set would say that nothing is there
        return self._set.Match(data) or ()


class Choice:
    """Many patterns matched in one pass; says which of them begin at a place."""

    __slots__ = ("_which", "finder")

    def __init__(self, sources: Sequence[str]) -> None:
        self.finder = BytesPattern("|".join(f"(?:{source})" for source in map(_uncaptured, sources)))
        self._which = Prefilter(sources, anchored=True)

    def spans(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Spans where one of the patterns matches."""
        return self.finder.spans(data)

    def which(self, matched: bytes) -> list[int]:
        """Indexes of the patterns that match at the start of what was matched, in their order."""
        return sorted(self._which.which(matched))


def _uncaptured(source: str) -> str:
    """The same pattern without capturing groups: with them RE2 leaves its fast automaton."""
    return source.replace("(?P<v>", "(?:")


def loosen(source: str) -> str:
    """A pattern that matches wherever this one does, without its long counts: these cost an automaton its speed."""
    return re.sub(r"(?<!\\)\{(\d+)(?:,(\d*))?\}", _loosen_count, source)


def _loosen_count(count: re.Match[str]) -> str:
    least = int(count[1])
    most = count[2] if count[2] is not None else count[1]
    if most and int(most) <= _COUNTED:
        return count[0]
    return f"{{{min(least, _COUNTED)},}}"


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
