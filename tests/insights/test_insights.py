"""Insights on small sessions whose right answer was worked out by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from insight_sessions import FAIL, GOOD, MONDAY, call, many, session
from warmstart.insights import gather_insights
from warmstart.insights.costs import IDLE
from warmstart.insights.errors import mask_message
from warmstart.insights.fixes import SOON
from warmstart.insights.gather import find_failures
from warmstart.insights.rates import FEW, WINDOWS
from warmstart.model import Outcome, Usage
from warmstart.templates.mine import MiningOptions, mine
from warmstart.trials.power import compute_power

# Repeated errors


def test_the_same_error_about_another_file_is_the_same():
    said = ["no such file: /a/b.py line 3", "no such file: /c/d.go line 77"]
    found = gather_insights([session(call(said=one), key=one) for one in said])
    (error,) = found.repeated
    assert (error.tool, error.error_kind, error.shape) == ("Read", "arguments", "Read(path:absolute path)")
    assert (error.message, error.count, error.sessions) == ("no such file: <path> line <n>", 2, 2)
    assert error.example == said[0]
    assert (error.last_seen, error.last_session) == (MONDAY, said[1])


def test_different_errors_stay_separate():
    failed = [call(said="file not found"), call(said="permission denied"), call("Edit", said="file not found")]
    wrong_id = [
        call("order", {"order_id": "123"}, "order not found"),
        call("order", {"order_id": "#W123"}, "order not found"),
    ]
    found = gather_insights([session(*failed, *wrong_id, key="a"), session(*failed, *wrong_id, key="b")])
    assert {(e.tool, e.message, e.shape) for e in found.repeated} == {
        ("Read", "file not found", "Read(path:absolute path)"),
        ("Read", "permission denied", "Read(path:absolute path)"),
        ("Edit", "file not found", "Edit(path:absolute path)"),
        ("order", "order not found", "order(order_id:digits)"),
        ("order", "order not found", "order(order_id:#id)"),
    }


def test_kinds_of_error_stay_apart_and_what_came_once_is_counted():
    other = call(said="nothing") | {"outcome": Outcome("error", "flag", "environment")}
    found = gather_insights([session(call(said="nothing"), call(said="nothing"), other)])
    assert [(e.error_kind, e.count) for e in found.repeated] == [("arguments", 2)]
    assert (found.seen_once, found.repeated_more) == (1, 0)


def test_for_command_lines_the_message_decides():
    said = "ModuleNotFoundError: No module named 'yaml'"
    lines = ("python a.py", "cd x && python b.py --fast", "pytest -q tests")
    found = gather_insights([session(*(call("Bash", {"command": line}, said) for line in lines))])
    (error,) = found.repeated
    assert (error.count, error.shapes) == (3, 3)
    assert error.message == "ModuleNotFoundError: No module named <text>"


def test_without_a_message_the_shape_decides():
    silent = {"outcome": Outcome("error", "exit_code", "other"), "excerpt": "<returncode>1</returncode>"}
    calls = [call("Bash", {"command": f"{program} -n x a.py"}) | silent for program in ("grep", "grep", "sed", "sed")]
    found = gather_insights([session(*calls)])
    assert [(e.message, e.shape, e.example) for e in found.repeated] == [
        ("", "Bash: grep -n <arg> <path>", ""),
        ("", "Bash: sed -n <arg> <path>", ""),
    ]


def test_top_limits_every_list_and_says_so():
    sessions = [
        session(*[call(f"tool{n}", said="bad")] * 2, key=f"k{n}", model=f"m{n}", project=f"p{n}") for n in range(5)
    ]
    found = gather_insights(sessions, top=2)
    assert (len(found.repeated), found.repeated_more) == (2, 3)
    assert [(len(b.rates), b.more) for b in (found.by_tool, found.by_model, found.by_project)] == [(2, 3)] * 3


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("open '/etc/x': denied", "open <text>: denied"),
        ("see https://a.example/x?y=1 now", "see <url> now"),
        ("mail a.b@example.org refused", "mail <email> refused"),
        (r"C:\Users\x\file.txt missing", "<path> missing"),
        ("src/app/(main)/page.tsx missing", "<path> missing"),
        ("row 3fa85f64-5717-4562-b3fc-2c963f66afa6 gone", "row <id> gone"),
        ("at 0x7ffde 12,5% of $40", "at <id> <n> of <n>"),
        ("on 2026-10-01T10:00:00Z and 2026-10-01", "on <date> and <date>"),
        ("key {{SECRET:openai#1}} is wrong", "key <secret> is wrong"),
        ("can't do it, won't do it", "can't do it, won't do it"),
    ],
)
def test_messages_are_masked(line, masked):
    assert mask_message(line) == masked


@given(st.text(max_size=400))
def test_masking_takes_anything(text):
    assert len(mask_message(text)) <= 130


# How errors ended


def ending(*calls: dict[str, Any], **facts: Any) -> tuple[str, str, str] | None:
    first = find_failures(session(*calls, **facts))[0].ending
    return (first.how, first.what, first.example) if first else None


def test_an_argument_of_another_form_is_the_fix():
    failed = call("order", {"order_id": "W1234567"}, "order not found")
    assert ending(failed, call("order", {"order_id": "#W1234567"})) == ("value", "order_id: id -> #id", "")


def test_an_argument_that_was_missing_or_too_much():
    failed = call("find", {"name": "Ada Lovelace"}, "zip is required")
    assert ending(failed, call("find", {"name": "Ada Lovelace", "zip": "12345"})) == ("option", "with zip", "")
    failed = call("find", {"name": "Ada Lovelace", "zip": "12345"}, "unknown argument zip")
    assert ending(failed, call("find", {"name": "Ada Lovelace"})) == ("option", "without zip", "")


def test_another_command_line_is_the_fix():
    failed = call("Bash", {"command": "python -m pytest tests/test_a.py"}, "bash: python: command not found")
    worked = call("Bash", {"command": "python3 -m pytest tests/test_a.py"})
    how, what, _example = ending(failed | {"outcome": Outcome("error", "flag", "environment")}, worked) or ("", "", "")
    assert (how, what) == ("program", "`python3 -m pytest` instead of `python -m pytest`")


def test_another_tool_is_the_fix():
    failed = call("find_user_id_by_email", {"email": "a@b.example"}, "User not found")
    what = "find_user_id_by_name instead of find_user_id_by_email"
    assert ending(failed, call("find_user_id_by_name", {"name": "Ada"})) == ("program", what, "")


def test_paths_are_shown_relative_to_the_project():
    calls = (call("Read", {"file_path": "/home/ann/shop/src/cart.py"}, "File does not exist."),)
    worked = call("Read", {"file_path": "/home/ann/shop/lib/cart.py"})
    shown = ("path", "another path", "src/cart.py -> lib/cart.py")
    assert ending(*calls, worked, folder="/home/ann/shop") == shown
    assert ending(*calls, worked) == ("path", "another path", "shop/src/cart.py -> shop/lib/cart.py")


def test_a_check_that_passes_after_an_edit_is_work():
    failed = call("Bash", {"command": "make test"}, "make: *** [test] Error 1")
    failed |= {"outcome": Outcome("error", "flag", "other")}
    edit, again = call("Edit", {"file_path": "/a.py"}), call("Bash", {"command": "make  test"})
    assert ending(failed, edit, call("Grep"), again) is None
    (error,) = gather_insights(many(2, failed, edit, again)).repeated
    assert (error.check, error.passed, error.fixes) == (True, 2, ())


def test_no_advice_is_given_about_the_form_of_a_failing_check():
    failed = call("Bash", {"command": "make test"}, "1 failed") | {"outcome": Outcome("error", "flag", "other")}
    sessions = [session(failed, key=f"s{number}", timed=False) for number in range(4)]
    found = gather_insights(sessions)
    assert (found.repeated[0].check, found.repeated[0].unfixed) == (True, 4)
    assert [advice.command for advice in found.advice] == ["warmstart experiment power"]


def test_the_same_call_that_works_again_is_a_retry():
    assert ending(FAIL, FAIL, GOOD) == ("retry", "the same call again", "")


def test_a_call_of_the_same_answer_fixes_nothing():
    assert ending(FAIL, GOOD | {"turn": 1}) is None
    assert ending(FAIL, GOOD | {"turn": 1}, GOOD) == ("retry", "the same call again", "")


def test_a_late_call_is_no_fix():
    busy = call("Grep", {"pattern": "x"})
    assert ending(FAIL, *[busy] * (SOON - 1), GOOD) is not None
    assert ending(FAIL, *[busy] * SOON, GOOD) is None


def test_fixes_are_counted_by_session():
    fixed, unfixed = session(FAIL, FAIL, GOOD, key="a"), session(FAIL, key="b")
    (error,) = gather_insights([fixed, unfixed]).repeated
    assert (error.count, error.sessions, error.unfixed) == (3, 2, 1)
    assert [(f.how, f.what, f.sessions) for f in error.fixes] == [("retry", "the same call again", 1)]


# Counts and occurrences


def test_forks_and_subagents_count_as_the_session_they_came_from():
    steps = (call("order", {"order_id": "W1"}, "order not found"), call("order", {"order_id": "#W1"}))
    fork = structs.replace(session(*steps, key="a"), key="fork", id="fork")
    subagents = [session(*steps, key=f"child{number}", parent="a") for number in range(5)]
    (error,) = gather_insights([*subagents, session(*steps, key="a"), fork, session(*steps, key="b")]).repeated
    assert (error.count, error.sessions, error.unfixed) == (8, 2, 0)
    assert [fix.sessions for fix in error.fixes] == [2]


def test_guidance_and_insights_count_the_same_sessions():
    """Guidance once counted only the sessions that gave examples, insights every transcript."""
    steps = [call("Bash", {"command": "ls"})] * 3
    steps += [call("Bash", {"command": "python a.py"}, "bash: python: command not found")]
    steps += [call("Bash", {"command": "python3 a.py"})]
    busy = [call("Bash", {"command": f"make step{at} --flag{at}"}) for at in range(60)]
    failing = [call("Bash", {"command": f"x{at}"}, "bad") for at in range(8)]
    sessions = [session(*steps, key="a"), session(*steps, *busy, key="b"), session(*steps, *failing, key="refused")]
    sessions += [session(*steps, key=f"child{number}", parent="a") for number in range(4)]
    (error,) = [error for error in gather_insights(sessions).repeated if error.fixes]
    mined = mine(sessions, MiningOptions())
    assert [fix.sessions for fix in error.fixes] == [error.sessions] == [3]
    assert all("(seen failing in 3 sessions)" in draft.addendum for draft in mined.drafts)
    corrected = [example for draft in mined.drafts for example in draft.examples if example.correction]
    assert corrected and all(one.why.startswith("corrects a failure seen in 3 sessions") for one in corrected)


def test_a_row_leads_to_its_occurrences():
    wrong = call("order", {"order_id": "W1234567"}, "order not found")
    right = call("order", {"order_id": "#W1234567"})
    sessions = [session(wrong, right, key="a"), session(GOOD, wrong, GOOD, key="b", started=MONDAY + 86_400)]
    found = gather_insights(sessions, show=1)
    assert found.shown is not None and found.shown.number == found.repeated[0].number == 1
    assert [(one.session, one.call, one.cause, one.followed) for one in found.occurrences] == [
        ("b", 1, "order not found", "Read (ok)"),
        ("a", 0, "order not found", "order_id: id -> #id (call 1)"),
    ]
    assert gather_insights(sessions, show=2).shown is None
    assert gather_insights(sessions).occurrences == ()


def test_rates_by_kind_of_work_and_over_the_first_turns():
    calls = [
        call("Bash", {"command": "uv run pytest -q"}, "1 failed"),
        call("Bash", {"command": "cat a.py"}),
        call("Bash", {"command": "node build.js"}),
        call("WebFetch", {"url": "https://a.example"}),
        call("Bash", {"command": "git push"}),
        call("Read", {"file_path": "/a.py"}, "File does not exist."),
    ]
    late = call("Bash", {"command": "make"}, "broken", turn=31)
    by_work = {kind.name: kind for kind in gather_insights([session(*calls, late)]).by_work}
    counts = {name: (kind.rate.errors, kind.rate.judged) for name, kind in by_work.items()}
    assert counts == {"code": (2, 3), "file": (1, 2), "research": (0, 1), "mixed": (0, 1)}
    course = [(rate.name, rate.errors, rate.judged) for rate in by_work["code"].course]
    assert course == [("1-5", 1, 2), *((f"{start}-{start + 4}", 0, 0) for start in range(6, 31, 5))]


def test_the_pace_is_the_one_of_power():
    starts = [MONDAY + 86_400 * day for day in range(0, 60, 2)]
    sessions = [session(GOOD, key=f"s{at}", started=at) for at in starts]
    children = [session(GOOD, key=f"c{at}", started=at, parent="s") for at in starts]
    found = gather_insights([*sessions, *children])
    rows = [(f"s{at}", at, None, None, number % 3, 10) for number, at in enumerate(starts)]
    assert found.weekly == compute_power(rows, starts[-1], cold_share=0.5, power=0.8).per_week == 3.5
    assert "at 3.5 sessions a week" in found.advice[-1].text


# Rates


def test_rates_by_group_leave_out_unjudged_calls():
    rejected = GOOD | {"outcome": Outcome("rejected")}
    unknown = GOOD | {"outcome": Outcome("unknown")}
    cancelled = GOOD | {"outcome": Outcome("cancelled")}
    sessions = [
        session(FAIL, GOOD, GOOD, GOOD, rejected, unknown, key="a", model="m1", project="p"),
        session(call("Bash"), cancelled, key="b", model=None, agent="hermes"),
    ]
    found = gather_insights(sessions)
    assert (found.calls, found.overall.judged, found.overall.errors, found.overall.rate) == (8, 5, 1, 0.2)
    assert found.left_out == {"rejected": 1, "denied": 0, "cancelled": 1, "unknown": 1}
    rates = {facet: [(r.name, r.errors, r.judged, r.sessions) for r in groups.rates] for facet, groups in (
        ("tool", found.by_tool), ("model", found.by_model), ("agent", found.by_agent), ("project", found.by_project))}  # fmt: skip
    assert rates == {
        "tool": [("Read", 1, 4, 1), ("Bash", 0, 1, 1)],
        "model": [("m1", 1, 4, 1), (None, 0, 1, 1)],
        "agent": [("codex", 1, 4, 1), ("hermes", 0, 1, 1)],
        "project": [("p", 1, 4, 1), (None, 0, 1, 1)],
    }


def test_an_interval_that_is_not_defined_is_absent():
    one = gather_insights([session(FAIL, GOOD)]).overall
    assert (one.rate, one.low, one.high) == (0.5, None, None)
    nothing = gather_insights([session()]).overall
    assert (nothing.rate, nothing.low, nothing.high, nothing.judged) == (None, None, None, 0)


def test_intervals_take_the_calls_of_a_session_together():
    """Half of the sessions fail always, half never: a hundred calls are worth ten sessions."""
    sessions = [*many(10, *[FAIL] * 10), *many(10, *[GOOD] * 10)]
    rate = gather_insights(sessions).overall
    assert rate.rate == 0.5
    assert rate.low is not None and rate.high is not None
    naive = 1.96 * math.sqrt(0.25 / 200)
    assert rate.high - rate.low > 4 * naive


def test_weeks_begin_on_monday_and_reach_back_a_year():
    week = 7 * 86_400
    starts = [MONDAY - 1, MONDAY, MONDAY + week - 1, MONDAY - 60 * week, None, 1e18, math.inf]
    found = gather_insights([session(GOOD, key=str(n), started=at) for n, at in enumerate(starts)])
    assert [(w.name, w.sessions) for w in found.by_week] == [("2026-09-21", 1), ("2026-09-28", 2)]
    assert found.undated == 3
    assert (found.first, found.last) == (MONDAY - 60 * week, MONDAY + week - 1)


# Along the session


def test_windows_separate_survivors():
    """Short sessions fail in every second call, long ones never at first and then always: the plain line rises for two
    reasons, which the followed line separates."""
    short = many(20, *[FAIL, GOOD] * 5)
    long = [session(*[GOOD] * 10, *[FAIL] * 10, key=f"l{n}") for n in range(5)]
    along = gather_insights([*short, *long]).along
    first, second = along.windows
    assert (first.everyone.name, first.everyone.sessions, first.everyone.rate) == ("1-10", 25, 100 / 250)
    assert (second.everyone.name, second.everyone.sessions, second.everyone.rate) == ("11-20", 5, 1.0)
    assert first.followed is not None and second.followed is not None
    assert (first.followed.sessions, first.followed.rate, second.followed.rate) == (5, 0.0, 1.0)
    assert (along.followed_from, along.followed_sessions, along.sessions, along.beyond) == (11, 5, 25, 0)
    assert "5 of 25 sessions reached turn 11" in along.meaning
    assert "do not show whether longer sessions make fewer errors" in along.meaning


def test_windows_that_too_few_reached_are_not_shsession():
    sessions = [*many(FEW, *[GOOD] * 12), session(*[GOOD] * 31, key="long")]
    along = gather_insights(sessions).along
    assert [w.first for w in along.windows] == [1, 11]
    assert (along.followed_from, along.followed_sessions, along.beyond) == (11, FEW + 1, 1)


def test_with_few_sessions_nothing_is_followed():
    along = gather_insights([session(*[GOOD] * 25)]).along
    assert [(w.everyone.name, w.followed) for w in along.windows] == [("1-10", None), ("11-20", None), ("21-30", None)]
    assert along.followed_from is None
    assert "Too few" in along.meaning


def test_a_session_counts_in_a_window_that_it_reached_without_calls():
    talk = many(FEW, *[GOOD] * 3, turns=15)
    along = gather_insights(talk).along
    assert [(w.everyone.sessions, w.everyone.judged) for w in along.windows] == [(FEW, 3 * FEW), (FEW, 0)]
    assert along.windows[1].everyone.rate is None


def test_sessions_of_an_older_version_are_left_out_and_counted():
    old = structs.replace(session(*[FAIL | {"turn": None}] * 2), turns=None)
    found = gather_insights([old, *many(2, GOOD)])
    assert (found.along.without_turns, found.along.sessions) == (1, 2)
    assert found.overall.errors == 2
    assert (found.cost.cost.turns, found.cost.cost.turns_unknown, found.cost.cost.tokens_unknown) == (None, 2, 2)


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=120), min_size=1, max_size=12))
def test_windows_hold_every_judged_call_once(sessions):
    past = [session(*(FAIL if bad else GOOD for bad in calls), key=str(n)) for n, calls in enumerate(sessions)]
    found = gather_insights(past)
    shown = found.along.windows
    last = shown[-1].last or 10**9
    assert sum(w.everyone.judged for w in shown) == sum(min(len(calls), last) for calls in sessions)
    assert sum(w.everyone.errors for w in shown) == sum(sum(calls[:last]) for calls in sessions)
    for window in shown:
        assert window.everyone.sessions == sum(len(calls) >= window.first for calls in sessions)
        if window.followed is not None:
            assert window.followed.judged <= window.everyone.judged
            assert window.followed.sessions == found.along.followed_sessions


def test_the_last_window_has_no_end():
    assert WINDOWS[-1][1] is None
    assert all(first == before + 1 for (first, _), (_, before) in zip(WINDOWS[1:], WINDOWS, strict=False))


# Costs


def test_cost_runs_from_the_failure_to_the_fix():
    """Failed in turn 1, fixed in turn 3: two turns of 1,000 tokens; two minutes on the clock."""
    usage = Usage(input=1_000, output=1_000, cache_read=2_000)
    found = gather_insights([session(FAIL, call("Grep", {"pattern": "x"}), GOOD, GOOD, usage=usage)])
    cost = found.cost.cost
    assert (cost.errors, cost.turns, cost.tokens, cost.seconds) == (1, 2, 2_000, 120)
    assert (cost.tokens_estimated, cost.turns_unknown, cost.tokens_unknown, cost.seconds_unknown) == (0, 0, 0, 0)
    assert (found.cost.turns_share, found.cost.tokens_share) == (0.5, 0.5)
    assert found.cost.seconds_share == 120 / 190  # three minutes and the last answer


def test_turns_that_errors_share_count_once():
    """Two different failures, both fixed in turn 4: turns 1 to 3 are lost, once."""
    other = call("Bash", {"command": "curl -O http://a/b"}, "connection reset")
    usage = Usage(input=500, output=500)
    sessions = many(2, FAIL, other, FAIL, GOOD, call("Bash", {"command": "curl -O http://a/b"}), usage=usage)
    found = gather_insights(sessions)
    assert found.cost.cost.turns == 2 * 4  # curl worked in turn 5
    assert found.cost.cost.tokens == 8 * 200
    by_tool = {error.tool: error.cost for error in found.repeated}
    assert (by_tool["Read"].turns, by_tool["Read"].errors) == (6, 4)
    assert (by_tool["Bash"].turns, by_tool["Bash"].seconds) == (6, 2 * 180)


def test_an_unfixed_error_costs_its_own_turn():
    cost = gather_insights([session(GOOD, FAIL, call("Think", "hm"), call("Think", "well"))]).cost.cost
    assert (cost.turns, cost.seconds) == (1, 60)
    last = gather_insights([session(GOOD, FAIL)]).cost.cost
    assert (last.turns, last.seconds) == (1, 10)  # until it was answered


def test_waits_are_capped():
    """The tool ran for an hour (or asked a person), and the next call came a day later."""
    slow = FAIL | {"answered": MONDAY + 3_600}
    late = GOOD | {"at": MONDAY + 90_000, "answered": MONDAY + 90_001}
    assert gather_insights([session(slow, late)]).cost.cost.seconds == 2 * IDLE


def test_unknown_stays_unknsession():
    found = gather_insights(
        [session(FAIL, GOOD, timed=False), session(FAIL, GOOD, key="b", usage=Usage(basis="estimated"))]
    )
    cost = found.cost.cost
    assert (cost.tokens, cost.tokens_unknown) == (None, 2)
    assert (cost.seconds, cost.seconds_unknown) == (60, 1)
    none = gather_insights([session(FAIL, GOOD, timed=False)]).cost
    assert (none.cost.seconds, none.cost.tokens, none.seconds_share, none.tokens_share) == (None, None, None, None)


def test_estimated_usage_is_counted_separately():
    known = session(FAIL, GOOD, usage=Usage(input=10, output=10))
    guessed = session(FAIL, GOOD, key="b", usage=Usage(input=100, output=100, basis="estimated"))
    cost = gather_insights([known, guessed]).cost.cost
    assert (cost.tokens, cost.tokens_estimated) == (110, 100)


@pytest.mark.parametrize("at", [math.inf, -math.inf, math.nan, MONDAY - 5])
def test_broken_timestamps_count_as_unknsession(at):
    cost = gather_insights([session(FAIL, GOOD | {"at": at})]).cost.cost
    assert (cost.seconds, cost.seconds_unknown) == (None, 1)


# The whole


def test_no_sessions():
    found = gather_insights([])
    assert (found.sessions, found.repeated, found.along.windows, found.advice, found.by_week) == (0, (), (), (), ())
    assert (found.first, found.overall.rate) == (None, None)


def test_unreadable_sessions_are_counted():
    found = gather_insights([None, session(FAIL, GOOD), None])
    assert (found.sessions, found.unreadable, found.overall.judged) == (1, 2, 2)


def test_advice_names_the_next_commands():
    fixed = many(
        3, call("order", {"order_id": "W1234567"}, "order not found"), call("order", {"order_id": "#W1234567"})
    )
    stuck = many(4, call("Bash", {"command": "make"}, "make: *** no target"))
    found = gather_insights([*fixed, *stuck])
    assert [advice.command for advice in found.advice] == [
        "warmstart learn",
        "warmstart sessions show k003",
        "warmstart experiment power",
    ]
    assert "fixed in 3 sessions: order_id: id -> #id." in found.advice[0].text
    assert "no fix was seen in 4 of 4 sessions" in found.advice[1].text
    assert "at 7 sessions a week" in found.advice[2].text


def test_without_errors_there_is_little_to_do():
    found = gather_insights(many(3, GOOD))
    assert [advice.command for advice in found.advice] == ["warmstart experiment power"]


@given(st.permutations(range(6)))
def test_the_order_of_sessions_changes_no_number(order):
    sessions = [session(*[FAIL] * (n % 3), GOOD, key=f"k{n}", model=f"m{n % 2}") for n in range(6)]
    found = gather_insights(sessions)
    again = gather_insights([sessions[n] for n in order])
    assert (again.overall, again.by_model, again.along, again.cost) == (
        found.overall,
        found.by_model,
        found.along,
        found.cost,
    )
    assert [(e.count, e.sessions, e.fixes) for e in again.repeated] == [
        (e.count, e.sessions, e.fixes) for e in found.repeated
    ]


def test_hostile_calls_are_only_counted():
    wild = [
        call("", "", "\x00"),
        call("x" * 5_000, {"a": [[[]]], "b": None}, "y" * 100_000),
        call("‮evil", "not an object", "‮" * 50),
        call("Bash", {"command": "'" * 4_000}, "\n" * 1_000),
        FAIL | {"turn": -5},
        FAIL | {"turn": 10**15, "excerpt": None},
        GOOD | {"turn": 10**15 + 1, "outcome": Outcome("bogus")},  # type: ignore[arg-type]
    ]
    found = gather_insights([session(*wild, key="a"), session(*wild, key="b", turns=0)])
    assert found.overall.errors == 12
    assert found.left_out["unknown"] == 2
    assert all(len(error.shape) < 200 and len(error.example) < 200 for error in found.repeated)
