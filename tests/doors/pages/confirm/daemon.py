"""A real daemon on loopback, and the calls of agents and other approvers."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import httpx

from confirm.serving import Clock
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens import access
from warmstart.doors.web.server import ConfirmationServer

POLICY = """
[[rule]]
action = "release_*"
quorum = 2
"""


def _hold(port: int) -> int | None:
    """Reserve a port without answering on it, so that no parallel test gets it."""
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind(("127.0.0.1", port))
    except OSError:
        taken.close()
        return None
    return taken.detach()


class Daemon:
    """A daemon on ports of its own, until it is stopped."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.clock = Clock()
        self._options: dict[str, Any] = {
            "database": folder / "confirm.db",
            "policy": parse_policy(POLICY),
            "rate_limit": 10_000,
            "pending_limit": 10_000,
            "cool_down": 0,
        } | options
        self._ports = (0, self._options.pop("ui_port", 0))
        self._http = httpx.Client(timeout=20)
        self._tokens: dict[str, str] = {}
        self._held: list[int] = []
        self.start()

    def start(self) -> None:
        """Start, or start again on the same ports."""
        while self._held:
            os.close(self._held.pop())
        port, ui_port = self._ports
        self.server = ConfirmationServer(clock=self.clock, port=port, ui_port=ui_port, **self._options)
        self.server.start_background()
        self._ports = (int(self.server.api_url.rpartition(":")[2]), int(self.server.page_url.rpartition(":")[2]))

    def stop(self) -> None:
        self._http.close()
        self._http = httpx.Client(timeout=20)
        self.server.stop()
        self._held = [fd for port in self._ports if (fd := _hold(port)) is not None]

    @property
    def page(self) -> str:
        return self.server.page_url

    def make_link(self, subject: str = "alice") -> str:
        code = self.server.desk.change(lambda tx: access.create_login(tx, subject, by="test")).result()
        return f"{self.page}/login#{code}"

    def token(self, subject: str, *scopes: str) -> str:
        """Return a subject's token, creating it at first use."""
        if subject not in self._tokens:
            made = self.server.desk.change(lambda tx: access.create_token(tx, subject, scopes, by="test")).result()
            self._tokens[subject] = made.secret
        return self._tokens[subject]

    def submit(
        self, action: str = "send_mail", details: Any = None, subject: str = "agent-1", **more: Any
    ) -> dict[str, Any]:
        body = {"action": action, "description": f"Please {action}", "details": details or {"to": "bob"}} | more
        return self._post("/confirm", body, self.token(subject, "agent:submit"))

    def decide(self, id: str, verdict: str, subject: str = "bob", reason: str = "") -> dict[str, Any]:
        token = self.token(subject, "approver:decide")
        return self._post(f"/confirm/{id}/{verdict}", {"reason": reason}, token)

    def find(self, id: str, subject: str = "agent-1") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self.token(subject, 'agent:submit')}"}
        answer = self._http.get(f"{self.server.api_url}/confirm/{id}", headers=headers)
        answer.raise_for_status()
        return dict(answer.json())

    def execute(self, id: str, action: str, details: Any) -> dict[str, Any]:
        execution = self.find(id)["execution"]
        body = {"token": execution["token"], "action": action, "details": details}
        return self._post(f"/confirm/{id}/execute", body, self.token("agent-1", "agent:submit"))

    def _post(self, path: str, body: dict[str, Any], token: str) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {token}"}
        answer = self._http.post(f"{self.server.api_url}{path}", json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return dict(answer.json())
