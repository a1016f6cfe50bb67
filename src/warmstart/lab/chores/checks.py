"""Checkers: what a folder must hold and an answer must say. None of them asks how it came about.

An answer is right where it says what was asked and nothing that could as well have been meant: all numbers in it are the
one number, of all the names that were there it has the wanted ones. So neither counting to a hundred nor printing the
whole file is an answer.
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
_MOST_SECONDS = 1.0  # that reading a database may take
_ABOUT_THE_CALL = frozenset(("exit_code", "bytes_written", "columns", "rows_changed", "rows_cut"))  # no answers


def all_of(*checks: Check) -> Check:
    return lambda finished: all(check(finished) for check in checks)


def says_number(wanted: float) -> Check:
    """Whether the answer has this number, and no other."""

    def check(finished: Finished) -> bool:
        said = {float(number) for number in _NUMBER.findall(text_of(finished.answer))}
        return said == {float(wanted)}

    return check


def says_only(wanted: Collection[str], others: Iterable[str]) -> Check:
    """Whether the answer has all these names, and none of the others that could have been meant."""
    rivals = set(others) - set(wanted)

    def check(finished: Finished) -> bool:
        answer = text_of(finished.answer)
        return all(_says(answer, name) for name in wanted) and not any(_says(answer, name) for name in rivals)

    return check


def file_holds(path: str, lines: Iterable[str]) -> Check:
    """Whether a file has exactly these lines; the last may end without a newline."""
    wanted = list(lines)

    def check(finished: Finished) -> bool:
        text = read_text(finished.folder / path)
        return text is not None and [line.rstrip() for line in text.rstrip().splitlines()] == wanted

    return check


def file_mentions(path: str, *words: str) -> Check:
    """Whether a file has these words, whatever their case."""

    def check(finished: Finished) -> bool:
        text = read_text(finished.folder / path)
        return text is not None and all(word.lower() in text.lower() for word in words)

    return check


def json_holds(path: str, value: Any, *, typed: bool = True) -> Check:
    """Whether a file is JSON of this value. Not typed: 3 and "3" are one, as in a table of texts."""
    wanted = _form(value, typed)

    def check(finished: Finished) -> bool:
        try:
            found = _form(json.loads(read_text(finished.folder / path) or ""), typed)
        except (ValueError, RecursionError):
            return False
        return bool(found == wanted)

    return check


def is_gone(path: str) -> Check:
    return lambda finished: not (finished.folder / path).exists()


def keeps(files: Mapping[str, str | bytes]) -> Check:
    """Whether these files are as they were; databases by what is in them."""

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
    """Whether a table has these rows in any order; if alone, it is the only one."""

    def check(finished: Finished) -> bool:
        found = _contents(finished.folder / database)
        return found is not None and found.get(table) == _sorted(rows) and (len(found) == 1 or not alone)

    return check


def table_has_columns(database: str, table: str, columns: Iterable[str]) -> Check:
    """Whether there is such a table with exactly these columns."""
    wanted = sorted(columns)

    def check(finished: Finished) -> bool:
        path = finished.folder / database
        if not path.is_file():
            return False
        try:
            with closing(_opened(path)) as connection:
                found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall()
        except sqlite3.Error:
            return False
        return sorted(name for (name,) in found) == wanted

    return check


def build_database(table: str, columns: Mapping[str, str], rows: Rows) -> bytes:
    """A database file with one table."""
    with closing(sqlite3.connect(":memory:")) as connection:
        told = ", ".join(f"{name} {kind}" for name, kind in columns.items())
        connection.execute(f"CREATE TABLE {table} ({told})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} VALUES ({places})", rows)
        connection.commit()
        return connection.serialize()


def read_text(path: Path) -> str | None:
    """What a file says, or None where there is none to read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None  # a pipe would block
    except OSError:
        return None


def text_of(answer: str) -> str:
    """What is said in an answer. A tool's result stands for words where the model said none: then what it holds."""
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


def _says(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w]){re.escape(name)}(?![\w])", text, re.IGNORECASE) is not None


def _form(value: Any, typed: bool) -> Any:
    """A value as it is compared: true is not 1, and where texts will do, 3 is "3"."""
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
    """All tables with their rows, or None where it is no database."""
    if isinstance(database, Path) and not database.is_file():
        return None
    try:
        with closing(_opened(database)) as connection:
            names = _take(connection, "SELECT name FROM sqlite_master WHERE type = 'table'", _MOST_TABLES)
            quoted = {name: name.replace('"', '""') for (name,) in names}
            return {
                name: _sorted(_take(connection, f'SELECT * FROM "{said}"', _MOST_ROWS)) for name, said in quoted.items()
            }
    except sqlite3.Error:
        return None


def _take(connection: sqlite3.Connection, query: str, most: int) -> Rows:
    """What a query gives. Too much of it is no answer to any task."""
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
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)  # a model made it: a column may compute anything
        ends = time.monotonic() + _MOST_SECONDS
        connection.set_progress_handler(lambda: time.monotonic() > ends, 10_000)
        return connection
    connection = sqlite3.connect(":memory:")
    connection.deserialize(database)
    return connection


def _sorted(rows: Iterable[tuple[Any, ...]]) -> Rows:
    return sorted(map(tuple, rows), key=repr)
