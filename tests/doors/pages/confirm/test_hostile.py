"""Attacks by other sites, other host names, and agents' texts that look like markup."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import httpx
import pytest

from doors.pages.confirm.people import FOREIGN

pytestmark = pytest.mark.slow  # a second of Chromium each

PAYLOADS = [
    "<script>window.pwned = 1; alert(1)</script>",
    '<img src="/pwned.png" onerror="window.pwned = 1">',
    "<svg onload=alert(1)><style>@import url(/pwned.css)</style>",
    '"><iframe src="javascript:alert(1)"></iframe>',
    "javascript:alert(1)",
    "<a href='javascript:alert(1)' autofocus onfocus=alert(1)>x</a>",
    "{{constructor.constructor('alert(1)')()}}",
    "${alert(1)}",
    "</script><script>alert(1)</script>",
    "<base href='//evil.example/'><meta http-equiv=refresh content='0;url=//evil.example'>",
    "<form action=//evil.example><input name=x><button>Approve</button></form>",
]


def test_stored_scripts_stay_text(alice, daemon):
    details = {f"{payload} {n}": [payload, {payload: payload}] for n, payload in enumerate(PAYLOADS)}
    more = {"description": "\n".join(PAYLOADS), "requester": PAYLOADS[0], "session_key": PAYLOADS[1][:200]}
    old = daemon.submit("send_mail", details, **more)
    daemon.decide(old["id"], "deny", reason=PAYLOADS[0] + PAYLOADS[1])
    asked = daemon.submit("send_mail", details, **more)
    alice.asked.clear()
    for id in (old["id"], asked["id"]):
        alice.show(id)
        alice.page.click(".json summary")
        alice.page.wait_for_timeout(300)
    alice.ask("approve")
    alice.page.wait_for_timeout(700)
    assert alice.complaints == []
    assert all(url.startswith(f"{daemon.page}/") and "pwned" not in url for url in alice.asked), alice.asked
    assert alice.page.evaluate("window.pwned") is None
    assert alice.page.evaluate("[document.scripts.length, document.images.length, document.forms.length]") == [1, 0, 1]
    assert alice.page.evaluate("document.querySelectorAll('iframe, svg, base, style, [onerror], [onload]').length") == 0
    assert alice.page.evaluate("document.querySelector('main').textContent.split('<script>').length") > 10, "as text"
    links = alice.page.evaluate("[...document.links].map(link => link.getAttribute('href'))")
    assert all(link.startswith("#/") or link == "#main" for link in links)


def test_the_browser_itself_would_refuse(alice):
    """The browser refuses scripts that turn a string into markup."""
    for script in ("document.body.innerHTML = '<b>x</b>'", "document.write('x')", "setTimeout('window.pwned = 1')"):
        refused = alice.page.evaluate(f"(() => {{ try {{ {script}; return null }} catch (e) {{ return e.name }} }})()")
        assert refused in ("TypeError", "EvalError")
    assert alice.page.evaluate("window.pwned") is None


def test_text_that_hides_or_turns_is_written_out(alice, daemon):
    details = {
        "turned": "safe\u202e/ fr- mr\u202c",
        "split": "r\u200bm",
        "tag": "x\U000e0041",
        "far": "echo ok" + " " * 300 + "; rm -rf /",
        "low": "echo ok\n" + "\n" * 60 + "rm -rf /",
        "alike": "p\u0430ypal",
        "piled": "a" + "\u0301" * 30,
        "control": "a\x1b[2Jb\rc\td\x00",
    }
    alice.show(daemon.submit("send_mail", details)["id"])
    shown = alice.page.locator(".values").first.inner_text()
    for wanted in (
        "\\u202e",
        "\\u202c",
        "r\\u200bm",
        "\\u{e0041}",
        "⟨300 spaces⟩",
        "empty lines⟩",
        "\\u001b[2J",
        "\\r",
        "\\t",
    ):
        assert wanted in shown, wanted
    assert not set(shown) & {"\u202e", "\u200b", "\U000e0041", "\x1b", "\u0301"}
    assert alice.page.inner_text(".odd[title^=Mixes]") == "p\u0430ypal"
    assert "would be invisible" in alice.text(".showing") and "several alphabets" in alice.text(".showing")
    assert alice.page.evaluate(
        "[...document.querySelectorAll('.value bdi')].every(b => getComputedStyle(b).unicodeBidi === 'isolate')"
    )


def test_nothing_is_out_of_sight(alice, daemon):
    """Nothing scrolls inside and nothing is cut off, so the approver has seen all of it."""
    details = {"command": "\n".join(f"line {n} " + "x" * 400 for n in range(200))}
    alice.show(daemon.submit("send_mail", details)["id"])
    assert alice.page.evaluate(
        "[...document.querySelectorAll('.showing section:not(.decision) *')].filter(e => e.scrollHeight > e.clientHeight + 2"
        " && ['auto', 'scroll', 'hidden'].includes(getComputedStyle(e).overflowY) && !e.matches('.said')).length"
    ) == 0  # fmt: skip
    assert "200 lines, all shown" in alice.text(".showing")
    below = alice.page.evaluate(
        "document.querySelector('.decision').getBoundingClientRect().top"
        " > document.querySelector('.values').getBoundingClientRect().bottom"
    )
    assert below, "the decision comes after what is decided"


def test_another_name_for_this_machine(people, daemon):
    """DNS rebinding: the address is ours, the name is not."""
    person = people()
    port = daemon.page.rpartition(":")[2]
    answer = person.page.goto(f"http://{FOREIGN}:{port}/")
    assert answer.status == 403 and "bad_host" in person.page.content()
    for path in ("/", "/login", "/assets/main.js", "/session", "/confirm", "/events"):
        refused = httpx.get(f"{daemon.page}{path}", headers={"Host": f"{FOREIGN}:{port}"})
        assert (refused.status_code, refused.json()["code"]) == (403, "bad_host")


@pytest.fixture
def foreign_page() -> Iterator[str]:
    """Another server on this machine: the same site to the browser, which sends the cookie along."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>harmless</title>")

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.mark.parametrize("host", ["127.0.0.1", FOREIGN])
def test_other_pages_decide_nothing(alice, daemon, foreign_page, host):
    asked = daemon.submit("send_mail")
    tab = alice.open_tab()
    statuses: list[int] = []
    tab.on("response", lambda answer: statuses.append(answer.status) if "/approve" in answer.url else None)
    tab.goto(foreign_page.replace("127.0.0.1", host))
    send = """async ([url, type]) => {
        try {
            const answer = await fetch(url, {method: "POST", credentials: "include", mode: type ? "cors" : "no-cors",
                                             headers: type ? {"Content-Type": type} : {}, body: "{}"});
            return answer.type;
        } catch (error) { return "refused"; }
    }"""
    url = f"{daemon.page}/confirm/{asked['id']}/approve"
    assert tab.evaluate(send, [url, None]) in ("opaque", "refused")
    assert tab.evaluate(send, [url, "application/json"]) == "refused"
    form = (
        f"<form id=f method=post enctype=text/plain action='{url}'><input name='{{\"reason\":\"' value='x\"}}'></form>"
    )
    tab.set_content(form)
    with tab.expect_navigation():
        tab.evaluate("document.getElementById('f').submit()")
    assert statuses and set(statuses) <= {403, 405, 204, 415} and 403 in statuses
    assert daemon.find(asked["id"])["status"] == "pending"


