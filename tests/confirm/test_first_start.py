"""First and later starts: login links, agents' tokens, and files that are left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from confirm.signing import KEY
from warmstart.confirm import Daemon, Unauthorized, UntrustedDaemon, submit
from warmstart.confirm.tokens.files import AGENT_TOKEN, APPROVER_TOKEN, need_token, read_token_file, save_token
from warmstart.confirm.tokens.identity import pin_token
from warmstart.doors.cli.main import main
from warmstart.doors.web import ConfirmationServer
from warmstart.doors.web.first_start import FirstStart, prepare_first_start
from warmstart.doors.web.settings import make_settings, open_listener
from warmstart.errors import ConfigError, Refused


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["confirm", *arguments])


def start(database: Path, home: Path, **options: Any) -> tuple[FirstStart | None, str]:
    """Start and stop a daemon; return what it prints and its address for agents."""
    options = {"port": 0, "ui_port": 0} | options
    with ConfirmationServer(database=database, **options) as server:
        return prepare(server, home), server.page_url


def prepare(server: ConfirmationServer, home: Path) -> FirstStart | None:
    return prepare_first_start(server.desk, server.page_url, home, server.local_page_url)


class TestAgentsToken:
    def test_it_is_saved_for_agents(self, tmp_path: Path) -> None:
        first, _ = start(tmp_path / "confirm.db", tmp_path)
        assert first and first.agent_token_file == tmp_path / AGENT_TOKEN
        assert start(tmp_path / "confirm.db", tmp_path)[0] is None, "somebody has a token now"

    def test_that_of_another_database_is_left_and_told(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A new database once dropped its token silently, which locked every agent out."""
        file, new = tmp_path / AGENT_TOKEN, tmp_path / "confirm-agent-2.token"
        foreign = pin_token("wsc_of_another", KEY)
        save_token(file, foreign)
        with ConfirmationServer(database=tmp_path / "new.db", port=0, ui_port=0) as server:
            first = prepare_first_start(server.desk, server.page_url, tmp_path)
            assert first and first.agent_token_file == new
            assert read_token_file(file) == foreign
            assert new.stat().st_mode & 0o777 == 0o600
            (warning,) = caplog.messages
            assert f"mv {new} {file}" in warning and "another database" in warning
            with pytest.raises(UntrustedDaemon, match="did not prove"):
                submit("x", "d", daemon=Daemon(server.api_url, read_token_file(file)))
            new.replace(file)
            assert submit("x", "d", daemon=Daemon(server.api_url, read_token_file(file))).id

    def test_none_of_several_is_overwritten(self, tmp_path: Path) -> None:
        for number in range(3):
            first, _ = start(tmp_path / f"{number}.db", tmp_path)
            assert first
        names = sorted(path.name for path in tmp_path.glob("*.token"))
        assert names == ["confirm-agent-2.token", "confirm-agent-3.token", AGENT_TOKEN]
        assert len({read_token_file(tmp_path / name) for name in names}) == 3


