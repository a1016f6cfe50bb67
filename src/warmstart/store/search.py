"""Search the stored calls for a text."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from msgspec import Struct

from warmstart.store.protocol import Store
from warmstart.store.rows import CallRow, SessionRow


class FoundCalls(Struct, frozen=True):
    """Calls that contain a text."""

    total: int  # number of all calls found
    calls: tuple[tuple[SessionRow, CallRow], ...]  # the first of them, with their sessions


def search_calls(
    store: Store, text: str, *, tool: str | None, errors: bool, keys: Collection[str], limit: int
) -> FoundCalls:
    """Return the calls of some sessions that contain a text, without regard to the case of ASCII letters.

    Searched are arguments, intents, causes, findings, a person's words and excerpts of results.
    """
    escaped = json.dumps(text, ensure_ascii=False)[1:-1]  # as it stands in JSON
    wanted = (make_pattern(text), make_pattern(escaped), tool, errors)
    places = [(key, ordinal) for key, ordinal in store.rows("search_calls", wanted) if key in keys]
    sessions: dict[str, SessionRow] = {}
    calls = []
    for key, ordinal in places[:limit]:
        if key not in sessions:
            sessions[key] = store.find_session(key)
        calls += [(sessions[key], CallRow.from_columns(row)) for row in store.rows("call_at", (key, ordinal))]
    return FoundCalls(len(places), tuple(calls))


def make_pattern(text: str) -> str:
    r"""Return a LIKE pattern, with \ as its escape character, for everything that contains a text."""
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%"
