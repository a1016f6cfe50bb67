"""Closing words on one line: lists, tables and code blocks."""

from __future__ import annotations

import pytest

from warmstart.calls.closings import write_closing_line

TABLE = "| Region | Pages |\n|---|---:|\n| **North** | 12 |\n| South |  |"
CASES = {
    "a list": (
        "- Moved the visit with Dr. Abernathy\n- Texted 0176 22334455\n- Nothing else changed",
        "Moved the visit with Dr. Abernathy; Texted 0176 22334455; Nothing else changed",
    ),
    "items that end by themselves": ("Done.\n\n* One.\n* Two,\n* **Three!**\n* Four", "Done. One. Two, Three! Four"),
    "what precedes and follows": ("Changes\n- One\n- Two\n\nAnything else?", "Changes: One; Two. Anything else?"),
    "a bold title": ("**Changes:**\n\n- One\n\n- Two\n\n---\nBye", "Changes: One; Two. Bye"),
    "items of two lines": ("- One that\n  goes on\n- Two", "One that goes on; Two"),
    "an inner list": ("- One:\n  - a\n  - b\n- Two", "One: a; b; Two"),
    "numbers": ("1. One\n2. Two", "1. One; 2. Two"),
    "a list after a heading": ("## What was done\n- One\n- Two\n## And what was not\n- Three",
                               "What was done. One; Two. And what was not. Three"),
    "a table alone": (TABLE, "Region, Pages; North, 12; South"),
    "a table that is announced": (f"The pages:\n\n{TABLE}", "The pages: Region, Pages; North, 12; South"),
    "a table and prose": (f"All counted.\n\n{TABLE}\n\nShall I go on?", "All counted. Shall I go on?"),
    "a table without outer bars": ("Region | Pages\n--- | ---\nNorth | 12", "Region, Pages; North, 12"),
    "a bar in prose": ("Ran a | b for you.", "Ran a | b for you."),
    "prose in a code block": ("```\nThe visit was moved to Friday.\n```", "The visit was moved to Friday."),
    "a list in a code block": ("```text\n- Moved the visit\n- Texted her\n```", "Moved the visit; Texted her"),
    "wide prose in a code block": ("```\n予約を金曜日に変更しました。\n```", "予約を金曜日に変更しました。"),
    "code": ("```python\nMove the visit to Friday\n```", ""),
    "untagged code": ("```\nResult = move(visit)\nprint the result\n```", ""),
    "a command": ("```\ngit push origin main\n```", ""),
    "a query": ("```\nSELECT name FROM users\n```", ""),
    "data": ('```\n{"status": "moved to the next day"}\n```', ""),
    "rows": ("```\nNorth 12 14 18\nSouth 3 8 9\n```", ""),
    "code beside prose": ("```\nThe old text is here\n```\nDone.", "Done."),
}  # fmt: skip


@pytest.mark.parametrize(("text", "line"), CASES.values(), ids=CASES)
def test_closing_words_are_one_line(text: str, line: str) -> None:
    assert write_closing_line(text, 200) == line


@pytest.mark.parametrize(("limit", "line"), [(10, "1. One"), (15, "1. One; 2. Two"), (19, "1. One; 2. Two")])
def test_a_list_that_is_cut_ends_at_an_item(limit: int, line: str) -> None:
    assert write_closing_line("1. One\n2. Two\n3. Three and more", limit) == line
