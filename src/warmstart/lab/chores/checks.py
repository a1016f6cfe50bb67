"""Checks of a folder and an answer, regardless of the calls that led there.

An answer is right if it has what was asked for and nothing that could be mistaken for it: every number in it is the
wanted number, and of the names in the task it has only the wanted ones. So neither counting to a hundred nor printing the
whole file counts as an answer.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from warmstart.lab.chores.tasks import Check, Finished

Rows = list[tuple[Any, ...]]

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w]|\.\d)")
_MOST_TABLES, _MOST_ROWS, _MOST_BYTES = 50, 1_000, 100_000  # of a database, a table, a cell: far more than any task has
_MOST_SECONDS = 1.0  # for reading a database
_ABOUT_THE_CALL = frozenset(("exit_code", "bytes_written", "columns", "rows_changed", "rows_cut"))  # not an answer


def all_of(*checks: Check) -> Check:
    return lambda finished: all(check(finished) for check in checks)


def says_number(wanted: float) -> Check:
    """Check that the answer has this number and no other."""

    def check(finished: Finished) -> bool:
        numbers = {float(number) for number in _NUMBER.findall(text_of(finished.answer))}
        return numbers == {float(wanted)}

    return check


def says_only(wanted: Collection[str], others: Iterable[str]) -> Check:
    """Check that the answer has all these names and none of the others."""
    rivals = set(others) - set(wanted)

    def check(finished: Finished) -> bool:
        answer = text_of(finished.answer)
        return all(_has(answer, name) for name in wanted) and not any(_has(answer, name) for name in rivals)

    return check


def file_holds(path: str, lines: Iterable[str]) -> Check:
    """Check that a file has exactly these lines; the last may end without a newline."""
    wanted = list(lines)

    def check(finished: Finished) -> bool:
        text = read_text(finished.folder / path)
        return text is not None and [line.rstrip() for line in text.rstrip().splitlines()] == wanted

    return check


def file_mentions(path: str, *words: str) -> Check:
    """Check that a file has these words, in any case."""

    def check(finished: Finished) -> bool:
        text = read_text(finished.folder / path)
        return text is not None and all(word.lower() in text.lower() for word in words)

    return check


def json_holds(path: str, value: Any, *, typed: bool = True) -> Check:
    """Check that a file is JSON of this value. Untyped, 3 equals "3", as in a table of texts."""
    wanted = _form(value, typed)

    def check(finished: Finished) -> bool:
        try:
            content = _form(json.loads(read_text(finished.folder / path) or ""), typed)
        except (ValueError, RecursionError):
            return False
        return bool(content == wanted)

    return check


def is_gone(path: str) -> Check:
    return lambda finished: not (finished.folder / path).exists()


def keeps(files: Mapping[str, str | bytes]) -> Check:
    """Check that these files are unchanged; databases by their content."""

    def check(finished: Finished) -> bool:
        for path, before in files.items():
            if isinstance(before, bytes):
                if _contents(finished.folder / path) != _contents(before):
                    return False
            elif read_text(finished.folder / path) != before:
                return False
        return True

    return check


def table_holds(database: str, table: str, rows: Rows, *, alone: bool = True) -> Check:
    """Check that a table has these rows in any order; if alone, that it is the only one."""

    def check(finished: Finished) -> bool:
        tables = _contents(finished.folder / database)
        return tables is not None and tables.get(table) == _sorted(rows) and (len(tables) == 1 or not alone)

    return check


def table_has_columns(database: str, table: str, columns: Iterable[str]) -> Check:
    """Check that the table exists with exactly these columns."""
    wanted = sorted(columns)

    def check(finished: Finished) -> bool:
        path = finished.folder / database
        if not path.is_file():
            return False
        try:
            with closing(_opened(path)) as connection:
                names = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        except sqlite3.Error:
            return False
        return sorted(name for (name,) in names) == wanted

    return check


def build_database(table: str, columns: Mapping[str, str], rows: Rows) -> bytes:
    """Return a database file with one table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        definitions = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({definitions})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        connection.commit()
        return connection.serialize()


def read_text(path: Path) -> str | None:
    """Return a file's text, or None if there is no file to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None  # a pipe would block
    except OSError:
        return None


def text_of(answer: str) -> str:
    """Return the text of an answer. An answer that is a tool's result stands for words: then the values in it."""
    try:
        value = json.loads(answer)
    except (ValueError, RecursionError):
        return answer
    return "\n".join(_leaves(value)) if isinstance(value, dict | list) else answer


def _leaves(value: Any) -> Iterable[str]:
    match value:
        case dict():
            for name, inner in value.items():
                if name not in _ABOUT_THE_CALL:
                    yield from _leaves(inner)
        case list():
            for inner in value:
                yield from _leaves(inner)
        case None | bool():
            return
        case _:
            yield str(value)


def _has(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text, re.IGNORECASE) is not None


def _form(value: Any, typed: bool) -> Any:
    """Return a value in the form it is compared in: true is not 1, and untyped 3 is "3"."""
    match value:
        case dict():
            return {str(name): _form(inner, typed) for name, inner in value.items()}
        case list():
            return [_form(inner, typed) for inner in value]
        case bool() | None:
            return value, "flag"
        case int() | float() if typed:
            return value
        case _:
            return str(value)


def _contents(database: Path | bytes) -> dict[str, Rows] | None:
    """Return all tables with their rows, or None if it is no database."""
    if isinstance(database, Path) and not database.is_file():
        return None
    try:
        with closing(_opened(database)) as connection:
            names = _take(connection, "SELECT name FROM sqlite_master WHERE type = 'table'", _MOST_TABLES)
            quoted = {name: name.replace('"', '""') for (name,) in names}
            return {
                name: _sorted(_take(connection, f'SELECT * FROM "{quote}"', _MOST_ROWS))
                for name, quote in quoted.items()
            }
    except sqlite3.Error:
        return None


def _take(connection: sqlite3.Connection, query: str, most: int) -> Rows:
    """Return the rows of a query; fail at more than any task has."""
    rows: Rows = []
    size = 0
    for row in connection.execute(query):
        rows.append(row)
        size += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if len(rows) > most or size > _MOST_BYTES:
            raise sqlite3.DataError("more than any task has")
    return rows


def _opened(database: Path | bytes) -> sqlite3.Connection:
    if isinstance(database, Path):
        connection = sqlite3.connect(f"{database.resolve().as_uri()}?mode=ro", uri=True)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)  # a model made it; a column may compute anything
        ends = time.monotonic() + _MOST_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
        return connection
    connection = sqlite3.connect(":memory:")
    connection.deserialize(database)
    return connection


def _sorted(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return sorted(map(tuple, rows), key=repr)
