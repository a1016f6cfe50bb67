"""Claude Code's files: split messages, subagents, resumed and compacted sessions; and the corpus, counted independently."""

from __future__ import annotations

import json
from pathlib import Path

import warmstart
from transcripts import claude_lines, write_jsonl
from warmstart import formats
from warmstart.formats.session_builder import SessionBuilder
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Message, Session, ToolCall, ToolResult


def read(path: Path) -> list[Session]:
    return list(formats.read(Source(path), judge_result))


def test_of_a_split_messages_usage_the_last_counts(tmp_path):
    lines = claude_lines(calls=2)
    for number, output in ((1, 5), (3, 27)):
        lines[number]["message"] |= {
            "id": "same",
            "usage": {"input_tokens": 10, "output_tokens": output, "cache_read_input_tokens": 3},
        }
    (session,) = read(write_jsonl(tmp_path / "a.jsonl", lines))
    assert (session.usage.input, session.usage.output, session.usage.cache_read, session.usage.cache_write) == (
        10,
        27,
        3,
        None,
    )
    assert session.usage.basis == "reported"


def test_an_output_counted_while_it_streamed_is_completed_from_the_text(tmp_path):
    """Claude Code writes the usage of the first moment: 2 tokens for an answer of 3,400 characters."""
    lines = claude_lines(calls=2)
    lines[1]["message"] |= {"id": "one", "usage": {"input_tokens": 10, "output_tokens": 2}}
    lines[1]["message"]["content"].insert(0, {"type": "text", "text": "word " * 680})
    lines[3]["message"] |= {"id": "two", "usage": {"input_tokens": 20, "output_tokens": 500}}
    (session,) = read(write_jsonl(tmp_path / "a.jsonl", lines))
    assert (session.usage.input, session.usage.basis) == (30, "completed")
    assert 1_500 <= session.usage.output < 1_530
    (part,) = session.spent
    assert part.usage == session.usage


def hooked(output: object, **more: object) -> dict[str, object]:
    """Return what Claude Code 2.1 records of a hook that has answered."""
    facts = {"type": "hook_success", "hookEvent": "PreToolUse", "toolUseID": "c0", "stdout": output} | more
    return {"type": "attachment", "sessionId": "s", "attachment": facts}


def test_a_call_that_a_hook_has_replaced_has_the_input_that_ran(tmp_path):
    lines = claude_lines("s", calls=2)
    call_ids = [lines[n]["message"]["content"][-1]["id"] for n in (1, 3)]
    kept = lines[3]["message"]["content"][-1]["input"]
    decision = {"permissionDecision": "allow", "updatedInput": {"file_path": "a.yaml"}}
    answer = json.dumps({"hookSpecificOutput": decision})
    lines.insert(2, hooked(answer, toolUseID=call_ids[0]))
    refused = json.dumps({"hookSpecificOutput": decision | {"permissionDecision": "deny"}})
    odd = (refused, "{updatedInput", "[]", 7, None, json.dumps({"hookSpecificOutput": {"updatedInput": "x"}}))
    lines[5:5] = [
        *(hooked(text, toolUseID=call_ids[1]) for text in odd),
        hooked(answer, toolUseID=call_ids[1], hookEvent="PostToolUse"),
        hooked(answer, toolUseID=None),
        hooked(answer, toolUseID=call_ids[0]),  # its result is there
        {"type": "attachment", "sessionId": "s", "attachment": "updatedInput"},
    ]
    source = Source(write_jsonl(tmp_path / "a.jsonl", lines))
    (session,) = formats.read(source, judge_result)
    assert [step.arguments for step in session.steps if isinstance(step, ToolCall)] == [{"file_path": "a.yaml"}, kept]
    assert source.problems == []


def test_subagents_in_their_folder_know_their_parent(tmp_path):
    lines = [line | {"isSidechain": True, "agentId": "a1"} for line in claude_lines("parent-id")]
    (session,) = read(write_jsonl(tmp_path / "parent-id" / "subagents" / "agent-a1.jsonl", lines))
    assert (session.id, session.parent) == ("parent-id/agent-a1", "parent-id")
    older = [line | {"isSidechain": True} for line in claude_lines("agent-b2")]
    (session,) = read(write_jsonl(tmp_path / "other" / "subagents" / "agent-b2.jsonl", older))
    assert (session.id, session.parent) == ("agent-b2", "other")


def test_sidechains_inside_a_file_are_sessions_of_their_own(tmp_path):
    main, first, second = claude_lines("s"), claude_lines("s", calls=1), claude_lines("s", calls=3)
    for chain, lines in enumerate((first, second)):
        for number, line in enumerate(lines):
            line |= {
                "isSidechain": True,
                "uuid": f"{chain}-{number}",
                "parentUuid": f"{chain}-{number - 1}" if number else None,
            }
    mixed = [line for pair in zip(first + second[:1], second + first[:1], strict=False) for line in pair]
    sessions = read(write_jsonl(tmp_path / "s.jsonl", main + mixed))
    assert [s.parent for s in sessions] == [None, "s", "s"]
    assert len({s.id for s in sessions}) == 3


