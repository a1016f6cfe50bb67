"""Runs inside Hermes' venv: `python scopes_runs.py URL`. Plays gateway sessions of several people, profiles and projects.

First every scope works with its own canary; then that is learned; then every scope asks for the same work again. The
output is one line of JSON: what `/warm templates` and the tool showed in each scope.
"""

from __future__ import annotations

import contextvars
import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gateway.config import GatewayConfig, Platform  # type: ignore[import-not-found]
from gateway.session import SessionSource, SessionStore  # type: ignore[import-not-found]
from gateway.session_context import set_session_vars  # type: ignore[import-not-found]
from hermes_cli.plugins import (  # type: ignore[import-not-found]
    discover_plugins,
    get_plugin_command_handler,
    invoke_hook,
)
from hermes_constants import set_hermes_home_override  # type: ignore[import-not-found]
from hermes_state import SessionDB  # type: ignore[import-not-found]
from run_agent import AIAgent  # type: ignore[import-not-found]
from tools.registry import registry  # type: ignore[import-not-found]

import warmstart

SERVER = sys.argv[1]
TASK = "Count the open orders in orders.csv"
ROOT = Path(os.environ["HERMES_HOME"])
PROJECTS, PROFILES, USERS = ("shop", "farm", "bank"), ("", "work"), ("ann", "ben")


def name(scope: tuple[str, str, str]) -> str:
    return "-".join(part or "default" for part in scope)


def play(scope: tuple[str, str, str], phase: str) -> Any:
    """Play one session of a scope, in a context of its own, as every message in Hermes' gateway."""
    return contextvars.copy_context().run(_play, *scope, phase, name(scope))


def _play(project: str, profile: str, user: str, phase: str, canary: str) -> Any:
    home = ROOT / "profiles" / profile if profile else ROOT
    folder = Path.cwd() / project
    for needed in (home / "sessions", folder):
        needed.mkdir(parents=True, exist_ok=True)
    set_hermes_home_override(home)
    chat = f"chat-{user}"
    source = SessionSource(platform=Platform.TELEGRAM, chat_id=chat, user_id=user, profile=profile or None)
    store = SessionStore(home / "sessions", GatewayConfig())
    session = store.get_or_create_session(source, force_new=True).session_id
    facts = {"platform": "telegram", "chat_id": chat, "user_id": user, "session_id": session, "profile": profile}
    set_session_vars(**facts, cwd=str(folder))
    agent = AIAgent(
        base_url=f"{SERVER}/scene/{phase}-{canary}/v1",
        api_key="none",
        provider="custom",
        model="scripted",
        quiet_mode=True,
        platform="telegram",
        session_id=session,
        skip_memory=True,
        skip_context_files=True,
        enabled_toolsets=["terminal", "skills"],
        session_db=SessionDB(),
        max_iterations=5,
    )
    agent.run_conversation(TASK)
    invoke_hook("pre_gateway_dispatch", event=SimpleNamespace(source=source), gateway=None, session_store=store)
    shown = get_plugin_command_handler("warm")("templates")
    listed = json.loads(registry.dispatch("warm_session", {"action": "list"}, session_id=session))
    return {"session": session, "warm": shown, "listed": [one["name"] for one in listed["sessions"]]}


def learn(played: dict[str, Any]) -> None:
    """Read the gateway's database in another process, and make a template of every session."""
    command = [sys.executable, "-m", "warmstart", "ingest", str(ROOT / "state.db")]
    subprocess.run(command, check=True, capture_output=True)
    with warmstart.open() as ws:
        for canary, session in played.items():
            ws.capture(session["session"], name=f"orders {canary}", anyway=True, approve=True)


if __name__ == "__main__":
    discover_plugins()
    scopes = list(product(PROJECTS, PROFILES, USERS))
    past = {name(scope): play(scope, "past") for scope in scopes}
    learn(past)
    print(json.dumps({name(scope): play(scope, "now") for scope in scopes}))
