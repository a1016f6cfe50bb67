"""Requests arrive and are decided, by one person and by several."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.slow  # a second of Chromium each


def title(person):
    return person.page.title()


def test_nothing_is_waiting(alice):
    alice.wait("Nothing is waiting")
    assert title(alice) == "Confirmations"
    assert alice.page.get_attribute("#icon", "href") == "/assets/icon.svg"


def test_a_request_appears_by_itself(alice, daemon):
    loads = alice.loads
    asked = daemon.submit("send_mail", {"to": "bob"}, description="Tell Bob")
    alice.page.wait_for_selector(".cards li")
    assert alice.text(".listing h1") == "1 request is waiting"
    assert title(alice) == "(1) Confirmations"
    assert alice.page.get_attribute("#icon", "href") == "/assets/icon-waiting.svg"
    assert "New request: send_mail by agent-1" in alice.page.text_content("#news")
    daemon.submit("send_mail")
    alice.wait("2 requests are waiting")
    assert title(alice) == "(2) Confirmations"
    daemon.decide(asked["id"], "approve")
    alice.wait("1 request is waiting")
    assert alice.loads == loads and alice.complaints == []


def test_what_is_shown(alice, daemon):
    daemon.decide(daemon.submit("delete_data", {"table": "a"})["id"], "deny", reason="no")
    same = daemon.submit("delete_data", {"table": "b", "key": "ghp_abcdEFGH1234567890abcdEFGH1234567890"})
    daemon.decide(same["id"], "approve")
    details = {"table": "b", "key": "ghp_abcdEFGH1234567890abcdEFGH1234567890"}
    asked = daemon.submit(
        "delete_data", details, description="Drop it", requester="Claude Code", session_key="s-42", timeout_seconds=600
    )
    alice.show(asked["id"])
    shown = alice.text(".showing")
    assert shown.startswith("delete_data") and "HIGH RISK" in shown and "Drop it" in shown
    assert re.search(r"(10:00|9:5\d) left to decide", shown)
    assert "agent-1 (calls itself Claude Code)" in shown and "s-42" in shown
    assert "1 secret is masked" in shown and "{{SECRET:github#1}}" in shown and "ghp_" not in alice.page.content()
    alice.wait("1 approved, 1 denied; 1 with exactly the same arguments")
    assert "exactly the same" in alice.text(".showing .rows")
    alice.page.click(".json summary")
    assert '"table": "b"' in alice.text(".json pre") and asked["digest"] in alice.text(".json")


def test_numbers_are_exact(alice, daemon):
    details = {"big": 18446744073709551615, "one": 1.0, "small": 1e-7, "list": [0.1, -0.0], "__proto__": {"x": "1"}}
    alice.show(daemon.submit("send_mail", details)["id"])
    shown = alice.page.locator(".values").first.inner_text()
    assert all(text in shown for text in ("18446744073709551615", "1.0", "1e-7", "-0.0", "__proto__")), shown


def test_any_arguments_are_shown(alice, daemon):
    for details in ("just text", ["a", {"b": []}], 5, [1], {"": ""}, {"deep": [[[[[{"er": 1}]]]]]}):
        alice.show(daemon.submit("send_mail", details)["id"])
        assert "Exact arguments" in alice.text(".showing section") and alice.complaints == []


def test_approve(alice, daemon):
    asked = daemon.submit("send_mail", {"to": "bob"})
    alice.show(asked["id"])
    alice.answer("approve", "go on")
    alice.page.wait_for_selector(".banner.approved")
    assert "Approved by alice" in alice.text(".banner") and "go on" in alice.text(".banner")
    assert "has not used the approval yet" in alice.text(".banner")
    found = daemon.find(asked["id"])
    assert (found["status"], found["decision"]["by"], found["decision"]["reason"]) == ("approved", "alice", "go on")
    assert not alice.page.is_visible(".decision")
    daemon.execute(asked["id"], "send_mail", {"to": "bob"})
    alice.wait("The agent used the approval at")


def test_deny_with_a_reason(alice, daemon):
    asked = daemon.submit("send_mail")
    alice.show(asked["id"])
    alice.answer("deny", "Not on a Friday")
    alice.page.wait_for_selector(".banner.denied")
    found = daemon.find(asked["id"])
    assert (found["status"], found["decision"]["reason"]) == ("denied", "Not on a Friday")


def test_high_risk_wants_the_name_typed(alice, daemon):
    asked = daemon.submit("delete_data")
    alice.show(asked["id"])
    alice.ask("approve")
    yes = alice.page.locator("dialog .approve")
    alice.page.wait_for_timeout(600)
    assert yes.is_disabled()
    assert alice.page.evaluate("document.activeElement.id") == "typed"
    for wrong in ("delete", "DELETE_DATA", "delete data"):
        alice.page.fill("#typed", wrong)
        assert yes.is_disabled()
        alice.page.press("#typed", "Enter")
    assert daemon.find(asked["id"])["status"] == "pending"
    alice.page.fill("#typed", "delete_data")
    yes.click()
    alice.page.wait_for_selector(".banner.approved")


def test_denying_high_risk_needs_no_typing(alice, daemon):
    alice.show(daemon.submit("delete_data")["id"])
    alice.answer("deny")
    alice.page.wait_for_selector(".banner.denied")


def test_expiry(alice, daemon):
    asked = daemon.submit("send_mail", timeout_seconds=60)
    alice.show(asked["id"])
    alice.ask("approve")
    daemon.clock.ahead += 61
    alice.page.wait_for_selector(".banner.expired")
    assert "nobody decided in time" in alice.text(".banner").lower()
    assert "has expired" in alice.text("#trouble")
    assert not alice.page.is_visible("dialog") and not alice.page.is_visible(".decision")
    assert "Expired" in alice.text(".rows") and title(alice) == "Confirmations"


def test_time_is_the_servers(people, daemon):
    """A local clock that is years off or jumps changes nothing."""
    person = people()
    person.page.clock.install(time="2031-01-01T00:00:00Z")
    person.page.goto(daemon.make_link())
    asked = daemon.submit("send_mail", timeout_seconds=300)
    person.page.wait_for_selector(".cards li")
    assert re.fullmatch(r"5:00|4:[45]\d", person.text(".cards .left"))
    person.page.clock.fast_forward(400_000)
    person.page.locator(".cards .left", has_text=re.compile(r"^(5:00|4:[345]\d)$")).wait_for()
    person.show(asked["id"])
    assert person.page.is_enabled(".decision .approve"), "the daemon was asked, and says there is time"


class TestTwoAtOnce:
    def test_a_double_click_decides_once(self, alice, daemon):
        asked = daemon.submit("send_mail")
        alice.show(asked["id"])
        alice.page.dblclick(".decision .approve")
        alice.page.wait_for_timeout(700)
        assert alice.page.is_visible("dialog") and daemon.find(asked["id"])["status"] == "pending"
        sent = [url for url in alice.asked if url.endswith("/approve")]
        alice.page.dblclick("dialog .approve", force=True)
        alice.page.wait_for_selector(".banner.approved")
        assert sent == [] and len([url for url in alice.asked if url.endswith("/approve")]) == 1
        # A busy machine may lose the stream of events for a moment, and the page says so; a second decision is another matter.
        assert not alice.page.is_visible("#trouble") or "lready" not in alice.text("#trouble")

    def test_another_tab_was_faster(self, alice, daemon):
        asked = daemon.submit("send_mail")
        tab = alice.open_tab()
        for page in (alice.page, tab):
            alice.show(asked["id"], page)
            alice.ask("approve", page)
        alice.page.wait_for_timeout(600)
        alice.page.click("dialog .approve")
        alice.page.wait_for_selector(".banner.approved")
        tab.wait_for_selector(".banner.approved")
        assert not tab.is_visible("dialog")
        assert "Already approved by alice" in alice.text("#trouble", tab)

    def test_somebody_else_was_faster_and_the_page_did_not_know(self, alice, daemon):
        """The daemon answers 409 and names the decider."""
        asked = daemon.submit("send_mail")
        alice.show(asked["id"])
        alice.page.route("**/events", lambda route: route.abort())
        alice.page.route(re.compile(r"/confirm(\?|/[0-9a-f]+$)"), lambda route: route.abort())
        daemon.stop()
        alice.page.wait_for_selector(".connection.lost")
        daemon.start()
        daemon.decide(asked["id"], "deny", subject="bob")
        alice.ask("approve")
        alice.page.wait_for_timeout(600)
        alice.page.click("dialog .approve")
        alice.wait("Already denied by bob")
        assert "Your answer changed nothing" in alice.text("#trouble")
        assert daemon.find(asked["id"])["status"] == "denied"

    def test_too_late_and_the_page_did_not_know(self, alice, daemon):
        asked = daemon.submit("send_mail", timeout_seconds=600)
        alice.show(asked["id"])
        alice.ask("approve")
        alice.page.wait_for_timeout(600)
        daemon.clock.ahead += 601
        alice.page.evaluate("document.querySelector('dialog .approve').click()")
        alice.wait("has expired")
        assert daemon.find(asked["id"])["status"] == "expired"

    def test_two_must_approve(self, alice, people, daemon):
        asked = daemon.submit("release_site")
        zoe = people().log_in("zoe")
        for person in (alice, zoe):
            person.show(asked["id"])
            assert "0 of 2" in person.text(".facts")
        alice.answer("approve", "tests are green")
        zoe.wait("1 of 2")
        assert "alice" in zoe.text(".votes") and "tests are green" in zoe.text(".votes")
        alice.wait("You have approved this. 1 more must approve it.")
        assert alice.page.locator(".decision .approve").count() == 0, "nobody approves twice"
        assert alice.page.locator(".decision .deny").count() == 1
        assert daemon.find(asked["id"])["status"] == "pending"
        zoe.answer("approve")
        for person in (alice, zoe):
            person.page.wait_for_selector(".banner.approved")

    def test_nobody_decides_for_themselves(self, people, daemon):
        asked = daemon.submit("send_mail", subject="dora")
        dora = people().log_in("dora")
        dora.show(asked["id"])
        dora.wait("You asked for this yourself")
        assert dora.page.locator(".decision button").count() == 0


class TestConnection:
    def test_lost_and_found(self, alice, daemon):
        daemon.stop()
        alice.page.wait_for_selector(".connection.lost")
        assert "Connection lost" in alice.text("#connection")
        daemon.start()
        asked = daemon.submit("send_mail")
        alice.page.wait_for_selector(".connection.live", timeout=20_000)
        alice.page.wait_for_selector(f"li[data-id='{asked['id']}']")

    def test_without_a_stream_it_asks(self, people, daemon):
        person = people()
        person.page.route("**/events", lambda route: route.abort())
        person.page.goto(daemon.make_link())
        person.page.wait_for_selector(".connection.asking")
        daemon.submit("send_mail")
        person.page.wait_for_selector(".cards li")

    def test_a_decision_without_a_connection_claims_nothing(self, alice, daemon):
        asked = daemon.submit("send_mail")
        alice.show(asked["id"])
        alice.ask("approve")
        alice.page.wait_for_timeout(600)
        daemon.stop()
        alice.page.click("dialog .approve")
        alice.wait("Your decision may or may not have arrived")
        daemon.start()
        assert daemon.find(asked["id"])["status"] == "pending"

    def test_a_lost_answer_is_looked_up(self, alice, daemon):
        """The decision arrived, but its answer was lost."""
        asked = daemon.submit("send_mail")
        alice.show(asked["id"])

        def lose(route):
            route.fetch()
            route.abort()

        alice.page.route("**/approve", lose)
        alice.answer("approve")
        alice.page.wait_for_selector(".banner.approved")
        alice.page.wait_for_selector("dialog", state="hidden")


def test_many(alice, daemon):
    """More requests than one answer holds."""
    daemon.submit()
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: daemon.submit("send_mail", {"number": number}), range(209)))
    alice.page.reload()
    alice.wait("210 requests are waiting")
    cards = alice.page.locator(".cards li")
    for shown in (50, 100, 150, 200):
        expect(cards).to_have_count(shown, timeout=20_000)
        alice.page.get_by_role("button", name="Show more").click()
    expect(cards).to_have_count(210, timeout=20_000)
    alice.page.get_by_label("Asked by").select_option("agent-1")
    alice.page.get_by_role("button", name="Deny all from agent-1").click()
    alice.page.get_by_role("button", name="Deny all", exact=True).click()
    alice.wait("Nothing is waiting")
    assert cards.count() == 0
