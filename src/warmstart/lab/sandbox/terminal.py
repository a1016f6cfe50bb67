"""Run a command line as a shell would, as far as the fence lets it through.

Each pipe is checked right before it runs, because the pipes before it may have made or moved the files it names. Standard
error follows the output of its pipe, so that a run repeats to the byte.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import structs

from warmstart.lab.sandbox.fence import (
    Command,
    CommandRefused,
    Pipeline,
    Redirect,
    Word,
    expand_word,
    read_line,
    resolve_inside,
)
from warmstart.lab.sandbox.processes import (
    FOLDER_BYTES,
    MOST_OUTPUT,
    PROGRAM_PATH,
    Ended,
    PipeProcess,
    Sandbox,
    run_program,
)
from warmstart.lab.sandbox.programs import check_arguments, check_offered

_MOST_PATTERNS, _MOST_NAMES = 100, 2_000  # per command
_NOT_A_FAILURE = {  # programs whose exit code 1 is an answer
    **dict.fromkeys(("grep", "egrep", "fgrep"), "no match, not an error"),
    **dict.fromkeys(("diff", "cmp"), "the files differ, not an error"),
}


def run_command_line(line: str, sandbox: Sandbox, seconds: float) -> dict[str, Any]:
    """Run a command line in the sandbox's folder, `seconds` at most, and report its output and exit code."""
    output, errors, code = "", "", 0
    here, deadline = sandbox.folder, time.monotonic() + seconds
    try:
        pipelines = read_line(line)
        for words in (command.words for pipeline in pipelines for command in pipeline.commands if command.words):
            check_offered(words[0].text)
        for pipeline in pipelines:
            if (pipeline.joined == "&&" and code) or (pipeline.joined == "||" and not code):
                continue
            if [word.text for word in pipeline.commands[0].words[:1]] == ["cd"]:
                here, ended = _change_folder(pipeline, sandbox.folder, here)
            else:
                ended = _run_pipeline(pipeline, sandbox, here, deadline - time.monotonic())
            errors, code = ended.errors, ended.exit_code
            output += ended.output + errors
            if ended.timed_out or ended.was_stopped:
                return {**report_end(ended, seconds), "output": output}
    except CommandRefused as refused:
        return {"output": output, "exit_code": refused.exit_code, "error": str(refused)}
    answer: dict[str, Any] = {"output": output, "exit_code": code}
    last = pipelines[-1].commands[-1].words
    if code == 1 and last and not errors and (meaning := _NOT_A_FAILURE.get(last[0].text)):
        answer["exit_code_meaning"] = meaning
    return answer


def report_end(ended: Ended, seconds: float) -> dict[str, Any]:
    """Return how a run ended, as a tool result."""
    answer: dict[str, Any] = {"output": ended.output + ended.errors, "exit_code": ended.exit_code}
    if ended.timed_out:
        answer["error"] = f"Timed out after {seconds:g} seconds"
    elif ended.flooded:
        answer["error"] = f"Stopped: more than {MOST_OUTPUT} bytes of output"
    elif ended.overfull:
        answer["error"] = f"Stopped: more than {FOLDER_BYTES} bytes in the folder"
    return answer


def _change_folder(pipeline: Pipeline, folder: Path, here: Path) -> tuple[Path, Ended]:
    words = _expand_words(pipeline.commands[0].words[1:], folder, here)
    if len(pipeline.commands) > 1 or len(words) > 1 or pipeline.commands[0].redirects:
        raise CommandRefused("cd: takes one folder and stands alone")
    place = resolve_inside(folder, here, words[0]) if words else folder
    if place.is_dir():
        return place, Ended((0,), "", "")
    return here, Ended((1,), "", f"cd: {words[0][:80]}: No such file or directory\n")


def _run_pipeline(pipeline: Pipeline, sandbox: Sandbox, here: Path, seconds: float) -> Ended:
    folder = sandbox.folder
    stages: list[PipeProcess] = []
    last = 0
    for command in pipeline.commands:
        last = len(stages)  # the stage whose exit code counts: that of the last command, not of a sort behind it
        argv = _expand(command, folder, here)
        if _find_program(argv[0]) is None:
            return Ended((127,), "", f"{argv[0]}: command not found\n")
        redirects = [_place_redirect(redirect, folder, here) for redirect in command.redirects]
        stages += _make_stages(argv, redirects)
    ended = sandbox.run(stages, here=here, seconds=seconds)
    return structs.replace(ended, exit_codes=ended.exit_codes[last : last + 1])


def _expand(command: Command, folder: Path, here: Path) -> list[str]:
    return check_arguments(_expand_words(command.words, folder, here) or ["true"], folder, here)


def _expand_words(words: Sequence[Word], folder: Path, here: Path) -> list[str]:
    """Return all names that the words of a command stand for. Every * reads the folder again, so both have a limit."""
    if sum(word.pattern is not None for word in words) > _MOST_PATTERNS:
        raise CommandRefused(f"more than {_MOST_PATTERNS} words with * ? or [ in one command")
    names: list[str] = []
    for word in words:
        names += expand_word(word, folder, here)
        if len(names) > _MOST_NAMES:
            raise CommandRefused(f"more than {_MOST_NAMES} words in one command")
    return names


def _make_stages(argv: list[str], redirects: list[tuple[int, str | int, bool]]) -> list[PipeProcess]:
    """Return the command's stages: itself, and a `sort` behind `find`, because disks keep no order."""
    run = [_find_program(argv[0]) or argv[0], *argv[1:]]
    sort = _find_program("sort") if argv[0] == "find" else None
    if sort is None:
        return [run_program(run, redirects)]
    return [
        run_program(run, [each for each in redirects if each[0] != 1]),
        run_program([sort, "-z"] if "-print0" in argv else [sort], [each for each in redirects if each[0] == 1]),
    ]


def _place_redirect(redirect: Redirect, folder: Path, here: Path) -> tuple[int, str | int, bool]:
    if isinstance(redirect.target, int):
        return redirect.stream, redirect.target, False
    names = expand_word(redirect.target, folder, here)
    if len(names) != 1:
        raise CommandRefused("a redirect takes one file", 1)
    if names[0] != "/dev/null":
        resolve_inside(folder, here, names[0])
    return redirect.stream, names[0], redirect.append


def _find_program(name: str) -> str | None:
    return next((path for place in PROGRAM_PATH if os.access(path := f"{place}/{name}", os.X_OK)), None)
