"""What projects know, over MCP: the brief, advice at a call, and notes as resources."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

import warmstart
from doors.mcp.client import call, fail
from transcripts import teach, work_lines
from warmstart import config
from warmstart.doors.mcp.server import McpDoor, build_server
from warmstart.model import Task
from warmstart.scopes import EVERYWHERE, Border
from warmstart.store.notes import NoteStore

MISSING = "<tool_use_error>File does not exist.</tool_use_error>"


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder in which three sessions read `old.yml`, which is not there, and then `old.yaml`, which is."""
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "old.yaml").write_text("a: b\n")
    wrong = ("Read", {"file_path": f"{folder}/old.yml"}, MISSING)
    right = ("Read", {"file_path": f"{folder}/old.yaml"}, "1 a: b")
    sessions = [work_lines(f"s-{n}", wrong, right, day=n + 1, cwd=str(folder)) for n in range(3)]
    for line in (line for session in sessions for line in session):
        for part in line["message"]["content"] if isinstance(line["message"]["content"], list) else ():
            if part.get("content") == MISSING:
                part["is_error"] = True
    with warmstart.open() as ws:
        teach(ws, *sessions)
        ws.learn()
        assert [(note.kind, note.status) for note in ws.notes.list(kind="path")] == [("path", "active")]
    return folder


def drive(folder: Path, use: Callable[[Client], Awaitable[None]], border: Border | None = None) -> None:
    """Use a client. An error is raised after the connection is closed: inside, it would be wrapped in exception groups."""

    async def main() -> Exception | None:
        server = build_server(McpDoor(config.load(), started_in=folder, border=border))
        with anyio.fail_after(60):
            async with Client(server) as client:
                try:
                    await use(client)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001
                    return error
        return None

    failure = anyio.run(main)
    if failure is not None:
        raise failure


def read(folder: Path, **more: Any) -> dict[str, Any]:
    return {"tool": "Read", "arguments": {"file_path": f"{folder}/old.yml"}, "cwd": str(folder)} | more


def test_the_brief_is_that_of_the_command_line(shop: Path) -> None:
    async def use(client: Client) -> None:
        brief = await call(client, "brief", task="fix the test")
        assert "`old.yml`" in brief["text"] and brief["tokens"] <= 300 and len(brief["notes"]) == 1
        assert brief == await call(client, "brief", cwd=str(shop))
        assert (await call(client, "brief", cwd="/nowhere/else"))["text"] == ""
        (shop / "old.yml").write_text("it is here now")
        assert (await call(client, "brief"))["text"] == "", "checked on the real disk"

    drive(shop, use)


def test_advice_comes_once_a_session_and_is_recorded(shop: Path) -> None:
    async def use(client: Client) -> None:
        advice = await call(client, "advise", **read(shop, session="new"))
        assert advice["action"] == "tell" and "`old.yaml`" in advice["text"]
        assert (await call(client, "advise", **read(shop, session="new")))["action"] == "none"
        failed = read(shop, session="after", when="after", result=MISSING)
        assert "`old.yaml`" in (await call(client, "advise", **failed))["text"]
        assert (await call(client, "advise", **failed))["action"] == "none"
        assert (await call(client, "advise", **read(shop, arguments={"file_path": "x.py"})))["action"] == "none"

    drive(shop, use)
    with warmstart.open() as ws:
        ws.learn()
        showings = NoteStore(ws.store).showings()
        assert [(showing.session, showing.how) for showing in showings] == [("new", "tell"), ("after", "after")]


def test_a_cold_session_gets_neither_brief_nor_advice(shop: Path) -> None:
    with warmstart.open() as ws:
        ws.provision(Task(text="x", session="chilly", project=str(shop), cold=True))

    async def use(client: Client) -> None:
        assert (await call(client, "brief", session="chilly"))["text"] == ""
        assert (await call(client, "advise", **read(shop, session="chilly")))["action"] == "none"
        assert (await call(client, "brief", session="warm"))["text"]

    drive(shop, use)
    with warmstart.open() as ws:
        ws.learn()
        assert [(showing.session, showing.how) for showing in NoteStore(ws.store).showings()] == [("warm", "brief")]


def test_active_notes_are_resources(shop: Path) -> None:
    async def use(client: Client) -> None:
        (page,) = [page for page in (await client.list_resources()).resources if "notes/" in str(page.uri)]
        text, data = (await client.read_resource(page.uri)).contents
        assert text.text.startswith("- `old.yml` is not here") and text.mime_type == "text/plain"
        (note,) = json.loads(data.text)
        assert (note["kind"], note["status"], note["support"]) == ("path", "active", 3)
        assert data.mime_type == "application/json"
        patterns = (await client.list_resource_templates()).resource_templates
        assert "warmstart://notes/{project}" in [pattern.uri_template for pattern in patterns]

    drive(shop, use)
    with warmstart.open() as ws:
        (note,) = ws.notes.list(kind="path")
        ws.notes.retire(note.id)

    async def look_again(client: Client) -> None:
        assert not [page for page in (await client.list_resources()).resources if "notes/" in str(page.uri)]
        for uri in ("warmstart://notes/shop", "warmstart://notes/", "warmstart://notes/%00"):
            with pytest.raises(MCPError, match="no active notes"):
                await client.read_resource(uri)

    drive(shop, look_again)


def test_other_scopes_and_projects_see_nothing(shop: Path, tmp_path: Path) -> None:
    async def use(client: Client) -> None:
        with warmstart.open() as ws:
            project = ws.notes.list(kind="path")[0].project
        assert not [page for page in (await client.list_resources()).resources if "notes/" in str(page.uri)]
        with pytest.raises(MCPError):
            await client.read_resource("warmstart://notes/" + project.replace("/", "%2F"))

    async def use_as_another(client: Client) -> None:
        await use(client)
        assert (await call(client, "brief", cwd=str(shop)))["text"] == ""
        assert (await call(client, "advise", **read(shop)))["action"] == "none"

    drive(tmp_path, use, Border("", str(tmp_path / "elsewhere")))
    drive(shop, use_as_another, Border("profile:work", str(shop)))


def test_a_server_for_every_project_asks_for_the_folder(shop: Path) -> None:
    async def use(client: Client) -> None:
        assert "give cwd" in await fail(client, "brief", {})
        assert "give cwd" in await fail(client, "advise", {"tool": "Read", "arguments": {}})
        assert (await call(client, "brief", cwd=str(shop)))["text"]

    drive(shop, use, Border("", EVERYWHERE))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("brief", {"cwd": ""}),
        ("brief", {"budget": 5_000}),
        ("brief", {"task": "x", "approve": True}),
        ("brief", {"cwd": "a\0b"}),
        ("advise", {}),
        ("advise", {"tool": "Read"}),
        ("advise", {"tool": "Read", "arguments": 5}),
        ("advise", {"tool": "Read", "arguments": {}, "when": "later"}),
        ("advise", {"tool": "Read", "arguments": {"a": "x" * 200_000}}),
        ("notes_approve", {}),
    ],
)
def test_hostile_arguments_are_refused(shop: Path, tool: str, arguments: dict[str, Any]) -> None:
    async def use(client: Client) -> None:
        if tool in ("brief", "advise"):
            await fail(client, tool, arguments)
            return
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool(tool, arguments)

    drive(shop, use)


def test_no_tool_decides_about_notes(shop: Path) -> None:
    async def use(client: Client) -> None:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"brief", "advise"} <= names
        words = ("approve", "retire", "edit", "share", "publish", "delete")
        assert not [name for name in names if any(word in name for word in words)]

    drive(shop, use)
