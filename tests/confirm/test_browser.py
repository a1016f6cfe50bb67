"""Attacks through a browser: DNS rebinding, foreign pages, forms, frames; and the page's login."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from confirm.serving import RISK, WORK, House, send
from warmstart.confirm.canonical import MAX_BODY
from warmstart.doors.web.settings import find_hosts, find_origins, make_settings, open_listener
from warmstart.errors import ConfigError, Refused

EVERY_ROUTE = ["/health", "/openapi.json", "/confirm", "/confirm/x", "/audit", "/events", "/session", "/", "/nothing"]


def test_a_rebound_name_reaches_no_route(house: House) -> None:
    for host in (
        "evil.example",
        "127.0.0.1.evil.example",
        "evil.example:6080",
        "",
        "127.0.0.1@evil.example",
        "0.0.0.0",
    ):
        for url in (house.api, house.page):
            for path in EVERY_ROUTE:
                answer = send(url, "GET", path, token=house.admin, headers={"Host": host})
                assert (answer.status, answer.code) == (403, "bad_host"), (host, path)
            assert send(url, "POST", "/login", {"code": "x"}, headers={"Host": host}).status == 403


def test_two_hosts_are_none(house: House) -> None:
    parts = urlsplit(house.api)
    with socket.create_connection((parts.hostname, parts.port)) as plain:
        plain.sendall(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert plain.recv(100).split()[1] in (b"403", b"400")


def test_the_names_of_this_machine_do(house: House) -> None:
    port = urlsplit(house.api).port
    for host in ("127.0.0.1", f"127.0.0.1:{port}", "LOCALHOST", f"localhost:{port}", f"[::1]:{port}", "[::1]"):
        assert send(house.api, "GET", "/health", headers={"Host": host}).status == 200, host


def test_names_can_be_added() -> None:
    settings = make_settings(
        {"database": "x", "host": "0.0.0.0", "allow_hosts": ["box.lan"], "public_url": "https://p.example/"}
    )
    assert find_hosts(settings) == {"127.0.0.1", "localhost", "::1", "box.lan", "p.example"}
    with open_listener("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        assert {f"http://box.lan:{port}", "https://p.example", f"http://[::1]:{port}"} <= find_origins(
            settings, listener
        )
        with pytest.raises(Refused, match="choose another port"):
            open_listener("127.0.0.1", port)
    with pytest.raises(ConfigError, match="address"):
        make_settings({"database": "x", "public_url": "box.lan"})
    with pytest.raises(ConfigError, match="unknown option: databse"):
        make_settings({"databse": "x"})  # type: ignore[typeddict-unknown-key]


FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
]


def test_foreign_pages_change_nothing(house: House) -> None:
    id = house.submit().body["id"]
    person = house.log_in()
    known = {"Cookie": person.cookie, "X-CSRF-Token": person.csrf}
    for headers in FOREIGN:
        for url, token in ((house.api, house.approver), (house.page, None)):
            answer = send(url, "POST", f"/confirm/{id}/approve", {}, token=token, headers=known | headers)
            assert (answer.status, answer.code) == (403, "bad_origin")
    assert house.get(id)["status"] == "pending"
    own = {"Origin": house.page, "Sec-Fetch-Site": "same-origin"}
    assert person.call("POST", f"/confirm/{id}/approve", {}, **own).status == 200


def test_only_json_is_read(house: House) -> None:
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
        "",
    ):
        answer = house.call("POST", "/confirm", WORK, house.agent, headers={"Content-Type": kind})
        assert (answer.status, answer.code) == (415, "not_json"), kind
    assert house.submit(headers={"Content-Type": "application/json; charset=utf-8"}).status == 202


def test_bodies_are_bounded(house: House) -> None:
    big = WORK | {"details": "x" * MAX_BODY}
    answer = house.submit(big)
    assert (answer.status, answer.code) == (413, "too_large")
    assert house.submit(WORK | {"details": "x y " * (MAX_BODY // 5)}).status == 202
    parts = urlsplit(house.api)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
    chunks = (b"x" * 65_536 for _ in range(8))
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {house.agent}"}
    connection.request("POST", "/confirm", chunks, headers, encode_chunked=True)
    assert connection.getresponse().status == 413, "one that does not say how long it is"
    connection.close()


UNCLEAR = [
    b"",
    b"[]",
    b"null",
    b"{",
    b'{"action": "a", "description": "d"} x',
    b'{"action": "a", "description": "d", "description": "e"}',
    b'{"action": "a", "description": "d", "details": {"x": 1, "x": 2}}',
    b'{"action": "a", "description": "d", "details": NaN}',
    b'{"action": "a", "description": "d", "details": 1e999}',
    b'{"action": "a", "description": "d", "details": "\\ud800"}',
    b'{"action": "a", "description": "d", "details": {"\\udfff": 1}}',
    b'{"action": "a", "description": "d", "details": ' + b"[" * 70 + b"]" * 70 + b"}",
    b'{"action": "a", "description": "d", "details": ' + b"[" * 9000 + b"]" * 9000 + b"}",
    b'{"action": "a", "description": "d", "details": ' + b"9" * 5000 + b"}",
    b'{"action": "a", "description": "d"\xff}',
    b'{"action": "a", "description": "d", "extra": 1}',
    b'{"action": "a", "description": " \\t\\u00a0 "}',
    b'{"action": "a", "description": 5}',
    b'{"action": ["a"], "description": "d"}',
]


def test_what_could_be_read_in_two_ways_is_refused(house: House) -> None:
    for raw in UNCLEAR:
        answer = house.call("POST", "/confirm", raw=raw, token=house.agent)
        assert answer.status == 400, (raw, answer)
    assert house.events().count("submitted") == 0


@pytest.mark.slow
def test_every_answer_tells_browsers_what_they_may(house: House) -> None:
    answers = [send(url, "GET", path) for url in (house.api, house.page) for path in (*EVERY_ROUTE, "/login")]
    answers.append(send(house.api, "GET", "/health", headers={"Host": "evil.example"}))
    answers.append(send(house.api, "POST", "/confirm", WORK))
    for answer in answers:
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert not [name for name in answer.headers if name.startswith("access-control")]
        assert "server" not in answer.headers


def test_a_preflight_gets_no_permission(house: House) -> None:
    asked = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    answer = send(house.api, "OPTIONS", "/confirm", headers=asked)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_the_usual_port_of_the_page_is_one_that_browsers_open() -> None:
    settings = make_settings({"database": "x"})
    assert (settings.port, settings.ui_port) == (6000, 6080)
    assert settings.ui_port not in {6000, 6566, 6665, 6666, 6667, 6668, 6669, 6697, 6679}


# The login


def test_a_login_link_works_once_and_not_for_long(house: House) -> None:
    from warmstart.confirm.tokens.access import create_login

    codes = [house.desk.change(lambda tx: create_login(tx, "dora", by="t")).result() for _ in range(2)]
    first = send(house.page, "POST", "/login", {"code": codes[0]})
    assert first.status == 200
    assert first.body["scopes"] == ["approver:decide", "audit:read"]
    cookie = first.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", "Path=/", "Max-Age=2592000"))
    assert "Domain" not in cookie
    again = send(house.page, "POST", "/login", {"code": codes[0]})
    assert (again.status, again.code) == (401, "bad_login")
    house.clock.ahead += 15 * 60
    assert send(house.page, "POST", "/login", {"code": codes[1]}).status == 401
    assert house.events().count("login_failed") == 2


def test_looking_at_the_link_does_not_spend_it(house: House) -> None:
    """The code is in the fragment, which no browser or scanner sends, and only POST uses it up."""
    from warmstart.confirm.tokens.access import create_login

    code = house.desk.change(lambda tx: create_login(tx, "dora", by="t")).result()
    for path in ("/login", f"/login?code={code}"):
        send(house.page, "GET", path)
        send(house.page, "HEAD", path)
    assert send(house.page, "POST", "/login", {"code": code}).status == 200


def test_a_session_needs_its_csrf_token_for_every_change(house: House) -> None:
    id = house.submit().body["id"]
    person, other = house.log_in(), house.log_in("erik")
    for wrong in ("", "0" * 64, other.csrf):
        for path in (f"/confirm/{id}/approve", f"/confirm/{id}/deny", "/logout"):
            answer = person._replace(csrf=wrong).call("POST", path)
            assert (answer.status, answer.code) == (403, "bad_csrf")
    assert person.call("POST", f"/confirm/{id}/approve").status == 200
    assert house.get(id)["decision"]["by"] == "dora"


def test_a_session_ends(house: House) -> None:
    person = house.log_in()
    assert person.call("GET", "/session").body.keys() == {"subject", "scopes", "expires"}, (
        "the second secret is sent once"
    )
    house.restart(ui_port=int(house.page.rsplit(":", 1)[1]))
    assert person.call("GET", "/session").status == 200, "a restart logs nobody out"
    assert person.call("POST", "/logout").status == 204
    assert person.call("GET", "/session").status == 401
    late = house.log_in()
    house.clock.ahead += 30 * 86_400
    assert late.call("GET", "/session").status == 401


def test_the_ports_do_not_take_each_others_keys(house: House) -> None:
    person = house.log_in()
    assert send(house.page, "GET", "/confirm", token=house.admin).status == 401
    assert send(house.api, "GET", "/confirm", headers={"Cookie": person.cookie}).status == 401
    assert send(house.page, "POST", "/confirm", WORK, headers={"Cookie": person.cookie}).status in (403, 404, 405)
    assert send(house.api, "POST", "/login", {"code": "x"}).status == 404


def test_high_risk_is_approved_on_the_page_only_with_the_actions_name(house: House) -> None:
    id = house.submit(RISK).body["id"]
    person = house.log_in()
    for typed in ({}, {"typed_action": "delete"}, {"typed_action": "DELETE_DATA"}):
        answer = person.call("POST", f"/confirm/{id}/approve", typed)
        assert (answer.status, answer.code) == (400, "type_the_action")
    assert person.call("POST", f"/confirm/{id}/approve", {"typed_action": "delete_data"}).status == 200
    assert person.call("POST", f"/confirm/{house.submit(RISK).body['id']}/deny").status == 200, "a no is free"


def test_the_requester_does_not_decide_on_the_page_either(house: House) -> None:
    id = house.submit().body["id"]
    answer = house.log_in("Agent-1").call("POST", f"/confirm/{id}/approve")
    assert (answer.status, answer.code) == (403, "own_request")
