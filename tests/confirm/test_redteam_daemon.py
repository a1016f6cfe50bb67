"""Red team: an unprivileged program takes the daemon's port, or stands in front of it, and says yes to everything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from confirm.redteam import FAKE_DAEMON, RELAY, attack
from confirm.serving import House
from warmstart.confirm import Daemon, UntrustedDaemon, ask, submit
from warmstart.confirm.audit.chain import read_head
from warmstart.confirm.store.open import open_store
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, read_token_file, save_token
from warmstart.confirm.tokens.identity import split_token
from warmstart.confirm.tokens.keys import renew_identity
from warmstart.doors.cli.main import main
from warmstart.doors.guard.guard import Guard
from warmstart.doors.guard.hermes import make_hook
from warmstart.doors.guard.rules import GuardedCall
from warmstart.doors.web.first_start import prepare_first_start

PUSH = GuardedCall("claude-code", "Bash", {"command": "git push --force"})


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["confirm", *words])


def port_of(url: str) -> int:
    return urlsplit(url).port or 0


@pytest.fixture
def home(house: House, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's home: tokens of this daemon, a rule, and the page's address."""
    home = Path(os.environ["WARMSTART_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    save_token(home / AGENT_TOKEN, house.agent)
    save_token(home / APPROVER_TOKEN, house.approver)
    (home / "guard.toml").write_text('[[rule]]\ntool = "Bash"\naction = "run_command"\n')
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", house.api)
    prepare_first_start(house.desk, house.page, home, house.local_page)
    return home


def secret(token: str) -> str:
    return split_token(token).secret


def test_redteam_a_program_on_the_daemons_port_approves_nothing(house: House, home: Path) -> None:
    """It has the agent's token, as any agent does, and so could make the proof of earlier versions."""
    house.stop()
    with attack(FAKE_DAEMON, port_of(house.api), secret(house.agent)) as fake:
        with pytest.raises(UntrustedDaemon, match="did not prove"):
            ask("deploy_production", "d", {"push": "force"}, daemon=Daemon(house.api, house.agent))
        for guard in (
            Guard(home, "Claude Code", url=house.api),
            Guard(home, "Claude Code", url=house.api, key=split_token(house.agent).key),
        ):
            verdict = guard.check(PUSH)
            assert (verdict.kind, "did not prove" in verdict.reason) == ("blocked", True)
        hermes = make_hook(home)(tool_name="Bash", args={"command": "git push --force"})
        assert hermes is not None and hermes["action"] == "block"
        for words in (["list"], ["approve", "ab" * 16, "--yes"], ["deny", "ab" * 16], ["audit"]):
            done = run(*words)
            assert done.exit_code == 1 and "did not prove" in done.stderr, (words, done.output)
            assert "alice" not in done.output, "nothing that it says is printed"
        heard = fake.stop()
    assert "/health" in heard and "Authorization" not in heard
    assert secret(house.agent) not in heard and secret(house.approver) not in heard
    house.start()


def test_redteam_the_tool_of_the_mcp_server_does_not_believe_it(house: House, home: Path) -> None:
    from warmstart.doors.mcp.confirmation import request_confirmation

    class Invocation:
        given = {"action": "deploy_production", "description": "d"}  # noqa: RUF012
        ws = type("Ws", (), {"settings": type("Settings", (), {"home": home})})

        def progress(self, *_: object) -> None: ...

    house.stop()
    with attack(FAKE_DAEMON, port_of(house.api), secret(house.agent)), pytest.raises(UntrustedDaemon):
        request_confirmation(Invocation())  # type: ignore[arg-type]
    house.start()


def test_redteam_no_login_link_leads_to_a_program_on_the_pages_port(house: House, home: Path) -> None:
    database = str(house.database)
    assert run("login", "--db", database).exit_code == 0
    house.stop()
    with open_store(house.database) as store:
        before = read_head(store).sequence
    with attack(FAKE_DAEMON, port_of(house.page), secret(house.agent)) as fake:
        done = run("login", "--db", database)
        assert done.exit_code == 1 and "/login#" not in done.output
        heard = fake.stop()
    assert "/health" in heard
    with open_store(house.database) as store:
        assert read_head(store).sequence == before, "no link was made that somebody could use"
    house.start()


def test_redteam_a_relay_on_another_port_gets_no_token(house: House, home: Path) -> None:
    """The daemon was moved to another port; somebody took the old one and passes everything on."""
    with attack(RELAY, port_of(house.api)) as relay:
        for token in (house.agent, house.approver):
            with pytest.raises(UntrustedDaemon, match="did not prove"):
                submit("deploy_production", "d", daemon=Daemon(relay.url, token))
        assert Guard(home, "Claude Code", url=relay.url).check(PUSH).kind == "blocked"
        heard = relay.stop()
    assert "Authorization" not in heard


def test_redteam_a_relay_that_was_let_in_cannot_change_an_answer(open_house: Callable[..., House]) -> None:
    """Somebody between client and daemon, at an address that the daemon itself answers for, such as a proxy's."""
    house = open_house()
    with attack(RELAY, port_of(house.api)) as relay:
        house.restart(allow_hosts=[f"127.0.0.1:{relay.port}"], port=port_of(house.api))
        with pytest.raises(UntrustedDaemon, match="did not prove"):
            ask("deploy_production", "d", {"push": "force"}, 60, daemon=Daemon(relay.url, house.agent))
        assert "/confirm" in relay.stop(), "it was trusted with the question, not with the answer"
    assert "submitted" in house.events() and "approved" not in house.events()


def test_redteam_a_changed_key_takes_a_loud_step(house: House, home: Path) -> None:
    old = house.desk.identity
    (home / "guard.toml").write_text('[[rule]]\ntool = "Bash"\naction = "x"\n')
    installed = run("guard", "install", "claude-code", "--url", house.api, "--json")
    assert old in installed.stdout, "the guard pins the key"
    house.desk.change(lambda tx: renew_identity(tx, "test")).result()
    house.restart()
    new = house.desk.identity
    assert new != old
    os.environ["WARMSTART_CONFIRM_URL"] = house.api
    done = run("list")
    assert done.exit_code == 1 and "did not prove" in done.stderr and "confirm trust" in done.stderr
    refused = run("trust", "--db", str(house.database))
    assert refused.exit_code == 1 and "the daemon's key has changed" in refused.stderr and old in refused.stderr
    assert split_token(read_token_file(home / AGENT_TOKEN)).key == old, "nothing was changed without a person"
    done = run("trust", "--db", str(house.database), "--yes", "--json")
    assert json.loads(done.stdout)["changed"] is True and json.loads(done.stdout)["daemon_key"] == new
    assert [one["agent"] for one in json.loads(done.stdout)["outdated_guards"]] == ["claude-code"]
    assert "run: warmstart confirm guard install claude-code" in run("trust", "--db", str(house.database)).stdout
    assert run("list").exit_code == 0
    assert Guard(home, "x", url=house.api, key=old).check(PUSH).reason.count("another key") == 1, (
        "pinned at its install"
    )
    assert "identity_renewed" in house.events()


def test_redteam_who_has_no_database_compares_the_key(house: House, home: Path) -> None:
    """On another machine only the daemon itself can show its key. Believing it is a person's step."""
    for file, token in ((AGENT_TOKEN, house.agent), (APPROVER_TOKEN, house.approver)):
        save_token(home / file, secret(token))  # as an older Warmstart saved them
    assert "no key says which daemon" in run("list").stderr
    assert run("trust").exit_code == 1, "not without a terminal"
    assert run("trust", "--key", "x").exit_code in (1, 2)
    wrong = run("trust", "--key", "A" * 43)
    assert wrong.exit_code == 1 and "did not prove" in wrong.stderr
    assert run("trust", "--key", house.desk.identity).exit_code == 0
    assert run("list").exit_code == 0
    house.stop()
    with attack(FAKE_DAEMON, port_of(house.api), secret(house.agent)):
        assert run("trust", "--yes").exit_code == 1, "a program that proves no key at all"
    house.start()


def test_redteam_tokens_of_older_versions_are_pinned_at_the_next_start(house: House, home: Path) -> None:
    save_token(home / AGENT_TOKEN, secret(house.agent))
    save_token(home / APPROVER_TOKEN, "wsc_of_another_database")
    prepare_first_start(house.desk, house.page, home)
    assert read_token_file(home / AGENT_TOKEN) == house.agent
    assert read_token_file(home / APPROVER_TOKEN) == "wsc_of_another_database"
