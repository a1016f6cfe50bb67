"""Runs inside Hermes' venv: `python review_run.py URL`. Two turns of a conversation in each protocol, with time for a review
between. The output is one line of JSON: the answers and messages of each, and the lines that Hermes showed."""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import Any

from hermes_cli.plugins import discover_plugins, get_plugin_command_handler  # type: ignore[import-not-found]
from hermes_state import SessionDB  # type: ignore[import-not-found]
from run_agent import AIAgent  # type: ignore[import-not-found]

TASK = "Count the open orders in orders.csv"
MODES: dict[str, dict[str, Any]] = {
    "chat": {"base_url": "{url}/scene/chat/v1", "provider": "custom"},
    "anthropic": {
        "base_url": "{url}/scene/anthropic",
        "provider": "anthropic",
        "api_mode": "anthropic_messages",
        "model": "claude-sonnet-4-5",
    },
    "responses": {"base_url": "{url}/scene/responses/v1", "provider": "custom", "api_mode": "codex_responses"},
}


def wait_for_reviews() -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and any(one.name == "warmstart-review" for one in threading.enumerate()):
        time.sleep(0.05)


def play(url: str, changes: dict[str, Any]) -> dict[str, Any]:
    options: dict[str, Any] = {"api_key": "none", "model": "scripted", "quiet_mode": True, "platform": "library"}
    options |= changes | {"base_url": changes["base_url"].format(url=url)}
    agent = AIAgent(
        **options,
        skip_memory=True,
        skip_context_files=True,
        enabled_toolsets=["terminal", "file"],
        session_db=SessionDB(),
        max_iterations=12,
    )
    shown: list[str] = []
    sent: list[str] = []
    agent._print_fn = lambda *words, **_options: shown.append(" ".join(map(str, words)))
    agent.background_review_callback = sent.append
    first = agent.run_conversation(TASK)
    wait_for_reviews()
    second = agent.run_conversation("And again", conversation_history=first["messages"])
    wait_for_reviews()
    answers = [one["final_response"] for one in (first, second)]
    return {
        "session": agent.session_id,
        "answers": answers,
        "messages": second["messages"],
        "shown": shown,
        "sent": sent,
    }


def main(url: str, *modes: str) -> None:
    discover_plugins()
    played = {mode: play(url, MODES[mode]) for mode in modes or MODES}
    warm = get_plugin_command_handler("warm")
    print(json.dumps(played | {"status": warm("status"), "proposals": warm("proposals")}))


main(*sys.argv[1:])
