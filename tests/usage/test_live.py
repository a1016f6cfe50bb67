"""Live reports count once, even if they are repeated, late, concurrent or out of order."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warmstart
from places import SRC
from transcripts import claude_lines, write_jsonl
from warmstart.errors import Refused
from warmstart.model import LiveUsage, Usage
from warmstart.pipeline import Warmstart
from warmstart.store import UsageStore
from warmstart.usage.accounts import LiveUsageResult

NOON = 1_790_000_000.0  # 2026-09-21
DAY = 86_400


@pytest.fixture
def ws(tmp_path):
    with warmstart.open(tmp_path / "home") as opened:
        yield opened


def live(session: str = "s", **given: Any) -> LiveUsage:
    names = ("input", "output", "cache_read", "cache_write", "reasoning", "cost")
    usage = Usage(**{name: given.pop(name) for name in names if name in given})
    return LiveUsage(session=session, usage=usage, **({"at": NOON} | given))


def by_day(ws: Warmstart) -> dict[str | None, int | None]:
    return {row.name: row.input for row in ws.usage.report("day").rows}


def known(ws: Warmstart, session: str = "s") -> Usage:
    (row,) = [row for row in ws.usage.report("session").rows if row.name == session]
    return Usage(row.input, row.output, row.cache_read, row.cache_write, row.reasoning, row.cost)


def test_a_running_total_sent_ten_times_changes_nothing(ws):
    first = ws.usage.set(live(input=100, output=7, cost=0.5, model="m"))
    assert first == LiveUsageResult(session="s", changed=True, usage=Usage(input=100, output=7, cost=0.5))
    for _ in range(10):
        again = ws.usage.set(live(input=100, output=7, cost=0.5, model="m"))
        assert (again.changed, again.reason, again.usage) == (
            False,
            "the totals are not larger than before",
            first.usage,
        )
    assert known(ws) == Usage(input=100, output=7, cost=0.5)


def test_an_event_counts_once(ws):
    for count, changed in ((1, True), (2, False), (3, False)):
        result = ws.usage.add(live(input=count * 5, event="e1"))
        assert result.changed is changed
    assert ws.usage.add(live(input=5, event="e2")).usage.input == 10
    assert ws.usage.add(live("other", input=5, event="e1")).changed, "events are per session"
    assert ws.usage.set(live(input=99, event="e1")).reason == "the event was already counted"
    assert known(ws).input == 10


def test_an_added_amount_needs_an_event(ws):
    for event in (None, ""):
        with pytest.raises(Refused, match="event id"):
            ws.usage.add(live(input=1, event=event))


def test_a_late_smaller_total_lowers_nothing_field_by_field(ws):
    ws.usage.set(live(input=100, output=5))
    result = ws.usage.set(live(input=60, output=9, at=NOON - 50))
    assert result.changed and result.usage == Usage(input=100, output=9)


def test_unknown_stays_unknown_and_zero_is_known(ws):
    ws.usage.set(live(output=5))
    assert known(ws) == Usage(output=5)
    ws.usage.add(live(cache_read=0, event="e"))
    assert known(ws) == Usage(output=5, cache_read=0)
    assert ws.usage.report().totals.cost is None and ws.usage.report().totals.cost_unknown == 1


def test_a_total_that_grows_over_midnight_is_on_each_day_once(ws):
    ws.usage.set(live(input=100))
    ws.usage.set(live(input=130, at=NOON + DAY))
    ws.usage.set(live(input=130, at=NOON + DAY))
    ws.usage.set(live(input=190, at=NOON + 3 * DAY))
    assert by_day(ws) == {"2026-09-21": 100, "2026-09-22": 30, "2026-09-24": 60}


def test_totals_are_of_a_model_or_of_the_whole_session(ws):
    ws.usage.set(live(input=100, model="a"))
    ws.usage.set(live(input=50, model="b"))
    assert known(ws).input == 150
    ws.usage.set(live(input=170, model="b", whole=True))
    ws.usage.set(live(input=180))  # without a model it is the whole session's, too
    assert {row.name: row.input for row in ws.usage.report("model").rows} == {"a": 100, "b": 80}


def test_early_reports_belong_to_the_model_and_agent_named_later(ws):
    ws.usage.set(live(input=100))
    ws.usage.set(live(input=120, agent="codex", model="a"))
    ws.usage.set(live(input=130))
    (row,) = ws.usage.report("agent").rows
    assert (row.name, row.sessions, row.input) == ("codex", 1, 130)
    assert [r.name for r in ws.usage.report("model").rows] == ["a"]


def test_set_and_add_share_one_total(ws):
    ws.usage.add(live(input=10, event="1"))
    ws.usage.set(live(input=100))
    ws.usage.add(live(input=10, event="2"))
    ws.usage.set(live(input=105))
    assert known(ws).input == 110


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (live(input=-1), "below zero"),
        (live(input=10**15 + 1), "above the maximum"),
        (live(cost=float("nan")), "not a number"),
        (live(cost=float("inf")), "not a number"),
        (live(cost=-0.01), "below zero"),
        (live(input=1.5), "not a number of tokens"),
        (live(input=True), "not a number of tokens"),
        (live(output="12"), "not a number of tokens"),
        (live(), "has no figures"),
        (live("  ", input=1), "id is empty"),
        (live("x" * 5_000, input=1), "are allowed"),
        (live(input=1, model="m" * 5_000), "are allowed"),
        (live(input=1, at=float("nan")), "not a time"),
        (live(input=1, at=1e300), "not a time"),
        (live(input=1, at=-5.0), "not a time"),
    ],
)
def test_impossible_reports_are_refused_and_leave_no_trace(ws, report, reason):
    for take in (
        ws.usage.set,
        lambda r: ws.usage.add(warmstart.LiveUsage(**{f: getattr(r, f) for f in r.__struct_fields__} | {"event": "e"})),
    ):
        with pytest.raises(Refused, match=reason):
            take(report)
    assert ws.usage.report().totals.sessions == 0
    assert ws.usage.add(live(input=1, event="e")).changed, "the event was not used up"


def test_a_sum_has_the_same_maximum(ws):
    ws.usage.add(live(input=10**15, event="1"))
    with pytest.raises(Refused, match="above the maximum"):
        ws.usage.add(live(input=1, event="2"))
    assert known(ws).input == 10**15


def test_names_with_secrets_are_not_kept(tmp_path, monkeypatch):
    secret = "correct-horse-battery-7"
    monkeypatch.setenv("ACME_TOKEN", secret)
    with warmstart.open(tmp_path / "home") as ws:
        for name in ("one", "two"):
            ws.usage.set(live(f"{secret}-{name}", input=5, model=secret, project=f"/home/x/{secret}", event=secret))
        assert ws.usage.report().totals.input == 10, "two ids that hold secrets stay two"
        ws.usage.set(live("half \ud83d", input=1, model="\udc00"))
    kept = b"".join(file.read_bytes() for file in (tmp_path / "home").iterdir())
    assert secret.encode() not in kept


def test_control_codes_in_names_do_not_reach_the_terminal(ws, capsys):
    from warmstart.doors.cli.usage import show_usage

    ws.usage.set(live("s\x1b[31m", input=5, model="m\x1b]0;x\x07"))
    for by in ("session", "model"):
        show_usage(ws.usage.report(by), 5)
    assert "\x1b]0" not in capsys.readouterr().out


# Restarts and several processes

WORKER = """
import sys, warmstart
from warmstart.model import LiveUsage, Usage
home, me, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
import random
chance = random.Random(seed)
reports = [("add", n) for n in range(20)] * 2 + [("set", n) for n in range(20)] * 2
chance.shuffle(reports)
for kind, n in reports:
    with warmstart.open(home) as ws:
        if kind == "add":
            ws.usage.add(LiveUsage(session="added", usage=Usage(input=10 + n), event=f"e{n}", model="m"))
        else:
            ws.usage.set(LiveUsage(session="total", usage=Usage(input=100 * n, cost=n / 8), model="m", at=1e9 + n))
