"""Chores for a few lines of Python: an average, a conversion."""

from __future__ import annotations

from warmstart.lab.chores.checks import all_of, json_holds, keeps, says_number
from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.family import Family, Instance, execute_code


def _average(draw: Draw) -> Instance:
    """Make a file whose mean is none of its numbers, so that no line of it is the answer."""
    file, mean = f"{draw.one('figures')}.txt", draw.number(20, 60)
    near, far = draw.between(1, 3) * 2, draw.between(4, 8) * 2
    numbers = draw.mix([mean - far, mean - near, mean + near, mean + far])
    files = {file: "".join(f"{number}\n" for number in numbers)}
    opened = f'numbers = [int(line) for line in open("{file}")]\n'
    return Instance(
        slots={"file": file},
        files=files,
        ways=(
            (execute_code(f"{opened}print(sum(numbers) / len(numbers))"),),
            (execute_code(f"from statistics import mean\n{opened}print(mean(numbers))"),),
        ),
        check=all_of(says_number(mean), keeps(files)),
    )


def _csv_to_json(draw: Draw) -> Instance:
    name, column = draw.one("table"), draw.one("column")
    rows = list(zip(draw.some("thing", 3), draw.numbers(3, 2, 60), strict=True))
    files = {f"{name}.csv": f"name,{column}\n" + "".join(f"{thing},{number}\n" for thing, number in rows)}
    read = f'import csv, json\nrows = list(csv.DictReader(open("{name}.csv")))\n'
    return Instance(
        slots={"file": f"{name}.csv", "target": f"{name}.json"},
        files=files,
        ways=(
            (execute_code(f'{read}json.dump(rows, open("{name}.json", "w"))'),),
            (execute_code(f'{read}open("{name}.json", "w").write(json.dumps(rows))'),),
        ),
        check=all_of(
            json_holds(f"{name}.json", [{"name": thing, column: number} for thing, number in rows], typed=False),
            keeps(files),
        ),
    )


PROGRAMS = (
    Family(
        name="average",
        make=_average,
        phrasings=(
            "What is the average of the numbers in {file}?",
            "Compute the mean of the numbers in {file}.",
            "Use Python to average the numbers in {file}.",
        ),
        rewordings=(
            "{file} has one number a line. What is their average?",
            "Work out the mean of all numbers in {file}.",
            "Give me the typical value in {file}: the total divided by how many there are.",
        ),
    ),
    Family(
        name="csv_to_json",
        make=_csv_to_json,
        phrasings=(
            "Convert {file} to JSON and save it as {target}.",
            "Turn {file} into a JSON list in {target}.",
            "Use Python to convert {file} to {target}.",
        ),
        rewordings=(
            "I need the rows of {file} as JSON objects in {target}.",
            "Export {file} as {target}, one object a row.",
            "Make {target} from {file}: a list with a JSON object for each row.",
        ),
    ),
)
