"""Calls through the plugin, without Hermes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import structs

from hermes.running import TASK
from warmstart.doors.hermes.place import SessionPlace
from warmstart.doors.hermes.plugin import Plugin

TOOLS = ("terminal", "read_file")


def make_request(*more: dict[str, Any]) -> dict[str, Any]:
    """Return a request of a session that begins with the task."""
    tools = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in TOOLS]
    return {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": TASK}, *more], "tools": tools}


def send(plugin: Plugin, request: dict[str, Any], answer: Callable[[Any], Any] | None = None, **changes: Any) -> Any:
    """Send a request through the plugin and return what reached the provider."""
    (sent,) = send_all(plugin, request, answer, **changes)
    return sent


def send_all(
    plugin: Plugin, request: dict[str, Any], answer: Callable[[Any], Any] | None = None, **changes: Any
) -> list[Any]:
    """Send a request through the plugin and return everything that reached the provider."""
    sent: list[Any] = []

    def next_call(body: Any) -> Any:
        sent.append(body)
        return answer(body) if answer else None

    facts = {"session_id": "s-1", "api_mode": "chat_completions", "platform": "cli", "model": "m", "turn_id": "t"}
    plugin.call_model(request=request, next_call=next_call, **(facts | changes))
    return sent


def make_plugin(parents: dict[str, str] | None = None, place: SessionPlace | None = None) -> Plugin:
    """Return a plugin that knows which session another one continues, and where and whose every session is."""
    known = place or SessionPlace()
    return Plugin(
        find_ancestor=lambda call: (parents or {}).get(call.session),
        find_place=lambda session, _platform: structs.replace(known, session=session),
        find_asker=lambda: known,
    )