class TestLoginLinks:
    """Links lead to the page's real address, not to the default one."""

    def link(self, database: Path, *more: str) -> str:
        done = run("login", "--db", str(database), "--json", *more)
        assert done.exit_code == 0, done.output
        return str(json.loads(done.stdout)["login_url"].partition("/login#")[0])

    def test_another_port(self, tmp_path: Path) -> None:
        database = tmp_path / "confirm.db"
        for _ in range(2):
            with ConfirmationServer(database=database, port=0, ui_port=0) as server:
                prepare(server, tmp_path)
                assert self.link(database) == server.page_url != "http://127.0.0.1:6080"
                (file,) = tmp_path.glob("*.page")
                assert file.stat().st_mode & 0o777 == 0o600

    def test_a_public_address(self, tmp_path: Path) -> None:
        database = tmp_path / "confirm.db"
        with ConfirmationServer(database=database, port=0, ui_port=0, public_url="https://box.example/") as server:
            prepare(server, tmp_path)
            assert self.link(database) == "https://box.example", "checked at the port behind the proxy"
            assert self.link(database, "--url", "https://box.example") == "https://box.example"
            for wrong in ("http://127.0.0.1:1", "https://box.example.evil.example"):
                done = run("login", "--db", str(database), "--url", wrong)
                assert done.exit_code == 1 and "/login#" not in done.output, "no proof of another address counts"
            (file,) = tmp_path.glob("*.page")
            file.write_text(file.read_text().replace("box.example", "evil.example"))
            done = run("login", "--db", str(database))
            assert done.exit_code == 1 and "serves https://box.example" in done.stderr, "nor does the file's word"

    def test_redteam_no_link_leads_to_a_daemon_that_is_gone(self, tmp_path: Path) -> None:
        """A second daemon on the same database once left its address behind, and links led to its dead port."""
        database = tmp_path / "confirm.db"
        with ConfirmationServer(database=database, port=0, ui_port=0) as first:
            prepare(first, tmp_path)
            with ConfirmationServer(database=database, port=0, ui_port=0) as second:
                prepare(second, tmp_path)
                assert self.link(database) == second.page_url
            assert self.link(database) == first.page_url
            with ConfirmationServer(database=database, port=0, ui_port=0) as crashed:
                prepare(crashed, tmp_path)
                (file,) = tmp_path.glob("*.page")
                lines = file.read_bytes()
            file.write_bytes(lines)
            assert self.link(database) == first.page_url, "one that left its line behind is passed over"
        done = run("login", "--db", str(database))
        assert done.exit_code == 1 and "no login link was made" in done.stderr and "/login#" not in done.output
        done = run("login", "--db", str(database), "--unchecked")
        assert "/login#" in done.stdout and "unchecked" in done.stderr


class TestSavedTokens:
    def home(self) -> Path:
        return Path(os.environ["WARMSTART_HOME"])

    def make(self, *more: str) -> Result:
        return run("token", "create", "--subject", "zoe", *more)

    def test_none_is_overwritten_by_accident(self) -> None:
        """`--scope audit:read --save` once overwrote the approver's token, which nobody can show again."""
        assert self.make("--scope", "approver:decide", "--save").exit_code == 0
        file = self.home() / APPROVER_TOKEN
        kept = read_token_file(file)
        done = self.make("--scope", "audit:read", "--save")
        assert done.exit_code == 1 and str(file) in done.stderr and "--replace" in done.stderr
        assert read_token_file(file) == kept
        assert len(json.loads(run("token", "list", "--json").stdout)) == 1, "none was made in vain"
        assert self.make("--scope", "agent:submit", "--save").exit_code == 0, "that one lies elsewhere"
        assert self.make("--scope", "audit:read", "--save", "--replace").exit_code == 0
        assert read_token_file(file) != kept

    @pytest.mark.parametrize(("name", "scope"), [(AGENT_TOKEN, "agent:submit"), (APPROVER_TOKEN, "approver:decide")])
    def test_who_has_none_is_told_which(self, tmp_path: Path, name: str, scope: str) -> None:
        with pytest.raises(Unauthorized, match=f"no token in .*{name}.*--scope {scope} "):
            need_token(tmp_path / name)


class TestAddresses:
    @pytest.mark.parametrize("url", ["https://x.example.net/confirm", "https://x.example.net/a/b/"])
    def test_a_page_in_a_folder_is_refused(self, url: str) -> None:
        """The page requests its files at the root."""
        with pytest.raises(ConfigError, match=r"cannot be served under a path.*https://x\.example\.net$"):
            make_settings({"database": "x.db", "public_url": url})

    @pytest.mark.parametrize("url", ["https://x.example.net", "https://x.example.net/", "http://10.0.0.1:6080"])
    def test_a_name_of_its_own_is_fine(self, url: str) -> None:
        assert make_settings({"database": "x.db", "public_url": url}).public_url == url.rstrip("/")

    def test_why_nobody_can_be_listened_to(self) -> None:
        with pytest.raises(Refused, match="this machine has no such address"):
            open_listener("8.8.8.8", 0)
        with open_listener("127.0.0.1", 0) as taken, pytest.raises(Refused, match="choose another port"):
            open_listener("127.0.0.1", taken.getsockname()[1])
