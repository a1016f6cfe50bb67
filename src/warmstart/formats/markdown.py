"""Transcripts written as Markdown for people: their lines, and text that is collected from them."""

from __future__ import annotations

from collections.abc import Iterator

from warmstart.formats.source import Source

_MAX_BLOCK = 8 << 20  # characters of one message or tool block; the rest is left out and reported


def read_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers, blank ones too; of a long gap only one."""
    expected = 1
    for number, line in source.lines():
        if number > expected:
            yield number - 1, ""
        yield number, line.decode("utf-8", "replace").lstrip("\ufeff").rstrip("\r")
        expected = number + 1


class TextBlock:
    """Lines of one message or tool block, bounded."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lines: list[str] = []
        self._size = 0

    def add(self, line: str, number: int) -> None:
        """Add a line."""
        self._size += len(line) + 1
        if self._size <= _MAX_BLOCK:
            self._lines.append(line)
        elif self._size - len(line) - 1 <= _MAX_BLOCK:
            self._source.report(f"a text of more than {_MAX_BLOCK >> 20} MB was cut", number)

    def take(self) -> str:
        """Return the text and begin a new one."""
        text = "\n".join(self._lines).strip("\n")
        self._lines, self._size = [], 0
        return text

    @property
    def lines(self) -> list[str]:
        """The lines so far."""
        return self._lines
