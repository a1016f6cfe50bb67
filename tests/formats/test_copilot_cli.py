"""Copilot CLI's events: outcomes, subagents, tokens, corrected calls and broken files; and real files, counted plainly."""

from __future__ import annotations

import io
import json
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from formats.reading import Listener, steps
from places import CORPUS, DATA, needs_corpus
from warmstart import formats
from warmstart.formats import copilot_cli
from warmstart.formats.places import usual_places
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Message, Session, Signal, ToolCall, ToolResult

SESSION = "5b1e7c1e-0d3c-4a52-9d3d-2f6c8a1b7e90"


def event(type_: str, agent: str = "", /, **data: Any) -> str:
    head = {"type": type_, "data": data, "id": "e", "timestamp": "2026-11-17T09:00:00.000Z", "parentId": None}
    return json.dumps(head | ({"agentId": agent} if agent else {}))


START = event("session.start", sessionId=SESSION, producer="copilot-agent", context={"cwd": "/w"})


def call(tool: str = "bash", id_: str = "c1", agent: str = "", **arguments: Any) -> str:
    return event("tool.execution_start", agent, toolCallId=id_, toolName=tool, arguments=arguments or {"command": "x"})


def done(text: str = "", id_: str = "c1", agent: str = "", **facts: Any) -> str:
    return event(
        "tool.execution_complete", agent, toolCallId=id_, **{"success": True, "result": {"content": text}} | facts
    )


def read(folder: Path, *lines: str) -> tuple[list[Session], Source, Listener]:
    path = folder / "events.jsonl"
    path.write_text("\n".join((START, *lines)) + "\n")
    source, listener = Source(path), Listener()
    assert formats.detect(source) is copilot_cli
    return list(copilot_cli.read(source, listener)), source, listener


RUNNING = "<command with shellId: 3 is still running after 30 seconds. Use read_bash to continue waiting for output.>"


@pytest.mark.parametrize(
    ("result", "text", "signal"),
    [
        (done("a\n<shellId: 0 completed with exit code 0>", shellExecution={"exitCode": 0}), "a", Signal(exit_code=0)),
        (
            done("no\n<shellId: 0 completed with exit code 2>", shellExecution={"exitCode": 2}),
            "no",
            Signal(exit_code=2),
        ),
        (done("no\n<shellId: watch-ci completed with exit code 1>"), "no", Signal(exit_code=1)),
        (done("<exited with exit code 127>"), "", Signal(exit_code=127)),
        (done("a <shellId: 0 completed with exit code 1> b"), None, Signal(failed=False)),
        (done(f"a\n{RUNNING}"), None, None),
        (done("<command started in background with shellId: ci>"), None, None),
        (done("x", shellExecution={"exitCode": "1"}), "x", Signal(failed=False)),
        (
            done(success=False, error={"message": "no such path", "code": "failure"}),
            "no such path",
            Signal(failed=True),
        ),
        (done(success=False, error={"message": "no", "code": "denied"}), "no", Signal(status="denied")),
        (done(success=False, error={"message": "no", "code": "rejected"}), "no", Signal(status="rejected")),
        (done("exit code: 1\n", success=False), "exit code: 1\n", Signal(failed=True)),
        (done("x", success=None), "x", None),
    ],
)
def test_what_an_event_says_about_a_result(
    tmp_path: Path, result: str, text: str | None, signal: Signal | None
) -> None:
    _sessions, source, listener = read(tmp_path, call(), result)
    assert listener.signals == [signal] and source.problems == []
    assert text is None or listener.texts == [text]


def test_only_a_shell_has_an_exit_code_in_its_text(tmp_path: Path) -> None:
    text = "a file about\n<shellId: 0 completed with exit code 1>"
    assert read(tmp_path, call("view"), done(text))[2].signals == [Signal(failed=False)]


def test_what_hooks_added_is_cut_from_the_result(tmp_path: Path) -> None:
    added = '\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\n[warmstart] it fails'
    (session,), _source, listener = read(tmp_path, call(), done(f"a\n<shellId: 0 completed with exit code 0>{added}"))
    assert listener.texts == ["a"] and listener.signals == [Signal(exit_code=0)]
    assert "warmstart" not in str(session.steps)


