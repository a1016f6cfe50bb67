"""Red team: the agent's own token floods the daemon. People can still see and decide, and the flood is cut off."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from confirm.houses import on_both_databases
from confirm.redteam import FLOOD, attack
from confirm.serving import WORK, House, send, wait_until
from warmstart.confirm.errors import BadRequest
from warmstart.confirm.masking.outside import OutsideMasker
from warmstart.confirm.masking.submission import Submission
from warmstart.confirm.model import NewRequest
from warmstart.confirm.notify.digest import SINGLE
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.notifier import Notifier
from warmstart.confirm.notify.sending import Channel
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens.identity import split_token
from warmstart.doors.cli.main import main

LIMITS = {"pending_limit": None, "cool_down": None}  # the policy's own
LARGE = {"action": "a", "description": "d", "details": {"text": "x" * 200_000}}


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["confirm", *words])


@pytest.fixture
def limited(open_house: Callable[..., House]) -> House:
    """A daemon with the limits of a user who wrote no policy."""
    return open_house(rate_limit=None, **LIMITS)


def number(body: dict[str, Any], n: int) -> dict[str, Any]:
    return body | {"action": f"action_{n}"}


def test_redteam_large_requests_are_cut_off_and_lists_stay_small(open_house: Callable[..., House]) -> None:
    """400 x 200 KB once made lists of 80 MB. The action's name, which the agent chooses, is of no use."""
    policy = parse_policy("[defaults]\npending_bytes = 1_700_000")
    limited = open_house(policy=policy, rate_limit=None, **LIMITS)
    answers = [limited.submit(number(LARGE, n)) for n in range(12)]
    accepted = [answer for answer in answers if answer.status == 202]
    refused = [answer for answer in answers if answer.status == 429]
    assert len(accepted) == 8
    assert {answer.code for answer in refused} == {"too_much_waiting"} and len(refused) == 4
    assert refused[0].body["retry_after_seconds"] > 0
    assert limited.submit(WORK, limited.other_agent).status == 202, "another token is not held up"
    person = limited.log_in()
    listing = person.call("GET", "/confirm?status=pending&limit=200").body
    assert len(listing["requests"]) == listing["waiting"] == 9
    assert all(one["details"] is None and one["details_omitted"] for one in listing["requests"])
    assert len(json.dumps(listing)) < 20_000
    whole = person.call("GET", f"/confirm/{accepted[0].body['id']}").body
    assert len(whole["details"]["text"]) == 200_000 and not whole["details_omitted"]
    events = [entry for entry in limited.audit() if entry["event"] == "rate_limited"]
    assert len(events) == 4 and events[0]["details"]["why"] == "too_much_waiting"
    assert limited.approve(accepted[0].body["id"]).status == 200


def test_redteam_a_flood_of_refusals_does_not_fill_the_audit(open_house: Callable[..., House]) -> None:
    house = open_house(rate_limit=1, cool_down=None)
    assert house.submit().status == 202
    began = time.monotonic()
    assert {house.submit(WORK | {"details": n}).status for n in range(32)} == {429}
    assert house.events().count("rate_limited") == 30, "the first of each minute one by one, the rest as a count"
    assert time.monotonic() - began > 2, "who floods waits"


@on_both_databases
def test_redteam_the_limits_count_all_actions_of_a_token(open_house: Callable[..., House]) -> None:
    policy = parse_policy("[defaults]\nrate_limit = 50\npending_limit = 5\nsubmit_limit = 8\ncool_down_seconds = 60\n")
    house = open_house(policy=policy, rate_limit=None, **LIMITS)
    ids = [house.submit(number(WORK, n)).body["id"] for n in range(5)]
    assert house.submit(number(WORK, 9)).code == "too_many_waiting"
    key = {"Idempotency-Key": "k"}
    for id in ids:
        house.approve(id)
    first = house.submit(number(WORK, 6), headers=key)
    assert first.status == 202
    assert [house.submit(number(WORK, n)).status for n in (7, 8)] == [202, 202]
    assert house.submit(number(WORK, 9)).code == "rate_limited", "8 an hour"
    assert house.submit(number(WORK, 6), headers=key).body == first.body, "a repeated answer is none of them"
    house.restart()
    assert house.submit(number(WORK, 9)).status == 429, "counted in the table"
    house.clock.ahead += 3_700
    assert house.submit(number(WORK, 9)).status == 202


def test_redteam_who_was_denied_pauses(limited: House) -> None:
    denied = limited.submit().body["id"]
    limited.deny(denied)
    again = limited.submit()
    assert (again.status, again.code) == (429, "cool_down"), "exactly the same at once"
    for n in range(2):
        limited.deny(limited.submit(number(WORK, n)).body["id"])
    other = limited.submit(number(WORK, 5))
    assert (other.status, other.code) == (429, "cool_down"), "three denials: whatever it asks next"
    assert limited.submit(WORK, limited.other_agent).status == 202
    limited.clock.ahead += 70
    assert limited.submit(number(WORK, 6)).status == 202


def put_many(house: House, count: int) -> Any:
    """Submit requests without HTTP. Return the first one, for the action `danger`."""
    who = house.desk.find_identity(house.agent)
    assert who
    actions = ["danger", *(f"noise_{n}" for n in range(1, count))]
    futures = [
        house.desk.submit(who, NewRequest(action, action, "d", "{}", 0, f"{n:064}", "", "", 3600))
        for n, action in enumerate(actions)
    ]
    first, *_ = [future.result() for future in futures]
    return first


