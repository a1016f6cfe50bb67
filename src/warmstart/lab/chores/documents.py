"""Chores with whole files: write one, find one, show one."""

from __future__ import annotations

import json

from warmstart.lab.chores.checks import all_of, json_holds, keeps, says_only
from warmstart.lab.chores.draw import Draw
from warmstart.lab.chores.family import Family, Instance, read_file, search_files, terminal, write_file


def _write_settings(draw: Draw) -> Instance:
    file, key, mode = f"{draw.one('log')}.json", draw.one("key"), draw.one("mode")
    number = draw.number(10, 98)
    settings = {key: number, "mode": mode}
    return Instance(
        slots={"file": file, "key": key, "number": str(number), "mode": mode},
        files={},
        ways=((write_file(file, json.dumps(settings)),), (write_file(file, json.dumps(settings) + "\n"),)),
        check=json_holds(file, settings),
    )


def _letters(draw: Draw, count: int) -> dict[str, str]:
    """Return short files that share no line and no thing."""
    names, things = draw.some("text", count), draw.some("thing", 2 * count)
    people = draw.some("person", count)
    return {
        f"{name}.txt": f"{person} likes {things[2 * at]}.\nWe have no {things[2 * at + 1]}.\n"
        for at, (name, person) in enumerate(zip(names, people, strict=True))
    }


def _find_file(draw: Draw) -> Instance:
    files = _letters(draw, 3)
    wanted = list(files)[draw.between(0, 2)]
    word = files[wanted].split(".")[draw.between(0, 1)].split()[-1]
    return Instance(
        slots={"word": word},
        files=files,
        ways=((search_files(word),), (search_files(word, path="."),)),
        check=all_of(says_only([wanted], files), keeps(files)),
    )


def _show_file(draw: Draw) -> Instance:
    files = _letters(draw, 3)
    wanted = list(files)[draw.between(0, 2)]
    others = [line for name, text in files.items() if name != wanted for line in text.splitlines()]
    return Instance(
        slots={"file": wanted},
        files=files,
        ways=((read_file(wanted),), (read_file(wanted),), (terminal(f"cat {wanted}"),)),
        check=all_of(says_only(files[wanted].splitlines(), others), keeps(files)),
    )


DOCUMENTS = (
    Family(
        name="write_settings",
        make=_write_settings,
        phrasings=(
            "Write {file} with {key} {number} and mode {mode}.",
            "Create a JSON file {file} with {key} {number} and mode {mode}.",
            "Save the settings {key} {number} and mode {mode} as JSON in {file}.",
        ),
        rewordings=(
            "I need a JSON config {file}: {key} is {number}, mode is {mode}.",
            "Make {file}, a JSON object where {key} equals {number} and mode equals {mode}.",
            "New config file {file} please, {key} {number}, mode {mode}.",
        ),
    ),
    Family(
        name="find_file",
        make=_find_file,
        phrasings=(
            "Which file contains the word {word}?",
            "Find the file that mentions {word}.",
            "In which file is the word {word}?",
        ),
        rewordings=(
            "Some file mentions {word}. Which one?",
            "Search my files for the word {word} and tell me the name.",
            "Where did I write about {word}?",
        ),
    ),
    Family(
        name="show_file",
        make=_show_file,
        phrasings=(
            "Show me what is in {file}.",
            "Read {file} to me.",
            "What does {file} say?",
        ),
        rewordings=(
            "Please read {file} and show me the text.",
            "I forgot what {file} says. Show it.",
            "Print the contents of {file}.",
        ),
    ),
)
