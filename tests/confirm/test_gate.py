"""The gate: which Host headers are accepted, and which cookie is set."""

from __future__ import annotations

import pytest

from confirm.serving import House, send
from warmstart.confirm.tokens import access
from warmstart.doors.web.gate import _read_host


@pytest.mark.parametrize(
    ("host", "name"),
    [
        (b"127.0.0.1", "127.0.0.1"),
        (b"LocalHost:6080", "localhost"),
        (b"my_box-2.tail.ts.net:443", "my_box-2.tail.ts.net"),
        (b"[::1]", "::1"),
        (b"[FE80::1%eth0]:6080", "fe80::1%eth0"),
    ],
)
def test_a_name_with_or_without_a_port(host: bytes, name: str) -> None:
    assert _read_host(host) == name


@pytest.mark.slow
@pytest.mark.parametrize(
    "host",
    [
        "evil.com@127.0.0.1",
        "user:pass@127.0.0.1",
        "@127.0.0.1",
        "127.0.0.1/",
        "127.0.0.1/evil.com",
        "127.0.0.1?evil.com",
        "127.0.0.1#evil.com",
        "127.0.0.1:",
        "127.0.0.1:port",
        "127.0.0.1:1:2",
        "127.0.0.1, evil.com",
        "127.0.0.1 evil.com",
        "::1",
        "[127.0.0.1]",
        "[localhost]",
        "[::1]evil.com",
        "[::1",
        "localhost.",
        "http://127.0.0.1",
        "",
    ],
)
def test_anything_else_is_no_name(house: House, host: str) -> None:
    assert _read_host(host.encode()) in ("", "localhost.")
    answer = send(house.api, "GET", "/health", headers={"Host": host})
    assert (answer.status, answer.code) == (403, "bad_host")


def test_bytes_that_are_no_text() -> None:
    assert _read_host(b"127.0.0.1\xff") == _read_host(b"127.0.0.1\n") == ""


def test_over_https_the_cookie_is_for_this_host_alone(open_house) -> None:
    """The browser's Origin decides: the same daemon may be reached with and without a proxy."""
    house = open_house(public_url="https://box.example")
    page = house.local_page
    for origin, name in (("https://box.example", "__Host-warmstart_confirm"), (page, "warmstart_confirm")):
        code = house.desk.change(lambda tx: access.create_login(tx, "dora", by="t")).result()
        answer = send(page, "POST", "/login", {"code": code}, headers={"Origin": origin})
        cookie, csrf = answer.headers["set-cookie"], answer.body["csrf_token"]
        assert cookie.startswith(f"{name}=") and "Path=/" in cookie and "Domain" not in cookie
        assert ("Secure" in cookie) == name.startswith("__Host-"), "browsers take the prefix with Secure only"
        known = {"Cookie": cookie.split(";")[0], "X-CSRF-Token": csrf}
        assert send(page, "GET", "/session", headers=known).body["subject"] == "dora"
        gone = send(page, "POST", "/logout", headers=known | {"Origin": origin}).headers["set-cookie"]
        assert gone.startswith(f'{name}=""') and "Max-Age=0" in gone
        assert send(page, "GET", "/session", headers=known).status == 401
