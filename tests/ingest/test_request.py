"""The stored task of a session is the person's first request, without what programs wrote before it."""

from __future__ import annotations

import warmstart
from transcripts import teach, work_lines

LONG = "<system_instruction>\n" + "Rename the branch before you use any tool.\n" * 60 + "</system_instruction>\n\n"
CALL = ("Bash", {"command": "ls"}, "a")


def stored_task(*messages: str) -> str | None:
    lines = work_lines("s-1", CALL, task=messages[0])
    for at, text in enumerate(messages[1:], 1):
        lines.insert(at, lines[0] | {"uuid": f"more-{at}", "message": {"role": "user", "content": text}})
    with warmstart.open() as ws:
        teach(ws, lines)
        (row,) = ws.sessions()
        return row.task


def test_a_long_block_does_not_hide_the_request() -> None:
    assert stored_task(f"{LONG}move the cart into its own package") == "move the cart into its own package"


def test_a_block_that_is_a_message_apart() -> None:
    plugins = "<recommended_plugins>\n" + "- Gmail (gmail@remote)\n" * 90 + "</recommended_plugins>"
    assert stored_task(plugins, "why does the deploy fail?") == "why does the deploy fail?"


def test_a_request_of_blocks_only_stays() -> None:
    task = stored_task("<system_instruction>\nRead the attached plan.md.\n</system_instruction>\n")
    assert task is not None and "Read the attached plan.md." in task


def test_markup_of_the_person_stays() -> None:
    assert stored_task("<pr_description>Fix the totals</pr_description>") == (
        "<pr_description>Fix the totals</pr_description>"
    )
