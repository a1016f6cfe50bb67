"""The lab's agent loop: its requests, how it takes answers, and what `ingest` reads in its transcripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import json as coded

from lab.lab_world import START, Clock, call, serve
from warmstart import config
from warmstart.endpoints.chat import AskedCall, Endpoint, HttpLLM, Reply, RequestRefused, ScriptedLLM
from warmstart.formats import Source, read
from warmstart.judging.outcome import judge_result
from warmstart.lab.chores.tasks import ChoreCall, Finished, LabTask
from warmstart.lab.run.agent import AGENT, CLOSING, NO_CALL, SYSTEM, AgentLimits, LabAgent, Transcript
from warmstart.lab.sandbox.workshop import TOOLS
from warmstart.model import Message, Session, ToolCall, ToolResult
from warmstart.pipeline import Warmstart

READ = call("read_file", {"path": "note.txt"})
WRONG = call("read_file", {"path": "no.txt"})
WRITE = call("write_file", {"path": "out.txt", "content": "right"})
MUST_WRITE = LabTask(
    id="write-test-same-00",
    family="write",
    request="Write right into out.txt.",
    files={"note.txt": "seven and eight"},
    solution=(ChoreCall("write_file", {"path": "out.txt", "content": "right"}),),
    check=lambda done: (done.folder / "out.txt").is_file() and (done.folder / "out.txt").read_text() == "right",
)
MUST_TELL = LabTask(
    id="tell-test-same-00",
    family="tell",
    request="What is in note.txt?",
    files={"note.txt": "seven and eight"},
    solution=(ChoreCall("read_file", {"path": "note.txt"}),),
    check=lambda done: "seven and eight" in done.answer,
)


def as_is(messages: list[Any]) -> list[Any]:
    return messages


def play(
    *replies: Reply, task: LabTask = MUST_WRITE, turns: int = 3, inject: Callable[[list[Any]], list[Any]] = as_is
) -> tuple[Transcript, list[dict[str, Any]]]:
    """Return the transcript, and the model with its requests."""
    llm = ScriptedLLM(replies)
    transcript = LabAgent(llm, "m-1", AgentLimits(turns=turns), Clock()).run(task, "s-1", inject)
    return transcript, [json.loads(body) for body in llm.bodies]


def ingest(transcript: Transcript, folder: Path) -> Session:
    path = folder / "s-1.jsonl"
    path.write_bytes(coded.encode(transcript) + b"\n")
    (session,) = read(Source(path), judge_result)
    return session


def outcomes(session: Session) -> list[tuple[str, str]]:
    tools = {step.call_id: step.tool for step in session.steps if isinstance(step, ToolCall)}
    return [(tools[step.call_id], step.outcome.status) for step in session.steps if isinstance(step, ToolResult)]


# What the model is asked


def test_what_a_model_refuses_need_not_be_said():
    llm = ScriptedLLM([Reply(calls=(WRITE,))])
    LabAgent(llm, "m-1", AgentLimits(turns=1, answer_tokens=None, temperature=None), Clock()).run(
        MUST_WRITE, "s-1", list
    )
    assert json.loads(llm.bodies[0]).keys() == {"model", "messages", "tools"}


def test_the_request_is_a_plain_chat_completion_with_the_tools():
    _transcript, (request,) = play(Reply(calls=(WRITE,)))
    assert (request["model"], request["temperature"], request["max_tokens"]) == ("m-1", 0, AgentLimits().answer_tokens)
    assert request["tools"] == [tool.as_openai() for tool in TOOLS]
    assert request["messages"] == [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": MUST_WRITE.request},
    ]


def test_the_seed_is_sent_and_not_written_down(tmp_path):
    shown = [{"role": "user", "content": "an example"}, {"role": "assistant", "content": "as it was done"}]

    def inject(messages: list[Any]) -> list[Any]:
        return [messages[0], *shown, *messages[1:]]

    transcript, (first, second) = play(Reply(calls=(WRONG,)), Reply(calls=(WRITE,)), inject=inject)
    assert first["messages"][1:3] == second["messages"][1:3] == shown
    assert second["messages"][: len(first["messages"])] == first["messages"]  # the prefix that a provider caches
    assert "an example" not in coded.encode(transcript).decode()
    assert all("timestamp" not in message for message in second["messages"])


def test_results_go_back_to_the_model_as_they_are_recorded():
    transcript, (_first, second) = play(Reply(text="Reading.", calls=(READ, WRONG)), Reply(calls=(WRITE,)))
    asked, *answers = second["messages"][2:]
    assert asked["content"] == "Reading."
    assert [one["function"]["name"] for one in asked["tool_calls"]] == ["read_file", "read_file"]
    assert [one["id"] for one in asked["tool_calls"]] == [one["tool_call_id"] for one in answers]
    assert json.loads(answers[0]["content"]) == {"content": "seven and eight"}
    assert json.loads(answers[1]["content"])["error"]
    recorded = [{k: v for k, v in one.items() if k != "timestamp"} for one in transcript.messages[2:5]]
    assert recorded == second["messages"][2:]


# Answers without a call


def test_an_answer_without_a_call_is_an_error_for_the_judge(tmp_path):
    transcript, _asked = play(Reply(text="It is a fine day."), Reply(calls=(WRITE,)))
    session = ingest(transcript, tmp_path)
    assert outcomes(session) == [(NO_CALL, "error"), ("write_file", "ok")]
    (invalid, _write) = (step for step in session.steps if isinstance(step, ToolCall))
    assert invalid.arguments == {"answer": "It is a fine day."}


def test_the_model_is_told_its_own_words_and_the_error_and_of_no_such_tool():
    _transcript, asked = play(Reply(text="It is a fine day."), Reply(text=""), Reply(text="Well."))
    words, told, silence, again = asked[2]["messages"][2:]
    assert words == {"role": "assistant", "content": "It is a fine day."}
    assert told == again
    assert told["role"] == "user"
    assert told["content"].startswith("Error: no tool call")
    assert silence == {"role": "assistant", "content": "(no answer)"}
    assert NO_CALL not in json.dumps(asked)


def test_empty_answers_and_long_ones_are_recorded_briefly(tmp_path):
    transcript, _asked = play(Reply(), Reply(text="la " * 5_000), turns=2)
    assert not transcript.label
    assert len(coded.encode(transcript)) < 3_000
    assert outcomes(ingest(transcript, tmp_path)) == [(NO_CALL, "error")] * 2


def test_a_right_answer_in_words_solves(tmp_path):
    transcript, asked = play(Reply(text="It says seven and eight."), Reply(text="never asked"), task=MUST_TELL)
    assert transcript.label
    assert len(asked) == 1
    assert transcript.messages[-1]["content"] == "It says seven and eight."
    session = ingest(transcript, tmp_path)
    assert outcomes(session) == []
    assert session.label is True


# Calls


def test_the_checker_ends_the_session():
    transcript, asked = play(Reply(calls=(WRITE,)), Reply(calls=(WRONG,)))
    assert transcript.label
    assert len(asked) == 1
    assert transcript.messages[-1]["content"] == CLOSING


def test_what_a_call_put_out_counts_as_the_answer_if_it_worked():
    assert play(Reply(calls=(READ,)), task=MUST_TELL)[0].label
    shouts = call("execute_code", {"code": "print('seven and eight'); raise SystemExit(3)"})
    transcript, _asked = play(Reply(calls=(shouts,)), task=MUST_TELL, turns=1)
    assert "seven and eight" in transcript.messages[-1]["content"]
    assert not transcript.label


def test_turns_end_where_the_limit_is():
    transcript, asked = play(*[Reply(calls=(WRONG,))] * 9, turns=2)
    assert len(asked) == 2
    assert transcript.label is False
    assert transcript.messages[-1]["role"] == "tool"


def test_several_calls_of_one_answer_are_made_in_order_and_count_as_one_turn(tmp_path):
    transcript, _asked = play(Reply(calls=(WRONG, READ, WRITE)), turns=1)
    assert transcript.label
    session = ingest(transcript, tmp_path)
    assert outcomes(session) == [("read_file", "error"), ("read_file", "ok"), ("write_file", "ok")]
    calls = [
        turn for turn, step in zip(session.number_turns(), session.steps, strict=True) if isinstance(step, ToolCall)
    ]
    assert set(calls) == {1}


def test_no_more_than_a_few_calls_of_one_answer_are_made_and_that_is_told(tmp_path):
    transcript, asked = play(Reply(calls=(READ,) * 4 + (WRITE,) * 46), Reply(text="well"), turns=2)
    assert len(transcript.messages[2]["tool_calls"]) == 5
    assert outcomes(ingest(transcript, tmp_path))[:5] == [("read_file", "ok")] * 4 + [("write_file", "error")]
    assert not transcript.label
    told = json.loads(asked[1]["messages"][-1]["content"])["error"]
    assert told == "Error: at most 4 calls of one answer are made; 46 were not."


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (AskedCall("", "read_file", '{"path": "note.t'), "Unknown argument"),
        (AskedCall("", "read_file", '["note.txt"]'), "Unknown argument"),
        (AskedCall("", "read_file", "note.txt"), "Unknown argument"),
        (AskedCall("", "read_file", ""), "Missing argument: path"),
        (AskedCall("", "read_file", "{}"), "Missing argument: path"),
        (AskedCall("", "read_file", '{"path": 7}'), "path must be text"),
        (AskedCall("", "read_file", '{"path": NaN}'), "path must be text"),
        (AskedCall("", "read_file", r'{"path": "\ud800"}'), "half a character"),
        (AskedCall("", "read_file", '{"path": ' + "[" * 100_000), "Unknown argument"),
        (AskedCall("", "launch_rocket", '{"to": "moon"}'), "Unknown tool: launch_rocket"),
        (AskedCall("", NO_CALL, "{}"), "Unknown tool"),
        (AskedCall("", "", "{}"), "Unknown tool"),
    ],
    ids=lambda one: f"{one.name} {one.arguments}"[:40] if isinstance(one, AskedCall) else "",
)
def test_calls_that_make_no_sense_are_errors_the_model_can_mend(tmp_path, asked, said):
    transcript, requests = play(Reply(calls=(asked,)), Reply(calls=(WRITE,)))
    assert said in json.loads(requests[1]["messages"][-1]["content"])["error"]
    (sent,) = requests[1]["messages"][-2]["tool_calls"]
    assert isinstance(
        json.loads(sent["function"]["arguments"]), dict
    )  # servers refuse the whole conversation for one call they cannot read
    assert sent["function"]["name"] == (asked.name or "unnamed_tool")
    (kept,) = transcript.messages[2]["tool_calls"]
    assert (kept["function"]["name"], kept["function"]["arguments"]) == (asked.name, asked.arguments)
    assert transcript.label
    assert [status for _tool, status in outcomes(ingest(transcript, tmp_path))] == ["error", "ok"]


@pytest.mark.parametrize(
    ("message", "solved", "statuses"),
    [
        ({"tool_calls": [{"function": {"name": "write_file", "arguments": WRITE.arguments}}]}, True, ["ok"]),
        ({"content": "Now.", "tool_calls": [{"id": "a", "function": {"name": "write_file"}}]}, False, ["error"]),
        ({"content": [{"type": "text", "text": "words in parts"}]}, False, ["error"]),
        ({"content": None}, False, ["error"]),
        ({"content": "", "tool_calls": []}, False, ["error"]),
        ({"tool_calls": [{"id": "a", "function": None}]}, False, ["error"]),
        (
            {"tool_calls": [{"id": 7, "function": {"name": "write_file", "arguments": json.loads(WRITE.arguments)}}]},
            True,
            ["ok"],
        ),
        ({"tool_calls": [{"id": "a", "function": {"name": None, "arguments": "{}"}}]}, False, ["error"]),
        ({"content": "\ud800 hi", "tool_calls": [{"function": {"name": "read_file"}}]}, False, ["error"]),
        (None, False, ["error"]),
    ],
    ids="call;no arguments;parts;nothing;empty;no function;object;no name;half a character;no message".split(";"),
)
def test_what_a_real_endpoint_may_say(tmp_path, message, solved, statuses):
    data = json.dumps({"choices": [{"message": message and {"role": "assistant"} | message}]}).encode()
    with serve(lambda _body: (200, {}, data)) as endpoint:
        llm = HttpLLM(Endpoint(url=endpoint.url, timeout=5))
        transcript = LabAgent(llm, "m-1", AgentLimits(turns=1), Clock()).run(MUST_WRITE, "s-1", as_is)
    assert transcript.label is solved
    assert [status for _tool, status in outcomes(ingest(transcript, tmp_path))] == statuses


def test_what_a_checker_cannot_stomach_is_not_solved():
    def check(done: Finished) -> bool:
        raise RecursionError

    sick = LabTask(id="w", family="w", request="Wait.", files={}, solution=(), check=check)
    transcript, asked = play(Reply(calls=(WRITE,)), Reply(text="so"), task=sick, turns=2)
    assert (transcript.label, len(asked)) == (False, 2)


# Servers that refuse


def test_a_refused_request_is_the_sessions_failure(tmp_path):
    refusal = RequestRefused("the server says: too long")
    llm = ScriptedLLM([Reply(calls=(WRONG,), prompt_tokens=9, answer_tokens=9), refusal, Reply(calls=(WRITE,))])
    agent = LabAgent(llm, "m-1", AgentLimits(turns=3), Clock())
    transcript = agent.run(MUST_WRITE, "s-1", as_is)
    assert agent.refusal is refusal
    assert len(llm.bodies) == 2  # a refused conversation is not sent again
    assert (transcript.label, transcript.usage) == (False, None)
    assert "too long" in transcript.messages[-1]["content"]
    session = ingest(transcript, tmp_path)
    assert outcomes(session) == [("read_file", "error"), (NO_CALL, "error"), (NO_CALL, "error")]
    assert max(session.number_turns()) == 3
    agent.run(MUST_WRITE, "s-2", as_is)
    assert agent.refusal is None


# What is written down


def test_usage_is_summed_over_the_answers(tmp_path):
    told = [
        Reply(text="no", prompt_tokens=100, cached_tokens=0, answer_tokens=7),
        Reply(calls=(WRITE,), prompt_tokens=150, cached_tokens=90, answer_tokens=11),
    ]
    transcript, _asked = play(*told)
    usage = ingest(transcript, tmp_path).usage
    assert usage is not None
    assert (usage.output, usage.cache_read) == (18, 90)
    assert usage.input + usage.cache_read == 250
    assert usage.basis == "reported"


@pytest.mark.parametrize("silent", [0, 1])
def test_usage_is_not_known_where_one_answer_does_not_tell(tmp_path, silent):
    told = [{"prompt_tokens": 100, "answer_tokens": 7}, {"prompt_tokens": 100, "answer_tokens": 7}]
    told[silent] = {}
    transcript, _asked = play(Reply(text="no", **told[0]), Reply(calls=(WRITE,), **told[1]))
    assert transcript.usage is None
    usage = ingest(transcript, tmp_path).usage
    assert usage is None or usage.basis != "reported"


def test_times_are_in_order_and_from_the_clock():
    transcript, _asked = play(Reply(text="no"), Reply(calls=(READ, WRITE)))
    times = [datetime.fromisoformat(message["timestamp"]).timestamp() for message in transcript.messages]
    assert times[0] == START
    assert times == sorted(times)
    assert len(set(times)) == len(times)


def test_ingest_reads_it_like_any_transcript(tmp_path):
    transcript, _asked = play(Reply(text="no"), Reply(calls=(WRONG,)), Reply(calls=(WRITE,)))
    session = ingest(transcript, tmp_path)
    assert (session.id, session.agent, session.model, session.project) == ("s-1", AGENT, "m-1", "write")
    assert session.label is True
    assert session.task == MUST_WRITE.request
    assert session.started == START
    assert max(session.number_turns()) == 4  # three answers and the closing words
    assert [step.text for step in session.steps if isinstance(step, Message) and step.role == "user"] == [
        MUST_WRITE.request
    ]
    ws = Warmstart(config.load(tmp_path / "home", environ={}), Clock())
    told = ws.ingest(tmp_path / "s-1.jsonl")
    assert (told.new, told.calls, told.errors, told.problems) == (1, 3, 2, [])
    assert [(row.id, row.agent, row.project, row.label) for row in ws.sessions()] == [("s-1", AGENT, "write", True)]
    ws.close()


def test_the_folder_of_a_session_is_thrown_away_also_when_the_model_dies():
    seen: list[Path] = []

    def check(done: Finished) -> bool:
        seen.append(done.folder)
        return False

    watched = LabTask(id="w", family="w", request="Wait.", files={}, solution=(), check=check)
    llm = ScriptedLLM([Reply(calls=(WRITE,)), RuntimeError("dead")])
    with pytest.raises(RuntimeError, match="dead"):
        LabAgent(llm, "m", AgentLimits(), Clock()).run(watched, "s", as_is)
    assert seen
    assert not any(folder.exists() for folder in seen)


def test_each_session_starts_from_the_tasks_own_files():
    spoils = call("write_file", {"path": "note.txt", "content": "spoiled"})
    play(Reply(calls=(spoils,)), task=MUST_TELL, turns=1)
    assert play(Reply(calls=(READ,)), task=MUST_TELL, turns=1)[0].label
