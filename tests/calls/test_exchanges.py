"""Which message a call serves, and which words close it."""

from __future__ import annotations

from warmstart.calls.exchanges import Served, find_served, list_requests
from warmstart.model import UNKNOWN, Message, Step, ToolCall, ToolResult


def said(role: str, text: str) -> Message:
    return Message(role, text)  # type: ignore[arg-type]


def call(name: str) -> tuple[Step, Step]:
    return ToolCall(name, "tool", {}), ToolResult(name, "fine", UNKNOWN)


def test_each_call_is_given_its_message_and_the_last_one_the_closing_words() -> None:
    steps = [
        said("user", "Move a into b"),
        said("assistant", "Let me look first."),
        *call("1"),
        said("assistant", "Now I move it."),
        *call("2"),
        said("assistant", "I moved a into b. It is there now."),
        said("user", "And count them"),
        *call("3"),
        said("user", "Thanks"),
    ]
    assert find_served(list_requests(steps), str) == [
        Served(1, "Move a into b"),
        Served(1, "", "I moved a into b. It is there now."),
        Served(2, "And count them"),
    ]


def test_an_announcement_is_no_closing() -> None:
    steps = [said("user", "Do both"), *call("1"), said("assistant", "Next, the other."), *call("2")]
    assert [served.closing for served in find_served(list_requests(steps), str)] == ["", ""]


def test_messages_in_a_row_are_one_request_and_whole_messages_are_redacted() -> None:
    seen: list[str] = []

    def redact(text: str) -> str:
        seen.append(text)
        return text.replace("hunter2hunter2", "[hidden]")

    steps = [
        said("user", "Log in"),
        said("user", "with hunter2hunter2"),
        *call("1"),
        said("assistant", "Used hunter2hunter2."),
    ]
    (served,) = find_served(list_requests(steps), redact)
    assert (served.asked, served.closing) == ("Log in with [hidden]", "Used [hidden].")
    assert seen == ["Log in\nwith hunter2hunter2", "Used hunter2hunter2."]


def test_calls_before_any_message_serve_none() -> None:
    assert find_served(list_requests([*call("1")]), str) == [Served(0)]


def test_headings_are_not_glued_into_a_request() -> None:
    steps = [said("user", "Do this:\n\n# Plan: Pass the error on\n\n## Context\n\nThe hook loses it."), *call("1")]
    assert find_served(list_requests(steps), str) == [Served(1, "Do this: Pass the error on. The hook loses it.")]
