"""New logins, devices and tokens are reported on every channel; pushes reach browsers; buttons open the page."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from confirm.authenticator import enrol, make_device
from confirm.commands import run
from confirm.houses import on_both_databases
from confirm.serving import WORK, House, wait_until
from loopback import serving
from warmstart.confirm.model import AuditEntry
from warmstart.confirm.notify.alerts import Alerter, skip_alerts, write_alert
from warmstart.confirm.notify.buttons import TelegramChat, add_ntfy_button, can_have_button, send_telegram
from warmstart.confirm.notify.channels import make_channels
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.push import KEY_FILE, PushSender, Subscription, list_subscriptions, load_push_key
from warmstart.confirm.notify.sending import Channel, Undelivered

pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
PAGE = "https://box.example"


class Inbox:
    """A channel that remembers; it fails as often as `failures` says."""

    def __init__(self, failures: int = 0) -> None:
        self.received: list[Notification] = []
        self.failures = failures

    def __call__(self, message: Notification) -> None:
        if self.failures:
            self.failures -= 1
            raise Undelivered("not now")
        self.received.append(message)

    def titles(self) -> list[str]:
        return [message.title for message in self.received]


@pytest.mark.slow
@on_both_databases
def test_new_access_is_reported_wherever_it_was_made(house: House) -> None:
    skip_alerts(house.desk)
    inbox = Inbox(failures=1)
    alerter = Alerter(house.desk, [Channel("x#1", "json", 1000, inbox)], PAGE, pauses=(0, 0))
    try:
        dora = house.log_in("dora")
        enrol(dora, make_device(house), "Pixel")
        house.make_token("mallory", "approver:decide")
        wait_until(lambda: len(inbox.received) == 3)
    finally:
        alerter.stop()
    assert sorted(inbox.titles()) == ["New device", "New login", "New token"], "also after a failure, and each once"
    texts = " ".join(message.body for message in inbox.received)
    assert "dora logged in" in texts and "warmstart confirm logout dora" in texts
    assert "passkey on Pixel. It is the first, so it is trusted" in texts
    assert "a token for mallory (approver:decide)" in texts
    states = [row[2] for row in house.desk.store.rows("alerts")]
    assert states == ["sent"] * 3


@pytest.mark.slow
def test_access_made_while_the_daemon_was_down_is_reported_too(house: House) -> None:
    skip_alerts(house.desk)
    house.stop()
    made = run("token", "create", "--scope", "admin", "--subject", "eve", "--db", str(house.database))
    assert made.exit_code == 0, made.output
    with serving(make_hook(received := [])) as address:
        house.restart(notify=[f"json://{address}/hook"])
        wait_until(lambda: bool(received))
        house.restart(notify=[])
    assert "a token for eve (admin)" in received[0]["message"]


def test_a_name_in_an_alert_stays_plain(house: House) -> None:
    entry = AuditEntry(1, 0, "login", "", "", "@everyone [x](http://evil.example)", "c", "{}", "", "")
    text = write_alert(entry, "discord", PAGE).body
    assert "@everyone" not in text and "http://evil" not in text


def make_hook(received: list[Any], status: int = 200) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            facts = {"raw": body, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}
            try:
                received.append(json.loads(body) | facts)
            except ValueError:
                received.append(facts)
            self.send_response(status)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_args: object) -> None:
            pass

    return Handler


# Push


def make_browser(endpoint: str) -> tuple[Subscription, Any, bytes]:
    """Return a browser's subscription with its private key and secret."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key, secret = ec.generate_private_key(ec.SECP256R1()), b"s" * 16
    point = key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()  # noqa: E731
    return Subscription(endpoint, encode(point), encode(secret)), key, secret


def test_a_push_is_encrypted_for_the_browser_and_signed_by_the_daemon(house: House, tmp_path: Path) -> None:
    http_ece = pytest.importorskip("http_ece")
    key = load_push_key(tmp_path)
    assert load_push_key(tmp_path).public == key.public
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o077 == 0
    dora = house.log_in("dora")
    received: list[Any] = []
    with serving(make_hook(received)) as address:
        browser, private, secret = make_browser(f"http://{address}/push")
        row = {"subject": "dora", "session": _session_of(house, "dora"), "created": 1} | browser._asdict()
        house.desk.change(lambda tx: tx.store.rows("put_push", row)).result()
        sender = PushSender(house.desk, key, PAGE)
        link = f"{PAGE}/#/request/{'ab' * 16}"
        sender(Notification("Approval needed", f"send_mail\nDecide within 5 minutes: {link}", link))
        dora.call("POST", "/logout")
        with pytest.raises(Undelivered, match="no browser"):
            sender(Notification("x", "y", link))
    (one,) = received
    assert one["headers"]["authorization"].startswith("vapid t=")
    plain = json.loads(http_ece.decrypt(one["raw"], private_key=private, auth_secret=secret, version="aes128gcm"))
    assert plain == {
        "title": "Approval needed",
        "body": "send_mail\nDecide within 5 minutes",
        "hash": f"#/request/{'ab' * 16}",
    }


