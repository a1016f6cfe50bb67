"""The commands for which agents wait run without click, and as click would run them."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import click
import pytest

import warmstart
from command_line import run
from places import SRC
from transcripts import CART, teach, work_lines
from warmstart.doors.cli.main import main
from warmstart.doors.cli.quick import COMMANDS, QuickCommand, read_words, run_quickly

LEFT_TO_CLICK = {"--cwd", "--help", "-h"}  # click checks a folder


def find_command(names: tuple[str, ...]) -> click.Command:
    command: click.Command | None = main
    with click.Context(main) as context:
        for name in names:
            assert isinstance(command, click.Group)
            command = command.get_command(context, name)
    assert command is not None
    return command


def describe_option(parameter: click.Parameter) -> tuple[object, ...]:
    kind = parameter.type
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return ("flag", parameter.name)
    if isinstance(kind, click.Choice):
        return ("choice", parameter.name, tuple(kind.choices))
    if isinstance(kind, click.IntRange):
        assert kind.min == 0
        return ("number", parameter.name, kind.max)
    return ("text", parameter.name)


def describe_quick(command: QuickCommand) -> dict[str, tuple[object, ...]]:
    return {
        **{f"--{name}": ("text", name) for name in command.texts},
        **{option: ("flag", field) for option, field in command.flags.items()},
        **{option: ("choice", field, tuple(values)) for option, (field, values) in command.choices.items()},
        **{option: ("number", option.removeprefix("--"), most) for option, most in command.numbers.items()},
    }


@pytest.mark.parametrize("names", COMMANDS)
def test_the_options_are_those_that_click_knows(names):
    known = {
        option: describe_option(parameter)
        for parameter in find_command(names).params
        if isinstance(parameter, click.Option)
        for option in parameter.opts
        if option not in LEFT_TO_CLICK
    }
    assert describe_quick(COMMANDS[names]) == known
    arguments = [parameter.name for parameter in find_command(names).params if isinstance(parameter, click.Argument)]
    assert arguments == ([COMMANDS[names].argument] if COMMANDS[names].argument else [])


@pytest.mark.parametrize("names", COMMANDS)
def test_the_defaults_are_those_of_click(names):
    given = COMMANDS[names].options()
    program = click.Context(main, **main.context_settings)  # click keeps the help option of the first context
    for name, value in find_command(names).make_context("x", [], parent=program).params.items():
        assert getattr(given, name) == value, name


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["-h"],
        ["--unknown"],
        ["--budget", "x"],
        ["--budget", "-1"],
        ["--budget"],
        ["--examples", "51"],
        ["--category", "cooking"],
        ["--session", "-x"],
        ["--js"],
        ["a task", "and another"],
        ["--", "a task"],
        ["--cold=yes"],
        ["-"],
    ],
)
def test_an_unusual_line_goes_to_click(words):
    assert read_words(COMMANDS["provision",], words) is None


def test_the_words_are_read():
    words = ["--session=s=1", "a task", "--json", "--budget", "900", "--type", "code", "--project", "", "--budget=800"]
    assert read_words(COMMANDS["provision",], words) == {
        "session": "s=1",
        "task": "a task",
        "as_json": True,
        "budget": 800,
        "task_type": "code",
        "project": "",
    }
    assert read_words(COMMANDS["notes", "brief"], ["a task"]) is None
    assert not run_quickly(["notes", "list"])


@pytest.mark.parametrize("words", [["provision", "a task", "--json"], ["provision", "a task"]])
def test_both_ways_print_the_same(words, capsys):
    with warmstart.open() as ws:
        assert not ws.sessions()
    assert run_quickly(words)
    quick = capsys.readouterr()
    usual = run(*words)
    assert (quick.out, quick.err) == (usual.stdout, usual.stderr)


@pytest.mark.parametrize(
    ("words", "setting", "status"), [(["notes", "brief", "--project", "nowhere"], "", 1), (["provision"], "much", 2)]
)
def test_both_ways_fail_the_same(words, setting, status, monkeypatch, capsys):
    if setting:
        monkeypatch.setenv("WARMSTART_HOLDOUT", setting)
    with pytest.raises(SystemExit) as ended:
        run_quickly(words)
    usual = run(*words, code=status)
    assert (ended.value.code, capsys.readouterr().err) == (status, usual.stderr)
    assert usual.stderr.startswith("Error: ")


class ClosedOutput(io.StringIO):
    """Standard output whose reader has gone."""

    def flush(self) -> None:
        raise BrokenPipeError


def test_a_reader_that_has_gone_ends_it_silently(monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", ClosedOutput())
    with pytest.raises(SystemExit) as ended:
        run_quickly(["provision", "a task", "--json"])
    assert ended.value.code == 141
    assert not capsys.readouterr().err


UNWANTED = {
    "click",
    "rich",
    "inspect",
    "tomllib",
    "hashlib",
    "re2",
    "hyperscan",
    "subprocess",
    "platform",
    "msgspec.inspect",
    "decimal",
    "uuid",
    "urllib.parse",
}


def list_modules(*words: str) -> set[str]:
    """Run a command in a process of its own and return the modules that it loaded."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "warmstart", *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.split("|")[-1].strip() for line in lines[1:]}


def test_few_modules_are_loaded(tmp_path):
    """The numbers were 37, 120 and 153 when this was written; before, 217 for `provision`. They count, they do not time."""
    with warmstart.open() as ws:
        teach(ws, *(work_lines(f"s{n}", *CART, cwd=str(tmp_path), day=n + 1) for n in range(2)))
        ws.learn()
    place = ("--project", str(tmp_path))
    most = {("--version",): 45, ("notes", "brief", *place): 130, ("provision", "fix the cart", *place, "--json"): 165}
    for words, bound in most.items():
        loaded = list_modules(*words)
        assert not sorted(loaded & UNWANTED), words
        assert len(loaded) <= bound, (words, len(loaded))


def test_what_msgspec_was_loaded_without_can_still_be_used():
    code = """
import sys
from warmstart.doors.cli.light_msgspec import load_msgspec
load_msgspec()
import msgspec
for name in ("msgspec.inspect", "msgspec._json_schema", "decimal", "uuid", "urllib.parse", "typing_extensions"):
    assert name not in sys.modules, name
assert msgspec.json.schema(int) == {"type": "integer"}
assert msgspec.inspect.type_info(str) == msgspec.inspect.StrType()
assert msgspec.toml.decode("a = 1") == {"a": 1}
import datetime, decimal, pathlib, urllib.parse, uuid, msgspec.yaml
assert msgspec.yaml.encode and uuid.uuid4().version == 4 and decimal.Decimal("1.5") == 1.5
assert pathlib.Path("/a b").as_uri() == "file:///a%20b" and urllib.parse.unquote("a%20b") == "a b"
moment = datetime.datetime(2026, 11, 17, 8, tzinfo=datetime.UTC)
assert msgspec.json.decode(b'"2026-11-17T08:00:00Z"', type=datetime.datetime) == moment
assert datetime.datetime.strptime("2026-11-17", "%Y-%m-%d").date() == moment.date()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": str(SRC)}, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
