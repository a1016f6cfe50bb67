"""`warmstart sessions`: tables that fit, short ids, errors with their causes, and search."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len

import warmstart
from command_line import run, run_json
from transcripts import claude_lines, outcome_lines, work_lines, write_jsonl
from warmstart.doors.render.fitted import cut_at_word

TASK = "find out why the nightly backup of the customer database stops halfway and repair it before tonight"
REJECTION = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). To tell you how to proceed, the user said:\nuse the staging host instead"
)


def write_sessions(folder: Path, number: int, **facts: Any) -> Path:
    for n in range(number):
        lines = work_lines(
            f"{n:08x}-1111-4222-8333-{n:012x}", ("Bash", {"command": f"pg_dump -h db{n}"}, "dumped"), task=TASK, **facts
        )
        write_jsonl(folder / f"{n}.jsonl", lines)
    return folder


@pytest.fixture
def seventy(tmp_path: Path) -> None:
    run("ingest", write_sessions(tmp_path / "in", 70))


@pytest.fixture
def failing(tmp_path: Path) -> str:
    lines = work_lines(
        "deadbeef-0000-4000-8000-000000000000",
        ("Bash", {"command": "cat /etc/shadow.conf"}, "cat: /etc/shadow.conf: No such file or directory\x1b[31m"),
        ("Bash", {"command": 'echo "100%_done"'}, "100%_done"),
        ("Bash", {"command": "deploy --host prod"}, REJECTION),
    )
    for at in (2, 6):
        lines[at]["message"]["content"][0]["is_error"] = True
    run("ingest", write_jsonl(tmp_path / "f.jsonl", lines))
    return "deadbeef"


class TestList:
    @pytest.mark.parametrize("width", [80, 100, 120, 160])
    def test_no_row_wraps_and_the_task_is_shown(
        self, seventy: None, width: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("COLUMNS", str(width))
        lines = run("sessions", "list").stdout.splitlines()
        rows = [line for line in lines if "find out why" in line]
        assert len(rows) == 50, "one line each"
        assert max(map(cell_len, lines)) <= width
        assert all(line.rstrip().endswith(" …") or width > 150 for line in rows), "cut at a word"

    def test_it_says_how_many_there_are(self, seventy: None) -> None:
        assert "50 of 70 sessions; --limit / --offset for more" in run("sessions", "list").stdout
        assert "20 of 70 sessions" in run("sessions", "list", "--offset", 50).stdout
        assert "of 70" not in run("sessions", "list", "--limit", 70).stdout

    def test_json_is_complete(self, seventy: None) -> None:
        listed = run_json("sessions", "list")
        assert len(listed) == 70 and {"id", "key", "task", "score", "verdict"} <= set(listed[0])
        assert len(run_json("sessions", "list", "--limit", 3)) == 3

    def test_short_ids_work(self, tmp_path: Path) -> None:
        names = (
            "aaaaaaaa-1",
            "aaaaaaaa-2",
            "cron_daily_report_20261116_030000",
            "cron_daily_report_20261117_030000",
            "s",
        )
        for name in names:
            write_jsonl(tmp_path / "in" / f"{name}.jsonl", claude_lines(name))
        run("ingest", tmp_path / "in")
        with warmstart.open() as ws:
            for row in ws.sessions():
                short = ws.store.shorten_id(row)
                assert len(short) <= 16
                assert run_json("sessions", "show", short)["id"] == row.id

    @pytest.mark.parametrize(
        ("task", "shown"),
        [
            ("<system_instruction>\nWork in /x.\n</system_instruction>\n\nimplement the cart", "implement the cart"),
            ("<environment_context>cwd</environment_context><system-reminder>a</system-reminder>go on", "go on"),
            ("<pr_description>Fix the totals</pr_description>", "Fix the totals"),
        ],
    )
    def test_the_task_is_the_persons(self, tmp_path: Path, task: str, shown: str) -> None:
        run("ingest", write_jsonl(tmp_path / "a.jsonl", work_lines("s-1", ("Bash", {"command": "ls"}, "a"), task=task)))
        (row,) = [line for line in run("sessions", "list").stdout.splitlines() if "s-1" in line]
        assert row.rstrip().endswith(f"  {shown}")

    def test_empty_lists_say_why(self, seventy: None) -> None:
        assert "none of the 70 sessions matches" in run("sessions", "list", "--agent", "codex").stdout
        assert "beyond the 70 sessions" in run("sessions", "list", "--offset", 99).stdout

    def test_without_anything(self) -> None:
        assert "run: warmstart ingest" in run("sessions", "list", "--agent", "codex").stdout
        assert "run: warmstart ingest" in run("sessions", "search", "x").stdout


class TestShow:
    def test_errors(self, failing: str) -> None:
        shown = run("sessions", "show", failing, "--errors").stdout
        assert "1 of 3 calls failed, 1 were rejected or denied" in shown
        assert "No such file or directory" in shown and "cat /etc/shadow.conf" in shown
        assert "use the staging host instead" in shown
        assert "100%_done" not in shown
        assert "\x1b" not in shown
        assert [call["ordinal"] for call in run_json("sessions", "show", failing, "--errors")["tool_calls"]] == [0, 2]

    def test_results_are_shown(self, failing: str) -> None:
        shown = run("sessions", "show", failing).stdout
        assert "100%_done" in shown and "No such file or directory" in shown
        assert "\x1b" not in shown

    def test_one_call(self, failing: str) -> None:
        shown = run("sessions", "show", failing, "--call", 1).stdout
        assert "100%_done" in shown and "shadow" not in shown
        assert "has no call 7" in run("sessions", "show", failing, "--call", 7, code=1).stderr


class TestSearch:
    @pytest.mark.parametrize(
        ("text", "places"),
        [
            ("SHADOW.conf", [0]),
            ("no such file", [0]),
            ('"100%_done"', [1]),
            ("100%", [1]),
            ("%_", [1]),
            ("staging host", [2]),
            ("cart tests", [0, 1, 2]),
            ("nothing like it", []),
        ],
    )
    def test_texts(self, failing: str, text: str, places: list[int]) -> None:
        found = run_json("sessions", "search", text)
        assert sorted(call["ordinal"] for call in found["calls"]) == places
        assert found["total"] == len(places)

    def test_the_line_leads_to_the_call(self, failing: str) -> None:
        shown = run("sessions", "search", "no such file").stdout
        assert "deadbeef" in shown and "/etc/shadow.conf: No such file" in shown
        assert "warmstart sessions show SESSION --call N" in shown

    def test_filters(self, failing: str, seventy: None) -> None:
        assert run_json("sessions", "search", "a", "--errors")["total"] == 1
        assert run_json("sessions", "search", "pg_dump", "--tool", "Read")["total"] == 0
        assert run_json("sessions", "search", "pg_dump", "--agent", "codex")["total"] == 0
        assert run_json("sessions", "search", "pg_dump", "--limit", 3)["total"] == 70
        assert "3 of 70 calls; --limit for more" in run("sessions", "search", "pg_dump", "--limit", 3).stdout
        assert "no call of the 71 sessions" in run("sessions", "search", "never seen").stdout
        assert "empty" in run("sessions", "search", " ", code=2).stderr


class TestReadingAgain:
    def test_a_deleted_session_is_named(self, failing: str, tmp_path: Path) -> None:
        run("sessions", "delete", failing, "--yes")
        assert "not stored again: 1 session that you deleted" in run("ingest", tmp_path / "f.jsonl").stdout
        assert run_json("sessions", "list") == []

    def test_recording_a_deleted_session(self, failing: str, tmp_path: Path) -> None:
        run("provision", "deploy", "--session", "deadbeef-0000-4000-8000-000000000000")
        run("sessions", "delete", failing, "--yes")
        message = run("record", "deadbeef-0000-4000-8000-000000000000", tmp_path / "f.jsonl", code=1).stderr
        assert "you deleted" in message and message.count("\n") == 1

    def test_an_unreadable_file_is_reported_every_time(self, tmp_path: Path) -> None:
        (tmp_path / "bad.jsonl").write_text(json.dumps({"type": "user", "sessionId": "x"})[:20] + "\n")
        first = run("ingest", tmp_path / "bad.jsonl", code=1)
        again = run("ingest", tmp_path / "bad.jsonl", code=1)
        assert again.stderr == first.stderr != ""
        for shown in (first, again):
            assert "0 files unchanged, 0 skipped, 1 unreadable" in shown.stdout

    def test_problems_of_an_unchanged_file_are_repeated(self, tmp_path: Path) -> None:
        path = write_jsonl(tmp_path / "in" / "a.jsonl", outcome_lines("s-1", [True, False]))
        path.write_text(path.read_text() + "{broken\n" + json.dumps(claude_lines("s-1")[0]) + "\n")
        (tmp_path / "in" / "notes.json").write_text("[1, 2]")
        first, again = run("ingest", tmp_path / "in"), run("ingest", tmp_path / "in")
        assert again.stderr == first.stderr and "a.jsonl" in again.stderr
        assert "1 file unchanged, 1 skipped" in again.stdout


@pytest.mark.parametrize(
    ("text", "width", "cut"),
    [
        ("short", 10, "short"),
        ("two words", 9, "two words"),
        ("several words here", 10, "several …"),
        ("unbreakablewordwithoutend", 10, "unbreaka…"),
        ("表形式の長い文字列です", 10, "表形式の…"),
    ],
)
def test_cut_at_word(text: str, width: int, cut: str) -> None:
    assert cut_at_word(text, width) == cut
    assert cell_len(cut) <= width
