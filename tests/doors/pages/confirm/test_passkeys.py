"""Passkeys in real Chromium with its virtual authenticator: set up, sign, trust another device, remove."""

from __future__ import annotations

from typing import Any

import pytest

from confirm.serving import check
from doors.pages.confirm.daemon import Daemon
from doors.pages.confirm.people import Person

pytestmark = pytest.mark.slow  # a second of Chromium each


def add_authenticator(person: Person) -> Any:
    """Give a browser a built-in device that verifies its user; return the session that controls it."""
    cdp = person.context.new_cdp_session(person.page)
    cdp.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
    options |= {"isUserVerified": True, "automaticPresenceSimulation": True}
    made = cdp.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return cdp, made["authenticatorId"]


@pytest.fixture
def local(tmp_path: Any) -> Any:
    """A daemon whose page is at `localhost`: browsers make no passkey for a bare address."""
    daemon = Daemon(tmp_path)
    yield daemon
    daemon.stop()
    verdict = check(tmp_path / "confirm.db")
    assert verdict.ok, verdict.problems


def open_person(browser: Any, daemon: Daemon, subject: str = "alice", **options: Any) -> Person:
    person = Person(browser, daemon, **options)
    person.page.goto(daemon.make_link(subject).replace("127.0.0.1", "localhost"))
    person.page.wait_for_selector(".connection.live")
    return person


def set_up(person: Person) -> None:
    """Enrol this device, as a person would."""
    person.page.click("#places a[href='#/devices']")
    person.page.wait_for_selector("#device")
    person.page.fill("#device", "Pixel")
    person.page.click("text=Set up a passkey")
    person.page.wait_for_selector(".device")


def open_request(person: Person, id: str) -> None:
    person.page.evaluate("id => { location.hash = `#/request/${id}` }", id)
    person.page.wait_for_selector(".showing h1 bdi")


def test_an_approval_is_signed_by_the_device(browser, local):
    alice = open_person(browser, local)
    add_authenticator(alice)
    set_up(alice)
    assert "Signs" in alice.text(".device")
    asked = local.submit("send_mail")
    open_request(alice, asked["id"])
    alice.answer("approve")
    alice.page.wait_for_selector(".banner.approved")
    entries = local.server.desk.audit(50, None)
    approved = next(entry for entry in entries if entry.event == "approved")
    assert '"proof"' in approved.details and '"signature"' in approved.details
    alice.page.click("#places a[href='#/audit']")
    alice.page.wait_for_selector(".tag.signed")
    assert not alice.complaints, alice.complaints
    alice.context.close()


def test_without_the_device_nothing_is_approved_but_a_no_is_free(browser, local):
    alice = open_person(browser, local)
    cdp, device = add_authenticator(alice)
    set_up(alice)
    thief = open_person(browser, local)  # the login without the device
    asked = local.submit("send_mail", timeout_seconds=3600)
    open_request(thief, asked["id"])
    add_authenticator(thief)
    thief.answer("approve")
    thief.wait("The device did not sign")
    thief.page.click("dialog .plain")
    assert local.find(asked["id"])["status"] == "pending"
    cdp.send("WebAuthn.setUserVerified", {"authenticatorId": device, "isUserVerified": False})  # a wrong finger
    open_request(alice, asked["id"])
    alice.answer("approve")
    alice.wait("The device did not sign")
    assert local.find(asked["id"])["status"] == "pending"
    thief.answer("deny")
    thief.page.wait_for_selector(".banner.denied")
    assert [text for text in alice.complaints + thief.complaints if "error" in text.lower()] == []
    alice.context.close()
    thief.context.close()


def test_a_second_device_signs_after_the_first_has_vouched_for_it(browser, local):
    alice, phone = open_person(browser, local), open_person(browser, local)
    add_authenticator(alice)
    add_authenticator(phone)
    set_up(alice)
    phone.page.click("#places a[href='#/devices']")
    phone.page.click("text=Set up this device too")
    phone.page.fill("#device", "Second phone")
    phone.page.click("text=Set up a passkey")
    phone.page.wait_for_selector("text=Not trusted yet")
    asked = local.submit("send_mail", timeout_seconds=3600)
    open_request(phone, asked["id"])
    phone.answer("approve")
    phone.wait("The device did not sign")  # the trusted passkey is not on this device
    phone.page.click("dialog .plain")
    alice.page.reload()
    alice.page.wait_for_selector("text=Not trusted yet")
    alice.page.click(".device button.approve")
    alice.page.wait_for_selector("text=Not trusted yet", state="detached")
    phone.answer("approve")
    phone.page.wait_for_selector(".banner.approved")
    alice.context.close()
    phone.context.close()


def test_the_same_action_is_allowed_for_some_times(browser, local):
    alice = open_person(browser, local)
    add_authenticator(alice)
    set_up(alice)
    asked = local.submit("send_mail", session_key="s")
    open_request(alice, asked["id"])
    alice.ask("approve")
    alice.page.select_option("#again", "1/15")
    alice.page.click("dialog .approve")
    alice.page.wait_for_selector(".banner.approved")
    assert local.submit("send_mail", session_key="s")["status"] == "auto_approved"
    assert local.submit("send_mail", session_key="s")["status"] == "pending", "once more, not twice"
    risky = local.submit("delete_data")
    open_request(alice, risky["id"])
    alice.ask("approve")
    assert alice.page.locator("#again").count() == 0
    alice.context.close()


def test_a_link_for_the_phone_with_its_code(browser, local):
    alice, phone = open_person(browser, local), Person(browser, local, viewport={"width": 390, "height": 844})
    alice.page.click("#places a[href='#/devices']")
    alice.page.click("text=Show a login link")
    link = alice.text("pre.link")
    assert alice.page.locator("svg.code path").get_attribute("d").count("M") > 200
    assert alice.page.is_visible("text=--public-url")
    phone.page.goto(link)
    phone.page.wait_for_selector(".connection.live")
    assert "alice" in phone.text("#who")
    alice.context.close()
    phone.context.close()


def test_at_a_bare_address_the_page_says_what_to_do(alice, daemon):
    alice.page.click("#places a[href='#/devices']")
    alice.wait("open it as http://localhost:")
    assert not alice.page.is_visible("#device")
    alice.page.click("text=Continue at localhost")
    alice.page.wait_for_url("http://localhost:*/")
    alice.page.wait_for_selector(".connection.live")
    alice.page.click("#places a[href='#/devices']")
    alice.page.wait_for_selector("#device")
