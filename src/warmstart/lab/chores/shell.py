"""Chores of the terminal: count, copy, move, append, sort."""

from __future__ import annotations

from warmstart.lab.chores.checks import all_of, file_holds, is_gone, keeps, says_number
from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.family import Family, Instance, terminal


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _count_lines(draw: Draw) -> Instance:
    file, word = f"{draw.one('log')}.log", draw.one("event")
    count = draw.number(4, 19)
    others = draw.some("event", 2)
    hits = [f"{word} from {person}" for person in draw.some("person", count)]
    rest = [f"{others[at % 2]} from {person}" for at, person in enumerate(draw.some("person", count + 1))]
    files = {file: _lines(*draw.mix(hits + rest))}
    return Instance(
        slots={"file": file, "word": word},
        files=files,
        ways=((terminal(f"grep -c {word} {file}"),), (terminal(f"grep {word} {file} | wc -l"),)),
        check=all_of(says_number(count), keeps(files)),
    )


def _copy_file(draw: Draw) -> Instance:
    name, other = draw.some("text", 2)
    file, folder = f"{name}.txt", draw.one("folder")
    files = {file: _lines(*draw.some("thing", 3)), f"{folder}/{other}.txt": _lines(*draw.some("person", 2))}
    return Instance(
        slots={"file": file, "folder": folder},
        files=files,
        ways=((terminal(f"cp {file} {folder}/"),), (terminal(f"cp {file} {folder}/{file}"),)),
        check=all_of(file_holds(f"{folder}/{file}", files[file].splitlines()), keeps(files)),
    )


def _move_to_new_folder(draw: Draw) -> Instance:
    name, other = draw.some("text", 2)
    file, folder = f"{name}.txt", draw.one("folder")
    kept = {f"{other}.txt": _lines(*draw.some("person", 2))}
    files = {file: _lines(*draw.some("thing", 3)), **kept}
    return Instance(
        slots={"file": file, "folder": folder},
        files=files,
        ways=(
            (terminal(f"mkdir {folder}"), terminal(f"mv {file} {folder}/")),
            (terminal(f"mkdir {folder} && mv {file} {folder}/"),),
        ),
        check=all_of(file_holds(f"{folder}/{file}", files[file].splitlines()), is_gone(file), keeps(kept)),
    )


def _append_line(draw: Draw) -> Instance:
    file, thing = f"{draw.one('text')}.txt", draw.one("thing")
    before = draw.some("thing", 3)
    return Instance(
        slots={"file": file, "thing": thing},
        files={file: _lines(*before)},
        ways=((terminal(f"echo {thing} >> {file}"),), (terminal(f'echo "{thing}" >> {file}'),)),
        check=file_holds(file, [*before, thing]),
    )


def _sort_lines(draw: Draw) -> Instance:
    name, target = draw.some("text", 2)
    file, target = f"{name}.txt", f"{target}.txt"
    lines = draw.some("thing", 4)
    if lines == sorted(lines):
        lines.reverse()
    files = {file: _lines(*lines)}
    return Instance(
        slots={"file": file, "target": target},
        files=files,
        ways=((terminal(f"sort {file} > {target}"),), (terminal(f"cat {file} | sort > {target}"),)),
        check=all_of(file_holds(target, sorted(lines)), keeps(files)),
    )


SHELL = (
    Family(
        name="count_lines",
        make=_count_lines,
        phrasings=(
            "How many lines of {file} contain {word}?",
            "Count the lines with {word} in {file}.",
            "How often does {word} appear in {file}?",
        ),
        rewordings=(
            "Please count how many {word} lines there are in {file}.",
            "Give me the number of lines in {file} that contain {word}.",
            "Tell me how many times {word} shows up in {file}.",
        ),
    ),
    Family(
        name="copy_file",
        make=_copy_file,
        phrasings=(
            "Copy {file} into the folder {folder}.",
            "Please make a copy of {file} in {folder}.",
            "Put a copy of {file} in the {folder} folder.",
        ),
        rewordings=(
            "I want a copy of {file} in the folder {folder} too.",
            "Copy the file {file} to {folder} and keep the original.",
            "Back up {file} to {folder}.",
        ),
    ),
    Family(
        name="move_to_new_folder",
        make=_move_to_new_folder,
        phrasings=(
            "Make a new folder {folder} and move {file} into it.",
            "Create the folder {folder}, then move {file} there.",
            "Move {file} into a new folder called {folder}.",
        ),
        rewordings=(
            "{file} should be moved into a new folder named {folder}.",
            "Set up a folder {folder} and move {file} inside, no copy.",
            "We need the directory {folder}, and {file} belongs there, not here.",
        ),
    ),
    Family(
        name="append_line",
        make=_append_line,
        phrasings=(
            "Add {thing} to the end of {file}.",
            "Append the line {thing} to {file}.",
            "Add a line with {thing} to {file}.",
        ),
        rewordings=(
            "Please add {thing} as the last line of {file}.",
            "{file} still lacks {thing}, add it at the end.",
            "Write {thing} below everything else in {file}.",
        ),
    ),
    Family(
        name="sort_lines",
        make=_sort_lines,
        phrasings=(
            "Sort the lines of {file} and save them in {target}.",
            "Sort {file} alphabetically into {target}.",
            "Write the sorted lines of {file} to {target}.",
        ),
        rewordings=(
            "Put the lines of {file} in alphabetical order and save the result as {target}.",
            "I need {file} sorted, write it to {target}.",
            "I want {target} to hold {file} from A to Z.",
        ),
    ),
)
