"""The one HTTP client: proxies, redirects, retries, limits."""

from __future__ import annotations

import http.client
import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from loopback import serving
from warmstart.confirm.client import wire
from warmstart.endpoints.context_window import ask_window
from warmstart.endpoints.http import (
    HttpClient,
    HttpError,
    NoAnswer,
    Proxy,
    Redirected,
    TimedOut,
    TooLarge,
    find_proxy,
    is_loopback,
)
from warmstart.errors import ConfigError


class Scripted(BaseHTTPRequestHandler):
    """Answers from a script and keeps every request line with its headers; the last answer repeats."""

    protocol_version = "HTTP/1.1"
    script: list[tuple[int, dict[str, str], bytes]] = []  # noqa: RUF012
    seen: list[tuple[str, dict[str, str]]] = []  # noqa: RUF012
    drip = 0.0  # seconds between two bytes

    def answer(self) -> None:
        self.seen.append((self.requestline, dict(self.headers)))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, headers, body = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):
            for n in range(len(body)) if self.drip else ():
                self.wfile.write(body[n : n + 1])
                time.sleep(self.drip)
            if not self.drip:
                self.wfile.write(body)
        self.close_connection = True

    do_GET = do_POST = do_CONNECT = answer  # noqa: N815

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    Scripted.script, Scripted.seen, Scripted.drip = [(200, {}, b"fine")], [], 0.0
    with serving(Scripted) as address:
        yield address


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def make_client(address: str, **more: Any) -> HttpClient:
    return HttpClient(f"http://{address}/base/", **{"timeout": 5.0, "largest": 100, "sleep": slept.append} | more)


slept: list[float] = []


@pytest.fixture(autouse=True)
def forget_sleep() -> None:
    slept.clear()


# Addresses


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/v1",
        "http://user:pw@127.0.0.1/v1",
        "http:///v1",
        "",
        "http://127.0.0.1:x/v1",
        "http://h/?key=pw",
        "http://[",
    ],
)
def test_bad_addresses_are_refused_without_showing_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        HttpClient(url, timeout=1, largest=1)
    assert "pw" not in str(raised.value)


def test_a_request_and_its_answer(server: str) -> None:
    client = make_client(server)
    response = client.send("POST", f"{client.base_path}/models", b"{}", {"X-Key": "1"})
    assert (response.status, response.body, response.headers["content-length"]) == (200, b"fine", "4")
    ((line, headers),) = Scripted.seen
    assert line == "POST /base/models HTTP/1.1" and headers["X-Key"] == "1" and headers["Host"] == server


# Proxies


