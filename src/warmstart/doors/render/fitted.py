"""Tables that fit the terminal: columns are left out before a row wraps, and long texts are cut at a word."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from warmstart.doors.render.terminal import clean, open_console

PIPED = 160  # columns, where the output is no terminal
_LEAST = 26  # columns of a text; with fewer another column is left out
_BETWEEN, _EDGES = 3, 2  # columns between cells, and at both ends of a row


class Column(NamedTuple):
    """A column of a table. A name that starts with `#` is that of numbers, which are right-aligned."""

    name: str
    most: int = 40  # columns at most
    drop: int = 0  # the higher, the earlier it is left out; 0: never
    grows: bool = False  # a text that takes what is left of the width


def print_fitted(columns: Sequence[Column], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print a table no wider than the terminal, one line per row."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = open_console()
    if not console.is_terminal:
        console.width = _read_width()
    cells = [[cell if isinstance(cell, Text) else Text(flatten(cell)) for cell in row] for row in rows]
    natural = [
        min(column.most, max([len(column.name.lstrip("#")), *(row[at].cell_len for row in cells)]))
        for at, column in enumerate(columns)
    ]
    shown, text_width = _fit(columns, natural, console.width)
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for at in shown:
        justify: Literal["left", "right"] = "right" if columns[at].name.startswith("#") else "left"
        width = text_width if columns[at].grows else natural[at]
        table.add_column(columns[at].name.lstrip("#"), justify=justify, no_wrap=True, max_width=width)
    for row in cells:
        table.add_row(*(_shorten(row[at], text_width if columns[at].grows else natural[at]) for at in shown))
    console.print(table)


def flatten(text: Any) -> str:
    """Return a text in one line that is safe for a terminal."""
    return " ".join(clean(text).split())


def cut_at_word(text: str, width: int) -> str:
    """Return a text of at most so many columns, cut after a word."""
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) <= width:
        return text
    cut = set_cell_size(text, max(1, width - 2)).rstrip()
    whole = cut.rpartition(" ")[0] if text[len(cut) : len(cut) + 1].strip() else cut
    return f"{whole} …" if len(whole) > len(cut) // 2 else f"{cut}…"


def _read_width() -> int:
    width = os.environ.get("COLUMNS", "")
    return int(width) if width.isdecimal() and 20 <= int(width) <= 10_000 else PIPED


def _fit(columns: Sequence[Column], natural: Sequence[int], width: int) -> tuple[list[int], int]:
    """Return the columns that are shown, and the width of each text among them."""
    shown = list(range(len(columns)))
    while True:
        texts = sum(columns[at].grows for at in shown)
        rest = width - _EDGES - _BETWEEN * (len(shown) - 1) - sum(natural[at] for at in shown if not columns[at].grows)
        droppable = [at for at in shown if columns[at].drop]
        if rest >= _LEAST * texts or not droppable:
            return shown, max(1, rest // texts) if texts else 0
        shown.remove(max(droppable, key=lambda at: columns[at].drop))


def _shorten(cell: Any, width: int) -> Any:
    if cell.cell_len > width:
        cell.plain = cut_at_word(cell.plain, width)
    return cell
