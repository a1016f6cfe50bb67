"""Token accounting: totals agree with what transcripts report, and estimates are marked."""

from __future__ import annotations

import json
import runpy
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import warmstart
from places import ROOT
from transcripts import claude_lines, write_jsonl
from warmstart.formats.source import Source
from warmstart.model import Session, Spent, Usage
from warmstart.usage.amounts import (
    CHARACTERS,
    FIGURES,
    WINDOW,
    Tally,
    TokenMeter,
    add_up,
    count_tokens,
    day_of,
    divide,
    figures,
    settle,
    share,
)

BENCH = ROOT / "bench" / "usage.py"
NOON = 1_790_000_000.0  # 2026-09-21


def read(path: Path) -> list[Session]:
    return [scored.session for scored in warmstart.scan(Source(path))]


def read_one(path: Path, *lines: dict[str, Any]) -> Session:
    (session,) = read(write_jsonl(path, list(lines)))
    return session


# Arithmetic

counts = st.none() | st.integers(0, 10**15)
usages = st.builds(Usage, counts, counts, counts, counts, counts, st.none() | st.floats(0, 1e6))
parts = st.lists(st.builds(Spent, usages, st.sampled_from(["", "a", "b"]), st.sampled_from(["", "2026-01-01"])))


@pytest.mark.slow
@given(parts)
def test_sums_cover_known_figures(found):
    total = add_up(found)
    if not found:
        assert total is None
        return
    for name in FIGURES:
        known = [getattr(p.usage, name) for p in found if getattr(p.usage, name) is not None]
        assert getattr(total, name) == (pytest.approx(sum(known)) if known else None)


@pytest.mark.slow
@given(parts)
def test_a_tally_keeps_the_sum(found):
    tally = Tally()
    for part in found:
        tally.take(part.usage, part.model, part.day)
    summed = tally.spent()
    assert len({(p.model, p.day) for p in summed}) == len(summed)
    assert figures(add_up(summed) or Usage()) == pytest.approx(figures(add_up(found) or Usage()))


@given(st.integers(0, 10**15), st.lists(st.integers(0, 10**9), min_size=1, max_size=8))
def test_a_divided_whole_adds_up(whole, weights):
    pieces = divide(whole, weights)
    assert sum(pieces) == whole and len(pieces) == len(weights) and min(pieces) >= 0


@given(usages, st.lists(st.builds(Spent, usages, st.sampled_from("ab")), min_size=1, max_size=5))
def test_shares_add_up_to_the_total(total, found):
    shared = add_up(share(total, found))
    for name in FIGURES:
        whole = getattr(total, name)
        assert getattr(shared, name) == pytest.approx(getattr(add_up(found), name) if whole is None else whole)


def test_a_total_that_agrees_changes_nothing():
    found = (Spent(Usage(input=10, output=3), "a", "2026-01-01"), Spent(Usage(input=7, output=9), "b", "2026-01-02"))
    assert share(Usage(input=17, output=12), found) == found


def test_usage_without_a_day_goes_to_the_days_of_the_text():
    guess = [
        Spent(Usage(input=30, output=0, basis="estimated"), day="2026-01-01"),
        Spent(Usage(input=10, output=0, basis="estimated"), day="2026-01-02"),
    ]
    first, second = settle([Spent(Usage(input=100, cost=2.0), "m")], None, guess)
    assert first == Spent(Usage(input=75, cost=1.5), "m", "2026-01-01")
    assert second == Spent(Usage(input=25, cost=0.5), "m", "2026-01-02")
    shared = settle([], Usage(output=8), guess)
    assert [part.usage for part in shared] == [Usage(output=6), Usage(output=2)], "the guess only weighs"


def test_days_are_utc_and_impossible_times_have_none():
    assert day_of(NOON) == "2026-09-21"
    assert day_of(0.0) == "1970-01-01" and day_of(86_399.9) == "1970-01-01" and day_of(86_400) == "1970-01-02"
    assert day_of(None) == "" and day_of(1e15) == "" and day_of(-1.0) == "1969-12-31"


