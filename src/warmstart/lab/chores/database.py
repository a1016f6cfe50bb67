"""Chores with a SQLite database: count, add up, filter, insert, change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warmstart.lab.chores.checks import Rows, all_of, build_database, keeps, says_number, says_only, table_holds
from warmstart.lab.chores.draw import Draw, Split
from warmstart.lab.chores.family import Family, Instance, sqlite_query

_PLACES: Mapping[Split, tuple[str, ...]] = {"train": ("city", "home"), "test": ("town", "place")}


def _count_rows(draw: Draw) -> Instance:
    database, table, column = f"{draw.one('database')}.db", draw.one("table"), draw.one("column")
    count = draw.number(12, 41)
    rows: Rows = [(thing, draw.number(10, 60)) for thing in draw.some("thing", count)]
    files = {database: build_database(table, {"name": "TEXT", column: "INTEGER"}, rows)}
    return Instance(
        slots={"database": database, "table": table},
        files=files,
        ways=(
            (sqlite_query(database, f"SELECT COUNT(*) FROM {table}"),),
            (sqlite_query(database, f"SELECT COUNT(name) FROM {table}"),),
        ),
        check=all_of(says_number(count), keeps(files)),
    )


def _sum_column(draw: Draw) -> Instance:
    database, table, column = f"{draw.one('database')}.db", draw.one("table"), draw.one("column")
    rows: Rows = list(zip(draw.some("thing", 3), draw.numbers(3, 2, 60), strict=True))
    files = {database: build_database(table, {"name": "TEXT", column: "INTEGER"}, rows)}
    return Instance(
        slots={"database": database, "table": table, "column": column},
        files=files,
        ways=(
            (sqlite_query(database, f"SELECT SUM({column}) FROM {table}"),),
            (sqlite_query(database, f"SELECT SUM({column}) AS sum FROM {table}"),),
        ),
        check=all_of(says_number(sum(number for _thing, number in rows)), keeps(files)),
    )


def _filter_rows(draw: Draw) -> Instance:
    database, table = f"{draw.one('database')}.db", draw.one("people")
    column = _PLACES[draw.split][draw.between(0, 1)]
    wanted, other = draw.some("place", 2)
    people = draw.some("person", 5)
    rows: Rows = draw.mix([(person, wanted if at < 2 else other) for at, person in enumerate(people)])
    files = {database: build_database(table, {"name": "TEXT", column: "TEXT"}, rows)}
    return Instance(
        slots={"database": database, "table": table, "column": column, "value": wanted},
        files=files,
        ways=(
            (sqlite_query(database, f"SELECT name FROM {table} WHERE {column} = '{wanted}'"),),
            (sqlite_query(database, f"SELECT name FROM {table} WHERE {column} = '{wanted}' ORDER BY name"),),
        ),
        check=all_of(says_only(people[:2], people), keeps(files)),
    )


def _priced(draw: Draw, count: int) -> tuple[str, str, str, Rows]:
    """Return the name of a database, its table, a column of numbers, and rows."""
    rows: Rows = list(zip(draw.some("thing", count), draw.numbers(count, 10, 60), strict=True))
    return f"{draw.one('database')}.db", draw.one("table"), draw.one("column"), rows


def _insert_and_count(draw: Draw) -> Instance:
    count = draw.number(5, 11)
    database, table, column, rows = _priced(draw, count)
    new: tuple[Any, ...] = rows[-1]
    insert = f"INSERT INTO {table} (name, {column}) VALUES ('{new[0]}', {new[1]})"
    return Instance(
        slots={"database": database, "table": table, "column": column, "thing": new[0], "number": str(new[1])},
        files={database: build_database(table, {"name": "TEXT", column: "INTEGER"}, rows[:-1])},
        ways=(
            (sqlite_query(database, insert), sqlite_query(database, f"SELECT COUNT(*) FROM {table}")),
            (
                sqlite_query(database, f"INSERT INTO {table} VALUES ('{new[0]}', {new[1]})"),
                sqlite_query(database, f"SELECT COUNT(*) FROM {table}"),
            ),
        ),
        check=all_of(table_holds(database, table, rows), says_number(count)),
    )


def _update_row(draw: Draw) -> Instance:
    database, table, column, rows = _priced(draw, 4)
    thing, number = rows[1][0], rows.pop()[1]
    after = [(name, number if name == thing else before) for name, before in rows]
    return Instance(
        slots={"database": database, "table": table, "column": column, "thing": thing, "number": str(number)},
        files={database: build_database(table, {"name": "TEXT", column: "INTEGER"}, rows)},
        ways=((sqlite_query(database, f"UPDATE {table} SET {column} = {number} WHERE name = '{thing}'"),),),
        check=table_holds(database, table, after),
    )


DATABASE = (
    Family(
        name="count_rows",
        make=_count_rows,
        phrasings=(
            "How many rows are in the table {table} of {database}?",
            "Count the rows of the table {table} in {database}.",
            "How many {table} are in {database}?",
        ),
        rewordings=(
            "Tell me the number of rows in {table}, see {database}.",
            "Please count all {table} in {database}.",
            "How long is the table {table} of {database}?",
        ),
    ),
    Family(
        name="sum_column",
        make=_sum_column,
        phrasings=(
            "What is the sum of {column} in the table {table} of {database}?",
            "Add up the column {column} of the table {table} in {database}.",
            "Sum the {column} of all {table} in {database}.",
        ),
        rewordings=(
            "Give me the sum of {column} over all {table} in {database}.",
            "All {table} in {database} have a {column}. What does it add up to?",
            "What is the overall {column} of {table} in {database}?",
        ),
    ),
    Family(
        name="filter_rows",
        make=_filter_rows,
        phrasings=(
            "Which names in the table {table} of {database} have {column} {value}?",
            "List the names in the table {table} of {database} where {column} is {value}.",
            "Select the names from {table} in {database} with {column} {value}.",
        ),
        rewordings=(
            "Who in the table {table} of {database} has {column} {value}? I need the names.",
            "Give me all names from {table} in {database} whose {column} is {value}.",
            "Search {database} for {table} that belong to the {column} {value}.",
        ),
    ),
    Family(
        name="insert_and_count",
        make=_insert_and_count,
        phrasings=(
            "Insert {thing} with {column} {number} into the table {table} of {database}, then count its rows.",
            "Add a row to {table} in {database}: {thing}, {column} {number}. How many rows are there then?",
            "Insert {thing} with {column} {number} into {table} in {database} and count the {table}.",
        ),
        rewordings=(
            "Please insert {thing} with {column} {number} into {table} of {database} and tell me the row count.",
            "{table} in {database} needs a new row: {thing}, {column} {number}. Count the rows after that.",
            "Store {thing} with {column} {number} in {table} of {database}. How big is it now?",
        ),
    ),
    Family(
        name="update_row",
        make=_update_row,
        phrasings=(
            "Set the {column} of {thing} to {number} in the table {table} of {database}.",
            "Update {table} in {database}: {thing} has {column} {number}.",
            "Change the {column} of {thing} to {number} in {table} of {database}.",
        ),
        rewordings=(
            "Please change {table} in {database}: the {column} of {thing} should be {number}.",
            "In {database}, set {column} to {number} for {thing} in {table}.",
            "The {column} of {thing} is wrong in {database}. It should be {number} in {table}.",
        ),
    ),
)
