"""The MCP tool `request_confirmation`: the official client, the real process, a real daemon."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp")

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from confirm_page.daemon import Daemon
from test_mcp import SCRIPT, call, environment, fail
from warmstart.confirm.token_files import AGENT_TOKEN, save_token

WANTED = {"action": "delete_data", "description": "Drop it\nall", "details": {"table": "orders", "sql": "a\nb"}}


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    yield started
    started.stop()


def decide_next(daemon: Daemon, verdict: str, seen: list[Any]) -> None:
    def wait() -> None:
        desk = daemon.server.desk
        for _ in range(400):
            found = desk.list_requests(status="pending", action=None, subject_key=None, limit=9, before=None)
            for one in found:
                seen.append(daemon.find(one.id, "mcp"))
                time.sleep(1.5)  # long enough for a sign of life
                daemon.decide(one.id, verdict, reason="because")
                return
            time.sleep(0.05)

    threading.Thread(target=wait, daemon=True).start()


def test_an_agent_asks(daemon, tmp_path):
    save_token(Path(os.environ["WARMSTART_HOME"], AGENT_TOKEN), daemon.token("mcp", "agent:submit"))
    environ = environment() | {"WARMSTART_CONFIRM_URL": daemon.server.api_url}
    seen: list[Any] = []
    told: list[str] = []

    async def hear(done: float, total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def use(client: Client) -> None:
        decide_next(daemon, "approve", seen)
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

    async def main() -> None:
        server = StdioServerParameters(command=str(SCRIPT), args=["mcp"], env=environ, cwd=tmp_path)
        with anyio.fail_after(90), (tmp_path / "log").open("w") as log:
            async with Client(stdio_client(server, errlog=log)) as client:
                await use(client)

    anyio.run(main)
    assert "waiting for a person's decision" in told
