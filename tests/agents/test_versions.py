"""What the documentation says about the agents is about those that the tests run."""

from __future__ import annotations

import json

import pytest

from agents.programs import CLAUDE_CODE, CODEX, Program
from places import AGENTS, HOWTO, NO_AGENTS, ROOT, TESTS


@pytest.mark.parametrize(("program", "title"), [(CLAUDE_CODE, "Claude Code"), (CODEX, "Codex")])
@pytest.mark.parametrize("page", [ROOT / "README.md", HOWTO / "claude-code.md"], ids=lambda page: page.name)
def test_the_pages_name_the_pinned_versions(program: Program, title: str, page):
    assert f"{title} {program.version}" in page.read_text()


def test_the_lock_pins_what_is_asked_for_and_names_no_host():
    lock = (TESTS / "agents" / "package-lock.json").read_text()
    packages = json.loads(lock)["packages"]
    for program in (CLAUDE_CODE, CODEX):
        assert packages[f"node_modules/{program.package}"]["version"] == program.version
    assert "://" not in lock


@pytest.mark.skipif(not AGENTS.is_dir(), reason=f"{NO_AGENTS}: make agents")
def test_what_is_installed_is_what_is_pinned():
    for name in ("package.json", "package-lock.json"):
        assert (AGENTS / name).read_text() == (TESTS / "agents" / name).read_text(), "run: make agents"