def test_a_browser_that_is_gone_is_forgotten_and_a_failure_is_seen(house: House, tmp_path: Path) -> None:
    key = load_push_key(tmp_path)
    house.log_in("dora")
    sender = PushSender(house.desk, key, PAGE)
    for status, left in ((503, 1), (410, 0)):
        with serving(make_hook([], status)) as address:
            browser, _, _ = make_browser(f"http://{address}/push")
            row = {"subject": "dora", "session": _session_of(house, "dora"), "created": 1} | browser._asdict()
            house.desk.change(lambda tx, row=row: tx.store.rows("put_push", row)).result()
            with pytest.raises(Undelivered, match=f"answered {status}"):
                sender(Notification("x", "y", PAGE))
            assert len(list_subscriptions(house.desk.store, house.desk.now())) == left
            house.desk.change(
                lambda tx, browser=browser: tx.store.rows("remove_push", {"endpoint": browser.endpoint})
            ).result()


def _session_of(house: House, subject: str) -> str:
    return next(entry["credential"] for entry in reversed(house.audit()) if entry["event"] == "login")


def test_only_push_services_are_subscribed_to(house: House) -> None:
    dora = house.log_in("dora")
    assert dora.call("GET", "/push").body["subscribed"] is False
    assert len(dora.call("GET", "/push").body["key"]) == 87
    for wrong in ("http://push.example/x", "https://127.0.0.1/x", "https://localhost/x", "https://[::1]/x", "x"):
        answer = dora.call("POST", "/push", {"endpoint": wrong, "p256dh": "x", "auth": "y"})
        assert answer.status == 400, wrong
    body = {"endpoint": "https://push.example.com/x", "p256dh": "x", "auth": "y"}
    assert dora.call("POST", "/push", body).body["subscribed"]
    assert house.get(house.submit().body["id"])["notifications"][0]["channel"] == "push"
    assert dora.call("DELETE", "/push").body["subscribed"] is False
    assert house.get(house.submit().body["id"])["notifications"] == [], "nobody wants one"


# Buttons


def test_ntfy_gets_a_button_that_opens_the_page() -> None:
    link = f"{PAGE}/#/request/{'ab' * 16}"
    received: list[Any] = []
    with serving(make_hook(received)) as address:
        (channel,) = make_channels([f"ntfy://{address}/topic"])
        channel.send(Notification("Approval needed", "send_mail", link))
    headers = received[0]["headers"]
    assert headers["x-click"] == link
    assert headers["x-actions"] == f"view, Open the request, {link}, clear=true"
    assert add_ntfy_button("ntfy://h/t?click=x&actions=y", link) == "ntfy://h/t?click=x&actions=y"
    assert add_ntfy_button("ntfy://h/t?priority=high", link).startswith("ntfy://h/t?priority=high&click=https")


def test_telegram_gets_a_button_that_opens_the_page() -> None:
    link = f"{PAGE}/#/request/{'ab' * 16}"
    received: list[Any] = []
    chat = TelegramChat("1:secret", "42", 7, False)
    with serving(make_hook(received)) as address:
        send_telegram(chat, Notification("Approval needed", "send_mail", link), f"http://{address}")
    (one,) = received
    assert (one["path"], one["chat_id"], one["message_thread_id"]) == ("/bot1:secret/sendMessage", "42", 7)
    assert one["reply_markup"] == {"inline_keyboard": [[{"text": "Open the request", "url": link}]]}
    assert "parse_mode" not in one
    with serving(make_hook([], 400)) as address, pytest.raises(Undelivered) as refused:
        send_telegram(chat, Notification("a", "b", link), f"http://{address}")
    assert "400" in str(refused.value) and "secret" not in str(refused.value)
    assert [can_have_button(url) for url in (link, "http://box.example", "https://localhost/x", "")] == [
        True,
        False,
        False,
        False,
    ]
    (channel,) = make_channels(["tgram://123456789:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA/42"])
    assert type(channel.send).__name__ == "_TelegramSender"


def test_a_start_without_anybody_to_notify_is_warned_about(open_house: Callable[..., House]) -> None:
    from warmstart.doors.web.first_start import find_warnings

    house = open_house()
    (warning,) = find_warnings(house.desk, ())
    assert "nobody will be notified" in warning and "CONFIRMATION_NOTIFY" in warning
    assert find_warnings(house.desk, ["ntfys://ntfy.sh/x"]) == []
    house.log_in("dora").call("POST", "/push", {"endpoint": "https://push.example.com/x", "p256dh": "x", "auth": "y"})
    assert find_warnings(house.desk, ()) == []
    assert WORK["action"] == "send_mail"
