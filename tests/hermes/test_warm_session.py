"""The function behind `warm_session`: its four actions, and mistakes of the agent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warmstart
from warmstart import Warmstart
from warmstart.doors.agent_tools.warm_session import PARAMETERS, warm_session


@pytest.fixture
def ws(past: Path, tmp_path: Path) -> Iterator[Warmstart]:
    shutil.copytree(past, tmp_path / "home")
    with warmstart.open(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "unknown action None"),
        ({"action": "explode"}, "there are: build, list, load, delete"),
        ({"action": ["list"]}, "unknown action"),
        ({"action": "load"}, "name is missing"),
        ({"action": "delete", "name": "  "}, "name is missing"),
        ({"action": "load", "name": "nobody"}, "no template nobody"),
        ({"action": "delete", "name": "nobody"}, "no template nobody"),
        ({"action": "build", "name": 7}, "name must be text"),
        ({"action": "build", "name": "x", "min_messages": "many"}, "min_messages must be a whole number"),
        ({"action": "build", "name": "x", "max_sessions": 0}, "at least 1"),
        ({"action": "build", "name": "x", "tags": 5}, "tags must be a list"),
        ({"action": "build", "name": "x", "min_messages": 10_000}, "no stored session matches"),
        ({"action": "build", "name": "x", "source_filter": "fax"}, "agents with sessions: hermes"),
        ({"action": "build", "name": "../x"}, ""),
        (
            {"action": "build", "name": "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"},
            "the name contains a secret",
        ),
    ],
)
def test_mistakes(ws: Warmstart, arguments: dict[str, Any], said: str) -> None:
    answer = warm_session(ws, arguments)
    assert answer["success"] is False and said in answer["error"], answer


def test_all_four(ws: Warmstart) -> None:
    wish = {"action": "build", "name": "orders", "description": "Counting", "tags": "a, b", "max_sessions": "2"}
    built = warm_session(ws, wish | {"source_filter": "hermes"})
    assert built["success"] and (built["sessions"], built["considered"]) == (2, 2), built
    listed = warm_session(ws, {"action": "list"})
    (orders,) = [one for one in listed["sessions"] if one["name"] == "orders"]
    assert orders["tags"] == ["a", "b"] and orders["status"] == "active"
    loaded = warm_session(ws, {"action": "load", "name": "orders"})
    assert warmstart.lint(loaded["messages"]) == [] and loaded["message_count"] == len(loaded["messages"]) == 6
    assert loaded["tokens"] <= ws.settings.budget and "terminal" in loaded["preview"]
    assert warm_session(ws, {"action": "delete", "name": "orders"})["deleted"] == ["orders@1"]
    assert warm_session(ws, {"action": "list"})["count"] == listed["count"] - 1


def test_one_session_waits_for_a_person(ws: Warmstart) -> None:
    built = warm_session(ws, {"action": "build", "name": "one", "max_sessions": 1})
    assert built["success"] and built["status"] == "proposed" and "fewer than 2" in built["reason"]


def test_the_schema_names_everything() -> None:
    assert set(PARAMETERS["properties"]) == {
        *("action", "name", "description", "min_messages", "max_sessions", "source_filter", "tags")
    }
