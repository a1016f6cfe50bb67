"""Which messages ask for work, and which are small talk."""

from __future__ import annotations

import pytest

from warmstart.templates.small_talk import is_small_talk

TALK = (
    "",
    "hi",
    "Hello there!",
    "[Alice] hi",
    "how are you?",
    "what can you do?",
    "who are you",
    "Thanks a lot!",
    "ok, perfect",
    "test",
    "ping",
    "can you help me with something today?",
    "Good morning, how's it going?",
    "I have a question",
    "nice to meet you",
    "hey bot",
    "yes please go ahead",
    "continue",
    "Guten Morgen, wie geht's?",
    "你好",
    "Привет! Как дела?",
    "👍",
)
WORK = (
    "Count the open orders in orders.csv",
    "fix it",
    "run it",
    "deploy",
    "list files",
    "hi, please run the tests",
    "[Alice] hi, please run the tests",
    "tell me a joke",
    "start the server",
    "read a.txt",
    "check 42",
    "hello " * 60,
    "Zeig mir die offenen Bestellungen",
    "https://example.org",
)


@pytest.mark.parametrize("text", TALK)
def test_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize("text", WORK)
def test_work(text: str) -> None:
    assert not is_small_talk(text)
