"""Held-out families: other work with the same tools, for the arms whose examples do not fit."""

from __future__ import annotations

from warmstart.lab.chores.checks import (
    Rows,
    all_of,
    build_database,
    file_holds,
    file_mentions,
    keeps,
    says_number,
    says_only,
    table_has_columns,
    table_holds,
)
from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.family import (
    Family,
    Instance,
    execute_code,
    read_file,
    search_files,
    sqlite_query,
    terminal,
    write_file,
)


def _capitals(draw: Draw) -> Instance:
    name, target = draw.some("text", 2)
    file, target = f"{name}.md", f"{target}.md"
    lines = draw.some("thing", 3)
    files = {file: "".join(f"{line}\n" for line in lines)}
    return Instance(
        slots={"file": file, "target": target},
        files=files,
        ways=((terminal(f"tr a-z A-Z < {file} > {target}"),), (terminal(f"cat {file} | tr a-z A-Z > {target}"),)),
        check=all_of(file_holds(target, [line.upper() for line in lines]), keeps(files)),
    )


def _birthday_card(draw: Draw) -> Instance:
    person, file = draw.one("person"), f"{draw.one('place').lower()}.md"
    return Instance(
        slots={"person": person, "file": file},
        files={},
        ways=(
            (write_file(file, f"Happy birthday, {person}!\n"),),
            (write_file(file, f"Dear {person},\nhappy birthday to you!\n"),),
        ),
        check=file_mentions(file, "happy birthday", person),
    )


def _power(draw: Draw) -> Instance:
    base, exponent = draw.number(4, 14), draw.number(2, 7)
    return Instance(
        slots={"base": str(base), "exponent": str(exponent)},
        files={},
        ways=((execute_code(f"print({base} ** {exponent})"),), (execute_code(f"print(pow({base}, {exponent}))"),)),
        check=says_number(base**exponent),
    )


def _create_table(draw: Draw) -> Instance:
    database, there, table = f"{draw.one('database')}.db", draw.one("table"), draw.one("table")
    first, second = draw.some("column", 2)
    rows: Rows = [(draw.one("person"),)]
    files = {database: build_database(there, {"name": "TEXT"}, rows)}
    return Instance(
        slots={"database": database, "table": table, "first": first, "second": second},
        files=files,
        ways=(
            (sqlite_query(database, f"CREATE TABLE {table} ({first} TEXT, {second} TEXT)"),),
            (sqlite_query(database, f"CREATE TABLE {table} ({first} INTEGER, {second} INTEGER)"),),
        ),
        check=all_of(
            table_has_columns(database, table, [first, second]), table_holds(database, there, rows, alone=False)
        ),
    )


def _find_function(draw: Draw) -> Instance:
    names, modules = draw.some("mode", 2), draw.some("log", 2)
    files = {
        f"src/{module}.py": f"def {name}_start():\n    return True\n"
        for name, module in zip(names, modules, strict=True)
    }
    wanted = draw.between(0, 1)
    function = f"{names[wanted]}_start"
    return Instance(
        slots={"function": function},
        files=files,
        ways=((search_files(f"def {function}", path="src"),), (search_files(f"def {function}"),)),
        check=all_of(says_only([f"{modules[wanted]}.py"], [f"{module}.py" for module in modules]), keeps(files)),
    )


def _license(draw: Draw) -> Instance:
    project, (holder, other) = draw.one("database"), draw.some("person", 2)
    files = {
        f"{project}/LICENSE.md": f"Free for all. Owner: {holder}\n",
        f"{project}/AUTHORS.md": f"Written by {other}\n",
    }
    return Instance(
        slots={"project": project},
        files=files,
        ways=((read_file(f"{project}/LICENSE.md"),),),
        check=all_of(says_only([holder], [other]), keeps(files)),
    )


OTHER_WORK = (
    Family(
        name="capitals",
        make=_capitals,
        held_out=True,
        phrasings=(
            "Turn {file} into capital letters as {target}.",
            "Make {target} the upper case of {file}.",
            "Change all letters of {file} to upper case, result {target}.",
        ),
        rewordings=("Let {target} shout what {file} whispers.", "{target} should be {file} in capitals."),
    ),
    Family(
        name="birthday_card",
        make=_birthday_card,
        held_out=True,
        phrasings=(
            "Write a birthday card for {person} in {file}.",
            "Congratulate {person} on the birthday in {file}.",
            "Wish {person} a happy birthday in {file}.",
        ),
        rewordings=(
            "It is {person}'s birthday, say so in {file}.",
            "A birthday greeting to {person}, please, as {file}.",
        ),
    ),
    Family(
        name="power",
        make=_power,
        held_out=True,
        phrasings=(
            "Calculate {base} to the power of {exponent}.",
            "What is {base} raised to {exponent}?",
            "Multiply {base} by itself until it is the power {exponent}.",
        ),
        rewordings=("Raise {base} to the exponent {exponent}.", "{base} with exponent {exponent} is what?"),
    ),
    Family(
        name="create_table",
        make=_create_table,
        held_out=True,
        phrasings=(
            "Create an empty table {table} in {database} with the fields {first} and {second}.",
            "Extend the schema of {database}: a table {table} with {first} and {second}.",
            "Define a table {table} ({first}, {second}) in {database}.",
        ),
        rewordings=(
            "The schema of {database} needs {table} with the fields {first} and {second}.",
            "Design {table} with fields {first}, {second} inside {database}.",
        ),
    ),
    Family(
        name="find_function",
        make=_find_function,
        held_out=True,
        phrasings=(
            "Where is the function {function} defined?",
            "Find the definition of {function} in the source code.",
            "Which module defines {function}?",
        ),
        rewordings=("Locate the source of {function}.", "I look for the code of the function {function}."),
    ),
    Family(
        name="license",
        make=_license,
        held_out=True,
        phrasings=(
            "Who owns the license of the {project} software?",
            "Under which license is {project} and whose is it?",
            "Tell me the owner of the {project} license.",
        ),
        rewordings=("May I use the {project} software, and who owns it?", "Whose software is {project}?"),
    ),
)
