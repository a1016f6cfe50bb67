"""Notifications are sent in the background; a failing channel is shown and approves nothing; agents' texts stay plain text."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confirm.serving import RISK, WORK, House, wait_until
from loopback import serving
from warmstart.confirm.model import Request
from warmstart.confirm.notify.channels import make_channels
from warmstart.confirm.notify.messages import Notification, cut, escape, write_message
from warmstart.confirm.notify.notifier import Notifier
from warmstart.confirm.notify.sending import Channel, Undelivered
from warmstart.errors import ConfigError

pytest.importorskip("apprise")
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
CHATS = ("discord", "slack", "tgram", "mmost", "rocket", "matrix", "msteams", "something_new")


class Target:
    """A web hook: remembers what it received. Answers with `statuses` one after the other, then with 200; while `gate`
    is not set, it does not answer."""

    def __init__(self) -> None:
        self.received: list[tuple[str, Any]] = []
        self.statuses: list[int] = []
        self.gate = threading.Event()
        self.gate.set()
        self.address = ""

    def make_handler(self) -> type[BaseHTTPRequestHandler]:
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                target.gate.wait(30)
                is_alert = not body["title"].startswith("Approval")  # about the tokens of the house; see test_alerts
                status = target.statuses.pop(0) if target.statuses and not is_alert else 200
                if status == 200 and not is_alert:
                    target.received.append((self.path, body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_args: object) -> None:
                pass

        return Handler


@pytest.fixture
def target() -> Iterator[Target]:
    """One per test: a handler that still sleeps when its test has ended reports to nobody else."""
    made = Target()
    with serving(made.make_handler()) as address:
        made.address = f"json://{address}/hook"
        yield made


@pytest.mark.slow
def test_people_are_told_and_get_a_link_that_decides_nothing(open_house, target: Target) -> None:
    house = open_house(notify=[target.address])
    receipt = house.submit(RISK).body
    wait_until(lambda: house.get(receipt["id"])["notifications"][0]["state"] == "sent")
    ((path, sent),) = target.received
    assert path == "/hook"
    assert sent["title"] == "Approval needed (high risk)"
    assert RISK["description"] in sent["message"]
    assert receipt["page_url"] in sent["message"]
    for secret in (receipt["approve_url"], receipt["deny_url"], "approve", "token"):
        assert secret not in sent["message"]
    assert house.events(receipt["id"]) == ["submitted", "notified"]


@pytest.mark.slow
def test_nobody_waits_for_a_channel(open_house, target: Target) -> None:
    target.gate.clear()
    house = open_house(notify=[target.address])
    ids = [house.submit().body["id"] for _ in range(3)]
    assert house.approve(ids[0]).status == 200
    assert target.received == [], "all of this happened before the channel answered"
    target.gate.set()


@pytest.mark.slow
def test_a_failure_is_tried_again_and_seen(open_house, target: Target) -> None:
    target.statuses = [500]
    house = open_house(notify=[target.address])
    id = house.submit().body["id"]
    wait_until(lambda: house.get(id)["notifications"][0]["attempts"] == 1)
    first = house.get(id)["notifications"][0]
    assert (first["channel"], first["state"]) == ("json#1", "queued")
    assert "500" in first["error"]
    wait_until(lambda: house.get(id)["notifications"][0]["state"] == "sent")
    assert house.events(id) == ["submitted", "notification_failed", "notified"]
    assert house.get(id)["status"] == "pending"


def test_a_channel_that_never_answers_is_undeliverable_and_nothing_is_approved(house: House) -> None:
    sent: list[Notification] = []

    def refuse(message: Notification) -> None:
        sent.append(message)
        raise Undelivered(
            "nobody at home, token=" + "s3cr3tT0kenValue99" + " https://ntfy.invalid/8f3kd92jf83jf02jf9s8"
        )

    def break_down(message: Notification) -> None:
        raise ZeroDivisionError

    channels = [Channel("fake#1", "fake", 500, refuse), Channel("fake#2", "fake", 500, break_down)]
    house.desk.channels = ("fake#1", "fake#2")
    notifier = Notifier(house.desk, channels, "http://x/{}".format, pauses=(0.05, 0.05))
    id = house.submit().body["id"]
    try:
        wait_until(lambda: {n["state"] for n in house.get(id)["notifications"]} == {"undeliverable"})
    finally:
        notifier.stop()
    one, two = house.get(id)["notifications"]
    assert (one["attempts"], two["attempts"], len(sent)) == (3, 3, 3)
    assert "nobody at home" in one["error"]
    texts = json.dumps([one, house.audit()])
    assert "s3cr3tT0kenValue99" not in texts
    assert "8f3kd" not in texts, "nor an end of it: the agent may read this"
    assert "ZeroDivisionError" in two["error"]
    events = house.events(id)
    assert events.count("notification_failed") == 4
    assert events.count("notification_undeliverable") == 2
    assert house.get(id)["status"] == "pending"


@pytest.mark.slow
def test_what_is_to_be_told_survives_a_restart(open_house, target: Target) -> None:
    house = open_house()
    house.desk.channels = ("json#1", "gone#2")
    id = house.submit().body["id"]
    house.restart(notify=[target.address])
    wait_until(lambda: [n["state"] for n in house.get(id)["notifications"]] == ["sent", "undeliverable"])
    assert len(target.received) == 1


def test_what_is_decided_is_not_told_any_more(house: House) -> None:
    house.desk.channels = ("fake#1",)
    id = house.submit().body["id"]
    house.deny(id)
    sent: list[Notification] = []
    notifier = Notifier(house.desk, [Channel("fake#1", "fake", 500, sent.append)], str)
    wait_until(lambda: house.get(id)["notifications"][0]["state"] == "undeliverable")
    notifier.stop()
    assert sent == []
    assert house.get(id)["notifications"][0]["error"] == "decided before it was delivered"


@pytest.mark.slow
@pytest.mark.parametrize("ends", ["expired", "decided"])
def test_why_it_failed_is_kept_when_it_is_too_late(house: House, ends: str) -> None:
    """The error of the channel stays visible: somebody has to fix it."""

    def refuse(message: Notification) -> None:
        raise Undelivered("nobody at home")

    house.desk.channels = ("fake#1", "fake#2")
    channels = [Channel("fake#1", "fake", 500, refuse), Channel("fake#2", "fake", 500, refuse)]
    notifier = Notifier(house.desk, channels, str, pauses=(1, 1, 1))
    id = house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    try:
        wait_until(lambda: all(n["attempts"] == 1 for n in house.get(id)["notifications"]))
        if ends == "expired":
            house.clock.ahead += 31
        else:
            house.deny(id)
        wait_until(lambda: {n["state"] for n in house.get(id)["notifications"]} == {"undeliverable"})
    finally:
        notifier.stop()
    for notice in house.get(id)["notifications"]:
        assert notice["error"] == f"{ends} before it was delivered: nobody at home"
        assert notice["attempts"] == 1
    assert house.get(id)["status"] == ("expired" if ends == "expired" else "denied")


def test_what_is_allowed_unasked_tells_nobody(open_house, target: Target) -> None:
    house = open_house(notify=[target.address])
    house.call("POST", "/whitelist", {"action": "send_mail", "session_key": "s"}, house.admin)
    id = house.submit(WORK | {"session_key": "s"}).body["id"]
    assert house.get(id)["notifications"] == []


def test_an_address_that_is_none_stops_the_start_and_is_not_repeated(tmp_path: Path) -> None:
    for wrong in ("nonsense://s3cret", "s3cret", "tgram://s3cret"):
        with pytest.raises(ConfigError) as error:
            make_channels(["json://localhost", wrong])
        assert "address 2" in str(error.value)
        assert "s3cret" not in str(error.value)
    assert [(c.name, c.room) for c in make_channels(["ntfy://topic", "discord://1234567/abcdefghijkl"])] == [
        ("ntfy#1", 7800),
        ("discord#2", 2000),
    ]


# What stands in a message

NASTY = (
    "hi @everyone @here <!channel> <@U123> <@&99> **bold** `code` [click](http://evil.example) <http://evil.example|ok> "
    "# head\n> quote ||spoiler|| ~~gone~~ \u202etxt\u202c z\u200bw https://evil.example/login www.evil.example <b>tag</b> & \\"
)


def make_request(**facts: Any) -> Request:
    usual: dict[str, Any] = dict.fromkeys(Request.__struct_fields__, "")
    usual |= {"action": "delete_data", "subject": "agent-1", "timeout": 300, "high_risk": False, "id": "ab" * 16}
    return Request(**(usual | facts))


@pytest.mark.parametrize("kind", CHATS)
def test_a_chat_is_not_made_to_do_anything(kind: str) -> None:
    message = write_message(
        make_request(description=NASTY, subject="@everyone"), "http://127.0.0.1:6080/#/request/ab", kind, 2000
    )
    body = message.body
    for mention in ("@everyone", "@here", "<!channel", "<@U", "<@&"):
        assert mention not in body
    assert re.findall(r"https?://\S+", body) == ["http://127.0.0.1:6080/#/request/ab"], "no link but ours"
    assert "www.evil" not in body
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", body)
    assert body.count("\n") == 2
    if kind not in ("slack", "tgram"):  # apprise sends them plain text
        for sign in "*`[]#|~>":
            assert not re.search(rf"(?<!\\)(?:\\\\)*{re.escape(sign)}", body.replace("/#/", "")), sign


def test_a_desktop_gets_no_tags_and_nobody_a_link_but_ours() -> None:
    for kind in ("dbus", "ntfy", "mailto", "json"):
        message = write_message(make_request(description=NASTY), "http://x/", kind, 2000)
        assert re.findall(r"https?://\S+", message.body) == ["http://x/"]
        assert kind != "dbus" or not set("<>&") & set(message.body)


def test_a_message_says_that_its_words_may_be_turned_around() -> None:
    message = write_message(make_request(description="mv \u05d0\u05d0 \u05d1\u05d1"), "http://x/", "ntfy", 2000)
    assert "written from right to left" in message.body
    assert "right to left" not in write_message(make_request(description="mv a b"), "http://x/", "ntfy", 2000).body


def test_what_discord_slack_and_telegram_are_really_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their addresses are fixed, so the last HTTP call is intercepted."""
    import requests

    sent: list[str] = []

    class Reply:
        status_code, content, text = 200, b'{"ok": true}', "ok"
        headers: dict[str, str] = {}  # noqa: RUF012

    def catch(*_: object, **facts: Any) -> Reply:
        sent.append(str(facts.get("data")))
        return Reply()

    monkeypatch.setattr(requests.Session, "request", catch)
    addresses = [
        "discord://1234567/abcdefghijkl",
        "slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ/#general",
        "tgram://123456789:abcdefg_hijklmnop/12315544/",
    ]
    for channel in make_channels(addresses):
        message = write_message(
            make_request(description=NASTY), "http://127.0.0.1:6080/#/request/ab", channel.kind, channel.room
        )
        try:
            channel.send(message)
        except Undelivered:
            assert channel.kind == "slack"  # it wants another answer than ours
        text = json.loads(sent[-1])
        flat = json.dumps(text, ensure_ascii=False)
        assert "@everyone" not in flat
        assert "@here" not in flat
        assert "<!channel" not in flat
        assert "<@" not in flat
        assert "127.0.0.1:6080/#/request/ab" in flat
        assert "&amp;lt;" not in flat, "escaped once, not twice"


@pytest.mark.slow
@given(st.text(max_size=400), st.sampled_from([*CHATS, "ntfy", "dbus"]), st.integers(60, 600))
@settings(max_examples=300, deadline=None)
def test_a_message_fits_its_channel(text: str, kind: str, room: int) -> None:
    url = "http://127.0.0.1:6080/#/request/" + "ab" * 16
    message = write_message(make_request(description=text), url, kind, room + len(url))
    assert len(message.title) + len(message.body) <= room + len(url) + 10
    assert message.body.endswith(url), "the link is never cut"
    assert "@everyone" not in message.body or kind in ("ntfy", "dbus")
    short = cut(text, kind, 50)
    assert len(short) <= 50
    assert not re.search(r"(?<!\\)(?:\\\\)*\\…$", short), "no half escape"
    assert escape("@", kind) in ("@", "@\u200b")
