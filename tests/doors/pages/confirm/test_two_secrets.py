"""Browsers send a login's cookie to every port of the machine, even to an agent's server. It grants nothing alone."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from confirm.serving import routes_of
from warmstart.doors.pages.confirm import PATHS
from warmstart.doors.web.app import make_page
from warmstart.doors.web.context import RouteContext

pytestmark = pytest.mark.slow  # a second of Chromium each

STORED = "localStorage.getItem('warmstart-confirm-token')"
OPEN = {("GET", "/health"), ("GET", "/openapi.json"), ("POST", "/login"), *(("GET", path) for path in PATHS)}


class Preview(HTTPServer):
    """The agent's development server, and the cookies that it received."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.cookies: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}/"


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        assert isinstance(self.server, Preview)
        self.server.cookies.append(self.headers.get("Cookie", ""))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>my preview</title>")


@pytest.fixture
def preview() -> Iterator[Preview]:
    with Preview() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def guess_tokens(daemon: Any, secret: str) -> list[str]:
    """Guesses from the cookie and from everything in the audit."""
    known = {entry.credential for entry in daemon.server.desk.audit(1_000, 0)}
    return ["", secret, hashlib.sha256(secret.encode()).hexdigest(), *known]


def test_a_cookie_that_another_port_got_opens_nothing(alice, daemon, preview):
    asked = daemon.submit("wipe_database", {"db": "prod"})
    alice.open_tab().goto(preview.url)
    cookie = preview.cookies[0]
    assert cookie.startswith("warmstart_confirm="), "browsers do give it away: that is why there is a second secret"
    token = alice.page.evaluate(STORED)
    server = daemon.server
    assert token == server.desk.csrf_token(server.desk.find_session(cookie.partition("=")[2]).identity.credential)
    app = make_page(RouteContext(server.desk, server.addresses, None, None))  # type: ignore[arg-type]
    routes = routes_of(app)
    assert routes > OPEN and len(routes - OPEN) >= 8
    with httpx.Client(base_url=daemon.page, headers={"Cookie": cookie}, timeout=10) as thief:
        for method, path in sorted(routes):
            body = {"typed_action": "wipe_database"} if path.endswith("/approve") else None
            for guess in guess_tokens(daemon, cookie.partition("=")[2]):
                for accept in ("application/json", "text/event-stream"):
                    headers = {"Accept": accept} | ({"X-CSRF-Token": guess} if guess else {})
                    answer = thief.request(method, path.replace("{id}", asked["id"]), json=body, headers=headers)
                    assert token not in answer.text + str(answer.headers), (method, path)
                    if (method, path) not in OPEN:
                        assert (answer.status_code, answer.json()["code"]) == (403, "bad_csrf"), (method, path)
                        assert "wipe_database" not in answer.text
    assert daemon.find(asked["id"])["status"] == "pending"
    refused = [entry for entry in server.desk.audit(1_000, 0) if "bad_csrf" in entry.details]
    assert {entry.actor for entry in refused} == {"alice"}, "whose cookie it was"
    alice.show(asked["id"])
    alice.answer("approve")
    alice.page.wait_for_selector(".banner.approved")


def test_a_page_on_another_port_learns_nothing_either(alice, daemon, preview):
    tab = alice.open_tab()
    tab.goto(preview.url)
    assert tab.evaluate(STORED) is None, "kept for our port alone"
    read = "async url => { try { return await (await fetch(url, {credentials: 'include'})).text() } catch { return null } }"
    for path in ("/session", "/confirm", "/events"):
        assert tab.evaluate(read, f"{daemon.page}{path}") is None


def test_the_page_itself_goes_on_over_reload_and_in_another_tab(alice, daemon):
    asked = daemon.submit("send_mail")
    alice.page.reload()
    alice.page.wait_for_selector(".connection.live")
    tab = alice.open_tab()
    tab.goto(daemon.page)
    tab.wait_for_selector(".connection.live")
    alice.show(asked["id"], tab)
    alice.answer("approve", page=tab)
    tab.wait_for_selector(".banner.approved")
    alice.page.wait_for_selector(".rows li")
    assert daemon.find(asked["id"])["decision"]["by"] == "alice"
    assert alice.complaints == []


@pytest.mark.parametrize("left", ["", "0" * 64])
def test_without_the_token_nobody_is_logged_in(alice, daemon, left):
    """The storage was wiped or is outdated, but the cookie is still there."""
    asked = daemon.submit("send_mail", {"to": "somebody"})
    alice.page.goto("about:blank")
    alice.page.goto(f"{daemon.page}/assets/icon.svg")
    alice.page.evaluate("left => localStorage.setItem('warmstart-confirm-token', left)", left)
    alice.page.goto(f"{daemon.page}/#/request/{asked['id']}")
    alice.wait("You are not logged in on this device.")
    assert alice.text("pre") == "warmstart confirm login"
    assert "somebody" not in alice.page.content()
    assert alice.page.text_content("#connection") == ""
    alice.page.goto(daemon.make_link())
    alice.page.wait_for_selector(".connection.live")
    alice.wait("1 request is waiting")


def test_logging_out_holds_for_every_tab(alice, daemon):
    tab = alice.open_tab()
    tab.goto(daemon.page)
    tab.wait_for_selector(".connection.live")
    alice.page.click("#logout")
    alice.wait("You are logged out.")
    alice.wait("You are logged out.", tab)
    assert tab.text_content("#connection") == ""
    assert alice.page.evaluate("localStorage.length") == 0


def test_logging_in_holds_for_every_tab(alice, daemon):
    """Also as another person: no tab shows one name and decides under another."""
    asked = daemon.submit("send_mail")
    alice.show(asked["id"])
    tab = alice.open_tab()
    tab.goto(daemon.make_link("alice"))
    tab.wait_for_selector(".connection.live")
    alice.answer("approve")
    alice.page.wait_for_selector(".banner.approved")
    tab.goto("about:blank")
    tab.goto(daemon.make_link("zoe"))
    tab.wait_for_selector(".connection.live")
    alice.page.locator("#who", has_text="You are zoe").wait_for()


def test_a_tab_never_decides_as_somebody_else(alice, daemon):
    """Even if the tab did not notice the other login."""
    asked = daemon.submit("send_mail")
    alice.show(asked["id"])
    alice.page.evaluate("window.addEventListener('storage', (event) => event.stopImmediatePropagation(), true)")
    alice.page.route("**/session", lambda route: route.abort())
    tab = alice.open_tab()
    tab.goto(daemon.make_link("zoe"))
    tab.wait_for_selector(".connection.live")
    assert alice.text("#who") == "You are alice"
    alice.answer("approve")
    alice.wait("You were logged out. Nothing was decided.")
    assert daemon.find(asked["id"])["status"] == "pending"


def test_a_browser_that_stores_nothing(people, daemon):
    """The login lasts as long as the tab."""
    person = people()
    person.context.add_init_script(
        "for (const name of ['getItem', 'setItem', 'removeItem'])"
        " Storage.prototype[name] = () => { throw new DOMException('no', 'SecurityError') }"
    )
    person.page.goto(daemon.make_link())
    person.page.wait_for_selector(".connection.live")
    daemon.submit("send_mail")
    person.page.click(".cards a")
    person.answer("approve")
    person.page.wait_for_selector(".banner.approved")
    person.page.reload()
    person.wait("You are not logged in on this device.")
