"""mini-swe-agent: executed actions and their exit codes, in the shapes of all versions; labels beside the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from formats.reading import Listener, steps
from places import CORPUS, DATA, NO_CORPUS
from warmstart.formats import mini_swe, openai_chat
from warmstart.formats.labels import as_label, label_beside
from warmstart.formats.source import Source
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult

CASE = DATA / "mini_swe_agent" / "case.json"


def read(path: Path) -> tuple[list[Session], Listener, Source]:
    source, judge = Source(path), Listener()
    assert mini_swe.sniff(source.head)
    return list(mini_swe.read(source, judge)), judge, source


def commands(judge: Listener) -> list[Any]:
    return [call and call.arguments for call in judge.calls]


def write(tmp_path: Path, messages: list[Any], **fields: Any) -> Path:
    path = tmp_path / "run.traj.json"
    path.write_text(
        json.dumps({"info": {"exit_status": "Submitted", "model_stats": {}}, "messages": messages, **fields})
    )
    return path


def test_exit_codes_reach_the_judge() -> None:
    (session,), judge, source = read(CASE)
    assert judge.signals == [Signal(exit_code=0), Signal(exit_code=1)]
    assert commands(judge) == [{"command": "cat clock.py"}, {"command": "pytest -q"}]
    assert session.usage is not None
    assert (session.usage.input, session.usage.output, session.usage.cache_read) == (110, 30, 140)
    assert (session.usage.cost, session.project, session.label) == (0.0125, "/testbed", True)
    assert (session.started, session.ended) == (1770000001.5, 1770000006.0)
    assert source.problems == []


def test_the_first_version_put_its_command_in_a_fenced_block(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "Mend it"},
            {"role": "assistant", "content": "THOUGHT: look\n\n```bash\nls -la\npwd\n```"},
            {"role": "user", "content": "<returncode>2</returncode>\n<output>\nnope\n</output>"},
            {"role": "assistant", "content": "```bash\nls\n```\nand\n```bash\npwd\n```"},
            {"role": "user", "content": "Please always provide EXACTLY ONE action"},
            {"role": "assistant", "content": "```bash\nsleep 99\n```"},
            {"role": "user", "content": "The last command timed out."},
        ],
        trajectory_format="mini-swe-agent-1",
    )
    (session,), judge, _ = read(path)
    assert [c.arguments for c in steps(session, ToolCall)] == [{"command": "ls -la\npwd"}, {"command": "sleep 99"}]
    assert judge.signals == [Signal(exit_code=2), None]
    assert commands(judge) == [{"command": "ls -la\npwd"}, {"command": "sleep 99"}]
    assert [m.role for m in steps(session, Message)] == [
        "system",
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    assert session.id.startswith("mini-")


def test_text_actions_without_ids_and_several_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [
            {"role": "user", "content": "Go"},
            {"role": "assistant", "content": "both", "extra": {"actions": [{"command": "a"}, {"command": "b"}]}},
            {"role": "user", "content": "one", "extra": {"returncode": 0}},
            {"role": "user", "content": "two", "extra": {"returncode": -1, "exception_info": "timed out"}},
        ],
        instance_id="x__y-1",
    )
    (session,), judge, _ = read(path)
    assert commands(judge) == [{"command": "a"}, {"command": "b"}]
    assert judge.signals == [Signal(exit_code=0), Signal(failed=True, exit_code=-1)]
    assert session.id.startswith("x__y-1-") and session.task == "Go"


def test_a_person_breaking_in_is_no_observation(tmp_path: Path) -> None:
    talk = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "a", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "user", "content": "Stop that."},
    ]
    (session,), judge, _ = read(write(tmp_path, talk))
    assert judge.signals == [] and session.task == "Stop that."


def test_wrong_types_and_nulls(tmp_path: Path) -> None:
    talk: list[Any] = [
        {"role": "user", "content": None},
        "junk",
        {"role": "assistant", "content": None, "extra": "nothing"},
        {"role": "assistant", "content": "x", "extra": {"actions": [5, "ls", {"command": 3}], "timestamp": "later"}},
        {"role": "tool", "content": ["a", "b"], "extra": {"returncode": "0"}},
        {"role": 9},
    ]
    (session,), _, source = read(write(tmp_path, talk, info={"exit_status": 3, "model_stats": [], "config": 1}))
    assert [c.arguments for c in steps(session, ToolCall)] == [{"command": "ls"}, {"command": "3"}]
    assert steps(session, ToolResult)[0].text == "a\nb"
    assert source.problems


def test_a_cut_off_file(tmp_path: Path) -> None:
    text = CASE.read_text()
    path = tmp_path / "cut.json"
    path.write_text(text[: text.index("pytest -q")])
    (session,), _, source = read(path)
    assert len(steps(session, ToolResult)) == 1
    assert any("cut off" in p.reason for p in source.problems)


# ---- labels.json ----


@pytest.mark.parametrize(
    ("labels", "label"),
    [
        ('{"s1": true}', True),
        ('{"s1": 0}', False),
        ('{"s1": 0.25}', False),
        ('{"s1": 1.0, "s2": NaN}', True),
        ('{"s1": {"resolved": false}}', False),
        ('[{"id": "s1", "reward": 1.0}]', True),
        ('[{"instance_id": "s1", "success": false}, 7, {"id": "s1"}]', False),
        ('[{"file": "other", "resolved": true}]', None),
        ('{"s1": "yes"}', None),
        ("[]", None),
    ],
)
def test_labels_beside_a_file(tmp_path: Path, labels: str, label: bool | None) -> None:
    (tmp_path / "labels.json").write_text(labels)
    source = Source(tmp_path / "t.json")
    assert label_beside(source, None, "", "s1") is label
    assert source.problems == []


def test_bad_labels_are_reported(tmp_path: Path) -> None:
    source = Source(tmp_path / "t.json")
    assert label_beside(source, "s1") is None and source.problems == []
    for text in ('{"s1": tr', "3", ""):
        (tmp_path / "labels.json").write_text(text)
        source = Source(tmp_path / "t.json")
        assert label_beside(source, "s1") is None
        assert "labels.json" in source.problems[0].reason
    with (tmp_path / "labels.json").open("wb") as file:
        file.truncate((16 << 20) + 1)
    assert label_beside(source, "s1") is None and "larger than" in source.problems[-1].reason


def test_only_a_plain_yes_or_no_is_a_label() -> None:
    assert [as_label(v) for v in (True, False, 1, 0, 1.0, 0.5, "1", None)] == [
        *(True, False, True, False, True, None, None, None)
    ]


# ---- the corpus ----


def test_corpus() -> None:
    folder = CORPUS / "mini_swe_agent"
    if not folder.exists():
        pytest.skip(NO_CORPUS)
    labels = {item["file"]: item["resolved"] for item in json.loads((folder / "labels.json").read_text())}
    ids = set()
    for path in sorted(folder.glob("*.traj.json")):
        (session,), judge, source = read(path)
        assert not openai_chat.sniff(source.head) and source.problems == []
        run = json.loads(path.read_text())
        actions = [a for m in run["messages"] for a in (m.get("extra") or {}).get("actions") or ()]
        codes = [m["extra"]["returncode"] for m in run["messages"] if "returncode" in (m.get("extra") or {})]
        assert [c.arguments["command"][:200] for c in steps(session, ToolCall)] == [a["command"][:200] for a in actions]
        assert [s and s.exit_code for s in judge.signals] == codes and None not in commands(judge)
        assert session.label is labels[path.name]
        assert session.end_reason == run["info"]["exit_status"] and session.model == "deepseek-chat"
        ids.add(session.id)
    assert len(ids) == 16
