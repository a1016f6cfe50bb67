"""Failures, refusals, usage and subagents as the formats of other programs show them, read from the fixtures."""

from __future__ import annotations

from pathlib import Path

import pytest

from places import DATA
from warmstart import formats
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Session, ToolResult

OUTCOMES = {  # fixture: the outcomes of each session's results
    "inspect/case.eval": ["ok/text", "error/flag"],
    "inspect/case-json.json": ["rejected/flag"],
    "openhands/case.jsonl": ["error/exit_code error/text error/flag rejected/flag", "error/exit_code"],
    "openhands/case-v1.json": ["error/exit_code error/flag rejected/flag"],
    "swe_agent/case.traj": ["ok/text error/text error/text ok/text"],
    "otel/case.json": ["error/flag", "error/flag ok/flag ok/flag"],
    "otel/case-otlp.jsonl": ["error/flag ok/text"],
    "otel/case-console.jsonl": ["error/flag"],
    "langfuse/case.json": ["error/flag"],
    "langfuse/case-lines.jsonl": ["", "error/text"],
    "langsmith/case.jsonl": ["error/flag ok/text"],
    "continue/case.json": ["error/flag ok/flag rejected/flag error/text"],
    "cline_cli/case.messages.json": ["error/flag ok/flag error/flag"],
    "specstory/case.md": ["error/exit_code ok/text ok/text", "ok/text"],
    "specstory/case-cursor.md": ["error/text ok/text"],
    "aider/case.md": ["error/structure ok/text error/structure unknown/none rejected/flag", ""],
}
TOKENS = {  # fixture: input, output, cached and dollars of its first session
    "inspect/case.eval": (20, 9, 30, None),  # this provider counts cached tokens as input too
    "openhands/case.jsonl": (180, 30, 120, 0.02),
    "swe_agent/case.traj": (900, 80, None, 0.5),
    "otel/case-otlp.jsonl": (60, 33, 300, None),
    "langfuse/case.json": (120, 14, 30, 0.001),
    "langsmith/case.jsonl": (120, 14, None, None),
    "continue/case.json": (120, 28, 80, 0.004),
    "cline_cli/case.messages.json": (120, 24, 48, 0.0),
    "aider/case.md": (1800, 60, None, 0.012),
}
PARENTS = {  # fixture: session and parent
    "otel/case.json": [("tr1/ag2", "tr1"), ("tr1", None)],
    "specstory/case.md": [
        ("0c0ffee0-1111-4222-8333-944445555666", None),
        ("0c0ffee0-1111-4222-8333-944445555666/sidechain", "0c0ffee0-1111-4222-8333-944445555666"),
    ],
}
PROJECTS = {
    "openhands/case.jsonl": "/workspace/rows",
    "swe_agent/case.traj": "/rows",
    "continue/case.json": "/work/clock one",
    "otel/case.json": "desk",
    "inspect/case.eval": "tidy_tables",
}


def read(case: str, folder: Path = DATA) -> list[Session]:
    source = Source(folder / case)
    sessions = list(formats.read(source, judge_result))
    assert source.problems == []
    return sessions


@pytest.mark.parametrize("case", OUTCOMES)
def test_outcomes(case: str) -> None:
    results = [[s.outcome for s in session.steps if isinstance(s, ToolResult)] for session in read(case)]
    assert [" ".join(f"{o.status}/{o.basis}" for o in outcomes) for outcomes in results] == OUTCOMES[case]


@pytest.mark.parametrize("case", TOKENS)
def test_usage(case: str) -> None:
    usage = read(case)[0].usage
    assert usage is not None and usage.basis == "reported"
    prompt, output, cached, cost = TOKENS[case]
    assert (usage.input, usage.output, usage.cache_read) == (prompt, output, cached)
    assert (usage.cost or None) == (cost or None)


@pytest.mark.parametrize("case", PARENTS)
def test_subagents(case: str) -> None:
    assert [(session.id, session.parent) for session in read(case)] == PARENTS[case]


@pytest.mark.parametrize("case", PROJECTS)
def test_projects(case: str) -> None:
    assert read(case)[0].project == PROJECTS[case]


def test_a_stored_conversation_of_openhands_is_read_with_its_events(tmp_path: Path) -> None:
    import json

    events = json.loads((DATA / "openhands/case-v1.json").read_text())
    (tmp_path / "events").mkdir()
    for number, event in enumerate(events):
        (tmp_path / f"events/event-{number:05d}-{event['id']}.json").write_text(json.dumps(event))
    tokens = {"prompt_tokens": 100, "completion_tokens": 9, "cache_read_tokens": 60, "cache_write_tokens": 0}
    state = {
        "id": "7f-1",
        "agent": {"kind": "Agent", "llm": {"model": "mock-large"}},
        "workspace": {"kind": "LocalWorkspace", "working_dir": "/work/rows"},
        "execution_status": "finished",
        "stats": {"usage_to_metrics": {"agent": {"model_name": "mock-large", "accumulated_token_usage": tokens}}},
    }
    (tmp_path / "base_state.json").write_text(json.dumps(state))
    (session,) = read("base_state.json", tmp_path)
    assert (session.id, session.model, session.project, session.end_reason) == (
        "7f-1",
        "mock-large",
        "/work/rows",
        "finished",
    )
    assert len(session.calls()) == 3 and session.usage is not None and session.usage.input == 40


def test_facts_beside_the_messages_of_cline(tmp_path: Path) -> None:
    (tmp_path / "s.messages.json").write_bytes((DATA / "cline_cli/case.messages.json").read_bytes())
    (tmp_path / "s.json").write_text(
        '{"cwd": "/work/clock", "status": "completed", "parent_session_id": "p1", "ended_at": "2026-09-21T14:20:00Z"}'
    )
    (session,) = read("s.messages.json", tmp_path)
    assert (session.project, session.end_reason, session.parent) == ("/work/clock", "completed", "p1")