def test_plain_http_goes_through_the_proxy(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss@{server}")
    assert make_client("models.example:8000").send("GET", "/x").body == b"fine"
    ((line, headers),) = Scripted.seen
    assert line == "GET http://models.example:8000/x HTTP/1.1" and headers["Host"] == "models.example:8000"
    assert headers["Proxy-Authorization"] == f"Basic {b64encode(b'me:p@ss').decode()}"


def test_https_asks_the_proxy_for_a_tunnel(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:pass@{server}")
    Scripted.script = [(407, {}, b"")]
    client = HttpClient("https://models.example/v1", timeout=5, largest=100, tries=1)
    with pytest.raises(NoAnswer, match="407") as raised:
        client.send("GET", "/x", headers={"Authorization": "Bearer secret"})
    assert f"through the proxy {server}" in str(raised.value) and "pass" not in str(raised.value)
    ((line, headers),) = Scripted.seen
    assert line == "CONNECT models.example:443 HTTP/1.0"
    assert set(headers) == {"Proxy-Authorization"}, "the key is for the server alone"


def test_loopback_and_no_proxy_go_direct(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "intern.example, 10.0.0.7:8000")
    assert make_client(server).send("GET", "/x").body == b"fine"
    assert [find_proxy("http", host, 8000) for host in ("a.intern.example", "10.0.0.7", "::1")] == [None] * 3
    assert find_proxy("http", "other.example", 80) == Proxy("127.0.0.1", 1, {})
    assert find_proxy("https", "other.example", 443) is None
    for host, local in (("localhost", True), ("127.3.2.1", True), ("127.evil.example", False), ("10.0.0.1", False)):
        assert is_loopback(host) == local


@pytest.mark.parametrize("proxy", ["socks5://me:pw@proxy:1080", "http://", "http://proxy:x"])
def test_proxies_that_cannot_be_used_are_reported(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)
    with pytest.raises(ConfigError, match="HTTP_PROXY=") as raised:
        make_client("models.example")
    assert "pw" not in str(raised.value)


def test_the_confirmation_daemon_is_never_reached_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    with make_client("192.0.2.1:6000").open() as connection:
        assert connection.host == "proxy.example"
    with wire._make_client("http://192.0.2.1:6000", 1.0).open() as connection:
        assert connection.host == "192.0.2.1"


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(server: str, status: int) -> None:
    Scripted.script = [(status, {"Location": f"http://{server}/elsewhere"}, b"")]
    with pytest.raises(Redirected, match="not followed"):
        make_client(server).send("GET", "/x", headers={"Authorization": "Bearer secret"})
    assert len(Scripted.seen) == 1 and slept == []


# Retries


def test_busy_servers_are_asked_again(server: str) -> None:
    Scripted.script = [(429, {"Retry-After": "7"}, b""), (503, {"Retry-After": "900"}, b""), (200, {}, b"third")]
    assert make_client(server).send("GET", "/x").body == b"third"
    assert slept == [7.0, 10.0]


def test_pauses_grow_and_the_last_answer_counts(server: str) -> None:
    Scripted.script = [(500, {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}, b"no")]
    assert make_client(server).send("GET", "/x")[0] == 500
    assert slept == [0.5, 2.0] and len(Scripted.seen) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 501])
def test_other_errors_are_final(server: str, status: int) -> None:
    Scripted.script = [(status, {}, b"no")]
    assert make_client(server).send("GET", "/x").status == status
    assert slept == []


def test_a_dead_server_is_tried_again() -> None:
    with pytest.raises(NoAnswer, match=r"127\.0\.0\.1:1 cannot be reached"):
        make_client("127.0.0.1:1").send("GET", "/x")
    assert slept == [0.5, 2.0]
    with pytest.raises(NoAnswer):
        make_client("127.0.0.1:1", tries=1).send("GET", "/x")
    assert slept == [0.5, 2.0]


def test_an_answer_that_breaks_off_is_none(server: str) -> None:
    Scripted.script = [(200, {"Content-Length": "99"}, b"half"), (200, {}, b"whole")]
    assert make_client(server).send("GET", "/x").body == b"whole"


# Limits


def test_answers_have_a_largest_size(server: str) -> None:
    Scripted.script = [(200, {}, b"x" * 101)]
    with pytest.raises(TooLarge, match="more than 100 bytes"):
        make_client(server).send("GET", "/x")
    assert len(Scripted.seen) == 1


def test_a_server_that_drips_is_given_up(server: str) -> None:
    Scripted.script, Scripted.drip = [(200, {}, b"x" * 100)], 0.05
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"did not answer in 0\.3 seconds"):
        make_client(server, timeout=0.3).send("GET", "/x")
    assert time.monotonic() - began < 3 and len(Scripted.seen) == 1


def test_a_key_that_is_no_header_is_not_shown(server: str) -> None:
    with pytest.raises(HttpError) as raised:
        make_client(server).send("GET", "/x", headers={"Authorization": "Bearer secret\n"})
    assert "secret" not in str(raised.value) and slept == []


# Exchanges over one connection


def test_trouble_in_an_open_connection_is_an_http_error(server: str) -> None:
    with pytest.raises(NoAnswer, match="NotConnected"), make_client(server).open():
        raise http.client.NotConnected


def test_a_model_servers_window_survives_a_hiccup(server: str) -> None:
    Scripted.script = [(503, {"Retry-After": "0"}, b""), (200, {}, b'{"data": [{"id": "m", "n_ctx": 8192}]}')]
    assert ask_window(f"http://{server}/v1", "", "m") == 8192
