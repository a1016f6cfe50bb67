"""The function behind `warm_session`: its four actions, and mistakes of the agent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warmstart
from hermes_databases import write_weather_chats
from warmstart import Warmstart
from warmstart.dialects.tokens import estimate
from warmstart.doors.agent_tools.warm_session import DESCRIPTION, NAME, PARAMETERS, warm_session


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
        ({"action": "load", "name": "nobody"}, "no warm session nobody; the action list shows"),
        ({"action": "delete", "name": "nobody"}, "no warm session nobody; the action list shows"),
        ({"action": "build", "name": 7}, "name must be text"),
        ({"action": "build", "name": "x", "min_messages": "many"}, "min_messages must be a whole number"),
        ({"action": "build", "name": "x", "max_sessions": 0}, "at least 1"),
        ({"action": "build", "name": "x", "tags": 5}, "tags must be a list"),
        ({"action": "build", "name": "x", "min_messages": 10_000}, "a lower min_messages"),
        ({"action": "build", "name": "x", "description": "bake a cake"}, "none of 3 sessions is about 'bake a cake'"),
        (
            {"action": "build", "name": "x", "source_filter": "fax"},
            "agents with sessions: hermes; their sources: cli; call build",
        ),
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
    assert "warmstart " not in answer["error"], "an agent has actions, not our command line"


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


@pytest.mark.parametrize("tags", [["a", "b"], "a, b", ["a, b", "b"]])
def test_tags_as_a_list_or_as_text(ws: Warmstart, tags: Any) -> None:
    """Hermes wraps a text in a list, because the schema asks for one."""
    assert warm_session(ws, {"action": "build", "name": "orders", "tags": tags})["success"]
    assert ws.templates.show("orders")[1].tags == ("a", "b")


def test_build_takes_the_sessions_that_a_description_is_about(ws: Warmstart, tmp_path: Path) -> None:
    """The latest sessions are about something else; equal calls of several sessions are shown once."""
    write_weather_chats(tmp_path / "state.db", 4)
    ws.ingest(tmp_path / "state.db")
    latest = warm_session(ws, {"action": "build", "name": "latest", "max_sessions": 3})
    assert latest["success"] and tools_of(ws, latest["name"]) == {"web_search"}, latest
    built = warm_session(ws, {"action": "build", "name": "orders", "description": "Counting open orders"})
    assert (built["considered"], built["sessions"]) == (3, 3), built
    assert tools_of(ws, "orders") == {"terminal", "read_file"}
    calls = [(example.tool, str(example.arguments)) for example in ws.templates.show("orders")[1].examples]
    assert len(calls) == len(set(calls))
    by_source = warm_session(ws, {"action": "build", "name": "chat", "source_filter": "telegram"})
    assert (by_source["considered"], tools_of(ws, by_source["name"])) == (4, {"web_search"})


def tools_of(ws: Warmstart, name: str) -> set[str]:
    return {call.tool for example in ws.templates.show(name)[1].examples for call in example.shown}


def test_the_schema_names_everything_and_costs_little() -> None:
    tokens = estimate(json.dumps({"name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS}))
    assert tokens < 240, "every request pays for it; it was 433 by this upper bound, 264 by the vocabulary of o200k"
    assert set(PARAMETERS["properties"]) == {
        *("action", "name", "description", "min_messages", "max_sessions", "source_filter", "tags")
    }
