"""The page as an installed application: manifest, service worker, pushes; and the view of the audit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from confirm.serving import wait_until
from doors.pages.confirm.people import Person

pytestmark = pytest.mark.slow  # a second of Chromium each


def test_the_page_can_be_installed_and_shows_pushes(people, daemon):
    person = people()
    origin = daemon.page
    person.context.grant_permissions(["notifications"], origin=origin)
    person.log_in()
    cdp = person.context.new_cdp_session(person.page)
    manifest = cdp.send("Page.getAppManifest")
    assert manifest["errors"] == [] and manifest["url"] == f"{origin}/manifest.webmanifest"
    shown = json.loads(manifest["data"])
    for icon in shown["icons"]:
        assert person.page.evaluate("async url => (await fetch(url)).status", icon["src"]) == 200
    errors = [error["errorId"] for error in cdp.send("Page.getInstallabilityErrors")["installabilityErrors"]]
    assert errors == ["in-incognito"], "nothing but that every test has a window of its own"
    id = daemon.submit("send_mail")["id"]
    notifications = push(
        person, cdp, origin, {"title": "Approval needed", "body": "send_mail", "hash": f"#/request/{id}"}
    )
    assert [(one["title"], one["body"], one["hash"]) for one in notifications] == [
        ("Approval needed", "send_mail", f"#/request/{id}")
    ]
    hostile = push(person, cdp, origin, {"title": 7, "hash": "https://evil.example/#/request/"})
    assert ("Approval needed", "Open the page to see it.", "#/") in [
        (one["title"], one["body"], one["hash"]) for one in hostile
    ]
    assert not person.complaints, person.complaints


def push(person: Person, cdp: Any, origin: str, payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Deliver a push to the service worker and return the notifications that are shown."""
    person.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    registrations: list[Any] = []
    cdp.on("ServiceWorker.workerRegistrationUpdated", lambda event: registrations.extend(event["registrations"]))
    cdp.send("ServiceWorker.enable")
    person.page.wait_for_timeout(100)
    read = (
        "navigator.serviceWorker.ready.then(worker => worker.getNotifications())"
        ".then(all => all.map(({title, body, data}) => ({title, body, hash: data.hash})))"
    )
    before = len(person.page.evaluate(read))
    message = {"origin": origin, "registrationId": registrations[-1]["registrationId"], "data": json.dumps(payload)}
    cdp.send("ServiceWorker.deliverPushMessage", message)
    wait_until(lambda: len(person.page.evaluate(read)) > before)
    cdp.send("ServiceWorker.disable")
    return list(person.page.evaluate(read))


def test_the_audit_is_shown_latest_first_and_in_parts(alice, daemon):
    for _ in range(60):
        daemon.decide(daemon.submit("send_mail")["id"], "deny")
    alice.page.click("#places a[href='#/audit']")
    alice.page.wait_for_selector(".audit-rows li")
    numbers = [int(text) for text in alice.page.locator(".audit-rows .number").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True) and len(numbers) == 100
    alice.page.click("text=Earlier entries")
    alice.page.wait_for_function("() => document.querySelectorAll('.audit-rows li').length > 100")
    numbers = [int(text) for text in alice.page.locator(".audit-rows .number").all_inner_texts()]
    assert numbers == list(range(numbers[0], 0, -1)), "all of them, each once"
    assert not alice.page.is_visible("text=Earlier entries")
    alice.page.select_option("#kind", label="Access")
    assert set(alice.page.locator(".audit-rows .tag").all_inner_texts()) <= {
        "Login link made",
        "Logged in",
        "Token made",
    }
    alice.page.select_option("#kind", label="Decisions")
    alice.page.click(".audit-rows a >> nth=0")
    alice.page.wait_for_selector(".banner.denied")
    assert not alice.complaints


def test_an_agents_text_in_the_audit_stays_text(alice, daemon):
    daemon.decide(daemon.submit("send_mail")["id"], "deny", reason="<img src=x onerror=alert(1)>")
    alice.page.click("#places a[href='#/audit']")
    alice.page.wait_for_selector(".audit-rows li")
    assert alice.page.locator(".audit-rows img").count() == 0
    assert "<img src=x onerror=alert(1)>" in alice.text(".audit-rows")
    assert not alice.complaints


def test_a_withdrawn_request_ends_the_question(alice, daemon):
    import httpx

    asked = daemon.submit("send_mail")
    alice.show(asked["id"])
    alice.ask("approve")
    headers = {"Authorization": f"Bearer {daemon.token('agent-1', 'agent:submit')}"}
    httpx.delete(f"{daemon.server.api_url}/confirm/{asked['id']}", headers=headers).raise_for_status()
    alice.wait("The agent has withdrawn the request.")
    alice.wait("Withdrawn by the agent")
    assert not alice.page.is_visible("dialog")