@on_both_databases
def test_redteam_all_from_one_agent_are_denied_at_once(open_house: Callable[..., House]) -> None:
    house = open_house()
    put_many(house, 230)
    kept = house.submit(WORK, house.other_agent).body["id"]
    person = house.log_in()
    done = person.call("POST", "/deny-all", {"requester": "agent-1", "reason": "stop"})
    assert (done.status, done.body) == (200, {"requester": "agent-1", "denied": 230, "refused": 0})
    assert [
        one["id"] for one in house.call("GET", "/confirm?status=pending", token=house.approver).body["requests"]
    ] == [kept]
    assert house.events().count("denied") == 230
    assert house.call("POST", "/deny-all", {"requester": "agent-2"}, house.agent).status == 403, "agents cannot"
    assert house.call("POST", "/deny-all", {"requester": ""}, house.approver).status == 400


def test_redteam_nobody_is_hidden_behind_a_thousand(
    open_house: Callable[..., House], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 1,001st request was invisible, on the page and in the terminal."""
    house = open_house()
    first = put_many(house, 1_050)
    listed, before = [], None
    while True:
        more = f"&before={before}" if before else ""
        page = house.call("GET", f"/confirm?status=pending&limit=200{more}", token=house.approver).body
        assert page["waiting"] == 1_050
        listed += [one["id"] for one in page["requests"]]
        before = page["next"]
        if before is None:
            break
    assert len(set(listed)) == 1_050 and listed[-1] == first.id
    filtered = house.call("GET", "/confirm?requester=agent-1&action=danger", token=house.approver).body["requests"]
    assert [one["id"] for one in filtered] == [first.id]
    assert house.call("GET", "/confirm?requester=agent-2", token=house.approver).body["requests"] == []
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", house.api)
    monkeypatch.setenv("WARMSTART_CONFIRM_TOKEN", house.approver)
    done = run("list", "--status", "pending", "--all", "--json")
    assert len(json.loads(done.stdout)["requests"]) == 1_050
    assert "There are more: --before" in run("list", "--limit", "5").stderr
    assert json.loads(run("show", first.id[:12], "--json").stdout)["id"] == first.id
    assert "denied 1,050 requests" in run("deny", "--all-from", "agent-1").stdout


def test_redteam_the_terminal_desk_shows_many_large_requests(limited: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eleven requests of 200 KB broke it."""
    ids = [limited.submit(number(LARGE, n)).body["id"] for n in range(12)]
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", limited.api)
    monkeypatch.setenv("WARMSTART_CONFIRM_TOKEN", limited.approver)
    assert run("list").exit_code == 0
    done = run("approve", ids[0][:12], "--yes")
    assert done.exit_code == 0 and "approved" in done.stdout


def test_redteam_a_body_full_of_secrets_does_not_stop_the_daemon(limited: House) -> None:
    """380 tokens in one body once stopped the event loop for eleven seconds."""
    body = {"action": "a", "description": "d", "details": [secrets.token_urlsafe(30) for _ in range(380)]}
    with attack(FLOOD, limited.api, split_token(limited.agent).secret, json.dumps(body)) as flood:
        times = []
        for _ in range(20):
            began = time.monotonic()
            assert send(limited.page, "GET", "/health").status == 200
            times.append(time.monotonic() - began)
        assert sorted(times)[15] < 2.0, times
        flood.stop()


def test_redteam_masking_has_a_time_limit() -> None:
    masker = OutsideMasker({}, "ab" * 32, budget=0.3)
    dense = Submission("d", [secrets.token_urlsafe(30) for _ in range(5_000)], "", "")
    try:
        with pytest.raises(BadRequest, match=r"searched for secrets within 0\.3 seconds"):
            masker.mask(dense)
        masker._budget = 30.0
        token = f"ghp_{secrets.token_hex(18)}"
        masked = masker.mask(Submission(f"with {token}", {"token": token}, "", ""))
        assert token not in str(masked) and masked.masked == 1, "a fresh process does the next"
        assert [name for name, _ in masked.fingerprints] == ["github#1"]
    finally:
        masker.close()


def test_redteam_many_requests_make_few_messages(limited: House) -> None:
    sent: list[Notification] = []
    desk = limited.desk
    desk.channels = ("test#1",)
    notifier = Notifier(desk, [Channel("test#1", "test", 1_000, sent.append)], make_link)
    try:
        for n in range(60):
            assert limited.submit(number(WORK, n)).status == 202
        wait_until(lambda: any(notice.state == "sent" for notice in desk.notices(first_id(limited))))
        assert 1 <= len(sent) <= SINGLE
        limited.clock.ahead += 61
        notifier._woken.set()
        wait_until(lambda: len(sent) > SINGLE or sum("approvals needed" in one.title for one in sent) > 0)
        digest = next(one for one in sent if "approvals needed" in one.title)
        assert "asked by agent" in digest.body and digest.body.endswith("Decide at http://p/#/")
        assert len(sent) <= SINGLE + 1
    finally:
        notifier.stop()


def make_link(id: str) -> str:
    return f"http://p/#/request/{id}"


def first_id(house: House) -> str:
    (oldest,) = house.desk.store.rows("waiting_of", {"subject_key": "agent-1", "now": house.desk.now(), "limit": 1})
    return str(oldest[0])
