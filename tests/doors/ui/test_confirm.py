"""The requests that wait at a real confirmation daemon: listed for the machine's owner, decided only on the daemon's page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from doors.pages.confirm.daemon import Daemon
from ui_home import log_in, make_settings
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, save_token
from warmstart.confirm.tokens.identity import pin_token
from warmstart.doors.ui.server import UiServer


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", started.server.api_url)
    monkeypatch.delenv("WARMSTART_CONFIRM_TOKEN", raising=False)
    yield started
    started.stop()


def test_requests_that_wait_are_listed_and_decided_elsewhere(tmp_path: Path, daemon: Daemon) -> None:
    settings = make_settings(tmp_path)
    key = daemon.server.desk.identity
    first = daemon.submit("delete_data", {"table": "secret-table"}, description="drop <b>all</b> of it")
    decided = daemon.submit("send_mail")
    daemon.decide(decided["id"], "deny")
    with UiServer(settings, port=0, share="127.0.0.1") as server, log_in(server) as client:
        nobody = client.get("/confirm")
        assert nobody.is_success and "warmstart confirm serve" in nobody.text and "no token" in nobody.text
        save_token(settings.home / AGENT_TOKEN, pin_token(daemon.token("agent-1", "agent:submit"), key))
        without = client.get("/confirm")
        assert "token create --scope approver:decide" in without.text and "1 request waits" in without.text
        assert "delete_data" not in without.text, "an agent's token lists nothing here"
        save_token(settings.home / APPROVER_TOKEN, pin_token(daemon.token("me", "approver:decide"), key))
        page = client.get("/confirm").text
        assert f'href="{daemon.page}/#/request/{first["id"]}"' in page and "high risk" in page
        assert "drop &lt;b&gt;all" in page and "<b>all" not in page
        assert "secret-table" not in page, "arguments are shown where they are decided"
        assert decided["id"] not in page and "form" not in page.partition("<main")[2]
        listed = client.get("/confirm.json").json()
        assert (listed["state"], listed["waiting"]) == ("listed", 1) and listed["requests"][0]["id"] == first["id"]
        assert client.post("/do/confirm/approve", json={"id": first["id"]}).status_code == 404
        assert "1 request of an agent waits" in client.get("/").text.replace("<wbr>", "")
        with log_in(server, server.make_guest_link()) as guest:
            for path in ("/confirm", "/confirm.json"):
                refused = guest.get(path)
                assert refused.status_code == 403 and "delete_data" not in refused.text
        daemon.stop()
        gone = client.get("/confirm")
        assert gone.is_success and client.get("/confirm.json").json()["state"] == "unreachable"
        assert "cannot be reached" in gone.text and "No confirmation daemon" not in gone.text
        assert client.get("/").is_success


def test_another_daemon_is_not_believed(tmp_path: Path, daemon: Daemon) -> None:
    settings = make_settings(tmp_path)
    save_token(settings.home / APPROVER_TOKEN, pin_token(daemon.token("me", "approver:decide"), "A" * 43))
    with UiServer(settings, port=0) as server, log_in(server) as client:
        answer = client.get("/confirm.json").json()
        assert answer["state"] == "problem" and not answer["requests"] and not answer["page_url"]