"""


@pytest.mark.slow
def test_processes_that_report_the_same_at_once_count_once(tmp_path):
    home = tmp_path / "home"
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(home), str(n), str(random.Random(n).random())[2:8]],
            env={"PYTHONPATH": str(SRC), "HOME": str(tmp_path)},
            stderr=subprocess.PIPE,
        )
        for n in range(4)
    ]
    for worker in workers:
        _out, error = worker.communicate(timeout=120)
        assert worker.returncode == 0, error.decode()
    with warmstart.open(home) as ws:
        assert known(ws, "added").input == sum(10 + n for n in range(20))
        assert known(ws, "total") == Usage(input=1_900, cost=19 / 8)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_in_any_order_the_largest_total_counts(tmp_path_factory, data):
    """Reports name their times, so one that comes late is no restart."""
    totals = data.draw(st.lists(st.tuples(st.integers(0, 500), st.integers(0, 4)), min_size=1, max_size=12))
    grown = list(zip(sorted(count for count, _day in totals), sorted(day for _count, day in totals), strict=True))
    sent = data.draw(st.permutations(grown + grown))
    with warmstart.open(tmp_path_factory.mktemp("home")) as ws:
        for count, day in sent:
            ws.usage.set(live(input=count, at=NOON + day * DAY))
        assert known(ws).input == max(count for count, _day in totals)
        assert sum(by_day(ws).values()) == max(count for count, _day in totals)


# Counters that start over


def test_a_counter_that_starts_over_adds_up(ws):
    for count in (1_000, 20_000, 800, 3_000, 3_000, 9_000):
        result = ws.usage.set(live(input=count, output=count // 10, cost=count / 1e6, at=None))
    assert result.usage == Usage(input=29_000, output=2_900, cost=pytest.approx(0.029))
    for count in (20, 50):
        result = ws.usage.set(live(input=count, output=count // 10, at=None))
    assert result.usage.input == 29_050


def test_a_later_lower_total_is_a_restart_however_little_lower(ws):
    ws.usage.set(live(input=1_000))
    assert ws.usage.set(live(input=900, at=NOON + 60)).usage.input == 1_900
    assert ws.usage.set(live(input=990, at=NOON - 30)).usage.input == 1_900, "this one came late"
    assert ws.usage.set(live(input=1_000)).usage.input == 1_900, "and this one again"
    assert ws.usage.set(live(input=1_200, at=NOON + 90)).usage.input == 2_200


def test_a_total_a_little_lower_without_a_time_is_late(ws):
    """Two hooks that end at the same moment may report in the wrong order."""
    ws.usage.set(live(input=5_000, output=100, at=None))
    result = ws.usage.set(live(input=4_900, output=90, at=None))
    assert (result.changed, result.usage.input) == (False, 5_000)
    assert ws.usage.set(live(input=5_100, output=110, at=None)).usage.input == 5_100


def test_a_total_that_was_seen_before_is_no_restart(ws):
    for count in (100, 5_000, 100, 5_000, 100):
        result = ws.usage.set(live(input=count, at=None))
    assert result.usage.input == 5_000
    for count in (200, 5_000, 200, 300):
        result = ws.usage.set(live(input=count, at=None))
    assert result.usage.input == 5_300


def test_each_model_has_a_counter_of_its_own(ws):
    ws.usage.set(live(input=10_000, model="a", at=None))
    ws.usage.set(live(input=50, model="b", at=None))
    ws.usage.set(live(input=70, model="a", at=None))
    ws.usage.set(live(input=90, model="b", at=None))
    assert {row.name: row.input for row in ws.usage.report("model").rows} == {"a": 10_070, "b": 90}


def test_a_restart_counts_on_its_own_day_and_goes_with_the_session(ws):
    ws.usage.set(live(input=100))
    ws.usage.set(live(input=30, at=NOON + DAY))
    assert by_day(ws) == {"2026-09-21": 100, "2026-09-22": 30}


# With a transcript


def transcript(tmp_path: Path, usage: dict[str, int] | None, session: str = "s", calls: int = 2) -> Path:
    lines = claude_lines(session, calls=calls)
    for line in lines:
        if line["type"] == "assistant" and usage:
            line["message"]["usage"] = usage
    return write_jsonl(tmp_path / "in" / f"{session}.jsonl", lines)


def test_a_session_with_both_is_counted_once_and_the_transcript_wins(ws, tmp_path):
    ws.usage.set(live(input=999, output=999, reasoning=44, cost=2.0, model="live", agent="claude-code"))
    assert known(ws) == Usage(input=999, output=999, reasoning=44, cost=2.0)
    ws.ingest(transcript(tmp_path, {"input_tokens": 10, "output_tokens": 30, "cache_read_input_tokens": 50}))
    assert known(ws) == Usage(input=20, output=60, cache_read=100, reasoning=44, cost=2.0)
    totals = ws.usage.report("model")
    assert totals.totals.sessions == 1 and [row.name for row in totals.rows] == ["m"]
    assert totals.totals.tokens_estimated == totals.totals.cost_estimated == 0


def test_live_beats_estimated_and_the_rest_stays_estimated(ws, tmp_path):
    ws.ingest(transcript(tmp_path, None))
    guess = known(ws)
    ws.usage.set(live(output=5_000, model="live"))
    report = ws.usage.report()
    assert report.totals.output == 5_000 and report.totals.input == guess.input
    assert report.totals.estimated == {"input": guess.input, "total": guess.input}
    assert report.totals.tokens_estimated == 1 and report.totals.sessions == 1
    ws.usage.set(live(input=7, model="live"))
    assert ws.usage.report().totals.estimated == {}


def test_a_live_output_beats_one_completed_from_the_text(ws, tmp_path):
    ws.ingest(transcript(tmp_path, {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 50}))
    report = ws.usage.report().totals
    assert (report.input, report.cache_read, report.output_completed, report.tokens_estimated) == (20, 100, 1, 0)
    assert report.estimated.keys() == {"output", "total"} and report.output > 2
    ws.usage.set(live(output=77, agent="claude-code"))
    report = ws.usage.report().totals
    assert (report.input, report.output, report.output_completed, report.estimated) == (20, 77, 0, {})


def test_a_live_report_of_something_else_leaves_the_completion_marked(ws, tmp_path):
    ws.ingest(transcript(tmp_path, {"input_tokens": 10, "output_tokens": 1}))
    ws.usage.set(live(cache_read=50, agent="claude-code"))
    report = ws.usage.report().totals
    assert (report.cache_read, report.output_completed) == (50, 1)
    assert report.estimated == {"output": report.output, "total": report.output}


def test_a_named_agent_has_to_match(ws, tmp_path):
    ws.ingest(transcript(tmp_path, {"input_tokens": 10, "output_tokens": 30}))
    ws.usage.set(live(input=500, agent="codex"))
    assert {row.name: row.input for row in ws.usage.report("agent").rows} == {"claude-code": 20, "codex": 500}


def test_totals_survive_another_ingest_growth_and_a_deletion(ws, tmp_path):
    path = transcript(tmp_path, {"input_tokens": 10, "output_tokens": 30})
    transcript(tmp_path, {"input_tokens": 1, "output_tokens": 1}, session="t")
    ws.ingest(tmp_path / "in")
    before = ws.usage.report("session")
    path.touch()
    assert ws.ingest(tmp_path / "in").updated == 0
    assert ws.usage.report("session") == before
    transcript(tmp_path, {"input_tokens": 10, "output_tokens": 30}, calls=5)
    assert ws.ingest(tmp_path / "in").updated == 1
    assert known(ws) == Usage(input=50, output=150) and known(ws, "t").input == 2
    ws.usage.set(live(reasoning=9))
    ws.delete_session("s")
    assert [row.name for row in ws.usage.report("session").rows] == ["t"]
    assert UsageStore(ws.store).live() == [] and len(list(UsageStore(ws.store).spent())) == 1
    ws.ingest(tmp_path / "in")
    assert known(ws, "t").input == 2


def test_an_ingested_session_has_parts(ws, tmp_path):
    ws.ingest(transcript(tmp_path, {"input_tokens": 10, "output_tokens": 30}))
    (part,) = ws.session("s").spent
    assert (part.model, part.day, part.input, part.output, part.basis) == ("m", "2026-10-01", 20, 60, "reported")