def test_it_is_never_shown_inside_another_page(alice, daemon, foreign_page):
    tab = alice.open_tab()
    tab.goto(foreign_page)
    tab.set_content(f"<iframe src='{daemon.page}/'></iframe>")
    tab.wait_for_timeout(500)
    assert all("Confirmations" not in frame.content() for frame in tab.frames[1:])


def test_the_session_alone_is_not_enough(alice, daemon):
    """A request without the token of our own page."""
    asked = daemon.submit("send_mail")
    status = alice.page.evaluate(
        "async url => (await fetch(url, {method: 'POST', headers: {'Content-Type': 'application/json'}, body: '{}'})).status",
        f"/confirm/{asked['id']}/approve",
    )
    assert status == 403 and daemon.find(asked["id"])["status"] == "pending"


def test_redteam_the_question_shows_the_arguments(alice, daemon):
    """Above the button once stood only the description, which the agent writes."""
    script = "\n".join([*["echo ok"] * 3_000, "rm -rf / --no-preserve-root", *["echo ok"] * 3_000])
    asked = daemon.submit("run_script", {"script": script}, description="Update the docs")
    alice.show(asked["id"])
    alice.ask("approve")
    shown = alice.text("dialog .brief")
    assert shown.index("rm -rf / --no-preserve-root") < shown.index("echo ok"), "what is dangerous stands first"
    assert "line 3,001" in shown
