"""The words that the original daemon's clients use, and taking a request back."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from confirm.commands import run, run_json
from confirm.houses import on_both_databases
from confirm.serving import WORK, House
from warmstart.confirm.client.ask import Daemon, submit
from warmstart.confirm.errors import Denied
from warmstart.doors.web.settings import make_settings


def test_a_claimed_decider_is_recorded_and_not_believed(house: House) -> None:
    one, two = house.submit().body["id"], house.submit().body["id"]
    assert house.approve(one, body={"approver": "the boss", "reason": "fine"}).status == 200
    assert house.deny(two, body={"denier": "somebody"}).status == 200
    entries = {entry["event"]: entry for entry in house.audit() if entry["event"] in ("approved", "denied")}
    assert (entries["approved"]["actor"], entries["approved"]["details"]["claimed"]) == ("alice", "the boss")
    assert (entries["denied"]["actor"], entries["denied"]["details"]["claimed"]) == ("alice", "somebody")
    assert house.get(one)["resolved_by"] == "alice"


def test_the_old_names_are_there(house: House) -> None:
    id = house.submit().body["id"]
    waiting = house.get(id)
    assert (waiting["resolved_by"], waiting["resolved_at"]) == (None, None)
    assert waiting["created_at_iso"] == waiting["created"]
    assert abs(waiting["created_at"] - datetime.fromisoformat(waiting["created"]).timestamp()) < 0.001
    house.deny(id)
    decided = house.get(id)
    assert abs(decided["resolved_at"] - datetime.fromisoformat(decided["decision"]["at"]).timestamp()) < 0.001
    house.submit()
    listing = house.call("GET", "/confirm", token=house.approver).body
    assert listing["count"] == len(listing["requests"]) == 2
    assert house.call("GET", "/confirm?status=denied", token=house.approver).body["count"] == 1


def test_a_timeout_out_of_range_is_set_to_the_nearest_and_said(house: House) -> None:
    for wanted, given in ((5, 30), (0, 30), (-1, 30), (4_000, 3_600), (10**30, 3_600)):
        receipt = house.submit(WORK | {"timeout_seconds": wanted}).body
        assert receipt["timeout_seconds"] == given
        assert f"it waits {given} seconds, not " in receipt["message"]
    assert "it waits" not in house.submit(WORK | {"timeout_seconds": 60}).body["message"]


def test_the_database_has_a_default_and_an_old_option(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "home"))
    assert make_settings({}).database == tmp_path / "home" / "confirm.db"
    assert run_json("verify", "--db-path", str(house.database))["ok"]


# Withdraw


@pytest.mark.slow
@on_both_databases
def test_the_requester_takes_a_request_back(house: House) -> None:
    id = house.submit().body["id"]
    for token, status in ((house.other_agent, 404), (house.approver, 403), (house.auditor, 403), (None, 401)):
        assert house.call("DELETE", f"/confirm/{id}", token=token).status == status
    gone = house.call("DELETE", f"/confirm/{id}", token=house.agent)
    assert (gone.status, gone.body["status"]) == (200, "withdrawn")
    assert gone.body["decision"]["by"] == "agent-1"
    late = house.approve(id)
    assert (late.status, late.code, late.body["decision"]["status"]) == (409, "already_decided", "withdrawn")
    assert house.call("DELETE", f"/confirm/{id}", token=house.agent).status == 409
    assert house.events(id) == ["submitted", "withdrawn"]
    assert house.call("GET", "/confirm?status=withdrawn", token=house.approver).body["count"] == 1


def test_what_is_decided_or_expired_stays(house: House) -> None:
    decided, expired = house.submit().body["id"], house.submit(WORK | {"timeout_seconds": 30}).body["id"]
    house.approve(decided)
    assert house.call("DELETE", f"/confirm/{decided}", token=house.agent).status == 409
    assert house.get(decided)["execution"], "a withdrawal does not undo a decision"
    house.clock.ahead += 31
    assert house.call("DELETE", f"/confirm/{expired}", token=house.agent).status == 410


def test_a_waiting_client_learns_that_it_was_withdrawn(house: House) -> None:
    ticket = submit("send_mail", "Tell them", {"to": 3}, daemon=Daemon(house.api, house.agent))
    house.call("DELETE", f"/confirm/{ticket.id}", token=house.agent)
    with pytest.raises(Denied, match="withdrawn by agent-1"):
        ticket.wait()


def test_the_link_is_printed_with_a_code(house: House) -> None:
    house.stop()
    plain = run("login", "--db", str(house.database), "--url", "https://box.example", "--unchecked")
    assert plain.stdout.strip().startswith("https://box.example/login#") and "█" not in plain.output
    drawn = run("login", "--db", str(house.database), "--url", "https://box.example", "--unchecked", "--qr")
    assert "█" in drawn.output
    assert (
        "--public-url"
        in run("login", "--db", str(house.database), "--url", "http://127.0.0.1:1", "--unchecked", "--qr").output
    )
