"""The JSON of the main commands on the samples, every `--help` and the public names stay as they were approved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

import warmstart
from goldens import check_golden
from warmstart.doors.cli.main import main

SAMPLES = Path(warmstart.__file__).parent / "samples"
TASK = "the order total test fails again: run it, find out why and fix it"
COMMANDS = {
    "inspect": ["inspect", str(SAMPLES)],
    "ingest": ["ingest", str(SAMPLES)],
    "learn": ["learn"],
    "provision": ["provision", TASK, "--session", "golden-1", "--project", "*", "--budget", "1500"],
    "provision-text": ["provision", TASK, "--dialect", "text"],
    "report": ["report"],
}


def show_json(text: str) -> str:
    """One value a line, without what depends on the machine."""
    values: list[Any] = [json.loads(line) for line in text.splitlines()]
    shown = "".join(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n" for value in values)
    return shown.replace(SAMPLES.as_uri(), "SAMPLES").replace(str(SAMPLES), "SAMPLES")


def test_json_of_the_main_commands(tmp_path):
    for name, words in COMMANDS.items():
        done = CliRunner().invoke(main, ["--home", str(tmp_path), *words, "--json"])
        assert done.exit_code == 0, done.output
        check_golden(f"{name}.json", show_json(done.stdout))


def walk(command: click.Command, path: tuple[str, ...]) -> list[tuple[str, ...]]:
    context = click.Context(command)
    children = command.list_commands(context) if isinstance(command, click.Group) else []
    found = [path]
    for name in children:
        child = command.get_command(context, name)  # type: ignore[attr-defined]
        assert child is not None
        found += walk(child, (*path, name))
    return found


def test_every_help(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "100")
    parts = []
    for path in walk(main, ()):
        done = CliRunner().invoke(main, [*path, "--help"], prog_name="warmstart")
        assert done.exit_code == 0, path
        parts.append(f"$ warmstart {' '.join([*path, '--help'])}\n{done.stdout}\n")
    check_golden("help.txt", "".join(parts))


def test_public_names():
    check_golden("names.txt", "".join(f"{name}\n" for name in warmstart.__all__))
