"""Every flaw of the naive daemon (shared/trust.md), row by row: each test fails on the naive behaviour."""

from __future__ import annotations

import json
import re
import threading
import time

import apsw
import pytest

from confirm.houses import on_both_databases
from confirm.serving import RISK, WORK, House, send
from warmstart.confirm.desk import failures
from warmstart.confirm.model import Identity
from warmstart.confirm.policy.actions import HIGH_RISK
from warmstart.confirm.policy.policy import parse_policy
from warmstart.errors import StoreError

pytestmark = pytest.mark.slow

# Pending requests only in memory


@on_both_databases
def test_a_pending_request_survives_a_restart_and_its_waiter_comes_back(house: House) -> None:
    receipt = house.submit().body
    house.restart()
    assert house.get(receipt["id"])["deadline"] == receipt["deadline"]
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(house.get(receipt["id"], wait=20)))
    waiter.start()
    time.sleep(0.2)
    assert house.approve(receipt["id"]).status == 200
    waiter.join()
    assert answers[0]["status"] == "approved"


@on_both_databases
def test_the_deadline_is_absolute_and_runs_on_while_the_daemon_is_down(house: House) -> None:
    receipt = house.submit(WORK | {"timeout_seconds": 30}).body
    house.stop()
    house.clock.ahead += 31
    house.start()
    assert house.approve(receipt["id"]).status == 410
    assert house.get(receipt["id"])["status"] == "expired"


def test_an_approval_is_still_there_after_a_restart_with_the_same_execution_token(house: House) -> None:
    id = house.submit().body["id"]
    house.approve(id)
    before = house.get(id)["execution"]["token"]
    house.restart()
    assert house.get(id)["execution"]["token"] == before


# No authentication: the agent approves its own request


def test_nobody_submits_or_decides_without_a_token(house: House) -> None:
    id = house.submit().body["id"]
    for method, path in [("POST", "/confirm"), ("GET", f"/confirm/{id}"), ("POST", f"/confirm/{id}/approve")]:
        answer = house.call(method, path, WORK if path == "/confirm" else None)
        assert (answer.status, answer.code) == (401, "unauthorized")
        assert house.call(method, path, token="wsc_" + "x" * 43).status == 401
    assert house.get(id)["status"] == "pending"


def test_an_agents_token_does_not_decide(house: House) -> None:
    id = house.submit().body["id"]
    assert house.approve(id, house.agent).status == 403
    assert house.approve(id, house.other_agent).status == 403


@on_both_databases
def test_the_requester_does_not_decide_whatever_its_scopes(house: House) -> None:
    """Another token of the same person, in any spelling, is the same person."""
    id = house.submit(token=house.admin).body["id"]
    for spelling in ("root", "ROOT", "Ｒoot"):
        answer = house.approve(id, house.make_token(spelling, "approver:decide"))
        assert (answer.status, answer.code) == (403, "own_request")
    assert house.deny(id, house.admin).status == 403
    assert house.get(id, house.admin)["status"] == "pending"
    assert house.events(id)[-1] == "decision_refused"


def test_who_asks_and_who_decides_is_what_the_tokens_say(house: House) -> None:
    id = house.submit(WORK | {"requester": "alice"}).body["id"]
    found = house.get(id)
    assert (found["requester"], found["claimed_requester"]) == ("agent-1", "alice")
    house.approve(id, body={"reason": "decided by carol"})
    assert house.get(id)["decision"]["by"] == "alice", "the token's subject"
    actors = [(entry["event"], entry["actor"]) for entry in house.audit() if entry["request"] == id]
    assert actors == [("submitted", "agent-1"), ("approved", "alice")]


def test_a_token_is_kept_as_a_hash_only(house: House) -> None:
    house.stop()
    data = b"".join(file.read_bytes() for file in house.database.parent.iterdir())
    for token in (house.agent, house.approver, house.admin):
        assert len(token) >= 43, "256 bits"
        assert token.encode() not in data
    house.start()