@pytest.mark.parametrize("kind", ["postToolUse", "postToolUseFailure"])
def test_a_corrected_call_has_the_arguments_that_ran(tmp_path: Path, kind: str) -> None:
    ran = {"toolName": "bash", "toolArgs": {"command": "cat a.yaml"}}
    context = {"additionalContext": "[warmstart] corrected the call: `a.yml` is not here"}
    (session,), _source, _listener = read(
        tmp_path,
        call(command="cat a.yml"),
        event("hook.start", hookInvocationId="h", hookType=kind, input=ran),
        event("hook.end", hookInvocationId="h", hookType=kind, output=context),
        done("currency: EUR", shellExecution={"exitCode": 0}),
        call(id_="c2", command="cat a.yml"),
        done("again", "c2"),
    )
    assert [step.arguments for step in steps(session, ToolCall)] == [
        {"command": "cat a.yaml"},
        {"command": "cat a.yml"},
    ]


def test_subagents_are_sessions_of_their_own(tmp_path: Path) -> None:
    sessions, _source, _listener = read(
        tmp_path,
        event("user.message", content="go"),
        call("task", "t1"),
        event("subagent.started", "a1", toolCallId="t1", model="small"),
        event("user.message", "a1", content="look", source=f"agent-{SESSION}"),
        call("view", "c2", "a1"),
        done("seen", "c2", "a1"),
        event("tool.execution_start", toolCallId="c3", toolName="view", arguments={}, parentToolCallId="t0"),  # older
        done("x", "c3", parentToolCallId="t0"),
        done("seen", "t1"),
    )
    assert [(s.id, s.parent, s.task) for s in sessions] == [
        (SESSION, None, "go"),
        (f"{SESSION}/a1", SESSION, "look"),
        (f"{SESSION}/t0", SESSION, None),
    ]
    assert [(s.model, s.project, len(steps(s, ToolCall))) for s in sessions[1:]] == [
        ("small", "/w", 1),
        (None, "/w", 1),
    ]
    assert len({s.source_uri for s in sessions}) == 3


def test_only_the_persons_words_are_the_task(tmp_path: Path) -> None:
    (session,), _source, _listener = read(
        tmp_path,
        event("user.message", content="<system_reminder>x", source="system"),
        event("user.message", content="really go", transformedContent="<current_datetime>\n\nreally go"),
        event("user.message", content="go on", isAutopilotContinuation=True),
    )
    assert (session.task, len(steps(session, Message))) == ("really go", 1)


def test_tokens_are_those_of_the_answers_or_else_of_the_sessions_ends(tmp_path: Path) -> None:
    def end(prompt: int, output: int) -> str:
        usage = {"inputTokens": prompt, "outputTokens": output, "cacheReadTokens": prompt // 2, "cacheWriteTokens": 0}
        return event("session.shutdown", shutdownType="routine", modelMetrics={"m": {"usage": usage}})

    said = event("user.message", content="go")
    answer = event("session.usage_record", usage={"model": "m", "inputTokens": 7, "outputTokens": 3})
    resumed = event("session.resume", selectedModel="m")
    for lines, expected in (
        ((answer, answer, end(99, 99)), (14, 6, None)),
        ((end(100, 10), resumed, end(160, 15)), (80, 15, 80)),  # the second total goes on
        ((end(100, 10), resumed, end(20, 5)), (60, 15, 60)),  # the second total begins anew
    ):
        (session,), source, _listener = read(tmp_path, said, *lines)
        assert (session.usage.input, session.usage.output, session.usage.cache_read) == expected
        assert (session.usage.basis, source.problems) == ("reported", [])
    (session,), source, _listener = read(
        tmp_path, said, event("session.shutdown", modelMetrics={"m": {"usage": {"inputTokens": "many"}}, "n": 7})
    )
    assert session.usage is None and "no numbers" in source.problems[0].reason


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (event("abort", reason="user_initiated"), "aborted:user_initiated"),
        (event("session.error", errorType="query"), "error"),
        (event("session.shutdown", shutdownType="error"), "error"),
        (event("session.shutdown", shutdownType="routine"), None),
    ],
)
def test_how_a_session_ended(tmp_path: Path, last: str, reason: str | None) -> None:
    (session,), _source, _listener = read(tmp_path, event("user.message", content="go"), last)
    assert session.end_reason == reason
    (session,), _source, _listener = read(tmp_path, last, event("user.message", content="go"))
    assert session.end_reason is None


