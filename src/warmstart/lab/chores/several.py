"""Chores that take two or three calls: who stops after the first call has not done them."""

from __future__ import annotations

from warmstart.lab.chores.checks import all_of, file_holds, is_gone, keeps, says_number
from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.family import Family, Instance, read_file, terminal, write_file


def _lines(*lines: str) -> str:
    return "".join(f"{line}\n" for line in lines)


def _move_and_note(draw: Draw) -> Instance:
    """Two files change, and a folder is made: three calls."""
    name, journal = draw.some("text", 2)
    file, journal, folder = f"{name}.txt", f"{journal}.txt", draw.one("folder")
    before = draw.some("person", 2)
    content = _lines(*draw.some("thing", 3))
    return Instance(
        slots={"file": file, "folder": folder, "journal": journal},
        files={file: content, journal: _lines(*before)},
        ways=(
            (
                terminal(f"mkdir {folder}"),
                terminal(f"mv {file} {folder}/"),
                terminal(f"echo {file} >> {journal}"),
            ),
        ),
        check=all_of(
            file_holds(f"{folder}/{file}", content.splitlines()), is_gone(file), file_holds(journal, [*before, file])
        ),
    )


def _copy_and_count(draw: Draw) -> Instance:
    """The answer comes from the second call."""
    name, other = draw.some("text", 2)
    file, copy = f"{name}.txt", f"{other}.txt"
    word, another = draw.some("event", 2)
    count = draw.number(4, 12)
    rest = [f"{another} from {person}" for person in draw.some("person", 3)]
    hits = [f"{word} from {person}" for person in draw.some("person", count)]
    files = {file: _lines(*draw.mix(hits + rest))}
    return Instance(
        slots={"file": file, "copy": copy, "word": word},
        files=files,
        ways=((terminal(f"cp {file} {copy}"), terminal(f"grep -c {word} {copy}")),),
        check=all_of(file_holds(copy, files[file].splitlines()), says_number(count), keeps(files)),
    )


def _read_and_pass_on(draw: Draw) -> Instance:
    """The value of the second call stands in the result of the first."""
    name, other = draw.some("text", 2)
    file, target, thing = f"{name}.txt", f"{other}.txt", draw.one("thing")
    files = {file: _lines(thing)}
    return Instance(
        slots={"file": file, "target": target},
        files=files,
        ways=((read_file(file), write_file(target, f"order {thing}\n")),),
        check=all_of(file_holds(target, [f"order {thing}"]), keeps(files)),
    )


SEVERAL = (
    Family(
        name="move_and_note",
        make=_move_and_note,
        phrasings=(
            "Make the folder {folder}, move {file} into it, and append the line {file} to {journal}.",
            "Create a folder {folder}, put {file} there, then add the line {file} at the end of {journal}.",
            "Move {file} into a new folder {folder} and append its name {file} to {journal}.",
        ),
        rewordings=(
            "Please move {file} to a folder {folder} that does not exist yet, and note {file} at the end of {journal}.",
            "{file} belongs in a new folder {folder}. Write {file} as the last line of {journal} too.",
        ),
    ),
    Family(
        name="copy_and_count",
        make=_copy_and_count,
        phrasings=(
            "Copy {file} to {copy}, then count the lines with {word} in {copy}.",
            "Make a copy of {file} named {copy} and tell me how many lines of it contain {word}.",
            "Copy {file} to {copy}. How many lines of {copy} contain {word}?",
        ),
        rewordings=(
            "I need {copy} as a copy of {file}, and the number of {word} lines in it.",
            "Duplicate {file} as {copy}; how often does {word} show up there?",
        ),
    ),
    Family(
        name="read_and_pass_on",
        make=_read_and_pass_on,
        phrasings=(
            "Read {file} and write to {target} one line: order and the thing that {file} names.",
            "Look into {file}, then write the line order THING to {target}, with the thing from {file}.",
            "Read what {file} names and write order followed by it to {target}.",
        ),
        rewordings=(
            "{file} names a thing. Put one line into {target}: order, a blank, and that thing.",
            "Write an order for the thing in {file} to {target}, as order THING.",
        ),
    ),
)