def test_a_revoked_token_is_unknown(house: House) -> None:
    from warmstart.confirm.tokens.access import list_tokens, revoke_token

    mine = next(record for record in list_tokens(house.desk.store) if record.subject == "agent-1")
    house.desk.change(lambda tx: revoke_token(tx, mine.id, by="test")).result()
    assert house.submit().status == 401


# The whitelist beats high risk


def allow(house: House, **entry: object) -> None:
    body = {"action": "send_mail", "session_key": "s-1"} | entry
    answer = house.call("POST", "/whitelist", body, house.admin)
    assert answer.status == 201, answer


def test_a_whitelisted_action_needs_no_person_and_is_recorded(house: House) -> None:
    allow(house)
    answer = house.submit(WORK | {"session_key": "s-1"})
    assert (answer.status, answer.body["status"]) == (200, "auto_approved")
    assert house.events(answer.body["id"]) == ["submitted", "auto_approved"]
    found = house.get(answer.body["id"])
    assert found["decision"]["by"] == "whitelist"
    done = house.execute(answer.body["id"], {"token": found["execution"]["token"], **pick(WORK)})
    assert done.status == 200


def pick(body: dict[str, object]) -> dict[str, object]:
    return {"action": body["action"], "details": body["details"]}


def test_high_risk_cannot_be_whitelisted(house: House) -> None:
    for action in (*HIGH_RISK, "Deploy_Production", "DELETE DATA", "wipeDatabase", "rotate-keys"):
        answer = house.call("POST", "/whitelist", {"action": action, "session_key": "s-1"}, house.admin)
        assert (answer.status, answer.code) == (409, "high_risk")


def test_high_risk_asks_although_it_stands_in_the_whitelist(house: House) -> None:
    """An entry older than the high-risk rule, or written into the table by hand."""
    allow(house)
    house.restart(policy=parse_policy('high_risk = ["send_*"]'), rate_limit=None)
    answer = house.submit(WORK | {"session_key": "s-1"})
    assert (answer.status, answer.body["status"], answer.body["high_risk"]) == (202, "pending", True)


def test_a_whitelist_entry_holds_for_nothing_else(house: House) -> None:
    allow(house, details=WORK["details"])
    assert house.submit(WORK | {"session_key": "s-1"}).status == 200
    for other in (
        {"session_key": "s-2"},
        {"session_key": ""},
        {"action": "send_mails"},
        {"details": {"to": 4}},
        {"action": "sendmail"},
    ):
        assert house.submit(WORK | {"session_key": "s-1"} | other).status == 202


@on_both_databases
def test_a_whitelist_entry_ends(house: House) -> None:
    allow(house, seconds=60, requester="agent-1")
    assert house.submit(WORK | {"session_key": "s-1"}).status == 200
    assert house.submit(WORK | {"session_key": "s-1"}, house.other_agent).status == 202, "for another requester"
    (entry,) = house.call("GET", "/whitelist", token=house.admin).body["entries"]
    assert entry["created_by"] == "root"
    house.clock.ahead += 61
    assert house.submit(WORK | {"session_key": "s-1"}).status == 202
    allow(house)
    (entry,) = house.call("GET", "/whitelist", token=house.admin).body["entries"]
    assert house.call("DELETE", f"/whitelist/{entry['id']}", token=house.admin).status == 204
    assert house.submit(WORK | {"session_key": "s-1"}).status == 202
    assert house.call("DELETE", f"/whitelist/{entry['id']}", token=house.admin).status == 404


def test_deny_comes_before_everything(open_house) -> None:
    policy = parse_policy(
        """
        [[rule]]
        action = "send_*"
        decision = "deny"
        [[rule]]
        action = "send_mail"
        decision = "allow"
        """
    )
    house = open_house(policy=policy)
    allow(house)
    answer = house.submit(WORK | {"session_key": "s-1"})
    assert (answer.status, answer.code) == (403, "denied_by_policy")
    assert house.events()[-1] == "denied_by_policy"


