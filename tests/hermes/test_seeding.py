"""The plugin's decisions, without Hermes: once per session, and never in the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import warmstart
from hermes.plugin_calls import make_plugin, make_request, send
from hermes.running import TASK
from warmstart.dialects.compose import EXAMPLE_MARK
from warmstart.dialects.providers import text_of_content
from warmstart.doors.hermes import opener
from warmstart.doors.hermes.journal import Journal, UnseededSession, open_notes
from warmstart.doors.hermes.opener import Opener
from warmstart.doors.hermes.wire import FORMS, find_bad_calls, put_seed, read_opening
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


@pytest.mark.parametrize("told", [{"session_id": ""}, {"platform": "subagent"}, {"api_mode": "codex_app_server"}])
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
    def __init__(self, status: int, text: str = "messages.2 is wrong") -> None:
        super().__init__(text)
        self.status_code = status


def fail(error: Exception) -> Callable[[Any], Any]:
    def answer(_body: Any) -> Any:
        raise error

    return answer


@pytest.mark.parametrize(
    ("errors", "seeded_after"),
    [
        ([Refused(400)], False),
        ([Refused(500)], True),
        ([Refused(500), Refused(500)], False),
        ([Refused(400, "unsupported parameter: max_tokens")], True),
        ([Refused(429), Refused(429), Refused(401)], True),
        ([None, Refused(400), Refused(400)], True),
        ([ValueError("nothing to do with it")], True),
    ],
)
def test_a_provider_that_refuses(home: Path, errors: list[Exception | None], seeded_after: bool) -> None:
    plugin = make_plugin()
    for error in errors:
        if error is None:
            send(plugin, make_request())
            continue
        with pytest.raises(type(error)) as raised:
            send(plugin, make_request(), fail(error))
        assert raised.value is error
    assert is_seeded(send(plugin, make_request())) is seeded_after
    assert is_seeded(send(make_plugin(), make_request())) is seeded_after  # in the next process too
    assert len(open_notes(home).read()) == (not seeded_after)


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
    assert "not seeded" in plugin.command.answer("why")


def test_a_fork_opens_its_own(home: Path) -> None:
    opener = Opener()
    first = opener()
    assert opener() is first
    opener._opened = (-1, first)
    assert opener() is not first


def test_wire_forms(home: Path) -> None:
    with warmstart.open() as ws:
        seed = ws.provision(warmstart.Task(text=TASK, dialect="responses"))
    request = {"input": [{"role": "user", "content": TASK}], "tools": [{"type": "function", "name": "terminal"}]}
    form = FORMS["codex_responses"]
    opening_ = read_opening(request, form)
    assert (opening_.text, opening_.begun, opening_.tools) == (TASK, False, ("terminal",))
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
