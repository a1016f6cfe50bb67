"""What a call was for, and which texts that needs."""

from __future__ import annotations

from warmstart.calls.intents import Purposes
from warmstart.model import UNKNOWN, Message, Step, ToolCall, ToolResult


def run(name: str, command: str, **more: str) -> tuple[Step, Step]:
    return ToolCall(name, "Bash", {"command": command} | more), ToolResult(name, "fine", UNKNOWN)


STEPS: list[Step] = [
    Message("system", "You are an agent."),
    Message("user", "Repair the checkout of the shop"),
    Message("assistant", "Let me run the tests first."),
    *run("1", "pytest"),
    Message("assistant", "They fail, as you said."),
    Message("user", "Then count the orders"),
    *run("2", "wc orders"),
    *run("3", "ls", description="List the orders"),
    Message("assistant", "Ten orders. Anything else?"),
]


def test_a_call_is_for_its_note_its_announcement_or_the_latest_request() -> None:
    stated = Purposes(STEPS).state(str)
    assert stated == ["Let me run the tests first.", "Then count the orders", "List the orders"]


def test_the_texts_to_search_are_those_that_are_redacted() -> None:
    purposes = Purposes(STEPS)
    asked: list[str] = []

    def redact(text: str) -> str:
        asked.append(text)
        return text

    purposes.state(redact)
    assert set(asked) <= set(purposes.texts())
    assert not {"You are an agent.", "They fail, as you said.", "Ten orders. Anything else?"} & set(purposes.texts())
