"""`warmstart insights` as a person or a program calls it: the terminal, JSON, and the page as a file."""

from __future__ import annotations

import html
import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

import warmstart
from command_line import run
from insight_sessions import FAIL, GOOD, HOSTILE, call, many, session
from places import ROOT
from skips import FULL
from transcripts import claude_lines, write_jsonl
from warmstart.doors.cli.main import main
from warmstart.doors.pages.insights.page import MARK, render_page
from warmstart.doors.pages.markup import element, join
from warmstart.doors.pages.plots.rates import draw_bar, exceeds, make_rate_scale
from warmstart.doors.render.insights import name_of, short_minutes, short_number
from warmstart.insights import gather_insights
from warmstart.insights.types import Rate


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Three sessions of three calls, of which the last fails."""
    folder = tmp_path / "in"
    for name in ("s-1", "s-2", "s-3"):
        lines = claude_lines(name, calls=3)
        lines[-1]["message"]["content"][0] |= {"is_error": True, "content": "Exit code 127\nbash: x: command not found"}
        write_jsonl(folder / f"{name}.jsonl", lines)
    run("ingest", folder)
    return folder


def test_an_empty_store_says_what_to_do():
    assert run("insights").stdout == "no sessions are remembered yet; run: warmstart ingest\n"
    printed = json.loads(run("insights", "--json").stdout)
    assert (printed["sessions"], printed["repeated"], printed["overall"]["rate"]) == (0, [], None)


def test_nothing_fits_the_filters(history):
    for words in (["--agent", "nobody"], ["--project", "/nowhere"], ["--since", "2099-01-01"]):
        assert "no remembered session matches the filters" in run("insights", *words).stdout


def test_tables_for_people(history):
    shown = run("insights").stdout
    assert "3 sessions, 9 judged calls, 3 errors: 33%" in shown
    assert "bash: x: command not found" in shown
    assert "no fix seen in 3 of 3 sessions" in shown
    for title in (
        "The most repeated errors",
        "Error rate by tool",
        "Error rate along the session",
        "What the errors cost",
        "What to do",
    ):
        assert title in shown


def test_json_is_one_object_and_every_key_is_documented(history):
    (line,) = run("insights", "--json").stdout.splitlines()
    printed = json.loads(line)
    assert printed["overall"]["errors"] == 3
    assert (printed["first"], printed["repeated"][0]["last_seen"]) == ("2026-10-01T10:00:00+00:00",) * 2
    documented = set(re.findall(r"`(\w+)`", (ROOT / "docs" / "insights.md").read_text()))
    assert keys_in(printed) <= documented


def keys_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_in, value.values()))
    return set().union(*map(keys_in, value)) if isinstance(value, list) else set()


def test_a_row_leads_to_its_occurrences(history):
    shown = run("insights", "--show", "1").stdout
    assert "1. Bash: bash: x: command not found" in shown
    assert "3 times in 3 sessions" in shown
    printed = json.loads(run("insights", "--show", "1", "--json").stdout)
    assert printed["error"]["number"] == 1 and printed["error"]["count"] == len(printed["occurrences"]) == 3
    keys = {one["session"] for one in printed["occurrences"]}
    with warmstart.open() as ws:
        assert keys == {row.key for row in ws.sessions()}
    assert all(key[:12] in shown for key in keys)
    assert {(one["call"], one["cause"]) for one in printed["occurrences"]} == {(2, "bash: x: command not found")}
    assert "there is no repeated error in row 7; the rows are 1 to 1" in run("insights", "--show", "7", code=1).stderr


def test_filters_and_top(history):
    def call_inside(*words: str) -> Result:
        """Run the command in this process: a process for each would take seconds."""
        return CliRunner().invoke(main, ["insights", "--json", *words])

    filters = {
        ("--agent", "claude-code", "--project", "/home/dev/shop"): 3,
        ("--since", "2026-10-01"): 3,
        ("--since", "2026-10-02"): 0,
        ("--since", "36500"): 3,
    }
    for words, sessions in filters.items():
        assert json.loads(call_inside(*words).stdout)["sessions"] == sessions, words
    for wrong in ("yesterday", "-3", "2026-13-01", ""):
        result = call_inside("--since", wrong)
        assert (result.exit_code, "neither a number of days nor a date" in result.stderr) == (2, True)
    assert call_inside("--top", "0").exit_code == 2


def test_a_damaged_record_is_counted(history):
    with warmstart.open() as ws:
        key = ws.sessions()[0].key
        ws.store._db.execute("UPDATE calls SET arguments = '{broken' WHERE session_key = ?", (key,))
    assert "1 session could not be read" in run("insights").stdout
    printed = json.loads(run("insights", "--json").stdout)
    assert (printed["sessions"], printed["unreadable"], printed["overall"]["errors"]) == (2, 1, 2)


def test_the_library_has_it_too(history):
    seen: list[tuple[int, int | None]] = []
    with warmstart.open() as ws:
        found = ws.insights(agent="claude-code", top=1, progress=lambda done, total, what: seen.append((done, total)))
    assert (found.sessions, len(found.repeated)) == (3, 1)
    assert seen == [(0, 3), (1, 3), (2, 3)]


# The page as a file


def test_the_page_is_only_for_its_owner_and_may_be_written_again(history, tmp_path):
    page = tmp_path / "page.html"
    assert f"page: {page}" in run("insights", "--html", page).stdout
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    page.chmod(0o644)
    done = run("insights", "--html", page, "--json")
    assert json.loads(done.stdout)["sessions"] == 3
    assert f"page: {page}" in done.stderr
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir() if "page" in file.name] == ["page.html"]


def test_the_page_shows_the_course_of_each_kind_of_work():
    page = render_page(gather_insights(many(3, GOOD, FAIL, call("Bash", {"command": "make"}))), made=0.0)
    for kind in ("code", "file"):
        assert f"Error rate of {kind} calls over the first turns" in page
    assert "Error rate of research calls" not in page
    assert all(f">{first}-{first + 4}<" in page for first in range(1, 31, 5))


def test_an_empty_store_makes_a_page_too(tmp_path):
    run("insights", "--html", tmp_path / "page.html")
    assert "No session is stored yet" in (tmp_path / "page.html").read_text()


def test_other_files_are_left_alone(history, tmp_path):
    mine = tmp_path / "thesis.html"
    mine.write_text("<!doctype html> my thesis")
    assert "is not an insights page" in run("insights", "--html", mine, code=1).stderr
    assert mine.read_text() == "<!doctype html> my thesis"
    assert "not a file" in run("insights", "--html", tmp_path, code=1).stderr
    assert "not a file" in run("insights", "--html", os.devnull, code=1).stderr
    assert "cannot be written" in run("insights", "--html", tmp_path / "no" / "such" / "folder.html", code=1).stderr
    assert "cannot be written" in run("insights", "--html", f"{tmp_path}/{'x' * 300}.html", code=1).stderr


# What transcripts may say


@pytest.fixture
def hostile() -> Any:
    sessions = []
    for number, text in enumerate(HOSTILE * 2):
        bad = call(text, {text: text}, f"{text} failed", call_id=text)
        facts = {"model": text, "project": text, "agent": text, "id": text}
        sessions.append(session(bad, bad, GOOD, key=f"k{number:03}", **facts))
    return gather_insights(sessions, top=50)


def test_nothing_in_a_transcript_becomes_markup(hostile):
    page = render_page(hostile, made=0.0, about=name_of(HOSTILE[0]))
    assert not re.search(r"<(?:script|img|iframe|object|link|a)\b", page)
    assert "\x00" not in page and "\x1b" not in page and "‮" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.startswith(MARK)
    assert len(page) < 2_000_000


def test_the_page_needs_nothing_else(hostile):
    page = render_page(hostile, made=0.0)
    head = page[: page.index("</head>")]
    assert "default-src 'none'" in html.unescape(head)
    assert not re.search(r"url\(|@import|\bsrc=|\bhref=|\bstyle=|\son\w+=", page.split("</style>")[0])
    body = re.sub(r">[^<]*<", "><", page.split("</style>")[1])
    body = re.sub(r'aria-label="[^"]*"', "", body)
    assert not re.search(r"\bsrc=|\bhref=|\bstyle=|\son\w+=|http", body)


def test_nothing_in_a_transcript_drives_the_terminal(tmp_path):
    for number, text in enumerate(HOSTILE):
        lines = claude_lines(f"s-{number}", calls=2, cwd=text)
        for line in lines[1:]:
            for part in line["message"]["content"]:
                part |= (
                    {"name": text} if part["type"] == "tool_use" else {"is_error": True, "content": f"{text} failed"}
                )
        write_jsonl(tmp_path / f"{number}.jsonl", lines)
    run("ingest", tmp_path)
    shown = run("insights", "--top", 50, "--html", tmp_path / "page.html").stdout
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f‮]", shown)


@given(st.text(), st.text())
def test_text_is_escaped_and_markup_is_not(name, text):
    made = element("p", {"title": name}, text, element("b", {}, text), None)
    assert made.count("<") == 4
    assert join(made) == made


# Numbers for people


def test_numbers_for_people():
    assert [short_number(n) for n in (0, 999, 1_500, 15_000, 2_400_000, 3e9)] == [
        "0",
        "999",
        "1.5 k",
        "15 k",
        "2.4 M",
        "3.0 G",
    ]
    assert [short_minutes(s) for s in (9, 60, 3_600, 9_000)] == ["9 s", "1 min", "60 min", "2.5 h"]
    assert (
        name_of("/home/somebody/work/some/very/long/way/down/to/the/project-of-theirs", 30)
        == "[...] down/to/the/project-of-theirs"
    )
    assert (name_of(None), name_of("\x00 \n")) == ("(unknown)", "�")


@given(st.lists(st.floats(0, 1), min_size=1))
def test_scales_hold_their_values(values):
    rates = [Rate(name="x", errors=0, judged=1, sessions=1, rate=value, low=0.0, high=value) for value in values]
    scale = make_rate_scale(rates)
    assert scale.top >= max(values) - 1e-9
    assert 1 <= len(scale.ticks) - 1 <= 5
    assert scale.ticks[-1] == pytest.approx(scale.top)


def test_an_interval_over_everything_does_not_press_the_rest_together():
    rates = [
        Rate(name="x", errors=1, judged=9, sessions=2, rate=0.1, low=low, high=high)
        for low, high in ((0.08, 0.12), (0.0, 0.9))
    ]
    scale = make_rate_scale(rates, reach=1.6)
    assert scale.top < 0.21
    assert [exceeds(rate, scale) for rate in rates] == [False, True]
    assert "<path" not in draw_bar(rates[0], scale, "x")
    assert "<path" in draw_bar(rates[1], scale, "x")


def test_the_page_of_any_history_is_well_formed():
    for sessions in (
        [],
        many(1, GOOD),
        many(1, FAIL),
        many(9, *[FAIL, GOOD] * 30),
        [None],
        many(6, FAIL | {"turn": None}),
    ):
        page = render_page(gather_insights(sessions), made=0.0)
        for tag in ("svg", "section", "figure", "table", "dl", "ol", "ul", "div"):
            assert page.count(f"<{tag}") == page.count(f"</{tag}>"), tag


# The corpus


@pytest.mark.slow
def test_the_corpus(corpus, tmp_path):
    with warmstart.open() as ws:
        ws.ingest(*([corpus] if FULL else [corpus / name for name in ("claude_code", "codex", "openai_chat")]))
        found, again = ws.insights(), ws.insights()
        sessions = ws.sessions(limit=None)
    assert msgspec.json.encode(found) == msgspec.json.encode(again)
    assert render_page(found, made=0.0) == render_page(again, made=0.0)
    assert (found.sessions, found.unreadable) == (len(sessions), 0)
    assert found.overall.errors == sum(row.errors for row in sessions)
    assert len(found.repeated) == 10 and found.repeated[0].count > 20
    assert any(error.fixes for error in found.repeated)
    assert found.along.windows[0].everyone.sessions > found.along.followed_sessions > 0
    cost = found.cost.cost
    assert cost.tokens and cost.seconds and cost.tokens_unknown < cost.errors
    assert 0 < (found.cost.tokens_share or 0) < 0.5