# Approve after expiry, double decisions


@on_both_databases
def test_a_decision_after_the_deadline_is_too_late(house: House) -> None:
    id = house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    house.clock.ahead += 30
    answer = house.approve(id)
    assert (answer.status, answer.code) == (410, "expired")
    assert answer.body["decision"]["status"] == "expired"
    assert house.deny(id).status == 410
    assert house.get(id)["execution"] is None
    assert house.events(id) == ["submitted", "expired"]


@on_both_databases
def test_the_first_decision_stands(house: House) -> None:
    id = house.submit().body["id"]
    assert house.deny(id, body={"reason": "not today"}).status == 200
    answer = house.approve(id, house.second)
    assert (answer.status, answer.code) == (409, "already_decided")
    assert (answer.body["decision"]["by"], answer.body["decision"]["reason"]) == ("alice", "not today")
    assert house.get(id)["status"] == "denied"


@on_both_databases
def test_what_nobody_looks_at_expires_too(house: House) -> None:
    id = house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    house.clock.ahead += 30
    deadline = time.monotonic() + 5
    while house.events(id) != ["submitted", "expired"] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert house.events(id) == ["submitted", "expired"]


@on_both_databases
def test_a_quorum_is_of_different_people(open_house) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "delete_data"\nquorum = 2'))
    id = house.submit(RISK).body["id"]
    first = house.approve(id)
    assert (first.status, first.body["status"], len(first.body["approvals"])) == (200, "pending", 1)
    again = house.approve(id, house.make_token("Alice", "approver:decide"))
    assert (again.status, again.code) == (409, "already_voted")
    assert house.get(id)["execution"] is None
    assert house.approve(id, house.second).body["status"] == "approved"
    assert house.events(id) == ["submitted", "vote", "approved"]


def test_one_no_ends_it_whatever_the_quorum(open_house) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "*"\nquorum = 3'))
    id = house.submit().body["id"]
    house.approve(id)
    assert house.deny(id, house.second).body["status"] == "denied"


# Approved is not what runs


@pytest.fixture
def approved(house: House) -> tuple[House, str, str]:
    id = house.submit(RISK).body["id"]
    assert house.approve(id).status == 200
    return house, id, house.get(id)["execution"]["token"]


@on_both_databases
def test_only_what_was_approved_runs_and_only_once(approved: tuple[House, str, str]) -> None:
    house, id, token = approved
    others = [{"table": "orders_2025"}, {"table": "orders_2024", "force": True}, {}, {"table": ["orders_2024"]}]
    for details in others:
        answer = house.execute(id, {"token": token, "action": "delete_data", "details": details})
        assert (answer.status, answer.code) == (409, "changed")
    assert house.execute(id, {"token": token, "action": "delete_datas", "details": RISK["details"]}).status == 409
    assert house.execute(id, {"token": token, **pick(RISK)}).status == 200
    again = house.execute(id, {"token": token, **pick(RISK)})
    assert (again.status, again.code) == (409, "already_executed")
    assert house.get(id)["execution"] is None
    assert house.events(id) == ["submitted", "approved", *["execution_refused"] * 5, "executed", "execution_refused"]


@on_both_databases
def test_the_execution_token_is_for_the_one_who_asked(approved: tuple[House, str, str]) -> None:
    house, id, token = approved
    assert house.get(id, house.approver)["execution"] is None
    assert house.get(id, house.admin)["execution"] is None
    assert house.execute(id, {"token": "0" * 64, **pick(RISK)}).code == "bad_token"
    assert house.execute(id, {"token": token, **pick(RISK)}, house.other_agent).status == 404
    sibling = house.make_token("agent-1", "agent:submit")
    assert house.get(id, sibling)["execution"] is None, "another token of the same subject"
    assert house.execute(id, {"token": token, **pick(RISK)}, sibling).code == "bad_token"