def test_the_meter_counts_the_context_anew_at_each_turn():
    meter = TokenMeter()
    meter.hear(round(100 * CHARACTERS))
    meter.say(round(10 * CHARACTERS), NOON)
    meter.say(round(10 * CHARACTERS), NOON)  # the same turn
    meter.hear(round(50 * CHARACTERS))
    meter.say(round(5 * CHARACTERS), NOON + 86_400)
    first, second = meter.spent()
    assert (first.usage.input, first.usage.output, first.day) == (100, 20, "2026-09-21")
    assert (second.usage.input, second.usage.output, second.day) == (170, 5, "2026-09-22")
    assert first.usage.basis == "estimated" and first.usage.cache_read is None


def test_a_long_context_is_capped_at_the_window():
    meter = TokenMeter()
    meter.hear(10**9)
    meter.say(0, None)
    (part,) = meter.spent()
    assert part.usage.input == WINDOW


# The corpus, counted a second time with plain json and sqlite3


@pytest.mark.slow
@pytest.mark.parametrize("name", ["claude_code", "codex", "hermes"])
def test_totals_agree_with_what_the_corpus_reports(corpus, name):
    found = runpy.run_path(str(BENCH))["agreement"](corpus)[name]
    assert found["agree"] == found["sessions"] and found["reported"] == found["read"]
    assert found["sessions"] >= {"claude_code": 60, "codex": 8, "hermes": 0}[name]


@pytest.mark.slow
def test_parts_add_up_to_the_session_on_the_corpus(corpus):
    for name in ("claude_code", "codex", "gemini_cli", "mini_swe_agent", "atif", "hermes", "tau2", "codex_exec"):
        for scored in warmstart.inspect(corpus / name).sessions:
            session = scored.session
            assert session.usage == add_up(session.spent) or session.usage.cost == pytest.approx(
                add_up(session.spent).cost
            )
            assert len({(p.model, p.day) for p in session.spent}) == len(session.spent)


# Claude Code


def answer(message: str, output: int, **facts: Any) -> dict[str, Any]:
    usage = {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 3}
    body = {"id": message, "role": "assistant", "model": facts.pop("model", "m"), "usage": usage, "content": "so"}
    common = {"sessionId": "s", "type": "assistant", "uuid": f"u{message}{output}", "timestamp": "2026-10-01T23:59:59Z"}
    return common | {"message": body} | facts


def test_of_each_message_the_last_usage_counts_by_model_and_day(tmp_path):
    session = read_one(
        tmp_path / "s.jsonl",
        {"sessionId": "s", "type": "user", "uuid": "u", "message": {"role": "user", "content": "hello"}},
        answer("1", 1),
        answer("1", 5),
        answer("2", 7, timestamp="2026-10-02T00:00:01Z"),
        answer("3", 9, timestamp="2026-10-02T00:00:02Z", model="other"),
        answer("4", 0, model="<synthetic>"),
        answer("1", 6, timestamp="2026-10-02T00:00:03Z"),  # copied when the session was resumed
    )
    assert session.usage == Usage(input=30, output=22, cache_read=9)
    assert session.spent == (
        Spent(Usage(input=20, output=13, cache_read=6), "m", "2026-10-02"),
        Spent(Usage(input=10, output=9, cache_read=3), "other", "2026-10-02"),
    )


def test_subagents_pay_for_themselves(tmp_path):
    side = {"isSidechain": True, "agentId": "a1"}
    path = write_jsonl(tmp_path / "s.jsonl", [answer("1", 5), answer("1", 7, **side), answer("2", 1, **side)])
    assert {s.id: s.usage.output for s in read(path)} == {"s": 5, "s/agent-a1": 8}


def test_copies_of_a_session_in_several_files_count_once(tmp_path):
    lines = claude_lines("s", calls=2) + [answer("1", 5), answer("2", 7)]
    write_jsonl(tmp_path / "in" / "one.jsonl", lines)
    write_jsonl(tmp_path / "in" / "older.jsonl", lines[:-1])
    write_jsonl(tmp_path / "in" / "zcopy.jsonl", lines)
    with warmstart.open(tmp_path / "home") as ws:
        ws.ingest(tmp_path / "in")
        assert ws.usage.report().totals.output == 12
        assert ws.usage.report().totals.sessions == 1


