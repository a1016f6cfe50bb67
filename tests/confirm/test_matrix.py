"""The access matrix: every route and method with every kind of token. A new route must be added here."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

import pytest

from confirm.houses import on_both_databases
from confirm.serving import WORK, House, Person, routes_of, send
from warmstart.confirm.tokens import access
from warmstart.doors.pages.confirm import PATHS
from warmstart.doors.web.app import make_api, make_page
from warmstart.doors.web.context import RouteContext

pytestmark = pytest.mark.slow

A, D, R, X = "agent:submit", "approver:decide", "audit:read", "admin"
OPEN = "open"

SHARED = {
    ("GET", "/confirm"): {A, D, X},
    ("GET", "/confirm/{id}"): {A, D, X},
    ("POST", "/confirm/{id}/approve"): {D, X},
    ("POST", "/confirm/{id}/deny"): {D, X},
    ("POST", "/deny-all"): {D, X},
    ("GET", "/audit"): {R, X},
    ("GET", "/events"): {D, X},
    ("GET", "/health"): {OPEN},
    ("GET", "/openapi.json"): {OPEN},
}
API = SHARED | {
    ("POST", "/confirm"): {A, X},
    ("POST", "/confirm/{id}/execute"): {A, X},
    ("DELETE", "/confirm/{id}"): {A, X},
    ("GET", "/whitelist"): {X},
    ("POST", "/whitelist"): {X},
    ("DELETE", "/whitelist/{id}"): {X},
}
PAGE = SHARED | {
    ("POST", "/login"): {OPEN},
    ("GET", "/session"): {A, D, R, X},
    ("POST", "/logout"): {A, D, R, X},
    ("GET", "/passkeys"): {D, X},
    ("POST", "/passkeys"): {D, X},
    ("POST", "/passkeys/options"): {D, X},
    ("POST", "/passkeys/{id}/vouch"): {D, X},
    ("DELETE", "/passkeys/{id}"): {D, X},
    ("POST", "/devices/link"): {D, X},
    ("GET", "/push"): {D, X},
    ("POST", "/push"): {D, X},
    ("DELETE", "/push"): {D, X},
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
BODIES = {"/confirm": WORK, "/login": {"code": "x"}}


def ask(url: str, method: str, path: str, headers: dict[str, str]) -> int:
    """Return the status only: event streams do not end."""
    import json

    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    body = json.dumps(BODIES.get(path, {})) if method == "POST" else None
    connection.request(method, path, body, headers | ({"Content-Type": "application/json"} if body else {}))
    status = connection.getresponse().status
    connection.close()
    return status


def expect(wanted: set[str], scope: str | None) -> set[int] | None:
    """Return the expected statuses; None if access is granted."""
    if OPEN in wanted or scope in wanted:
        return None
    return {401} if scope is None else {403}


def test_the_matrix_names_every_route(house: House) -> None:
    context = RouteContext(house.desk, house.server.addresses, None, None)  # type: ignore[arg-type]
    assert routes_of(make_api(context)) == set(API)
    assert routes_of(make_page(context)) == set(PAGE) | {("GET", path) for path in PATHS}


@on_both_databases
def test_every_token_at_every_route_of_the_api(house: House) -> None:
    expired = house.desk.change(lambda tx: access.create_token(tx, "old", [X], by="t", seconds=1)).result().secret
    revoked = house.desk.change(lambda tx: access.create_token(tx, "gone", [X], by="t")).result()
    house.desk.change(lambda tx: access.revoke_token(tx, revoked.record.id, by="t")).result()
    house.clock.ahead += 2
    holders = {
        None: [None, "", "wsc_unknown", expired, revoked.secret],
        A: [house.agent],
        D: [house.approver],
        R: [house.auditor],
        X: [house.admin],
    }
    checked = 0
    for (method, path), wanted in API.items():
        for scope, tokens in holders.items():
            for token in tokens:
                id = house.submit().body["id"] if "{id}" in path else ""
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                status = ask(house.api, method, path.replace("{id}", id), headers)
                expected = expect(wanted, scope)
                if expected is None:
                    assert status not in (401, 403, 405, 500), (method, path, scope, status)
                else:
                    assert status in expected, (method, path, scope, status)
                checked += 1
    assert checked == len(API) * 9


def test_every_session_at_every_route_of_the_page(house: House) -> None:
    checked = 0
    for scope in (None, A, D, R, X):
        headers = {}
        for (method, path), wanted in PAGE.items():
            if scope is not None and not headers:
                headers = log_in(house, scope).secrets
            id = house.submit().body["id"] if "{id}" in path else ""
            status = ask(house.page, method, path.replace("{id}", id), headers)
            expected = expect(wanted, scope)
            if expected is None:
                assert status not in (403, 405, 500), (method, path, scope, status)
                assert status != 401 or path == "/login"
            else:
                assert status in expected, (method, path, scope, status)
            if path == "/logout":
                headers = {}
            checked += 1
    assert checked == len(PAGE) * 5


def test_half_a_login_gets_in_nowhere_on_the_page(house: House) -> None:
    """Neither the cookie, which goes to every port of the machine, nor the token grants access alone."""
    stranger = house.log_in("erik")
    checked = 0
    for scope in (A, D, R, X):
        person = log_in(house, scope)
        secret = person.cookie.partition("=")[2]
        halves = [
            ({"Cookie": person.cookie}, 403),
            *(({"Cookie": person.cookie, "X-CSRF-Token": wrong}, 403) for wrong in ("", secret, stranger.csrf)),
            ({"Cookie": stranger.cookie, "X-CSRF-Token": person.csrf}, 403),
            ({"X-CSRF-Token": person.csrf}, 401),
            ({"X-CSRF-Token": person.csrf, "Authorization": f"Bearer {house.admin}"}, 401),
        ]
        for (method, path), wanted in PAGE.items():
            for headers, refused in halves:
                id = house.submit().body["id"] if "{id}" in path else ""
                status = ask(house.page, method, path.replace("{id}", id), headers)
                if OPEN in wanted:
                    assert status not in (403, 405, 500), (method, path, status)
                else:
                    assert status == refused, (method, path, headers, status)
                checked += 1
        assert person.call("GET", "/session").status == 200, "still logged in"
    assert checked == len(PAGE) * 4 * 7
    assert set(house.events()) & {"approved", "denied", "logout"} == set()


def log_in(house: House, scope: str) -> Person:
    code = house.desk.change(
        lambda tx: access.create_login(tx, "p-" + scope.replace(":", "-"), [scope], by="t")
    ).result()
    answer = send(house.page, "POST", "/login", {"code": code})
    return Person(house.page, answer.headers["set-cookie"].split(";")[0], answer.body["csrf_token"])


def test_other_methods_do_nothing(house: House) -> None:
    id = house.submit().body["id"]
    admin = {"Authorization": f"Bearer {house.admin}"}
    for path in {path for _, path in API}:
        known = {method for method, other in API if other == path}
        for method in set(METHODS) - known:
            status = ask(house.api, method, path.replace("{id}", id), admin)
            assert status in ((204,) if method == "OPTIONS" else (405,)), (method, path, status)
    assert house.get(id)["status"] == "pending"


def test_no_subject_decides_its_own_whatever_token_it_holds(house: House) -> None:
    """The requester cannot decide, for each pair of a submitting and a deciding token."""
    one, two = house.make_token("same", A), house.make_token("same", X)
    deciders = {"decide": house.make_token("Same", D), "admin": two}
    for asker in (one, two):
        for decider in deciders.values():
            id = house.submit(token=asker).body["id"]
            for answer in (house.approve(id, decider), house.deny(id, decider)):
                assert (answer.status, answer.code) == (403, "own_request")
    assert house.approve(house.submit(token=one).body["id"], house.admin).status == 200


def test_nobody_gets_a_token_that_submits_and_decides() -> None:
    import pytest

    from warmstart.confirm.tokens.tokens import check_scopes
    from warmstart.errors import ConfigError

    with pytest.raises(ConfigError, match="approve its own requests"):
        check_scopes([A, D])
    for wrong in ([], ["agent"], ["approver:decide", "all"]):
        with pytest.raises(ConfigError):
            check_scopes(wrong)


def test_agents_see_their_own_only(house: House) -> None:
    mine = house.submit().body["id"]
    theirs = house.submit(token=house.other_agent).body["id"]
    for path in ("/confirm", "/confirm?status=pending", "/confirm?action=send_mail"):
        seen = [one["id"] for one in house.call("GET", path, token=house.agent).body["requests"]]
        assert seen == [mine]
        seen = [one["id"] for one in house.call("GET", path, token=house.approver).body["requests"]]
        assert seen == [theirs, mine]
    assert house.call("GET", f"/confirm/{theirs}", token=house.agent).status == 404


@on_both_databases
def test_lists_continue_where_they_ended(house: House) -> None:
    ids = [house.submit().body["id"] for _ in range(5)]
    house.deny(ids[2])
    seen, before = [], ""
    while True:
        page = house.call("GET", f"/confirm?limit=2{before}", token=house.approver).body
        seen += [one["id"] for one in page["requests"]]
        if page["next"] is None:
            break
        before = f"&before={page['next']}"
    assert seen == ids[::-1]
    denied = house.call("GET", "/confirm?status=denied&action=SEND-mail", token=house.approver).body["requests"]
    assert [one["id"] for one in denied] == [ids[2]]
    house.clock.ahead += 301
    assert house.call("GET", "/confirm?status=pending", token=house.approver).body["requests"] == []
