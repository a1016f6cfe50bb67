"""Who gets in: one-time links, two secrets, no other host, no other page, guests who only read."""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest

from ui_home import log_in, make_call, make_session, make_settings
from warmstart.doors.ui.access import LINK_LASTS, LOGIN_LASTS, Access
from warmstart.doors.ui.app import CONTENT_POLICY
from warmstart.doors.ui.pages.index import PAGES
from warmstart.doors.ui.server import UiServer
from warmstart.pipeline import Warmstart

SECTIONS = [name for name in PAGES if name != "home"]
ADDRESSES = ["/", "/home.json", *(f"/{name}{end}" for name in SECTIONS for end in ("", ".json"))]


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_link_logs_in_once(server: UiServer) -> None:
    link = server.make_link()
    with httpx.Client(base_url=server.url, verify=False) as client:
        assert client.get(link).status_code == 303
        assert client.get("/notes").status_code == 200
    with httpx.Client(base_url=server.url, verify=False) as another:
        refused = another.get(link)
        assert refused.status_code == 401 and "used before" in refused.text
        assert another.get("/notes").status_code == 401


def test_links_and_logins_end() -> None:
    clock = Clock()
    access = Access(clock)
    code = access.make_owner_code()
    clock.now += LINK_LASTS + 1
    assert access.log_in(code, "127.0.0.1") is None
    done = access.log_in(access.make_owner_code(), "127.0.0.1")
    assert done is not None
    secret, viewer = done
    assert access.find(secret, "127.0.0.1") == viewer
    clock.now += LOGIN_LASTS + 1
    assert access.find(secret, "127.0.0.1") is None


def test_an_owner_is_only_known_on_the_machine_itself() -> None:
    access = Access(Clock())
    code = access.make_owner_code()
    assert access.log_in(code, "192.168.1.5") is None
    done = access.log_in(code, "127.0.0.1")
    assert done is not None
    assert access.find(done[0], "192.168.1.5") is None
    guest = access.log_in(access.make_guest_code(), "192.168.1.5")
    assert guest is not None and access.find(guest[0], "192.168.1.5") == guest[1]


def test_nothing_without_a_login(server: UiServer) -> None:
    with httpx.Client(base_url=server.url, verify=False) as stranger:
        for path in (*ADDRESSES, "/events", "/pending.json", "/sessions/abc", "/nothing"):
            for headers in ({}, {"Cookie": f"{server.parts.cookie}=guess"}):
                answer = stranger.get(path, headers=headers)
                assert answer.status_code == 401, path
                assert "orders-api" not in answer.text


def test_every_answer_has_the_policy(owner: httpx.Client) -> None:
    for path in (*ADDRESSES, "/assets/ui.js", "/assets/ui.css", "/nothing", "/login"):
        answer = owner.get(path)
        assert answer.headers["content-security-policy"] == CONTENT_POLICY, path
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["x-frame-options"] == "DENY"
    for forbidden in ("unsafe", "*", "http", "data:"):
        assert forbidden not in CONTENT_POLICY


def test_pages_have_no_inline_script_or_style(owner: httpx.Client) -> None:
    for path in ADDRESSES:
        if not path.endswith(".json"):
            text = owner.get(path).text
            assert re.search(r"<style|<[^>]* style=|<[^>]* on\w+=", text) is None, path
            assert text.count("<script") == 1


@pytest.mark.parametrize("host", ["evil.example", "evil.example:6090", "127.0.0.1.evil.example", ""])
def test_other_host_names_are_refused(server: UiServer, owner: httpx.Client, host: str) -> None:
    answer = owner.get("/notes", headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "orders-api" not in answer.text


def test_changes_need_the_second_secret_and_our_own_page(server: UiServer, owner: httpx.Client) -> None:
    body = {"task": "anything"}
    for token in ("", "guess", owner.cookies[server.parts.cookie]):
        refused = owner.post("/do/notes/brief", json=body, headers={"X-Warmstart-Token": token})
        assert refused.status_code == 403 and "X-Warmstart-Token" in refused.text
    for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "same-site"}):
        assert owner.post("/do/notes/brief", json=body, headers=headers).status_code == 403
    form = owner.post("/do/notes/brief", data=body)
    assert form.status_code == 415, "a form of another page cannot send JSON"
    assert owner.post("/do/notes/brief", json=body, headers={"Origin": server.url}).status_code == 200
    assert owner.post("/do/notes/brief", json=[1]).status_code == 400
    assert owner.post("/do/no/such", json={}).status_code == 404


def test_the_second_secret_is_on_no_page(owner: httpx.Client) -> None:
    for path in ADDRESSES:
        assert owner.headers["X-Warmstart-Token"] not in owner.get(path).text


def test_guests_see_no_transcript_and_no_other_scope(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    with Warmstart(settings) as ws:
        for number, scope in enumerate(("", "", "profile:work", "profile:work")):
            row = make_session(number, "do it", scope=scope)
            text = "open: notes-of-mine.txt: No such file" if not scope else "open: private-of-work.txt: No such file"
            tool = "Bash" if not scope else "WorkTool"
            call = make_call(row, 0, text, tool=tool, words=None, findings=None)
            ws.store.put_session(row, [call], [])
        ws.learn()
        assert {note.scope for note in ws.notes.list()} == {"", "profile:work"}
        private = next(note for note in ws.notes.list() if note.scope)
    with UiServer(settings, port=0, share="127.0.0.1") as server, log_in(server, server.make_guest_link()) as guest:
        for path in ("/errors", "/notes", "/effect"):
            for end in ("", ".json"):
                answer = guest.get(path + end)
                assert answer.status_code == 200, answer.text
                text = answer.text.replace("<wbr>", "")
                assert "private-of-work" not in text and "WorkTool" not in text, path
                assert 'href="/sessions' not in text and "What to do" not in text, "guests have no such page"
        assert "notes-of-mine" in guest.get("/notes.json").text
        assert guest.get(f"/notes/{private.id}").status_code == 404
        for path in (
            "/",
            "/sessions",
            "/sessions/0",
            "/templates",
            "/templates.json",
            "/usage",
            "/projects",
            "/review",
            "/settings",
            "/live",
        ):
            assert guest.get(path).status_code == 403
        assert guest.get("/events").status_code == 401
        refused = guest.post("/do/notes/retire", json={"note": private.id, "reason": "x"})
        assert refused.status_code == 403
        with log_in(server) as mine:
            assert "private-of-work" in mine.get("/notes.json").text, "the machine's owner sees all scopes"
