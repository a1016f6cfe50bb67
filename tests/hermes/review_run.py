"""Runs inside Hermes' venv: `python review_run.py URL`. Two turns of one conversation, with time for a review between."""

from __future__ import annotations

import json
import sys
import threading
import time

from hermes_cli.plugins import discover_plugins  # type: ignore[import-not-found]
from hermes_state import SessionDB  # type: ignore[import-not-found]
from run_agent import AIAgent  # type: ignore[import-not-found]

TASK = "Count the open orders in orders.csv"


def wait_for_reviews() -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and any(one.name == "warmstart-review" for one in threading.enumerate()):
        time.sleep(0.05)


def main(url: str) -> None:
    discover_plugins()
    agent = AIAgent(
        base_url=f"{url}/v1",
        api_key="none",
        provider="custom",
        model="scripted",
        quiet_mode=True,
        platform="library",
        skip_memory=True,
        skip_context_files=True,
        enabled_toolsets=["terminal", "file"],
        session_db=SessionDB(),
        max_iterations=12,
    )
    first = agent.run_conversation(TASK)
    wait_for_reviews()
    second = agent.run_conversation("And again", conversation_history=first["messages"])
    wait_for_reviews()
    print(json.dumps({"answers": [one["final_response"] for one in (first, second)], "messages": second["messages"]}))


main(sys.argv[1])
