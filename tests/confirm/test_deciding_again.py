"""A stricter policy or a revoked token also applies to requests that are already waiting or approved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from confirm.houses import on_both_databases
from confirm.serving import RISK, WORK, House, Person
from warmstart.confirm.policy.policy import Policy, parse_policy
from warmstart.confirm.tokens import access

pytestmark = pytest.mark.slow

DEED = {"action": RISK["action"], "details": RISK["details"]}


def rule(**more: Any) -> Policy:
    said = "\n".join(f"{name} = {value!r}".replace("'", '"') for name, value in more.items())
    return parse_policy(f'[[rule]]\naction = "delete_data"\n{said}')


@pytest.fixture
def house(open_house: Callable[..., House]) -> House:
    """A request that needs two approvals."""
    house = open_house(policy=rule(quorum=2))
    house.third = house.make_token("carla", "approver:decide")
    return house


def submit(house: House) -> str:
    return house.submit(RISK).body["id"]


def execute(house: House, id: str) -> Any:
    return house.execute(id, DEED | {"token": house.desk.execution_token(id)})


def revoke(house: House, subject: str) -> None:
    (id,) = [one.id for one in access.list_tokens(house.desk.store) if one.subject == subject and not one.revoked]
    house.desk.change(lambda tx: access.revoke_token(tx, id, by="test")).result()


def names(votes: list[dict[str, str]]) -> list[str]:
    return [vote["by"] for vote in votes]


def test_a_vote_of_who_may_no_longer_decide_does_not_count(house: House) -> None:
    id = submit(house)
    assert house.approve(id, house.second).body["missing"] == 1
    house.restart(policy=rule(quorum=2, deciders=["alice", "carla"]))
    found = house.approve(id).body
    assert (found["status"], names(found["approvals"]), names(found["lapsed"])) == ("pending", ["alice"], ["bob"])
    assert found["missing"] == 1
    assert house.approve(id, house.third).body["status"] == "approved"
    assert execute(house, id).status == 200


def test_a_vote_given_with_a_token_that_was_revoked_does_not_count(house: House) -> None:
    id = submit(house)
    house.approve(id)
    revoke(house, "alice")
    found = house.approve(id, house.second).body
    assert (found["status"], names(found["approvals"]), names(found["lapsed"])) == ("pending", ["bob"], ["alice"])
    again = house.approve(id, house.second)
    assert (again.status, again.code) == (409, "already_voted")
    assert house.approve(id, house.make_token("Alice", "approver:decide")).body["status"] == "approved", (
        "a new one does"
    )
    assert house.events(id) == ["submitted", "vote", "vote", "approved"]
    assert execute(house, id).status == 200


def test_a_vote_outlives_a_token_that_ran_out(house: House) -> None:
    """The vote was not revoked."""
    short = house.desk.change(
        lambda tx: access.create_token(tx, "dan", ["approver:decide"], by="t", seconds=5)
    ).result()
    id = submit(house)
    house.approve(id, short.secret)
    house.clock.ahead += 6
    assert house.approve(id).body["status"] == "approved"
    assert execute(house, id).status == 200


def vote_on_page(house: House, person: Person, id: str) -> None:
    assert person.call("POST", f"/confirm/{id}/approve", {"typed_action": "delete_data"}).status == 200


def test_a_vote_outlives_a_logout(house: House) -> None:
    id, dora = submit(house), house.log_in("dora")
    vote_on_page(house, dora, id)
    dora.call("POST", "/logout")
    assert house.approve(id).body["status"] == "approved"


@pytest.mark.parametrize("logs_out", [False, True])
def test_a_vote_of_who_was_shut_out_does_not_count(house: House, logs_out: bool) -> None:
    """A thief of the phone may have logged out afterwards."""
    id, dora = submit(house), house.log_in("dora")
    vote_on_page(house, dora, id)
    if logs_out:
        dora.call("POST", "/logout")
    ended = house.desk.change(lambda tx: access.end_sessions(tx, "DORA", by="test")).result()
    assert ended == (0 if logs_out else 1)
    found = house.approve(id).body
    assert (found["status"], names(found["lapsed"])) == ("pending", ["dora"])
    vote_on_page(house, house.log_in("dora"), id)
    assert house.get(id)["status"] == "approved", "a new login does"


@pytest.mark.parametrize(
    "stricter", [{"quorum": 3}, {"quorum": 2, "deciders": ["alice", "carla"]}, {"quorum": 2, "deciders": ["c*"]}]
)
def test_an_approval_that_would_not_stand_today_is_not_taken_up(house: House, stricter: dict[str, Any]) -> None:
    id = submit(house)
    house.approve(id)
    assert house.approve(id, house.second).body["status"] == "approved"
    house.restart(policy=rule(**stricter))
    found = house.get(id)
    assert (found["status"], found["missing"] > 0) == ("approved", True)
    answer = execute(house, id)
    assert (answer.status, answer.code) == (403, "lapsed")
    assert "submit it again" in answer.body["error"]
    last = [entry for entry in house.audit() if entry["request"] == id][-1]
    assert (last["event"], last["details"]["why"]) == ("execution_refused", "lapsed")
    house.restart(policy=rule(quorum=2))
    assert execute(house, id).status == 200


def test_an_approval_does_not_outlive_its_giver(house: House) -> None:
    id = submit(house)
    house.approve(id)
    house.approve(id, house.second)
    revoke(house, "bob")
    assert execute(house, id).code == "lapsed"


@on_both_databases
def test_a_request_says_how_many_are_needed_now(open_house: Callable[..., House]) -> None:
    house = open_house()
    waiting, over = (house.submit().body["id"] for _ in range(2))
    house.approve(over)
    deed = {"action": WORK["action"], "details": WORK["details"], "token": house.desk.execution_token(over)}
    assert house.execute(over, deed).status == 200
    strict = parse_policy('[[rule]]\naction = "send_*"\nquorum = 2\nhigh_risk = true\ndeciders = ["dora", "erin"]')
    house.restart(policy=strict)
    found, done = house.get(waiting), house.get(over)
    assert (found["quorum"], found["high_risk"], found["missing"]) == (2, True, 2)
    assert (done["quorum"], done["high_risk"], names(done["approvals"]), done["missing"]) == (1, False, ["alice"], 0)
    (listed,) = house.call("GET", "/confirm?status=pending", token=house.approver).body["requests"]
    assert (listed["quorum"], listed["high_risk"]) == (2, True)
    dora = house.log_in("dora")
    answer = dora.call("POST", f"/confirm/{waiting}/approve")
    assert (answer.status, answer.code) == (400, "type_the_action"), "as for every high risk"
    assert dora.call("POST", f"/confirm/{waiting}/approve", {"typed_action": "send_mail"}).body["missing"] == 1


@on_both_databases
def test_what_was_allowed_in_advance_is_allowed_when_it_is_taken_up(open_house: Callable[..., House]) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "read_*"\ndecision = "allow"'))
    entry = house.call("POST", "/whitelist", {"action": "send_mail", "session_key": "s"}, house.admin).body
    ids = {
        action: house.submit(WORK | {"action": action, "session_key": "s"}).body["id"]
        for action in ("send_mail", "read_mail")
    }

    def take_up(action: str) -> Any:
        id = ids[action]
        deed = {"action": action, "details": WORK["details"], "token": house.desk.execution_token(id)}
        return house.execute(id, deed)

    assert house.call("DELETE", f"/whitelist/{entry['id']}", token=house.admin).status == 204
    house.restart(policy=Policy())
    assert [take_up(action).code for action in ids] == ["lapsed", "lapsed"]
    house.restart(policy=parse_policy('[[rule]]\naction = "*"\ndecision = "allow"'))
    assert [take_up(action).status for action in ids] == [200, 200]


def test_a_whitelist_entry_that_ran_out_has_allowed_what_it_did(open_house: Callable[..., House]) -> None:
    house = open_house()
    house.call("POST", "/whitelist", {"action": "send_mail", "session_key": "s", "seconds": 60}, house.admin)
    id = house.submit(WORK | {"session_key": "s"}).body["id"]
    house.clock.ahead += 61
    deed = {"action": "send_mail", "details": WORK["details"], "token": house.desk.execution_token(id)}
    assert house.execute(id, deed).status == 200
