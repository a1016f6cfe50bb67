"""Log in by a one-time link, and log out."""

from __future__ import annotations

import socket

import httpx
import pytest

from doors.pages.confirm.daemon import Daemon
from doors.pages.confirm.people import Person
from warmstart.confirm.tokens import access

pytestmark = pytest.mark.slow  # a second of Chromium each


def test_a_link_works_once(people, daemon):
    link = daemon.make_link("alice")
    first, second = people(), people()
    first.page.goto(link)
    first.page.wait_for_selector(".connection.live")
    assert first.text("#who") == "You are alice"
    second.page.goto(link)
    second.wait("was already used or has expired")
    assert second.text("pre") == "warmstart confirm login"
    assert not second.page.is_visible("#logout")


def test_the_code_does_not_stay_in_sight(people, daemon):
    person = people()
    person.page.goto(daemon.make_link())
    person.page.wait_for_selector(".connection.live")
    assert person.page.url == f"{daemon.page}/"
    person.page.reload()
    person.page.wait_for_selector(".connection.live")
    assert all("#" not in url and "login#" not in url for url in person.asked[1:])
    assert person.page.evaluate("document.cookie") == "", "no script sees the cookie"


def test_a_used_link_does_not_throw_out_who_is_in(alice, daemon):
    link = daemon.make_link()
    alice.page.goto(link)
    alice.page.wait_for_selector(".connection.live")
    alice.page.goto("about:blank")
    alice.page.goto(link)
    alice.page.wait_for_selector(".connection.live")


def test_without_a_login_nothing_is_shown(people, daemon):
    asked = daemon.submit("send_mail", {"to": "somebody"})
    person = people()
    person.page.goto(f"{daemon.page}/#/request/{asked['id']}")
    person.wait("not logged in on this device")
    assert "somebody" not in person.page.content()
    other = person.open_tab()
    other.goto(daemon.make_link())
    other.wait_for_selector(".connection.live")
    person.page.bring_to_front()
    person.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    person.wait("somebody")


def test_log_out(alice, daemon):
    alice.page.click("#logout")
    alice.wait("You are logged out.")
    assert not alice.page.is_visible("#who")
    alice.page.reload()
    alice.wait("not logged in on this device")
    assert alice.context.cookies() == []


def test_a_login_that_may_only_read_the_audit(people, daemon):
    make = lambda tx: access.create_login(tx, "rita", ["audit:read"], by="test")  # noqa: E731
    person = people()
    person.page.goto(f"{daemon.page}/login#{daemon.server.desk.change(make).result()}")
    person.wait("This login may not see requests")


def test_a_login_that_ended_meanwhile(alice, daemon):
    asked = daemon.submit("send_mail", timeout_seconds=3600)
    alice.show(asked["id"])
    alice.ask("approve")
    daemon.server.desk.log_out(
        daemon.server.desk.find_session(alice.context.cookies()[0]["value"]).identity
    ).result()  # somewhere else
    alice.page.wait_for_timeout(600)
    alice.page.click("dialog .approve")
    alice.wait("You were logged out. Nothing was decided.")
    assert daemon.find(asked["id"])["status"] == "pending"


@pytest.mark.parametrize("option", ["public_url", "allow_hosts"])
def test_under_the_name_that_a_phone_uses(browser, tmp_path, option):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://box.example:{port}"
    options = {"public_url": address} if option == "public_url" else {"allow_hosts": ["box.example"]}
    daemon = Daemon(tmp_path, ui_port=port, **options)
    try:
        person = Person(browser, daemon, viewport={"width": 400, "height": 850})
        person.page.goto(daemon.make_link().replace(daemon.page, address))
        person.page.wait_for_selector(".connection.live")
        asked = daemon.submit("send_mail")
        assert asked["page_url"].startswith(address) == (option == "public_url")
        person.page.click(".cards a")
        person.answer("approve")
        person.page.wait_for_selector(".banner.approved")
        person.context.close()
    finally:
        daemon.stop()


def test_the_files_are_all_there_is(daemon):
    from warmstart.doors.pages.confirm import PATHS, read_page_file

    for path in PATHS:
        answer = httpx.get(f"{daemon.page}{path}")
        assert answer.status_code == 200 and answer.content == read_page_file(path).body  # type: ignore[union-attr]
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert (
            "<script>" not in answer.text
            and "style=" not in answer.text
            and "onclick" not in answer.text.replace("notificationclick", "")
        )
        assert "http://" not in answer.text.replace("http://www.w3.org/2000/svg", "") and "https://" not in answer.text
    for path in ("/assets/../__init__.py", "/assets/__init__.py", "/assets/%2e%2e/guard.py", "/assets/", "/page.html"):
        assert httpx.get(f"{daemon.page}{path}").status_code == 404
        assert read_page_file(path) is None


def test_every_file_of_the_page_is_served():
    from importlib.resources import files

    from warmstart.doors.pages.confirm import PATHS

    served = {path.rpartition("/")[2] for path in PATHS if "." in path}
    kept = {
        one.name
        for one in files("warmstart.doors.pages.confirm").iterdir()
        if one.name.endswith((".js", ".css", ".svg", ".png", ".webmanifest"))
    }
    assert served == kept
