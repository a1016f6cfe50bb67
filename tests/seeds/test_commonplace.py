"""Choosing for coding agents: templates learned before plain calls were left out no longer show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import warmstart
from template_files import example, template, write_bundle
from transcripts import TEST, teach, work_lines
from warmstart.model import Task
from warmstart.pipeline import Warmstart

SHOP = "/home/dev/shop"
TASK = Task(text="fix the total of the cart", project=SHOP)
PLAIN = (
    example("Bash", "sed -n 1,20p cart.py", "look at the total of the cart"),
    example("Read", "cart.py", "read the total of the cart"),
    example("Bash", "git diff cart.py", "see what changed in the total of the cart"),
)
OWN = example("Bash", "mise run test:cart", "run the tests of the cart")
CORRECTED = example("Read", "cart.yaml", "read the rules of the cart", correction="cart.yml does not exist")


@pytest.fixture
def ws() -> Iterator[Warmstart]:
    with warmstart.open() as opened:
        yield opened


def add_template(ws: Warmstart, folder: Path, *examples: dict[str, Any], origin: str = "learned", **more: Any) -> None:
    """Store an active template of an earlier version."""
    facts = {"category": "coding", "provenance": {"project": SHOP, "agent": "claude-code"}} | more
    ws.templates.import_(write_bundle(folder / "t.json", template("old", *examples, **facts)), approve=True)
    with apsw.Connection(str(ws.settings.home / "warmstart.db")) as database:
        database.execute("UPDATE templates SET body = json_set(body, '$.provenance.origin', ?)", (origin,))


def shown(ws: Warmstart, task: Task = TASK) -> list[str]:
    seed = ws.provision(task)
    calls = [call for message in seed.messages for call in message.get("tool_calls") or ()]
    return [json.loads(call["function"]["arguments"])["command"] for call in calls]


def test_an_old_template_shows_only_what_the_project_knows(ws: Warmstart, tmp_path: Path) -> None:
    add_template(ws, tmp_path, *PLAIN, OWN, CORRECTED)
    assert set(shown(ws)) == {"mise run test:cart", "cart.yaml"}


def test_an_old_template_of_plain_calls_shows_nothing_and_says_why(ws: Warmstart, tmp_path: Path) -> None:
    add_template(ws, tmp_path, *PLAIN)
    seed = ws.provision(TASK)
    assert not seed
    assert "plain reads, edits and searches" in seed.reason


@pytest.mark.parametrize("origin", ["captured", "imported"])
def test_what_somebody_chose_is_shown(ws: Warmstart, tmp_path: Path, origin: str) -> None:
    add_template(ws, tmp_path, *PLAIN, origin=origin)
    assert len(shown(ws)) == 3


@pytest.mark.parametrize(
    "facts", [{"category": "general"}, {"provenance": {"project": SHOP, "agent": "openai-chat"}}], ids=str
)
def test_other_work_keeps_its_examples(ws: Warmstart, tmp_path: Path, facts: dict[str, Any]) -> None:
    add_template(ws, tmp_path, *PLAIN, **facts)
    assert len(shown(ws)) == 3


def test_from_transcripts_to_the_seed(ws: Warmstart) -> None:
    read = ("Read", {"file_path": f"{SHOP}/cart.py"}, "1 def total(): ...")
    edit = ("Edit", {"file_path": f"{SHOP}/cart.py", "old_string": "a", "new_string": "b"}, "updated")
    search = ("Bash", {"command": "rg -n total src"}, "src/cart.py:1")
    teach(ws, *(work_lines(f"s-{n}", read, search, edit, TEST, day=n + 1) for n in range(3)))
    ws.learn()
    assert shown(ws, Task(text="fix the failing cart tests", project=SHOP)) == ["uv run pytest -q tests/test_cart.py"]
