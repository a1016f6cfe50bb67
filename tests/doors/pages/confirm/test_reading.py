"""An approver sees what runs: in stored order, with no masked command, and with failed notifications."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.notifier import Notifier
from warmstart.confirm.notify.sending import Channel, Undelivered

pytestmark = pytest.mark.slow

HEBREW = "mv \u05d0\u05d0 \u05d1\u05d1"
TURNED = {
    "hebrew": HEBREW,
    "arabic": "cp \u0627\u0644 \u0628\u062c; rm x",
    "digits": "pay \u0661\u0662 \u0663\u0664",
    "first": "\u05d0 100 to 9000; mv src dst",
    "syriac": "a \u0710\u0712 b \u0780\u0781 c \u07ca\u07cb d",
}
# The middle of every character that takes room, by the text nodes they stand in, line by line.
PLACES = """element => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    const found = [];
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        for (let i = 0; i < node.length; i++) {
            const range = document.createRange();
            range.setStart(node, i);
            range.setEnd(node, i + 1);
            const [box] = range.getClientRects();
            if (box && box.width > 0) found.push([box.left + box.width / 2, box.top + box.height / 2]);
        }
    }
    return found;
}"""


def assert_in_order(person: Any, selector: str, count: int = 1) -> None:
    """Every character is to the right of the one before it, or on a later line."""
    elements = person.page.locator(selector).all()
    assert len(elements) >= count, selector
    for element in elements:
        places = element.evaluate(PLACES)
        assert places
        for (x, y), (next_x, next_y) in pairwise(places):
            assert next_x > x or next_y > y + 8, (selector, element.inner_text())


def test_words_stand_in_the_order_in_which_they_are_stored(alice, daemon):
    facts = {"description": f"Please {HEBREW}", "requester": HEBREW, "session_key": HEBREW}
    asked = daemon.submit("send_mail", TURNED | {HEBREW: [HEBREW]}, **facts)
    alice.page.wait_for_selector(".cards .said")
    assert_in_order(alice, ".cards .said")
    alice.show(asked["id"])
    alice.page.click(".json summary")
    assert_in_order(alice, ".values .value.text", len(TURNED) + 1)
    assert_in_order(alice, ".values dt", len(TURNED))
    for selector in (".description", ".json pre", ".facts dd"):
        assert_in_order(alice, selector)
    assert "Letters that are written from right to left" in alice.text(".odd-note")
    alice.ask("deny")
    assert_in_order(alice, ".question p bdi", 2)
    alice.page.fill("#reason", HEBREW)
    alice.page.wait_for_timeout(600)
    alice.page.click("dialog .deny")
    alice.page.wait_for_selector(".reason")
    assert_in_order(alice, ".reason")
    assert alice.complaints == []


def test_the_remark_is_there_only_for_such_letters(alice, daemon):
    alice.show(daemon.submit("send_mail", {"to": "bob"})["id"])
    assert "right to left" not in alice.text(".showing")
    hidden = daemon.submit("send_mail", {"to": "\u05d0\u061c\u05d1\u202e", "piled": "\u05d0" + "\u05b0" * 9})
    alice.show(hidden["id"])
    shown = alice.page.locator(".values").first.inner_text()
    assert "\\u061c" in shown and "\\u202e" in shown and "\\u05b0" in shown, "what hides among them is written out"


def test_a_mask_hides_no_command_and_says_how_much_it_covers(alice, daemon):
    commands = {
        "a": "API_KEY=abc123;touch${IFS}PWNED3|cat",
        "b": "git clone https://u:p;touch${IFS}PWNED2;@github.com/org/repo",
        "c": "TOKEN=a1b2$(touch${IFS}PWNED6) make",
        "to_address": "0x52908400098527886E0F7030069857D2E4169EE7",
    }
    alice.show(daemon.submit("send_mail", commands)["id"])
    shown = alice.text(".showing")
    assert "API_KEY={{SECRET:token#1}}⟨6 characters⟩;touch${IFS}PWNED3|cat" in shown
    assert ";touch${IFS}PWNED2;@github.com/org/repo" in shown
    assert "⟨4 characters⟩$(touch${IFS}PWNED6) make" in shown
    assert commands["to_address"] in shown
    assert "3 secrets are masked" in shown and "nobody can see here" in shown
    marked = alice.page.locator(".values .secret").all_inner_texts()
    assert marked[0] == "{{SECRET:token#1}}⟨6 characters⟩"
    asked = daemon.submit("send_mail", {"to": "bob"}, description="use ghp_abcdEFGH1234567890abcdEFGH1234567890")
    alice.show(asked["id"])
    assert "Secrets in the description are masked" in alice.text(".showing")


@pytest.fixture
def broken(daemon: Any) -> Any:
    """A failing channel."""

    def refuse(message: Notification) -> None:
        raise Undelivered("nobody at home")

    daemon.server.desk.channels = ("fake#1",)
    notifier = Notifier(daemon.server.desk, [Channel("fake#1", "fake", 500, refuse)], str, pauses=(0.1, 1.5, 60))
    yield notifier
    notifier.stop()


def test_a_channel_that_fails_is_seen_while_it_matters(alice, daemon, broken):
    asked = daemon.submit("send_mail", timeout_seconds=30)
    alice.show(asked["id"])
    alice.wait("Not notified yet")
    alice.wait("(tried 3 times)")
    assert "fake#1: nobody at home" in alice.text(".facts .bad")
    daemon.clock.ahead += 100
    alice.page.get_by_text("Not notified", exact=True).wait_for()
    assert "expired before it was delivered: nobody at home" in alice.text(".facts .bad")
    end = time.monotonic() + 10
    while daemon.find(asked["id"])["status"] == "pending" and time.monotonic() < end:
        time.sleep(0.1)
    assert alice.complaints == []