def test_an_approval_that_is_not_taken_up_ends(approved: tuple[House, str, str]) -> None:
    house, id, token = approved
    house.clock.ahead += 600
    assert house.get(id)["execution"] is None
    answer = house.execute(id, {"token": token, **pick(RISK)})
    assert (answer.status, answer.code) == (410, "expired")


def test_what_was_not_approved_does_not_run(house: House) -> None:
    for ending, status in (("none", 409), ("deny", 409), ("expire", 410)):
        id = house.submit(RISK).body["id"]
        token = house.desk.execution_token(id)  # as if it had been guessed
        if ending == "deny":
            house.deny(id)
        elif ending == "expire":
            house.clock.ahead += 301
        assert house.execute(id, {"token": token, **pick(RISK)}).status == status
        assert "executed" not in house.events(id)


def test_a_decision_can_name_what_was_shown(house: House) -> None:
    found = house.submit().body
    answer = house.approve(found["id"], body={"digest": "0" * 64})
    assert (answer.status, answer.code) == (409, "changed")
    assert house.approve(found["id"], body={"digest": found["digest"]}).status == 200


def test_an_approval_does_not_outlive_a_stricter_policy(house: House) -> None:
    id = house.submit(WORK).body["id"]
    house.approve(id)
    token = house.get(id)["execution"]["token"]
    house.restart(policy=parse_policy('[[rule]]\naction = "send_mail"\ndecision = "deny"'), rate_limit=None)
    assert house.execute(id, {"token": token, **pick(WORK)}).code == "denied_by_policy"


# Audit rows overwritten


def test_the_audit_only_grows(house: House) -> None:
    house.submit()
    columns = "at, event, request, action, actor, credential, details, previous, hash"
    db = apsw.Connection(str(house.database))
    db.set_busy_timeout(5_000)
    try:
        for statement in (
            "UPDATE audit SET actor = 'nobody' WHERE sequence = 3",
            "DELETE FROM audit WHERE sequence = 3",
            "DELETE FROM audit",
            f"INSERT OR REPLACE INTO audit SELECT sequence, {columns} FROM audit WHERE sequence = 3",
            "REPLACE INTO audit SELECT * FROM audit WHERE sequence = 1",
            f"INSERT INTO audit SELECT sequence + 100, {columns} FROM audit WHERE sequence = 3",
            f"INSERT INTO audit SELECT max(sequence) + 1, {columns} FROM audit",
        ):
            with pytest.raises(apsw.ConstraintError, match="append-only"):
                db.execute(statement)
    finally:
        db.close()


# Auto-approvals, expiries, rate limits, failed logins unlogged


@on_both_databases
def test_every_transition_has_its_entry(open_house) -> None:
    house = open_house(rate_limit=2)
    allow(house)
    ids = [house.submit(WORK | {"session_key": session}).body["id"] for session in ("s-1", "s-2")]
    assert house.submit().status == 429
    house.call("GET", "/confirm", token="wsc_wrong")
    house.call("GET", "/audit", token=house.agent)
    assert send(house.page, "POST", "/login", {"code": "wrong"}).status == 401
    person = house.log_in()
    person.call("POST", "/logout")
    house.clock.ahead += 301
    house.get(ids[1])
    events = house.events()
    for event in (
        "token_created whitelisted submitted auto_approved rate_limited auth_failed access_refused login_failed "
        "login_link_created login logout expired"
    ).split():
        assert event in events, event
    entry = next(entry for entry in house.audit() if entry["event"] == "access_refused")
    assert (entry["actor"], entry["details"]["path"]) == ("agent-1", "/audit")


