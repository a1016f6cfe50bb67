"""Red team: a thousand half-open connections. A person still sees the page and decides."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from confirm.commands import start_daemon, stop_daemon
from confirm.redteam import HALF_OPEN, attack
from confirm.serving import WORK, House, send
from warmstart.confirm.desk.offline import change_database
from warmstart.confirm.tokens import access
from warmstart.confirm.tokens.identity import split_token
from warmstart.doors.web import connections
from warmstart.doors.web.connections import find_room

FILES = 600  # of the daemon: far fewer than the attacker has connections


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A daemon of its own process that may open few files."""
    database = tmp_path / "confirm.db"
    made = change_database(
        database,
        lambda tx: [
            access.create_token(tx, name, [scope], by="test").secret
            for name, scope in (("agent", "agent:submit"), ("boss", "approver:decide"))
        ],
    )
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, before[1]))
    try:
        process, facts = start_daemon("--db", str(database), "--port", "0")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    yield {"agent": made[0], "boss": made[1], **facts}
    stop_daemon(process)


def test_redteam_half_open_connections_keep_nobody_out(daemon: dict[str, Any]) -> None:
    agent = split_token(daemon["agent"]).secret
    id = send(daemon["api_url"], "POST", "/confirm", WORK, token=agent).body["id"]
    with (
        attack(HALF_OPEN, daemon["api_url"], 1_100, agent),
        attack(HALF_OPEN, daemon["page_url"], 1_100, agent),
    ):
        for _ in range(5):
            assert send(daemon["page_url"], "GET", "/").status == 200
            listed = send(daemon["api_url"], "GET", "/confirm?status=pending", token=daemon["boss"])
            assert [one["id"] for one in listed.body["requests"]] == [id]
        assert send(daemon["api_url"], "POST", f"/confirm/{id}/approve", {}, token=daemon["boss"]).status == 200
        other = send(daemon["api_url"], "POST", "/confirm", WORK, token=agent)
        assert other.status == 202


def test_redteam_there_is_room_for_fewer_connections_than_files() -> None:
    assert find_room(lambda: 1_024) == 362
    assert 2 * find_room(lambda: 600) + 200 < 600
    assert find_room(lambda: 10**6) == 4_000
    assert find_room(lambda: 64) == 32


@pytest.mark.parametrize(
    ("sent", "limit"),
    [
        (b"", "HEADERS_WITHIN"),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", "HEADERS_WITHIN"),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /hea", "HEADERS_WITHIN"),
        (b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{", "BODY_WITHIN"),
    ],
)  # fmt: skip
def test_redteam_what_dawdles_is_dropped(
    house: House, monkeypatch: pytest.MonkeyPatch, sent: bytes, limit: str
) -> None:
    monkeypatch.setattr(connections, "HEADERS_WITHIN", 60.0)
    monkeypatch.setattr(connections, "BODY_WITHIN", 60.0)
    monkeypatch.setattr(connections, limit, 0.3)
    parts = urlsplit(house.page)
    with socket.create_connection((parts.hostname, parts.port), timeout=20) as half_open:
        half_open.sendall(sent)
        began = time.monotonic()
        received = b""
        try:
            while chunk := half_open.recv(10_000):
                received += chunk
        except ConnectionResetError:
            pass
        assert time.monotonic() - began < 15
        assert received.count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n") * (b"/health" in sent)
    assert send(house.page, "GET", "/health").status == 200


def test_redteam_who_does_not_read_an_answer_is_dropped(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_WITHIN", 0.3)
    body = WORK | {"details": {"text": "x" * 250_000}}
    id = house.submit(body).body["id"]
    parts = urlsplit(house.api)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        slow.settimeout(30)
        slow.connect((parts.hostname, parts.port))
        one = f"GET /confirm/{id} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {house.agent}\r\n\r\n"
        slow.sendall(one.encode() * 40)
        time.sleep(1.5)
        received = 0
        try:
            while chunk := slow.recv(1 << 20):
                received += len(chunk)
        except ConnectionResetError:
            pass
        assert received < 40 * 250_000


def test_redteam_a_long_poll_is_no_dawdling(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADERS_WITHIN", "BODY_WITHIN", "READ_WITHIN"):
        monkeypatch.setattr(connections, name, 0.2)
    id = house.submit().body["id"]
    assert house.get(id, wait=1)["status"] == "pending"


def test_redteam_a_body_that_is_broken_off_is_not_logged(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """Each once left a traceback in the log, which anybody could fill that way."""
    parts = urlsplit(house.api)
    head = f"POST /confirm HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {house.agent}\r\n"
    for _ in range(5):
        with socket.create_connection((parts.hostname, parts.port)) as broken:
            broken.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{".encode())
    for _ in range(3):
        assert house.submit().status == 202
    assert not caplog.records


def test_the_attackers_program_is_sound() -> None:
    """A syntax error in it would look like a daemon that withstands it."""
    for name in ("FAKE_DAEMON", "RELAY", "FLOOD", "HALF_OPEN"):
        compile(getattr(__import__("confirm.redteam", fromlist=[name]), name), name, "exec")
    assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0