def test_broken_glued_and_hostile_lines_cost_only_themselves(tmp_path: Path) -> None:
    (session, *_more), source, _listener = read(
        tmp_path,
        event("user.message", content="go"),
        call() + call(id_="c2"),  # glued
        '{"type":"tool.execution_start","data":{"toolCallId":"c3","toolName":"ba',  # cut
        event("tool.execution_start", toolCallId=7, toolName=["bash"], arguments="{not json"),
        event("tool.execution_complete", toolCallId=None, success="yes", result=[1, {"content": 3}], error="x"),
        '{"type":"user.message","data":7,"id":"x","parentId":null}',
        '{"type":"hook.end","data":{"hookInvocationId":"h","output":"' + "x" * 100_000 + '"},"id":"x","parentId":null}',
        '{"type":"tool.execution_complete","data":' + '{"result":' * 3_000 + "1" + "}" * 3_000 + "}",
        done("ok", "c2"),
        event("assistant.message", content={"odd": True}, model="m"),
    )
    assert session.task == "go"
    assert [step.call_id for step in steps(session, ToolCall)][:2] == ["c1", "c2"]
    assert "c2" in [step.call_id for step in steps(session, ToolResult)]
    assert source.problems and all(problem.line for problem in source.problems)


def test_it_is_found_in_its_usual_place(tmp_path: Path) -> None:
    for home in (tmp_path, tmp_path / "else"):
        (home / ".copilot" / "session-state").mkdir(parents=True)
    assert ("copilot-cli", tmp_path / ".copilot" / "session-state") in list(usual_places(tmp_path, {}))
    named = {"COPILOT_HOME": tmp_path / "else" / ".copilot"}
    assert ("copilot-cli", named["COPILOT_HOME"] / "session-state") in list(usual_places(tmp_path, named))


def list_real_files() -> Iterator[tuple[str, bytes]]:
    """Give the real files of the corpus, packed or not."""
    packed = CORPUS / "projects" / "formats.tar.zst"
    if packed.is_file():
        data = zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed.read_bytes())).read()
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                if "/copilot/" in member.name and member.name.endswith(".jsonl"):
                    file = archive.extractfile(member)
                    assert file is not None
                    yield member.name, file.read()
    for path in sorted((CORPUS / "other_agents" / "copilot").rglob("*.jsonl")):
        yield str(path.relative_to(CORPUS)), path.read_bytes()


def count_plainly(text: str) -> tuple[int, int, int, int]:
    """Count sessions, calls, results and failures by the lines alone."""
    counts, agents, shells = Counter[str](), set(), set()
    for line in text.splitlines():
        record = json.loads(line)
        data = record["data"]
        agent = record.get("agentId") or data.get("parentToolCallId") or ""
        kind = record["type"]
        said = kind == "assistant.message" or (kind == "user.message" and data.get("source") != "system")
        if kind.startswith("tool.execution_") or (said and data.get("content", "").strip()):
            agents.add(agent)
        if kind == "tool.execution_start":
            counts["calls"] += 1
            if data["toolName"].endswith(("bash", "shell")):
                shells.add(data["toolCallId"])
        elif kind == "tool.execution_complete":
            counts["results"] += 1
            last = str((data.get("result") or {}).get("content")).strip().splitlines()[-1:]
            exited = data["toolCallId"] in shells and last and last[0].startswith("<shellId: ")
            failed = exited and not last[0].endswith("exit code 0>")
            denied = (data.get("error") or {}).get("code") == "denied"
            counts["failures"] += failed or (data.get("success") is False and not denied)
    return len(agents), counts["calls"], counts["results"], counts["failures"]


@needs_corpus
def test_real_files_agree_with_a_plain_count(tmp_path: Path) -> None:
    files, different, total = 0, [], Counter[str]()
    for name, data in list_real_files():
        path = tmp_path / "events.jsonl"
        path.write_bytes(data)
        source = Source(path)
        assert formats.detect(source) is copilot_cli, name
        sessions = list(copilot_cli.read(source, judge_result))
        results = [step for session in sessions for step in steps(session, ToolResult)]
        calls = sum(len(steps(session, ToolCall)) for session in sessions)
        errors = sum(step.outcome.status == "error" for step in results)
        expected = count_plainly(data.decode())
        assert (len(sessions), calls, len(results)) == expected[:3], name
        assert source.problems == [], name
        if errors != expected[3]:
            different.append((name, errors, expected[3]))
        files += 1
        total.update(calls=calls, errors=errors)
    assert files >= 18 and total["calls"] > 500 and total["errors"] > 30
    assert different == []  # the judge calls no other result a failure, and every failure one


def test_the_sample_says_what_was_spent() -> None:
    main, _subagent = list(copilot_cli.read(Source(DATA / "copilot_cli" / "case.jsonl"), judge_result))
    assert (main.usage.input, main.usage.output, main.usage.cache_read, main.usage.cache_write) == (100, 40, 1000, 100)
    assert [step.outcome.status for step in steps(main, ToolResult)] == ["error", "error", "denied", "ok"]
    assert (main.project, main.remote) == ("/home/dev/shop", "github.com/dev/shop")