def test_a_flood_of_failures_does_not_fill_the_disk(house: House) -> None:
    for _ in range(60):
        house.call("GET", "/confirm", token="wsc_wrong")
    house.clock.ahead += 60
    house.call("GET", "/confirm", token="wsc_wrong")
    events = house.events()
    assert 30 <= events.count("auth_failed") <= 61
    assert "more_failures" in events or events.count("auth_failed") > 60  # the minute may have turned meanwhile


def found_in(house: House, event: str, actor: str) -> list[dict[str, str]]:
    return [entry["details"] for entry in house.audit() if (entry["event"], entry["actor"]) == (event, actor)]


def test_a_flood_hides_nobodys_try_to_approve(house: House) -> None:
    """After junk tokens and junk logins, the agent's own attempt is still recorded under its name."""
    path = f"/confirm/{house.submit().body['id']}/approve"
    for _ in range(40):
        house.call("GET", "/confirm", token="wsc_junk")
        send(house.page, "POST", "/login", {"code": "junk"})
        assert house.call("GET", "/audit", token=house.other_agent).status == 403, "another agent's"
        assert house.call("GET", "/audit", token=house.agent).status == 403, "and its own, at another route"
    assert house.call("POST", path, token=house.agent).status == 403
    assert {"why": "forbidden", "path": path} in found_in(house, "access_refused", "agent-1")


def test_what_is_only_counted_says_of_whom_and_where(house: House) -> None:
    path = f"/confirm/{house.submit().body['id']}/approve"
    house.clock.ahead += 60 - house.clock() % 60  # the beginning of a minute
    for _ in range(35):
        house.call("POST", path, token=house.agent)
        house.call("GET", "/confirm", token="wsc_junk")
        send(house.page, "POST", "/login", {"code": "junk"})
    house.clock.ahead += 60
    house.call("GET", "/confirm", token="wsc_junk")
    route = "POST /confirm/{id}/approve"
    assert {"what": "access_refused", "route": route, "count": 5} in found_in(house, "more_failures", "agent-1")
    nobody = found_in(house, "more_failures", "nobody")
    assert [(more["what"], more["count"]) for more in nobody] == [("auth_failed", 5), ("login_failed", 5)]
    assert len(found_in(house, "access_refused", "agent-1")) == 30


