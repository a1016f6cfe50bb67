"""The `warmstart confirm` commands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from confirm.commands import run, run_json, start_daemon, stop_daemon
from confirm.houses import on_both_databases
from confirm.serving import RISK, WORK, House, send
from confirm.signing import TOKEN
from confirm.tampering import GUARDS
from warmstart.confirm.notify.messages import Notification
from warmstart.confirm.notify.notifier import Notifier
from warmstart.confirm.notify.sending import Channel, Undelivered
from warmstart.doors.cli.confirm import lay_out
from warmstart.doors.render.terminal import clean


@pytest.fixture
def desk(house: House, monkeypatch: pytest.MonkeyPatch) -> House:
    """A daemon, and a terminal whose owner may decide and read the audit."""
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", house.api)
    monkeypatch.setenv("WARMSTART_CONFIRM_TOKEN", house.make_token("tess", "approver:decide", "audit:read"))
    return house


def test_requests_are_listed_shown_and_decided(desk: House) -> None:
    ids = [desk.submit(body).body["id"] for body in (WORK, RISK, WORK)]
    assert [one["id"] for one in run_json("list")["requests"]] == ids[::-1]
    assert [one["id"] for one in run_json("list", "--action", "Delete-Data")["requests"]] == [ids[1]]
    shown = run("show", ids[1][:10])
    assert "HIGH RISK" in shown.output
    assert '"table": "orders_2024"' in shown.output
    assert run_json("show", ids[1])["id"] == ids[1]
    done = run("approve", ids[1][:10], "--yes", "--reason", "go on")
    assert f"{ids[1][:12]} delete_data: approved" in done.output
    assert run_json("deny", ids[0], "--reason", "no")["status"] == "denied"
    assert desk.get(ids[1])["decision"]["by"] == "tess"
    again = run("deny", ids[1])
    assert again.exit_code == 1
    assert "Error: already approved by tess" in again.output
    listed = run("list", "--status", "pending").output
    assert ids[2][:12] in listed
    assert ids[1][:12] not in listed
    events = run_json("audit", "--limit", "5")["entries"]
    assert [entry["event"] for entry in events][-2:] == ["approved", "denied"]
    assert "approved" in run("audit").output
    assert run_json("audit", "--after", "0", "--limit", "1")["entries"][0]["sequence"] == 1


def test_nothing_is_approved_by_accident(desk: House) -> None:
    id = desk.submit(RISK).body["id"]
    done = run("approve", id)
    assert (done.exit_code, desk.get(id)["status"]) == (1, "pending")
    assert "--yes" in done.output
    for wrong in ("0" * 32, "zz", id[:0] or "no-such"):
        assert run("approve", wrong, "--yes").exit_code != 0
    assert desk.get(id)["status"] == "pending"


FALSE = 'Look at this\n\narguments\n  | {\n  |   "table": "scratch"\n  | }\nid           0123'


@pytest.mark.parametrize("command", ["show", "approve"])
def test_an_agents_lines_do_not_pass_for_ours(desk: House, command: str) -> None:
    facts = {"session_key": "s\narguments", "requester": "me\nstatus       approved"}
    id = desk.submit(RISK | facts | {"description": FALSE}).body["id"]
    done = run(command, id)
    lines = (done.stdout if command == "show" else done.stderr).splitlines()
    names = [line.split("  ")[0] for line in lines if line[:1].isalpha() and not line.startswith("Error")]
    assert names == [
        "id",
        "action",
        "status",
        "requester",
        "session",
        "time left",
        "approvals",
        "description",
        "arguments",
    ]
    real = lines[lines.index("arguments") + 1 :]
    assert real[:3] == ["  | {", '  |   "table": "orders_2024"', "  | }"]
    assert '  |   |   "table": "scratch"' in lines[: lines.index("arguments")]


@given(st.text(max_size=200), st.integers(8, 60))
@settings(max_examples=200, deadline=None)
def test_a_line_is_marked_wherever_it_is_folded(text: str, width: int) -> None:
    """A folded line would begin at the left edge, where our own names stand."""
    first, *more = lay_out("description", clean(text), width)
    assert first == "description" or (first.startswith("description  ") and cell_len(first) <= width)
    assert all(line.startswith("  | ") and cell_len(line) <= width for line in more)
    kept = first.removeprefix("description") + "".join(line.removeprefix("  | ") for line in more)
    assert "".join(kept.split()) == "".join(clean(text).split()), "nothing is left out"


def test_letters_from_right_to_left_are_told_and_written_out(desk: House) -> None:
    id = desk.submit(WORK | {"details": {"command": "mv \u05d0\u05d0 \u0628\u0628"}}).body["id"]
    shown = run("show", id).output
    assert "written from right to left" in shown
    assert '  |   "command": "mv \\u05d0\\u05d0 \\u0628\\u0628"' in shown
    assert "right to left" not in run("list").output
    desk.submit(WORK | {"description": "\u05d0 moves"})
    assert "right to left" in run("list").stderr
    assert "right to left" not in run("show", desk.submit(WORK).body["id"]).output


def test_what_is_masked_is_told(desk: House) -> None:
    id = desk.submit(WORK | {"details": {"command": "API_KEY=abc12345;touch${IFS}x"}}).body["id"]
    shown = run("show", id).output
    assert "masked       1 secret, which nobody can see here" in shown
    assert "API_KEY={{SECRET:token#1}}⟨8 characters⟩;touch${IFS}x" in shown


def test_a_channel_that_fails_is_told_while_it_is_tried(desk: House) -> None:
    def refuse(message: Notification) -> None:
        raise Undelivered("nobody\nat home")

    desk.desk.channels = ("fake#1",)
    notifier = Notifier(desk.desk, [Channel("fake#1", "fake", 500, refuse)], str, pauses=(60,))
    id = desk.submit().body["id"]
    end = time.monotonic() + 20
    while not desk.get(id)["notifications"][0]["attempts"] and time.monotonic() < end:
        time.sleep(0.05)
    notifier.stop()
    assert "not notified fake#1: not delivered yet: nobody\n  | at home (tried once)\n" in run("show", id).output


def test_without_a_daemon_or_a_token_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    done = run("list")
    assert (done.exit_code, "no token" in done.output) == (1, True)
    monkeypatch.setenv("WARMSTART_CONFIRM_TOKEN", TOKEN)
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", "http://127.0.0.1:1")
    done = run("list")
    assert (done.exit_code, "cannot be reached" in done.output) == (1, True)


# On the database itself


def home() -> Path:
    return Path(os.environ["WARMSTART_HOME"])


def test_tokens_are_made_listed_and_revoked(open_house: Callable[..., House]) -> None:
    made = run_json("token", "create", "--scope", "agent:submit", "--subject", "agent-9")
    assert made["token"].startswith("wsc_")
    saved = run_json("token", "create", "--scope", "approver:decide", "--subject", "zoe", "--save", "--days", "3")
    assert saved["token"] is None
    file = Path(saved["file"])
    assert (file, file.stat().st_mode & 0o777) == (home() / "confirm.token", 0o600)
    listed = run_json("token", "list")
    assert [(one["subject"], one["scopes"], one["good"]) for one in listed] == [
        ("agent-9", ["agent:submit"], True),
        ("zoe", ["approver:decide"], True),
    ]
    assert made["token"] not in run("token", "list").output
    assert run_json("token", "revoke", made["id"]) == {"id": made["id"], "subject": "agent-9", "good": False}
    assert run("token", "revoke", made["id"]).exit_code == 1
    assert not run_json("token", "list")[0]["good"]
    for wrong in (["--scope", "all"], ["--scope", "agent:submit", "--scope", "approver:decide"]):
        assert run("token", "create", "--subject", "x", *wrong).exit_code == 2
    for name in ("policy", "a:b", "", "x\u200by"):
        assert run("token", "create", "--subject", name, "--scope", "admin").exit_code == 1
    assert run_json("verify")["ok"]


@pytest.mark.slow
@on_both_databases
def test_a_running_daemon_sees_what_is_done_to_its_file(house: House) -> None:
    database = ["--db", str(house.database)]
    made = run_json("token", "create", "--scope", "agent:submit", "--subject", "late", *database)
    assert house.submit(token=made["token"]).status == 202
    run("token", "revoke", made["id"], *database)
    assert house.submit(token=made["token"]).status == 401
    entry = run_json("whitelist", "add", "send_mail", "--session", "s-1", "--minutes", "5", *database)
    assert house.submit(WORK | {"session_key": "s-1"}).status == 200
    assert [one["action"] for one in run_json("whitelist", "list", *database)] == ["send_mail"]
    assert "send_mail" in run("whitelist", "list", *database).output
    assert run_json("whitelist", "remove", entry["id"][:8], *database)["removed"]
    assert house.submit(WORK | {"session_key": "s-1"}).status == 202
    assert run("whitelist", "remove", entry["id"], *database).exit_code == 1
    assert run("whitelist", "add", "Delete-Data", "--session", "s-1", *database).exit_code == 1
    link = run_json("login", "--subject", "zoe", "--url", house.page, *database)["login_url"]
    answer = send(house.page, "POST", "/login", {"code": link.partition("#")[2]})
    assert answer.body["subject"] == "zoe"
    assert run_json("logout", "ZOE", *database) == {"ended": 1}
    cookie = answer.headers["set-cookie"].split(";")[0]
    assert send(house.page, "GET", "/session", headers={"Cookie": cookie}).status == 401
    actors = {entry["actor"] for entry in house.audit() if entry["event"] in ("whitelisted", "token_revoked")}
    assert all(actor.startswith("local:") for actor in actors)


def test_a_whitelist_entry_can_be_for_exact_details(house: House) -> None:
    details = json.dumps(WORK["details"])
    database = ["--db", str(house.database)]
    run_json(
        "whitelist", "add", "send_mail", "--session", "s", "--details", details, "--requester", "agent-1", *database
    )
    assert house.submit(WORK | {"session_key": "s"}).status == 200
    assert house.submit(WORK | {"session_key": "s", "details": {}}).status == 202
    assert run("whitelist", "add", "x", "--session", "s", "--details", '{"a": 1, "a": 2}', *database).exit_code == 1


def test_verify_finds_and_names_what_was_done(house: House) -> None:
    database = ["--db", str(house.database)]
    assert run("verify", *database).output.startswith("8 entries, all sound")
    house.submit()
    house.stop()
    saved = house.database.read_bytes()
    anchor = house.database.with_name("confirm.db.anchor")
    db = apsw.Connection(str(house.database))
    for guard in GUARDS:
        db.execute(f"DROP TRIGGER {guard}")
    db.execute("DELETE FROM audit WHERE sequence > 3")
    db.close()
    done = run("verify", *database)
    assert done.exit_code == 1
    assert "NOT SOUND" in done.output
    assert "entry 10: is not there as it was anchored" in done.output
    assert json.loads(run("verify", "--json", *database).stdout)["ok"] is False
    copy = anchor.with_name("elsewhere")
    copy.write_bytes(anchor.read_bytes())
    house.database.write_bytes(saved)
    assert run("verify", "--anchor", str(copy), *database).exit_code == 0
    copy.write_text("{")
    assert run("verify", "--anchor", str(copy), *database).exit_code == 1
    anchor.unlink()
    assert run("verify", *database).exit_code == 1
    assert run("verify", "--accept", "--yes", *database).exit_code == 0
    assert run("verify", *database).exit_code == 0
    house.start()


def test_looking_does_not_make_a_database() -> None:
    for command in (["verify"], ["token", "list"], ["whitelist", "list"], ["login"], ["logout", "x"]):
        done = run(*command)
        assert (done.exit_code, "there is no confirmation database" in done.output) == (1, True), command
    assert not (home() / "confirm.db").exists()


# The daemon as a process


@pytest.mark.slow
def test_five_minutes_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start, log in with the printed link, submit, approve, stop; start again."""
    from warmstart.confirm import Daemon, submit
    from warmstart.confirm.tokens.files import read_token_file

    process, printed = start_daemon(CONFIRMATION_PORT="0", CONFIRMATION_RATE_LIMIT="1")
    try:
        token = read_token_file(Path(printed["agent_token_file"]))
        ticket = submit("delete_data", "Drop it", {"x": 1}, daemon=Daemon(printed["api_url"], token))
        page, _, code = printed["login_url"].partition("/login#")
        assert page == printed["page_url"]
        answer = send(page, "POST", "/login", {"code": code})
        known = {"Cookie": answer.headers["set-cookie"].split(";")[0], "X-CSRF-Token": answer.body["csrf_token"]}
        path = f"/confirm/{ticket.id}/approve"
        assert send(page, "POST", path, {"typed_action": "delete_data"}, headers=known).status == 200
        assert ticket.wait().by == "owner"
        ticket.take_up({"x": 1})
        again = send(printed["api_url"], "POST", "/confirm", RISK, token=token)
        assert again.status == 429, "the limit of the environment"
    finally:
        assert stop_daemon(process) == ""
    process, printed = start_daemon("--port", "0")
    assert (printed["login_url"], printed["agent_token_file"]) == (None, None)
    stop_daemon(process)
    assert run_json("verify")["ok"]


@pytest.mark.slow
def test_a_bad_start_says_why(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('[[rule]]\naction = "x"\nquorum = 0\n')
    for options, more, problem in (
        (["--policy", str(policy)], {}, "policy.toml:3"),
        ([], {"CONFIRMATION_PORT": "many"}, "CONFIRMATION_PORT=many"),
        (["--host", "256.1.1.1"], {}, "256.1.1.1"),
        (["--port", "0", "--db", str(tmp_path)], {}, "not a file"),
    ):
        with pytest.raises(AssertionError) as error:
            start_daemon(*options, **more)
        assert problem in str(error.value)
        assert "Traceback" not in str(error.value)


def test_the_daemons_parts_are_an_extra() -> None:
    from warmstart.doors.cli.confirm import check_parts
    from warmstart.errors import Refused

    check_parts()
    with pytest.raises(Refused, match=r"pip install 'warmstart\[confirm\]'"):
        check_parts(find=lambda name: None)
