"""Push notifications to browsers (Web Push with VAPID), through pywebpush of the extra `push`.

The daemon signs with a key of its own, in a file under its home; a message is encrypted for the one browser that asked
for it. A push only opens the request on the page.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from warmstart.atomic_files import write_whole
from warmstart.confirm.audit.transaction import Transaction
from warmstart.confirm.desk.desk import Desk
from warmstart.confirm.desk.submit import PUSH
from warmstart.confirm.errors import BadRequest
from warmstart.confirm.model import Identity
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.sending import Channel, Undelivered
from warmstart.confirm.store.protocol import ConfirmStore
from warmstart.errors import ConfigError

KEY_FILE = "confirm-push.pem"
_ROOM = 900  # characters: push services take 4 KB
_PATIENCE = 20  # seconds
_LASTS = 3_600  # seconds that a push service keeps a message for a device that is off
_GONE = (404, 410)  # the browser no longer wants pushes


class PushKey(NamedTuple):
    """The daemon's key for push services."""

    private: Any  # py_vapid's
    public: str  # base64url, for browsers


class Subscription(NamedTuple):
    """A browser's address at its push service, and its keys."""

    endpoint: str
    p256dh: str
    auth: str


@cache
def can_push() -> bool:
    """Return whether pywebpush is installed."""
    return find_spec("pywebpush") is not None


def load_push_key(home: Path) -> PushKey:
    """Load the key, creating it at first use."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
    from py_vapid import Vapid02

    path = home / KEY_FILE
    try:
        if not path.exists():
            made = Vapid02()
            made.generate_keys()
            write_whole(path, made.private_pem())
        key = Vapid02.from_pem(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: the key for pushes cannot be read: {error}") from error
    point = key.public_key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return PushKey(key, base64.urlsafe_b64encode(point).rstrip(b"=").decode())


def add_subscription(tx: Transaction, who: Identity, wanted: Subscription) -> None:
    """Remember the browser of a login. It gets pushes as long as the login lasts."""
    _check_endpoint(wanted.endpoint)
    row = {"subject": who.subject, "session": who.credential, "created": tx.now}
    tx.store.rows("put_push", row | wanted._asdict())
    tx.log("push_added", who, service=urlsplit(wanted.endpoint).hostname)


def remove_subscriptions(tx: Transaction, who: Identity) -> None:
    tx.store.rows("remove_pushes_of", {"session": who.credential})
    tx.log("push_removed", who)


def list_subscriptions(store: ConfirmStore, now: int) -> list[Subscription]:
    """Return the browsers whose login still holds."""
    return [Subscription(*row) for row in store.rows("live_pushes", {"now": now})]


def _check_endpoint(endpoint: str) -> None:
    """Refuse addresses that are no push service: the daemon will send to them."""
    parts = urlsplit(endpoint)
    host = parts.hostname or ""
    if parts.scheme != "https" or "." not in host or host.replace(".", "").isdigit() or ":" in host:
        raise BadRequest("endpoint: must be the https address of a push service")


class PushSender:
    """Sends a message to every browser that wants it. `contact` is how push services reach the daemon's owner."""

    def __init__(self, desk: Desk, key: PushKey, contact: str) -> None:
        self._desk = desk
        self._key = key
        self._contact = contact if contact.startswith("https:") else "mailto:warmstart@example.com"

    def __call__(self, message: Notification) -> None:
        wanted = list_subscriptions(self._desk.store, self._desk.now())
        link = urlsplit(message.link)
        text = message.body.replace(f": {message.link}", "") if message.link else message.body
        payload = json.dumps({"title": message.title, "body": text, "hash": f"#{link.fragment}"})
        errors = [error for browser in wanted if (error := self._send(browser, payload))]
        if errors and len(errors) == len(wanted):
            raise Undelivered(errors[-1])
        if not wanted:
            raise Undelivered("no browser is logged in that wants pushes")

    def _send(self, browser: Subscription, payload: str) -> str:
        """Send to one browser and return what went wrong, empty if nothing did."""
        from pywebpush import WebPushException, webpush

        keys = {"p256dh": browser.p256dh, "auth": browser.auth}
        try:
            webpush(
                {"endpoint": browser.endpoint, "keys": keys},
                payload,
                vapid_private_key=self._key.private,
                vapid_claims={"sub": self._contact},
                ttl=_LASTS,
                timeout=_PATIENCE,
                headers={"Urgency": "high"},
            )
        except WebPushException as error:
            status = error.response.status_code if error.response is not None else None
            if status in _GONE:
                self._desk.change(lambda tx: tx.store.rows("remove_push", {"endpoint": browser.endpoint})).result()
            return f"the push service answered {status}" if status else "the push service cannot be reached"
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            return f"the push service cannot be reached: {type(error).__name__}"
        return ""


def make_push_channel(send: Callable[[Notification], None]) -> Channel:
    return Channel(PUSH, PUSH, _ROOM, send)
