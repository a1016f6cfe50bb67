"""Gemini CLI's log: whether the conversation still shows the opening."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warmstart.doors.hooks.gemini_log import still_shows

OPENING = 'Known <here>: "ü"\n- a line'
SHOWN = OPENING.replace("<", "&lt;").replace(">", "&gt;")


def make_message(name: str, text: str) -> dict[str, object]:
    return {"id": name, "type": "user", "content": [{"text": text}]}


FIRST = make_message("m1", f"<hook_context>{SHOWN}</hook_context>")
LATER = make_message("m2", "go on")


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([], False),
        ([FIRST], True),
        ([FIRST, LATER, {"$set": {"lastUpdated": "x"}}], True),
        ([{"$set": {"messages": []}}, FIRST, LATER], True),
        ([FIRST, {"$set": {"messages": [FIRST, LATER]}}], True),
        ([FIRST, {"$set": {"messages": [make_message("s", "<state_snapshot>")]}}, LATER], False),
        ([FIRST, {"$set": {"messages": []}}, FIRST], True),
        ([FIRST, LATER, {"$rewindTo": "m2"}], True),
        ([FIRST, LATER, {"$rewindTo": "m1"}], False),
    ],
)
def test_the_log_says_what_is_left(tmp_path: Path, records: list[object], expected: bool):
    log = tmp_path / "session.jsonl"
    log.write_text("".join(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records))
    assert still_shows(log, OPENING) is expected


def test_a_log_that_cannot_be_read_changes_nothing(tmp_path: Path):
    assert still_shows(tmp_path / "none.jsonl", OPENING)
