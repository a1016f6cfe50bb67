"""Runs inside Hermes' venv: `python day_run.py URL PLAN`. Chats, a compressed chat and a gateway with two users, in one process.

PLAN is JSON: `{"chats": number, "only": "killed"}`. The output is one line of JSON: the sessions of each part, and what `/warm`
says at the end to the machine's own user and to the users of the gateway.
"""

from __future__ import annotations

import contextvars
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gateway.config import GatewayConfig, Platform  # type: ignore[import-not-found]
from gateway.session import SessionSource, SessionStore  # type: ignore[import-not-found]
from hermes_cli.plugins import (  # type: ignore[import-not-found]
    discover_plugins,
    get_plugin_command_handler,
    invoke_hook,
)
from hermes_state import SessionDB  # type: ignore[import-not-found]
from run_agent import AIAgent  # type: ignore[import-not-found]

URL = sys.argv[1]
TASK = "Count the open orders in orders.csv"


def make_agent(**changes: Any) -> Any:
    options: dict[str, Any] = {
        "base_url": f"{URL}/v1",
        "api_key": "none",
        "provider": "custom",
        "model": "scripted",
        "quiet_mode": True,
        "platform": "cli",
        "skip_memory": True,
        "skip_context_files": True,
        "enabled_toolsets": ["terminal", "file", "skills"],
        "session_db": SessionDB(),
        "max_iterations": 12,
    }
    return AIAgent(**(options | changes))


def talk(text: str, **changes: Any) -> str:
    agent = make_agent(**changes)
    agent.run_conversation(text)
    invoke_hook("on_session_finalize", session_id=agent.session_id, platform=agent.platform, reason="cli_close")
    return str(agent.session_id)


def compress() -> list[str]:
    """Play a chat that is compressed into a new session."""
    agent = make_agent()
    agent.compression_in_place = False
    history = agent.run_conversation(TASK)["messages"]
    first = agent.session_id
    for _ in range(3):
        history = agent.run_conversation("Count again", conversation_history=history)["messages"]
    compressed, _prompt = agent._compress_context(history, None, approx_tokens=100_000, force=True)
    agent.run_conversation(TASK, conversation_history=compressed)
    return [first, agent.session_id]


def chat_with(person: str) -> dict[str, Any]:
    """Play two chats of a person of the gateway, who asks `/warm` at the end."""
    store = SessionStore(Path(os.environ["HERMES_HOME"]) / "sessions", GatewayConfig())
    source = SessionSource(platform=Platform.TELEGRAM, chat_id=person, user_id=person)
    session = store.get_or_create_session(source).session_id
    agent = make_agent(platform="telegram", session_id=session, user_id=person, chat_id=person)
    agent.run_conversation(f"{TASK}, for the person {person}")
    invoke_hook("pre_gateway_dispatch", event=SimpleNamespace(source=source), gateway=None, session_store=store)
    warm = get_plugin_command_handler("warm")
    shown = {"status": warm("status"), "templates": warm("templates"), "proposals": warm("proposals")}
    invoke_hook("on_session_finalize", session_id=session, platform="telegram", reason="session_expired")
    return {"session": session, **shown}


def wait(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240  # only rules out endless waiting
    while time.monotonic() < deadline and not is_done():
        time.sleep(0.1)


def main(plan: dict[str, Any]) -> None:
    discover_plugins()
    if plan.get("only") == "killed":
        talk(TASK)
        return
    chats = [talk(f"{TASK}, part {number}") for number in range(plan["chats"])]
    compressed = compress()
    people = [contextvars.copy_context().run(chat_with, person) for person in ("7", "8")]
    home = Path(os.environ["WARMSTART_HOME"])
    wait(lambda: not list((home / "hermes").glob("unread-*")) and (home / "learned").exists())
    warm = get_plugin_command_handler("warm")
    shown = {"status": warm("status"), "why": warm(f"why {chats[0]}")}
    print(json.dumps({"chats": chats, "compressed": compressed, "people": people, "warm": shown}))


main(json.loads(sys.argv[2]))
