"""The sample transcripts of the demo: three agents, a few days, one invented repository."""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path

import pytest

import warmstart
from places import ROOT
from warmstart.calls.shell import command_in
from warmstart.judging.gate import check_verdict
from warmstart.model import Score, ToolCall, ToolResult

SAMPLES = Path(warmstart.__file__).parent / "samples"
FILES = sorted(SAMPLES.rglob("*.jsonl"))
SESSIONS = {"claude-code": 4, "codex": 3, "hermes": 3}
TESTS = "uv run pytest -q tests/test_orders.py"
LOGS = "docker compose -f staging.yml logs --tail 50 api"

# the wrong call, the message of its result, and the call later in the same session that corrects it
CORRECTED = {
    "no pytest": (r"python -m pytest tests/test_orders\.py", "No module named pytest", rf"{re.escape(TESTS)}"),
    "keyword": (r"sqlite3 .*from order\b", r'near ..?order..?: syntax error', r"sqlite3 -header shop\.db .*from (orders|refunds)\b"),
    "unread": (r"Edit .*orders\.py", "File has not been read yet", r"Edit .*orders\.py"),
    "no file": (r"cat src/orders\.py|read_file .*src/orders\.py", "No such file|File not found", r".*src/orders_api/orders\.py"),
    "no container": (r"docker logs api", "No such container", re.escape(LOGS)),
}  # fmt: skip
IN_AGENTS = {
    "no pytest": {"claude-code", "codex", "hermes"},
    "keyword": {"claude-code", "codex", "hermes"},
    "unread": {"claude-code"},
    "no file": {"claude-code", "codex", "hermes"},
    "no container": {"claude-code", "hermes"},
}


@pytest.fixture(scope="module")
def found() -> warmstart.Inspection:
    return warmstart.inspect(SAMPLES)


def describe_call(call: ToolCall) -> str:
    """Return the command of a shell call, or the tool and arguments of another call."""
    return command_in(call.arguments) or f"{call.tool} {json.dumps(call.arguments)}"


def answered(session: warmstart.Session) -> list[tuple[str, ToolResult]]:
    return [(describe_call(call), result) for call, result in session.calls() if result is not None]


def test_all_are_read_without_problems(found):
    assert found.problems == ()
    counted: dict[str, int] = {}
    for scored in found.sessions:
        counted[scored.session.agent] = counted.get(scored.session.agent, 0) + 1
        assert scored.session.project == "/home/mira/orders-api"
        assert scored.session.task
        assert scored.session.model
        assert scored.session.usage
    assert counted == SESSIONS


def test_every_call_is_answered_and_judged(found):
    for scored in found.sessions:
        calls = scored.session.calls()
        assert 8 <= len(calls) <= 25
        assert all(result is not None and result.outcome.status != "unknown" for _call, result in calls)


@pytest.mark.parametrize("name", CORRECTED)
def test_beginners_errors_are_errors_and_their_corrections_are_not(found, name):
    wrong, complaint, right = (re.compile(pattern) for pattern in CORRECTED[name])
    agents = set()
    for scored in found.sessions:
        calls = answered(scored.session)
        failed = [i for i, (call, r) in enumerate(calls) if wrong.match(call) and complaint.search(r.text)]
        for index in failed:
            assert calls[index][1].outcome.status == "error", calls[index]
        if failed and any(right.match(call) and r.outcome.status == "ok" for call, r in calls[failed[-1] + 1 :]):
            agents.add(scored.session.agent)
    assert agents == IN_AGENTS[name]


def test_what_a_person_stopped_is_no_error(found):
    stopped: dict[str, list[str]] = {}
    for scored in found.sessions:
        for _call, result in answered(scored.session):
            if re.search(
                r"doesn't want to proceed|rejected by user|user denied|interrupted by user|aborted by user", result.text
            ):
                assert result.outcome.status in ("rejected", "cancelled")
                stopped.setdefault(scored.session.agent, []).append(result.outcome.status)
    assert stopped == {
        "claude-code": ["rejected", "cancelled"],
        "codex": ["rejected", "cancelled"],
        "hermes": ["rejected"],
    }


def test_quoted_errors_are_no_errors(found):
    quoted = [
        result
        for scored in found.sessions
        for call, result in answered(scored.session)
        if (call == LOGS or call.startswith(("Read", "read_file"))) and len(re.findall("error", result.text, re.I)) > 1
    ]
    assert len(quoted) >= 3
    assert {result.outcome.status for result in quoted} == {"ok"}


def test_a_search_that_finds_nothing_is_no_error(found):
    calls = [pair for scored in found.sessions for pair in answered(scored.session)]
    assert any(call.startswith("rg ") and not result.text and result.outcome.status == "ok" for call, result in calls)


def is_good(score: Score) -> bool:
    return score.counts.tool_results > 0 and check_verdict(score.verdict, score.quality) is None


def test_the_gate_lets_the_good_ones_through(found):
    good = [s for s in found.sessions if is_good(s.score)]
    bad = [s for s in found.sessions if s.score.verdict == "failure"]
    assert len(good) == 7
    assert len(bad) == 3
    assert {s.session.agent for s in good} == {s.session.agent for s in bad} == set(SESSIONS)
    assert sum(s.score.verdict == "success" for s in good) >= 3


@pytest.mark.parametrize(
    ("agent", "pattern"),
    [
        ("claude-code", TESTS),
        ("claude-code", LOGS),
        ("claude-code", "sqlite3 -header shop.db "),
        ("claude-code", "Grep "),
        ("codex", TESTS),
        ("codex", "sqlite3 -header shop.db "),
        ("codex", "rg -n "),
        ("hermes", LOGS),
        ("hermes", "search_files "),
        ("hermes", "patch "),
    ],
)
def test_work_recurs_over_good_sessions(found, agent, pattern):
    support = [
        scored.session.id
        for scored in found.sessions
        if scored.session.agent == agent
        and is_good(scored.score)
        and any(call.startswith(pattern) and r.outcome.status == "ok" for call, r in answered(scored.session))
    ]
    assert len(support) >= 2


def test_the_files_are_small_and_of_nobodys_machine():
    assert sum(path.stat().st_size for path in FILES) < 160_000
    here = {str(ROOT), str(Path.home()), tempfile.gettempdir(), sys.prefix} - {"/", "/usr"}
    for path in FILES:
        text = path.read_text("utf-8")
        assert not [place for place in here | {"/root/", "/tmp/", "/work/", "/Users/"} if place in text], path.name
        assert set(re.findall(r"/home/([\w.-]+)", text)) == {"mira"}
        assert text.endswith("}\n")
        for line in text.splitlines():
            json.loads(line)


def test_they_happen_in_october_2026(found):
    for scored in found.sessions:
        assert 1_790_812_800 <= scored.session.started <= scored.session.ended < 1_793_491_200


def test_the_quoted_password_is_not_remembered(tmp_path):
    secret = b"correct-horse-battery-7"
    assert any(secret in path.read_bytes() for path in FILES)
    with warmstart.open(tmp_path) as ws:
        assert ws.ingest(SAMPLES).sessions == sum(SESSIONS.values())
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret in path.read_bytes()]
