"""Keyboard only, and a stuck key."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def focused(person):
    return person.page.evaluate(
        "(document.activeElement.id || document.activeElement.className || document.activeElement.tagName) + ''"
    )


def tab_to(person, wanted, most=40):
    """Press Tab until something has the focus; fail if Tab never gets there."""
    for _ in range(most):
        if person.page.evaluate("selector => document.activeElement.matches(selector)", wanted):
            return
        person.page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not lead to {wanted}; it ended at {focused(person)}")


def test_from_the_list_to_a_decision(alice, daemon):
    asked = daemon.submit("send_mail")
    alice.page.wait_for_selector(".cards li")
    keys = alice.page.keyboard
    tab_to(alice, ".cards a")
    keys.press("Enter")
    alice.page.wait_for_selector(".showing h1 bdi")
    assert alice.page.evaluate("document.activeElement.matches('.showing h1')"), "one reads from the top"
    tab_to(alice, ".decision .deny")
    keys.press("Tab")
    assert alice.page.evaluate("document.activeElement.matches('.decision .approve')"), "no comes before yes"
    keys.press("Enter")
    alice.page.wait_for_selector("dialog")
    assert alice.page.evaluate("document.activeElement.textContent") == "Cancel"
    alice.page.wait_for_timeout(600)
    tab_to(alice, "dialog #reason")
    keys.type("fine")
    tab_to(alice, "dialog .approve")
    keys.press("Enter")
    alice.page.wait_for_selector(".banner.approved")
    assert daemon.find(asked["id"])["decision"]["reason"] == "fine"


def test_escape_leads_back(alice, daemon):
    asked = daemon.submit("send_mail")
    alice.show(asked["id"])
    alice.ask("approve")
    alice.page.keyboard.press("Escape")
    alice.page.wait_for_selector("dialog", state="detached")
    assert alice.page.is_visible(".showing"), "first the question"
    alice.page.keyboard.press("Escape")
    alice.page.wait_for_selector(".showing", state="detached")
    assert alice.page.evaluate("document.activeElement.closest('li')?.dataset.id") == asked["id"], "where one was"
    assert daemon.find(asked["id"])["status"] == "pending"


def test_a_held_enter_decides_nothing(alice, daemon):
    asked = daemon.submit("send_mail")
    alice.page.wait_for_selector(".cards li")
    tab_to(alice, ".cards a")
    for _ in range(20):  # without letting go: the browser calls all but the first repeats
        alice.page.keyboard.down("Enter")
        alice.page.wait_for_timeout(30)
    tab_to(alice, ".decision .approve")
    alice.page.keyboard.up("Enter")
    for _ in range(60):
        alice.page.keyboard.down("Enter")
        alice.page.wait_for_timeout(20)
    alice.page.keyboard.up("Enter")
    assert alice.page.is_visible("dialog"), "opened once, and left open"
    assert daemon.find(asked["id"])["status"] == "pending"
    alice.page.keyboard.press("Enter")
    alice.page.wait_for_selector("dialog", state="detached")
    assert daemon.find(asked["id"])["status"] == "pending", "the focus was on Cancel"


def test_enter_after_typing_the_name(alice, daemon):
    asked = daemon.submit("delete_data")
    alice.show(asked["id"])
    alice.page.focus(".decision .approve")
    alice.page.keyboard.press("Enter")
    alice.page.wait_for_timeout(600)
    alice.page.keyboard.type("delete_data")
    alice.page.keyboard.press("Enter")
    alice.page.wait_for_selector(".banner.approved")


def test_the_focus_stays_while_the_list_changes(alice, daemon):
    first = daemon.submit("send_mail", timeout_seconds=600)
    alice.page.wait_for_selector(".cards li")
    tab_to(alice, ".cards a")
    daemon.submit("send_mail", timeout_seconds=60)
    alice.wait("2 requests are waiting")
    assert alice.page.evaluate("document.activeElement.closest('li').dataset.id") == first["id"]
    assert alice.page.evaluate("document.querySelector('.cards li').dataset.id") != first["id"], "the urgent one first"


def test_the_way_past_the_top(alice, daemon):
    alice.page.keyboard.press("Tab")
    assert focused(alice) == "skip"
    alice.page.keyboard.press("Enter")
    assert focused(alice) == "main"
