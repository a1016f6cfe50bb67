"""Output of commands: tables, colours and progress bars for people, JSON for programs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from warmstart.ports import Progress

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_encode = msgspec.json.Encoder(enc_hook=str).encode
_LINE_EVERY = 10.0  # seconds between progress lines where standard error is no terminal
_UNSEEN = (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF)
_CLEAN: dict[int, str | None] = dict.fromkeys((*range(9), *range(11, 32), *range(127, 160)), "�") | dict.fromkeys(
    _UNSEEN
)


def print_json(value: Any) -> None:
    """Print a JSON value as one line on standard output."""
    sys.stdout.write(_encode(value).decode() + "\n")


def print_error_json(value: Any) -> None:
    sys.stderr.write(_encode(value).decode() + "\n")


def clean(text: Any) -> str:
    """Return text that is safe for a terminal: without control codes, invisible characters and direction marks."""
    return str(text).translate(_CLEAN)


def format_time(seconds: float | None) -> str:
    """Return a time for people, in UTC."""
    stamp = format_iso(seconds)
    return "" if stamp is None else f"{stamp[:10]} {stamp[11:16]}"


def format_iso(seconds: float | None) -> str | None:
    """Return a time for programs."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return None


def open_console() -> Console:
    """Return a console on standard output. A closed pipe raises, as everywhere else; Rich would exit with 1."""
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PlainConsole()


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str | None = None) -> None:
    """Print a table. Columns whose name starts with `#` are numbers and right-aligned; without names there is no head."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    is_named = any(columns)
    table: Table = Table(
        title=title,
        box=box.SIMPLE_HEAD,
        show_header=is_named,
        min_width=len(title or ""),
        title_justify="left",
        pad_edge=False,
    )
    for name in columns:
        table.add_column(name.lstrip("#"), justify="right" if name.startswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(clean(cell)) for cell in row))
    console = open_console()
    if not console.is_terminal:
        console.width = 160  # files and pipes need no folding
    console.print(table)


def coloured(text: str) -> Any:
    """Return a verdict or status in its colour."""
    from rich.text import Text

    colours = {"success": "green", "ok": "green", "active": "green", "failure": "red", "error": "red", "retired": "dim"}
    return Text(clean(text), style=colours.get(text, "yellow" if text in ("unknown", "proposed") else ""))


@contextmanager
def progress_bar(title: str, clock: Callable[[], float] = time.monotonic, *, lines: bool = True) -> Iterator[Progress]:
    """Show progress on standard error: a bar on a terminal, else a plain line every 10 s at most.

    `lines=False` leaves the lines out, for commands that print JSON there.
    """
    if not sys.stderr.isatty():
        yield _make_line_printer(title, clock) if lines else _ignore
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)

        def update_bar(done: int, total: int | None, what: str) -> None:
            bar.update(task, completed=done, total=total, description=clean(what)[:50])

        yield update_bar


def _ignore(done: int, total: int | None, what: str) -> None:
    """Show nothing."""


def _make_line_printer(title: str, clock: Callable[[], float]) -> Progress:
    """Return a progress that prints nothing in its first 10 s: short work stays silent."""
    printed = clock()

    def print_line(done: int, total: int | None, what: str) -> None:
        nonlocal printed
        if clock() - printed < _LINE_EVERY:
            return
        printed = clock()
        count = f"{done}" if total is None else f"{done} of {total}"
        sys.stderr.write(f"{title}: {count} {clean(what)[:50]}".rstrip() + "\n")
        sys.stderr.flush()

    return print_line