def test_hostile_counts_are_not_counted(tmp_path):
    lines = [answer("1", 5), answer("2", 6), answer("3", 7), answer("4", 2)]
    for line, wrong in zip(lines, (-5, 10**30, "many", 2), strict=True):
        line["message"]["usage"]["output_tokens"] = wrong
    path = write_jsonl(tmp_path / "s.jsonl", lines)
    (session,) = read(path)
    assert session.usage.output == 2 and session.usage.input == 40
    with warmstart.open(tmp_path / "home") as ws:
        ws.ingest(path)
        assert ws.usage.report().totals.output == 2


def test_an_empty_report_is_none(tmp_path):
    line = answer("1", 5)
    line["message"]["usage"] = {"service_tier": "standard"}
    assert read_one(tmp_path / "s.jsonl", line).usage.basis == "estimated"


# Codex


def codex(*lines: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    meta = ("session_meta", {"id": "c1", "cwd": "/p"})
    return [
        {"timestamp": f"2026-10-{1 + n // 4:02}T10:00:00Z", "type": kind, "payload": payload}
        for n, (kind, payload) in enumerate((meta, *lines))
    ]


def total(sent: int, cached: int, said: int, **more: int) -> tuple[str, dict[str, Any]]:
    usage = {"input_tokens": sent, "cached_input_tokens": cached, "output_tokens": said} | more
    return "event_msg", {"type": "token_count", "info": {"total_token_usage": usage}}


def turn(model: str) -> tuple[str, dict[str, Any]]:
    return "turn_context", {"model": model}


def test_running_totals_belong_to_the_model_and_day_of_their_turn(tmp_path):
    lines = codex(
        turn("a"), total(100, 60, 10), total(100, 60, 10), turn("b"), total(300, 200, 15), total(310, 205, 20)
    )
    session = read_one(tmp_path / "c.jsonl", *lines)
    assert session.usage == Usage(input=105, output=20, cache_read=205)
    assert session.spent == (
        Spent(Usage(input=40, output=10, cache_read=60), "a", "2026-10-01"),
        Spent(Usage(input=65, output=10, cache_read=145), "b", "2026-10-02"),
    )


def test_totals_that_restart_are_neither_lost_nor_doubled(tmp_path):
    full = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "total_tokens": 272_000}
    event = ("event_msg", {"type": "token_count", "info": {"total_token_usage": full}})
    lines = codex(turn("a"), total(1_000, 0, 50), event, total(300, 100, 5), total(350, 120, 9), total(40, 0, 3))
    session = read_one(tmp_path / "c.jsonl", *lines)
    assert session.usage == Usage(input=1_000 + 230 + 40, output=50 + 9 + 3, cache_read=120)


def test_a_codex_session_without_counts_is_estimated(tmp_path):
    said = (
        "response_item",
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x" * 340}]},
    )
    asked = (
        "response_item",
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "y" * 3_400}]},
    )
    session = read_one(tmp_path / "c.jsonl", *codex(turn("a"), asked, said))
    assert session.usage == Usage(input=1_000, output=100, basis="estimated")
    assert session.spent[0].model == "a" and session.spent[0].day == "2026-10-01"


# Hermes

MODELS = """CREATE TABLE session_model_usage (session_id TEXT, model TEXT, task TEXT NOT NULL DEFAULT '',
  input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER,
  reasoning_tokens INTEGER, estimated_cost_usd REAL, actual_cost_usd REAL)"""


