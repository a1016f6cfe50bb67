"""The plugin's decisions, without Hermes: once per session, and never in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import warmstart
from hermes.plugin_calls import make_plugin, make_request, send, send_all
from hermes.running import TASK
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.dialects.providers import text_of_content
from warmstart.doors.hermes import opener
from warmstart.doors.hermes.journal import Journal, UnseededSession, open_notes
from warmstart.doors.hermes.opener import Opener
from warmstart.doors.hermes.refusal import SeedRemoved
from warmstart.doors.hermes.wire import FORMS, find_bad_calls, put_seed, read_opening
from warmstart.errors import StoreError
from warmstart.store import TrialStore


def is_seeded(body: Any) -> bool:
    return EXAMPLE_MARK in str(body)


def test_a_request_is_never_changed_in_place(home: Path) -> None:
    request, same = make_request(), make_request()
    sent = send(make_plugin(), request)
    assert is_seeded(sent) and request == same and warmstart.lint(sent["messages"]) == []
    assert sent["messages"][0] == same["messages"][0] and sent["messages"][-1] == same["messages"][-1]


def test_another_process_gives_the_same(home: Path) -> None:
    first = send(make_plugin(), make_request())
    later = make_request({"role": "assistant", "content": "17"}, {"role": "user", "content": "And now?"})
    again = send(make_plugin(), later)
    assert again["messages"][: len(first["messages"])] == first["messages"]


def test_words_of_the_user_count_not_what_hermes_adds_to_them(home: Path) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", "paint the shed green", conversation_history=[], is_first_turn=True, model="m")
    assert not is_seeded(send(plugin, make_request()))
    plugin.begin_turn("s-2", [{"type": "text", "text": TASK}], conversation_history=[])
    request = make_request()
    request["messages"][1]["content"] = "paint the shed green"
    assert is_seeded(send(plugin, request, session_id="s-2"))


def test_examples_given_to_every_session_do_not_make_it_an_old_one(home: Path) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", TASK, conversation_history=[{"role": "user", "content": TASK}])
    assert is_seeded(send(plugin, make_request({"role": "assistant", "content": "prefilled"})))


@pytest.mark.parametrize("told", [{"session_id": ""}, {"api_mode": "codex_app_server"}])
def test_left_alone(home: Path, told: dict[str, str]) -> None:
    request = make_request()
    assert send(make_plugin(), request, **told) is request
    with warmstart.open() as ws:
        assert TrialStore(ws.store).recent_trials(9) == []


def test_what_went_on_without_a_seed_stays_so(home: Path) -> None:
    plugin = make_plugin()
    for mode in ("bedrock_converse", "chat_completions"):
        request = make_request()
        assert send(plugin, request, api_mode=mode) is request
    assert len(open_notes(home).read()) == 1


def test_another_protocol_in_the_same_session_shows_the_same(home: Path) -> None:
    plugin = make_plugin()
    first = send(plugin, make_request())
    second = send(plugin, {"messages": [{"role": "user", "content": TASK}], "tools": [{"name": "terminal"}]},
                  api_mode="anthropic_messages")  # fmt: skip
    assert [str(message).count("grep -c open orders.csv") for message in (first, second)] == [1, 1]
    assert warmstart.lint(second["messages"], "anthropic") == []


def test_a_branch_inherits(home: Path) -> None:
    plugin = make_plugin({"s-2": "s-1", "s-3": "nobody"})
    first = send(plugin, make_request())
    begun = make_request({"role": "assistant", "content": "17"}, {"role": "user", "content": "Else?"})
    branched = send(plugin, begun, session_id="s-2")
    assert branched["messages"][: len(first["messages"])] == first["messages"]
    assert send(plugin, begun, session_id="s-3") is begun


class Refused(Exception):
    def __init__(self, status: int | None, text: str = "messages.2 is wrong") -> None:
        super().__init__(text)
        if status is not None:
            self.status_code = status


def refuse(error: Exception, *, always: bool = False) -> Callable[[Any], Any]:
    """Return a provider that refuses calls with a seed, or all calls."""

    def answer(body: Any) -> Any:
        if always or is_seeded(body):
            raise error

    return answer


def read_seed(session: str = "s-1") -> Any:
    with warmstart.open() as ws:
        return ws.provision(warmstart.Task(session=session))


FULL = "This model's maximum context length is 64000 tokens"


@pytest.mark.parametrize(
    "error", [Refused(400), Refused(422), Refused(413, "no"), Refused(400, FULL), Refused(None, FULL)]
)
def test_a_refused_seed_costs_no_call(home: Path, error: Exception) -> None:
    plugin = make_plugin()
    assert [is_seeded(body) for body in send_all(plugin, make_request(), refuse(error))] == [True, False]
    assert [is_seeded(body) for body in send_all(plugin, make_request(), refuse(error))] == [False]
    assert not is_seeded(send(make_plugin(), make_request())), "the next process knows it too"
    seed = read_seed()
    assert (seed.arm, seed.tokens) == ("warm", 0) and seed.reason.startswith("not seeded: the ") and seed.withdrawn
    assert "not seeded: the" in plugin.command.answer("why s-1")
    (note,) = open_notes(home).read()
    assert note.session == "s-1" and note.reason == seed.withdrawn


def test_another_protocol_or_a_continuation_does_not_try_again(home: Path) -> None:
    plugin = make_plugin({"s-2": "s-1"})
    send_all(plugin, make_request(), refuse(Refused(400)))
    again = {"messages": [{"role": "user", "content": TASK}], "tools": [{"name": "terminal"}]}
    assert send(make_plugin(), again, api_mode="anthropic_messages") == again
    later = make_request({"role": "assistant", "content": "17"}, {"role": "user", "content": "Else?"})
    assert not is_seeded(send(plugin, later, session_id="s-2"))
    assert read_seed("s-2").withdrawn == read_seed().withdrawn


def test_a_server_fault_counts_when_it_happens_twice(home: Path) -> None:
    plugin, fault = make_plugin(), Refused(500, "internal")
    with pytest.raises(Refused):
        send_all(plugin, make_request(), refuse(fault))
    assert [is_seeded(body) for body in send_all(plugin, make_request(), refuse(fault))] == [True, False]
    other = make_plugin()
    send(other, make_request(), session_id="s-2")
    for _ in range(2):  # the provider took the seed before: it has another trouble
        with pytest.raises(Refused):
            send_all(other, make_request(), refuse(fault), session_id="s-2")


@pytest.mark.parametrize(
    "error", [Refused(429, FULL), Refused(401), Refused(402), ValueError("nothing to do with it"), TimeoutError()]
)
def test_other_errors_pass_through(home: Path, error: Exception) -> None:
    plugin = make_plugin()
    with pytest.raises(type(error)) as raised:
        send_all(plugin, make_request(), refuse(error))
    assert raised.value is error
    assert is_seeded(send(plugin, make_request())) and open_notes(home).read() == []


def test_a_refusal_that_has_another_cause_leaves_the_seed(home: Path) -> None:
    plugin = make_plugin()
    with pytest.raises(Refused):
        send_all(plugin, make_request(), refuse(Refused(400, "unsupported parameter: max_tokens"), always=True))
    assert is_seeded(send(plugin, make_request())) and is_seeded(send(make_plugin(), make_request()))


def test_the_seed_goes_first_when_the_context_is_full(home: Path) -> None:
    """Even if the rest does not fit either: then Hermes compresses, and the seed is not in the way."""
    plugin = make_plugin()
    send(plugin, make_request())
    with pytest.raises(Refused):
        send_all(plugin, make_request(), refuse(Refused(400, FULL), always=True))
    assert not is_seeded(send(plugin, make_request()))
    seed = read_seed()
    assert seed.reason == "no longer shown: the model's context was full" and seed.tokens > 0
    with warmstart.open() as ws:
        assert TrialStore(ws.store).treated_sessions() == {"s-1"}


def test_a_chain_that_calls_on_once_is_asked_to_try_again(home: Path) -> None:
    """Another version of Hermes may hide the rest of its chain; it then makes the call again by itself."""
    plugin, used = make_plugin(), []

    def once(body: Any) -> Any:
        if used:
            raise RuntimeError("next_call() called more than once")
        used.append(body)
        raise Refused(400)

    with pytest.raises(SeedRemoved, match="has to be made again"):
        plugin.call_model(make_request(), once, session_id="s-1", api_mode="chat_completions")
    assert is_seeded(used[0]) and not is_seeded(send(plugin, make_request()))


SUMMARY = (
    "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted. {}\n\n--- END OF CONTEXT SUMMARY — respond"
)


def compact(said: str, *more: dict[str, Any]) -> dict[str, Any]:
    """Return a request of a session whose earlier turns were compacted."""
    request = make_request(*more)
    request["messages"][1] = {"role": "user", "content": SUMMARY.format(said)}
    return request


@pytest.mark.parametrize("text", ["hi", "[Ann] Hello there!", "how are you?", "Thanks a lot", "danke", "test", ""])
def test_small_talk_gets_no_seed_and_no_trial(home: Path, text: str) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", text, conversation_history=[])
    request = make_request()
    request["messages"][1]["content"] = text
    assert send(plugin, request) is request
    with warmstart.open() as ws:
        assert TrialStore(ws.store).recent_trials(9) == []
    assert open_notes(home).read() == []


@pytest.mark.parametrize("same_process", [True, False])
def test_the_seed_comes_with_the_first_task(home: Path, same_process: bool) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", "hi", conversation_history=[])
    talk = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Hello!"}]
    request = make_request()
    request["messages"][1:] = talk[:1]
    send(plugin, request)
    plugin = plugin if same_process else make_plugin()
    plugin.begin_turn("s-1", TASK, conversation_history=talk)
    request["messages"][1:] = [*talk, {"role": "user", "content": TASK}]
    seeded = send(plugin, request)
    assert is_seeded(seeded["messages"][1]), "behind the system prompt"
    plugin.begin_turn("s-1", "paint the shed green", conversation_history=seeded["messages"])
    assert send(plugin, request) == seeded, "never in the middle of a cached prefix"


@pytest.mark.parametrize("same_process", [True, False])
def test_a_long_talk_is_not_sent_again(home: Path, same_process: bool) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", "hello", conversation_history=[])
    plugin = plugin if same_process else make_plugin()
    history = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "Once upon a time. " * 1_000}]
    plugin.begin_turn("s-1", TASK, conversation_history=history)
    request = make_request()
    assert send(plugin, request) is request
    (note,) = open_notes(home).read()
    assert "long talk" in note.reason


def test_a_new_topic_gets_its_own_seed_where_the_conversation_was_compacted(home: Path) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", TASK, conversation_history=[])
    first = send(plugin, make_request())
    plugin.begin_turn("s-1", "Please paint the garden shed in a friendly green", conversation_history=[])
    assert not is_seeded(send(plugin, compact("Orders were counted.")))
    plugin.begin_turn("s-1", TASK, conversation_history=[])
    assert not is_seeded(send(plugin, compact("Orders were counted."))), "the prefix is cached again"
    again = send(plugin, compact("Orders and paint."))
    assert again["messages"][1:-1] == first["messages"][1:-1]
    assert send(make_plugin(), compact("Orders and paint.")) == again, "in another process too"
    with warmstart.open() as ws:
        trials = TrialStore(ws.store).recent_trials(9)
        assert {trial.given for trial in trials} == {"warm"} and {trial.parent for trial in trials} == {None, "s-1"}
        (left,) = ws.report().left_out.values() or [0]
        assert left == 0


@pytest.mark.parametrize("text", ["continue", "Count again"])
def test_the_same_topic_keeps_its_seed(home: Path, text: str) -> None:
    plugin = make_plugin()
    plugin.begin_turn("s-1", TASK, conversation_history=[])
    first = send(plugin, make_request())
    plugin.begin_turn("s-1", text, conversation_history=[])
    assert send(plugin, compact("Orders were counted."))["messages"][1:-1] == first["messages"][1:-1]


def test_a_session_that_is_to_be_cold_stays_so_after_a_compaction(home: Path) -> None:
    plugin = make_plugin()
    send(plugin, make_request())
    assert is_seeded(send(plugin, compact("Orders.")))
    plugin.command.answer("cold s-1")
    assert not is_seeded(send(plugin, compact("Orders."))) and not is_seeded(send(plugin, compact("Orders, again.")))


def test_a_rotated_session_keeps_the_arm_and_may_change_the_topic(home: Path) -> None:
    plugin = make_plugin({"s-2": "s-1"})
    plugin.begin_turn("s-1", TASK, conversation_history=[])
    first = send(plugin, make_request())
    rotated = send(plugin, compact("Orders."), session_id="s-2")
    assert rotated["messages"][1:-1] == first["messages"][1:-1]
    assert send(make_plugin({"s-2": "s-1"}), compact("Orders."), session_id="s-2") == rotated
    with warmstart.open() as ws:
        trials = {trial.session: trial for trial in TrialStore(ws.store).recent_trials(9)}
    assert trials.keys() == {"s-1", "s-2"} and (trials["s-2"].assignment, trials["s-2"].parent) == ("inherited", "s-1")


def test_a_subagent_gets_the_brief_of_its_own_task(home: Path) -> None:
    plugin = make_plugin({"child": "s-1", "other": "s-1"})
    plugin.begin_turn("s-1", "Paint the garden shed in a friendly green", conversation_history=[])
    assert not is_seeded(send(plugin, make_request()))
    plugin.begin_turn("child", TASK, conversation_history=[], platform="subagent")
    assert is_seeded(send(plugin, make_request(), session_id="child", platform="subagent"))
    with warmstart.open() as ws:
        trial = TrialStore(ws.store).trial("child")
    assert trial and (trial.arm, trial.assignment, trial.parent) == ("warm", "inherited", "s-1")


def test_a_busy_store_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opener, "PATIENCE", 0.05)
    plugin = make_plugin()
    with warmstart.open() as other, other.store.writing():
        request = make_request()
        assert send(plugin, request) is request
    assert send(plugin, request) is request  # what began without a seed goes on without
    (note,) = open_notes(home).read()
    assert note.session == "s-1" and "busy" in note.reason
    assert is_seeded(send(plugin, make_request(), session_id="s-2"))


def test_nothing_is_raised_into_hermes(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugin = make_plugin()
    request: Any
    for request in ({}, {"messages": None}, {"messages": ["?", 7, {"role": 3}], "tools": [None, {}]}, [], None):
        assert send(plugin, request, session_id=f"odd {request}") in (
            request,
            {**(request or {})} if request else request,
        )
    for hook in (plugin.begin_turn, plugin.see_tool, plugin.end_turn, plugin.end_session, plugin.receive_message):
        hook()
        hook(session_id=None, status="blocked", event=object(), session_store=object(), conversation_history=7)
    assert "success" in plugin.tool.handle(None)
    assert "not known" in plugin.command.answer("why")


def test_a_fork_opens_its_own(home: Path) -> None:
    opener = Opener()
    first = opener()
    assert opener() is first
    opener._opened = (-1, first)
    assert opener() is not first


def test_the_store_is_closed_when_hermes_ends(home: Path) -> None:
    plugin = make_plugin()
    send(plugin, make_request())
    store = plugin._open().store
    plugin.end_process()
    with pytest.raises(StoreError, match="closed"):
        store.list_sessions()
    assert send(plugin, make_request(), session_id="later"), "a straggler opens it again"
    plugin.end_process()


def test_wire_forms(home: Path) -> None:
    with warmstart.open() as ws:
        seed = ws.provision(warmstart.Task(text=TASK, dialect="responses"))
    request = {"input": [{"role": "user", "content": TASK}], "tools": [{"type": "function", "name": "terminal"}]}
    form = FORMS["codex_responses"]
    opening_ = read_opening(request, form)
    assert (opening_.asked, opening_.begun, opening_.tools) == ((TASK,), False, ("terminal",))
    items = put_seed(seed, request, form)["input"]
    assert items[-1] == request["input"][0] and all(item.get("type") != "message" for item in items)
    thinking = {"messages": [], "thinking": {"type": "enabled"}}
    assert read_opening(thinking, FORMS["anthropic_messages"]).thinking
    assert text_of_content([{"type": "text", "text": "a"}, {"type": "image"}, "b"]) == "a"


def test_calls_that_are_no_json() -> None:
    def call(arguments: Any) -> Any:
        return SimpleNamespace(id="c", function=SimpleNamespace(name="terminal", arguments=arguments))

    calls = [call(text) for text in ('{"a": 1}', "{oops}", '{"cut": "of', "", None, {"a": 1})]
    chat = SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(tool_calls=calls))])
    assert find_bad_calls(chat) == [("c", "terminal")]
    items = [
        SimpleNamespace(type="function_call", call_id="d", name="patch", arguments="[1,]"),
        SimpleNamespace(type="x"),
    ]
    assert find_bad_calls(SimpleNamespace(output=items)) == [("d", "patch")]
    assert find_bad_calls(None) == []


def test_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "deep" / "notes.jsonl", UnseededSession, most=2_000)
    assert journal.read() == []
    for n in range(60):
        journal.add(UnseededSession(session=f"s{n}", reason="r"))
    with journal.path.open("ab") as file:
        file.write(b'{"session": "half')
    kept = journal.read()
    assert kept[-1].session == "s59" and 10 < len(kept) < 60
    assert journal.path.stat().st_mode & 0o77 == 0
