"""Sessions of one project that meet the same mistakes, and a look at the notes that a store has learned from them."""

from __future__ import annotations

from transcripts import work_lines

WRONG = ("Bash", {"command": "rtk bun run test"}, "Exit code 2\nerror: unrecognized subcommand 'bun'")
RIGHT = ("Bash", {"command": "bun run test"}, "3 pass\n0 fail")
GONE = ("Read", {"file_path": "/home/dev/shop/old.yml"}, "<tool_use_error>File does not exist.</tool_use_error>")
THERE = ("Read", {"file_path": "/home/dev/shop/old.yaml"}, "1 a: b")


def flagged(lines):
    """Mark the results of failed calls as Claude Code does."""
    for line in lines:
        for part in line["message"]["content"] if isinstance(line["message"]["content"], list) else ():
            if part.get("type") == "tool_result" and (
                "Exit code" in part["content"] or "tool_use_error" in part["content"]
            ):
                part["is_error"] = True
    return lines


def sessions(count, *calls, first=0, cwd="/home/dev/shop", name="s"):
    return [flagged(work_lines(f"{name}-{n}", *calls, day=n + 1, cwd=cwd)) for n in range(first, first + count)]


def only(ws, kind, **filters):
    (note,) = ws.notes.list(kind=kind, **filters)
    return note
