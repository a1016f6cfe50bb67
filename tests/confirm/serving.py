"""A daemon to test against, and a client that can also misbehave."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from litestar import Litestar
from litestar.routes import HTTPRoute

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.verify import AuditVerdict, verify
from warmstart.confirm.store.open import open_store
from warmstart.confirm.tokens import access
from warmstart.doors.web import ConfirmationServer

WORK = {"action": "send_mail", "description": "Tell the customers", "details": {"to": 3, "list": ["a", "b"]}}
RISK = {"action": "delete_data", "description": "Drop the old orders", "details": {"table": "orders_2024"}}


class Clock:
    """The real time plus an offset, so that no test waits for a deadline."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class Answer(NamedTuple):
    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str:
        return self.body["code"]


def send(
    url: str,
    method: str,
    path: str,
    body: Any = None,
    *,
    token: str | None = None,
    headers: dict[str, str] | None = None,
    raw: bytes | None = None,
    timeout: float = 30.0,
) -> Answer:
    """Send one request on a connection of its own. `raw` is sent unchanged; `headers` override the defaults."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    sent: dict[str, str] = {}
    data = raw
    if body is not None:
        data = json.dumps(body).encode()
    if data is not None:
        sent["Content-Type"] = "application/json"
    if token:
        sent["Authorization"] = f"Bearer {token}"
    sent |= headers or {}
    try:
        connection.putrequest(method, path, skip_host="Host" in sent, skip_accept_encoding=True)
        for name, value in sent.items():
            if value is not None:
                connection.putheader(name, value)
        if "Content-Length" not in sent and data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read()
        parsed = json.loads(text) if text and "json" in (answer.getheader("Content-Type") or "") else text
        return Answer(answer.status, parsed, {name.lower(): value for name, value in answer.getheaders()})
    finally:
        connection.close()


def wait_until(is_so: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait for something that happens at once on an idle machine."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def routes_of(app: Litestar) -> set[tuple[str, str]]:
    """Return every method and path of an application."""
    found = set()
    for route in app.routes:
        assert isinstance(route, HTTPRoute)
        for method in route.methods - {"OPTIONS"}:
            found.add((str(method), route.path_format.replace("{id:str}", "{id}")))
    return {(method, path) for method, path in found if not path.startswith("/openapi.json/")}  # the same document


class House:
    """A running daemon with a token for each kind of caller."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.clock = Clock()
        self.database: Any = options.pop("database", folder / "confirm.db")
        self.options = {
            "port": 0,
            "ui_port": 0,
            "rate_limit": 1_000_000,
            "pending_limit": 1_000_000,
            "cool_down": 0,
            **options,
        }
        self.start()
        people = [
            ("agent-1", "agent:submit"),
            ("agent-2", "agent:submit"),
            ("alice", "approver:decide"),
            ("bob", "approver:decide"),
            ("carol", "audit:read"),
            ("root", "admin"),
        ]
        made = self.desk.change(
            lambda tx: [access.create_token(tx, name, [scope], by="test").secret for name, scope in people]
        ).result()
        self.agent, self.other_agent, self.approver, self.second, self.auditor, self.admin = made

    def start(self) -> None:
        self.server = ConfirmationServer(database=self.database, clock=self.clock, **self.options).start_background()
        self.api, self.page, self.desk = self.server.api_url, self.server.page_url, self.server.desk

    @property
    def local_page(self) -> str:
        """The page's local address, without the proxy of `public_url`."""
        return f"http://127.0.0.1:{self.server._listeners[1].getsockname()[1]}"

    def stop(self) -> None:
        self.server.stop()

    def restart(self, **options: Any) -> None:
        self.stop()
        self.options |= options
        self.start()

    def make_token(self, subject: str, *scopes: str) -> str:
        made = self.desk.change(lambda tx: access.create_token(tx, subject, scopes, by="test")).result()
        return made.secret

    def call(self, method: str, path: str, body: Any = None, token: str | None = None, **more: Any) -> Answer:
        return send(self.api, method, path, body, token=token, **more)

    def submit(self, body: Any = WORK, token: str | None = None, **more: Any) -> Answer:
        return self.call("POST", "/confirm", body, token or self.agent, **more)

    def get(self, id: str, token: str | None = None, wait: int = 0) -> Any:
        answer = self.call("GET", f"/confirm/{id}?wait={wait}", token=token or self.agent)
        assert answer.status == 200, answer
        return answer.body

    def approve(self, id: str, token: str | None = None, body: Any = None) -> Answer:
        return self.call("POST", f"/confirm/{id}/approve", body, token or self.approver)

    def deny(self, id: str, token: str | None = None, body: Any = None) -> Answer:
        return self.call("POST", f"/confirm/{id}/deny", body, token or self.approver)

    def execute(self, id: str, body: Any, token: str | None = None) -> Answer:
        return self.call("POST", f"/confirm/{id}/execute", body, token or self.agent)

    def audit(self, since: int = 0) -> list[dict[str, Any]]:
        answer = self.call("GET", f"/audit?limit=1000&since={since}", token=self.auditor)
        assert answer.status == 200, answer
        return answer.body["entries"]

    def events(self, id: str = "") -> list[str]:
        return [entry["event"] for entry in self.audit() if not id or entry["request"] == id]

    def log_in(self, subject: str = "dora") -> Person:
        code = self.desk.change(lambda tx: access.create_login(tx, subject, by="test")).result()
        answer = send(self.page, "POST", "/login", {"code": code})
        assert answer.status == 200, answer
        return Person(self.page, answer.headers["set-cookie"].split(";")[0], answer.body["csrf_token"])


class Person(NamedTuple):
    """A person who is logged in on the page."""

    page: str
    cookie: str
    csrf: str

    @property
    def secrets(self) -> dict[str, str]:
        """Both secrets, as headers."""
        return {"Cookie": self.cookie, "X-CSRF-Token": self.csrf}

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        sent = self.secrets | headers
        return send(self.page, method, path, body, headers={name: value for name, value in sent.items() if value})


def check(database: Path | str) -> AuditVerdict:
    with open_store(database) as store:
        return verify(store, Anchor.of(store).read())