def test_a_resumed_file_with_two_ids_is_two_sessions_and_ingest_keeps_each_once(tmp_path):
    old, new = claude_lines("old", calls=3), claude_lines("new", calls=1)
    write_jsonl(tmp_path / "old.jsonl", old)
    write_jsonl(tmp_path / "new.jsonl", old + new)
    assert [s.id for s in read(tmp_path / "new.jsonl")] == ["old", "new"]
    with warmstart.open() as ws:
        ws.ingest(tmp_path)
        assert sorted(row.id for row in ws.sessions()) == ["new", "old"]


def test_messages_of_the_program_are_not_the_users_task(tmp_path):
    noise = [
        "<command-name>/init</command-name>",
        "<local-command-stdout>x</local-command-stdout>",
        "<system-reminder>be nice</system-reminder>",
    ]
    lines = claude_lines()
    openings = [lines[0] | {"message": {"role": "user", "content": text}} for text in noise]
    summary = lines[0] | {
        "isCompactSummary": True,
        "message": {"role": "user", "content": "This session is being continued"},
    }
    meta = lines[0] | {"isMeta": True, "message": {"role": "user", "content": "Caveat"}}
    (session,) = read(write_jsonl(tmp_path / "a.jsonl", [*openings, summary, meta, *lines]))
    assert session.task == "do it"
    assert [s.text for s in session.steps if isinstance(s, Message)] == ["do it"]


def test_how_a_session_ended(tmp_path):
    lines = claude_lines()
    stop = lines[0] | {
        "message": {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]}
    }
    assert read(write_jsonl(tmp_path / "a.jsonl", [*lines, stop]))[0].end_reason == "interrupted"
    failed = lines[1] | {"isApiErrorMessage": True}
    assert read(write_jsonl(tmp_path / "b.jsonl", [*lines, failed]))[0].end_reason == "api_error"
    assert read(write_jsonl(tmp_path / "c.jsonl", [*lines, stop, *claude_lines()]))[0].end_reason is None


def test_calls_without_ids_are_answered_in_order(tmp_path):
    lines = claude_lines(calls=2)
    for line in lines[1:]:
        for block in line["message"]["content"]:
            block.pop("id", None)
            block.pop("tool_use_id", None)
    lines[2]["message"]["content"][0]["is_error"] = True
    (session,) = read(write_jsonl(tmp_path / "a.jsonl", lines))
    assert [answer.outcome.status for _call, answer in session.calls()] == ["error", "ok"]


def test_an_endless_session_keeps_its_ends(tmp_path):
    source = Source(tmp_path / "a.jsonl")
    draft = SessionBuilder(source, judge_result, format="test", agent="test", id="endless")
    for number in range(100_250):
        draft.message("user", str(number))
    session = draft.close()
    assert (len(session.steps), session.unkept) == (100_000, 250)
    assert (session.steps[0].text, session.steps[-1].text) == ("0", "100249")
    assert "counted but not kept" in source.problems[0].reason


def counted(path: Path) -> tuple[int, int]:
    """Count calls and results with `json` alone: every block of every object on every line."""
    calls = results = 0
    if path.suffix == ".json":
        records = json.loads(path.read_text())["loglines"]
    else:
        records = []
        for line in path.read_text().splitlines():
            at = 0
            while line[at:].strip():
                value, at = json.JSONDecoder().raw_decode(line, at + len(line[at:]) - len(line[at:].lstrip()))
                records.append(value)
    for record in records:
        message = record.get("message") if isinstance(record, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else []:
            calls += isinstance(block, dict) and block.get("type") == "tool_use"
            results += isinstance(block, dict) and block.get("type") == "tool_result"
    return calls, results


def test_the_corpus_agrees_with_an_independent_count(corpus):
    files = [p for p in sorted((corpus / "claude_code").rglob("*.json*")) if not p.name.endswith(".meta.json")]
    assert len(files) > 60
    for path in files:
        steps = [step for session in read(path) for step in session.steps]
        totals = sum(isinstance(s, ToolCall) for s in steps), sum(isinstance(s, ToolResult) for s in steps)
        assert totals == counted(path), path.name


NOT_YET = {"projects", "inspect", "swe_agent", "other_agents", "licenses"}  # no reader yet, or no transcripts
NO_TRANSCRIPTS = {"labels.json", "README.md"}
NO_MESSAGES = {"episodic-medium-conversation.jsonl"}  # file-history snapshots and a summary, no conversation


def test_every_transcript_of_the_corpus_is_read(corpus):
    unread = []
    for path in sorted(corpus.rglob("*")):
        folder = path.relative_to(corpus).parts[0]
        if (
            path.is_file()
            and folder not in NOT_YET
            and path.name not in NO_TRANSCRIPTS
            and not path.name.endswith(".meta.json")
        ):
            source = Source(path)
            if not list(formats.read(source, judge_result)):
                unread.append(path.name)
    assert set(unread) == NO_MESSAGES
