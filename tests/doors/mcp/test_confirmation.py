"""The MCP tool `request_confirmation`: the official client and a real daemon."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from doors.mcp.client import SCRIPT, call, environment, fail
from doors.pages.confirm.daemon import Daemon
from warmstart import config
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens.files import AGENT_TOKEN, save_token
from warmstart.doors.mcp.server import McpDoor, build_server
from warmstart.doors.mcp.tools import TOOLS

WANTED = {"action": "delete_data", "description": "Drop it\nall", "details": {"table": "orders", "sql": "a\nb"}}


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    started = Daemon(tmp_path, policy=parse_policy('[[rule]]\naction = "publish_site"\ntimeout_seconds = 900'))
    save_token(Path(os.environ["WARMSTART_HOME"], AGENT_TOKEN), started.token("mcp", "agent:submit"))
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", started.server.api_url)
    yield started
    started.stop()


def run_client(use: Callable[[Client], Awaitable[None]], folder: Path) -> None:
    """Use a client of a server in this process."""

    async def main() -> None:
        with anyio.fail_after(90):
            async with Client(build_server(McpDoor(config.load(), started_in=folder))) as client:
                await use(client)

    anyio.run(main)


def decide_next(daemon: Daemon, verdict: str, seen: list[Any], *, after: float = 0.0) -> None:
    def wait() -> None:
        desk = daemon.server.desk
        for _ in range(400):
            found = desk.list_requests(status="pending", action=None, subject_key=None, limit=9, before=None)
            for one in found:
                seen.append(daemon.find(one.id, "mcp"))
                time.sleep(after)
                daemon.decide(one.id, verdict, reason="because")
                return
            time.sleep(0.05)

    threading.Thread(target=wait, daemon=True).start()


@pytest.mark.slow
def test_an_agent_asks(daemon, tmp_path):
    seen: list[Any] = []
    reported: list[str] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        reported.append(message or "")

    async def use(client: Client) -> None:
        decide_next(daemon, "approve", seen, after=1.5)  # progress is reported every second
        result = await client.call_tool("request_confirmation", WANTED, progress_callback=hear)
        assert not result.is_error and '"approved":true' in result.content[0].text, result.content
        assert seen[0]["details"] == WANTED["details"] and seen[0]["description"] == WANTED["description"]
        assert daemon.find(seen[0]["id"], "mcp")["executed"]
        decide_next(daemon, "deny", seen)
        no = await call(client, "request_confirmation", **WANTED)
        assert no == {"approved": False, "by": "bob", "reason": "delete_data: denied by bob: because"}
        for wrong in ({}, WANTED | {"action": "dеlete"}, WANTED | {"details": []}, WANTED | {"timeout_seconds": 1}):
            assert await fail(client, "request_confirmation", wrong)
        daemon.stop()
        assert "cannot be reached" in await fail(client, "request_confirmation", WANTED)
        daemon.start()

    run_client(use, tmp_path)
    assert "waiting for a person's decision" in reported


class Raw:
    """The protocol on a pipe: a call can be cancelled there without ending the connection."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [str(SCRIPT), "mcp"], stdin=pipe, stdout=pipe, env=environ, cwd=folder, text=True
        )
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        self.send(id=1, method="initialize", params=hello)
        self.receive(1)
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        self.process.stdin.flush()

    def receive(self, id: int) -> dict[str, Any]:
        assert self.process.stdout
        while True:
            answer = json.loads(self.process.stdout.readline())
            if answer.get("id") == id:
                return dict(answer)


@pytest.mark.slow
def test_a_cancelled_call_is_not_recorded_as_done(daemon, tmp_path):
    """The person says yes afterwards: the agent does nothing any more, and the audit must not say that it did."""
    raw = Raw(environment() | {"WARMSTART_CONFIRM_URL": daemon.server.api_url}, tmp_path)
    try:
        raw.send(id=2, method="tools/call", params={"name": "request_confirmation", "arguments": WANTED})
        desk = daemon.server.desk
        for _ in range(400):
            found = desk.list_requests(status="pending", action=None, subject_key=None, limit=9, before=None)
            if found:
                break
            time.sleep(0.05)
        raw.send(method="notifications/cancelled", params={"requestId": 2})
        time.sleep(2.5)  # progress is due every second: there it is noticed
        daemon.decide(found[0].id, "approve")
        raw.send(id=3, method="tools/list")
        assert raw.receive(3)["result"]["tools"], "it still serves"
        time.sleep(1)
        asked = daemon.find(found[0].id, "mcp")
        assert (asked["status"], asked["executed"]) == ("approved", None)
    finally:
        raw.process.kill()
        raw.process.communicate()


def test_the_policy_says_how_long_where_the_agent_does_not(daemon, tmp_path):
    assert "default" not in TOOLS["request_confirmation"].schema["properties"]["timeout_seconds"]
    seen: list[Any] = []

    async def use(client: Client) -> None:
        decide_next(daemon, "deny", seen)
        await call(client, "request_confirmation", action="publish_site", description="Put it online")

    run_client(use, tmp_path)
    assert seen[0]["timeout_seconds"] == 900