def test_counts_of_failures_stay_few(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of separate counts is bounded."""
    monkeypatch.setattr(failures, "_MOST_KINDS", 10)
    log = failures.FailureLog(house.desk, lambda: 0)
    for n in range(100):
        log.note("access_refused", Identity(f"p-{n}", f"p-{n}", frozenset(), f"c-{n}"), "GET /audit")
    assert len(log._counts) == 11
    log.close()
    house.desk.log("end", "test").result()
    assert house.events().count("access_refused") == 40, "ten with a count of their own, thirty of the rest"
    assert [more["count"] for more in found_in(house, "more_failures", "daemon")] == [60]


# The rate limiter in memory


@on_both_databases
def test_the_rate_limit_counts_over_restarts_and_slides(open_house) -> None:
    house = open_house(rate_limit=3)
    for _ in range(3):
        assert house.submit().status == 202
        house.clock.ahead += 600
    house.restart()
    answer = house.submit()
    assert (answer.status, answer.code) == (429, "rate_limited")
    facts = answer.body
    assert (facts["remaining"], facts["window_seconds"], facts["limit"]) == (0, 3600, 3)
    assert 1700 < facts["retry_after_seconds"] <= 1800
    assert answer.headers["retry-after"] == str(facts["retry_after_seconds"])
    assert house.submit(WORK | {"action": "Send-Mail"}).status == 429, "another spelling is the same action"
    assert house.submit(WORK | {"action": "read_mail"}).status == 202, "another action has its own"
    house.clock.ahead += facts["retry_after_seconds"]
    assert house.submit().status == 202


# 8-12 hex ids


def test_ids_are_128_random_bits_and_allow_nothing(house: House) -> None:
    ids = {house.submit().body["id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(re.fullmatch("[0-9a-f]{32}", id) for id in ids)
    id = ids.pop()
    assert house.call("GET", f"/confirm/{id}").status == 401
    assert house.call("GET", f"/confirm/{id}", token=house.other_agent).status == 404
    assert house.call("GET", f"/confirm/{id}", token=house.auditor).status == 403


# Links that decide by GET


def test_a_link_that_is_opened_decides_nothing(house: House) -> None:
    receipt, person = house.submit().body, house.log_in()
    for url in (receipt["approve_url"], receipt["deny_url"]):
        path = url.removeprefix(house.api)
        for method in ("GET", "HEAD", "OPTIONS"):
            assert house.call(method, path, token=house.approver).status in (204, 405)
            assert person.call(method, path).status in (204, 405), "on the page, logged in"
    assert house.get(receipt["id"])["status"] == "pending"


# Hidden notification failure, agent text in chat channels: test_notify.py. DNS rebinding, CSRF, port 6000: test_browser.py


# Retries


@on_both_databases
def test_the_same_key_gets_the_same_answer(house: House) -> None:
    header = {"Idempotency-Key": "k-1"}
    first = house.submit(headers=header)
    again = house.submit(dict(reversed(WORK.items())), headers=header)
    assert (again.status, again.body) == (first.status, first.body)
    house.approve(first.body["id"])
    assert house.submit(headers=header).body == first.body
    house.restart(port=int(house.api.rsplit(":", 1)[1]), ui_port=int(house.page.rsplit(":", 1)[1]))
    assert house.submit(headers=header).body == first.body
    assert house.events().count("submitted") == 1


def test_the_same_key_with_another_body_is_refused(house: House) -> None:
    header = {"Idempotency-Key": "k-1"}
    house.submit(headers=header)
    for other in ({"details": {"to": 4}}, {"description": "else"}, {"timeout_seconds": 60}, {"session_key": "x"}):
        answer = house.submit(WORK | other, headers=header)
        assert (answer.status, answer.code) == (422, "idempotency")
    assert house.submit(WORK, house.other_agent, headers=header).status == 202, "keys belong to a token"


def test_a_key_is_plain(house: House) -> None:
    for wrong in ("", "two words", "x" * 201, "caf\xe9"):
        assert house.submit(headers={"Idempotency-Key": wrong}).status == 400, wrong


@on_both_databases
def test_the_same_key_at_the_same_moment_makes_one_request(house: House) -> None:
    header = {"Idempotency-Key": "k-2"}
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(house.submit(headers=header).body["id"])) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1


# What the table says must be what the audit says


def test_a_daemon_does_not_start_on_an_audit_that_was_cut(house: House) -> None:
    house.submit()
    house.stop()
    saved = house.database.read_bytes()
    db = apsw.Connection(str(house.database))
    db.execute("DROP TRIGGER audit_is_never_shortened; DELETE FROM audit WHERE sequence > 4").fetchall()
    db.close()
    with pytest.raises(StoreError, match="cut or changed"):
        house.start()
    house.database.write_bytes(saved)
    house.start()


def test_answers_hold_what_the_issue_promises(house: House) -> None:
    receipt = house.submit().body
    assert {"id", "action", "status", "timeout_seconds", "message", "approve_url", "deny_url"} <= receipt.keys()
    assert (receipt["status"], receipt["timeout_seconds"]) == ("pending", 300)
    assert house.submit({"action": "x"}).status == 400
    assert house.submit({"description": "x"}).status == 400
    for wrong in ("60", 60.5, True):
        assert house.submit(WORK | {"timeout_seconds": wrong}).status == 400, wrong
    for right in (30, 3600, None):
        assert house.submit(WORK | {"timeout_seconds": right}).status == 202
    assert house.call("GET", "/confirm?status=pending", token=house.approver).body["requests"]
    assert house.call("GET", "/health").body["status"] == "ok"
    assert json.dumps(house.call("GET", "/openapi.json").body["paths"]).count("/confirm/{id}") >= 4