def hermes(path: Path, *rows: tuple[Any, ...], days: int = 1, tokens: int = 100) -> Path:
    with closing(sqlite3.connect(path)) as database:
        database.execute(
            "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, started_at REAL, input_tokens INTEGER,"
            " output_tokens INTEGER, cache_read_tokens INTEGER, cache_write_tokens INTEGER, reasoning_tokens INTEGER,"
            " estimated_cost_usd REAL, actual_cost_usd REAL)"
        )
        database.execute(
            "CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_calls TEXT,"
            " tool_call_id TEXT, timestamp REAL)"
        )
        cost = 0.5 if tokens else None
        numbers = (tokens, tokens // 10, 40 if tokens else 0, 0, 0, cost, None)
        database.execute("INSERT INTO sessions VALUES ('h', 'cli', 'main', ?, ?, ?, ?, ?, ?, ?, ?)", (NOON, *numbers))
        for day in range(days):
            for role, text in (("user", "do this " * 40), ("assistant", "done " * 20)):
                at = NOON + day * 86_400
                database.execute(
                    "INSERT INTO messages (session_id, role, content, timestamp) VALUES ('h', ?, ?, ?)",
                    (role, text, at),
                )
        if rows:
            database.execute(MODELS)
            for row in rows:
                database.execute("INSERT INTO session_model_usage VALUES ('h', ?, ?, ?, ?, ?, 0, 0, ?, 0)", row)
        database.commit()
    return path


def test_the_sessions_table_gives_the_total(tmp_path):
    (session,) = read(hermes(tmp_path / "state.db"))
    assert session.usage == Usage(input=100, output=10, cache_read=40, cache_write=0, reasoning=0, cost=0.5)
    assert session.spent == (Spent(session.usage, "main", "2026-09-21"),)


def test_models_of_the_main_loop_share_it_and_other_tasks_stay_out(tmp_path):
    rows = (("main", "", 60, 6, 40, 0.4), ("big", "", 30, 4, 0, 0.1), ("small", "title_generation", 900, 9, 0, 0.9))
    (session,) = read(hermes(tmp_path / "state.db", *rows))
    assert (session.usage.input, session.usage.output, session.usage.cache_read, session.usage.cost) == (
        100,
        10,
        40,
        0.5,
    )
    by_model = {part.model: part.usage for part in session.spent}
    assert by_model["big"].input == 30 and by_model["big"].cost == pytest.approx(0.1)
    assert by_model["main"].input == 70, "what no model accounts for is the session's model's"


def test_models_that_account_for_more_are_not_believed(tmp_path):
    (session,) = read(hermes(tmp_path / "state.db", ("big", "", 3_000, 4, 0, 0.0)))
    assert session.usage.input == 100 and [part.model for part in session.spent] == ["main"]


def test_a_long_sessions_total_is_divided_among_its_days(tmp_path):
    (session,) = read(hermes(tmp_path / "state.db", days=3))
    assert [part.day for part in session.spent] == ["2026-09-21", "2026-09-22", "2026-09-23"]
    assert sum(part.usage.input for part in session.spent) == 100 == session.usage.input
    assert session.spent[0].usage.input < session.spent[2].usage.input, "the context grows"
    assert session.usage.cost == pytest.approx(0.5) and session.usage.basis == "reported"


def test_a_table_of_zeros_counts_as_unknown(tmp_path):
    (session,) = read(hermes(tmp_path / "state.db", tokens=0))
    assert session.usage.basis == "estimated" and session.usage.input > 0 and session.usage.cost is None


# What is not reported


def test_a_cost_without_tokens_keeps_the_cost(tmp_path):
    messages = [{"role": "user", "content": "u" * 340}, {"role": "assistant", "content": "a" * 34}]
    path = tmp_path / "run.traj.json"
    info = {"exit_status": "Submitted", "model_stats": {"instance_cost": 0.25}}
    path.write_text(json.dumps({"info": info, "messages": messages, "trajectory_format": "mini-swe-agent-1"}))
    (session,) = read(path)
    assert session.usage == Usage(input=100, output=10, cost=0.25, basis="estimated")


def test_a_session_without_text_has_no_usage(tmp_path):
    path = tmp_path / "chat.json"
    path.write_text(json.dumps([{"role": "user", "content": "hello?"}]))
    (session,) = read(path)
    assert session.usage is None and session.spent == ()


def test_the_whole_text_is_measured_not_the_stored_excerpt(tmp_path):
    call = {"id": "c", "type": "function", "function": {"name": "cat", "arguments": json.dumps({"path": "p" * 9_000})}}
    messages = [
        {"role": "user", "content": "u" * 50_000},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "r" * 200_000},
        {"role": "assistant", "content": "ok"},
    ]
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(messages))
    (session,) = read(path)
    assert session.usage.input * CHARACTERS == pytest.approx(50_000 + 259_000, rel=0.01)
    assert session.usage.output * CHARACTERS == pytest.approx(9_000, rel=0.01)


def test_deep_arguments_are_measured(tmp_path):
    deep: Any = "x"
    for _ in range(200):
        deep = {"k": deep}
    body = {"id": "m", "role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "T", "input": deep}]}
    line = {"sessionId": "s", "type": "assistant", "uuid": "u", "message": body}
    assert count_tokens(read_one(tmp_path / "s.jsonl", line).usage) > 0
