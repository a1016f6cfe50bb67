"""What the documentation says about the agents is about those that the tests run."""

from __future__ import annotations

import itertools
import json

import pytest

from agents.machine import Program
from agents.programs import PROGRAMS
from places import AGENTS, HOWTO, NO_AGENTS, ROOT, TESTS
from warmstart.doors.hooks.agents import AGENTS as HOOKED

PAGES = {"codex": "claude-code", "qwen-code": "gemini-cli"}  # two share a page


def read_table(heading: str) -> list[list[str]]:
    """Return the rows of the README's first table behind a heading, the names of its columns first."""
    lines = iter((ROOT / "README.md").read_text().partition(f"## {heading}\n")[2].splitlines())
    rows = itertools.takewhile(
        lambda line: line.startswith("|"), itertools.dropwhile(lambda line: "|" not in line, lines)
    )
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_the_pages_name_the_pinned_versions(program: Program):
    page = PAGES.get(program.name, program.name)
    assert f"{program.title} {program.version}" in (HOWTO / f"{page}.md").read_text()
    columns, _line, *rows = read_table("Into your agent")
    (row,) = (dict(zip(columns, row, strict=True)) for row in rows if f"[{program.title}](" in row[0])
    assert f"docs/howto/{page}.md" in row["agent"]
    assert f"`warmstart hook install {program.name}`" in row["install, once"]
    assert row["proven by the real program"] == f"{program.title} {program.version}"


def test_every_agent_that_we_hook_is_proven():
    assert sorted(program.name for program in PROGRAMS) == sorted(HOOKED)


def test_the_lock_pins_what_is_asked_for_and_names_no_host():
    lock = (TESTS / "agents" / "package-lock.json").read_text()
    packages = json.loads(lock)["packages"]
    for program in PROGRAMS:
        assert packages[f"node_modules/{program.package}"]["version"] == program.version
    assert "://" not in lock


@pytest.mark.skipif(not AGENTS.is_dir(), reason=f"{NO_AGENTS}: make agents")
def test_what_is_installed_is_what_is_pinned():
    for name in ("package.json", "package-lock.json"):
        assert (AGENTS / name).read_text() == (TESTS / "agents" / name).read_text(), "run: make agents"
