"""`warmstart mcp install` in the settings of real clients: merged, never overwritten, taken out exactly."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from warmstart.doors.cli.main import main
from warmstart.doors.settings_edit import yaml_text
from warmstart.errors import Refused

SCRIPT = Path(sys.executable).parent / "warmstart"
FILES = {"claude-code": ".claude.json", "codex": ".codex/config.toml", "hermes": ".hermes/config.yaml"}
SECTION = {"claude-code": "mcpServers", "codex": "mcp_servers", "hermes": "mcp_servers"}
READ = {"claude-code": json.loads, "codex": tomllib.loads, "hermes": yaml.safe_load}

EXISTING = {
    "claude-code": [
        '{"numStartups": 12, "mcpServers": {"github": {"command": "gh-mcp", "args": []}}, "projects": {}}',
        '{\n\t"a": [1, 2],\n\t"mcpServers": {\n\t\t"other": {\n\t\t\t"url": "http://127.0.0.1:1/mcp"\n\t\t}\n\t}\n}\n',
        '{\r\n  "mcpServers": {}\r\n}\r\n',
        "{}",
        "",
    ],
    "codex": [
        '# my settings\nmodel = "gpt-5"  # the good one\n\n[mcp_servers.github]\ncommand = "gh-mcp"\n\n# projects\n[projects."/x"]\ntrust_level = "trusted"\n',
        'model = "gpt-5"',
        'a = """\n[mcp_servers.warmstart]\n"""\r\n[x]\r\ny = 1\r\n',
        "",
    ],
    "hermes": [
        "# my settings\nmodel:\n  default: gpt-5   # the good one\nmcp_servers:\n  # the forge\n  github:\n    command: gh-mcp\n    args:\n    - x\n\ntoolsets: [all]\n",
        "mcp_servers:\n    wide:\n        url: http://127.0.0.1:1/mcp\n# the end",
        "model: gpt-5\nmcp_servers: {}\nother: 1\n",
        'mcp_servers: {"github": {"command": "gh-mcp"}}\n',
        "mcp_servers:\nother: 1\n",
        "note: |\n  mcp_servers:\n    warmstart:\n      command: no\r\n",
        "model: gpt-5",
        "",
    ],
}
DAMAGED = {
    "claude-code": ['{"mcpServers": {', '{"a": 1, "a": 2}', '// mine\n{"a": 1}', "[]", '{"mcpServers": []}', "\ufeff{}"],
    "codex": ["[mcp_servers", 'mcp_servers = "x"', "mcp_servers = {}", "a = 1\na = 2"],
    "hermes": ["a: [", "- a\n- b\n", "mcp_servers: [a]\n", "mcp_servers: null\n", "a: 1\n...\n", "\tx: 1", "a: !!python/object:x {}"],
}  # fmt: skip
CASES = [(client, text) for client, texts in EXISTING.items() for text in texts]
DAMAGED_CASES = [(client, text) for client, texts in DAMAGED.items() for text in texts]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "user-home"


def run(*words: str) -> Result:
    return CliRunner().invoke(main, ["mcp", *words])


def settings_of(home: Path, client: str, text: str | None = None) -> Path:
    path = home / FILES[client]
    if text is not None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
    return path


def servers(path: Path, client: str) -> Any:
    return (READ[client](path.read_bytes().decode()) or {})[SECTION[client]]


def expected(client: str) -> dict[str, Any]:
    entry = {"command": str(SCRIPT), "args": ["mcp"]}
    return {"type": "stdio"} | entry if client == "claude-code" else entry


@pytest.mark.parametrize(("client", "text"), CASES)
def test_an_entry_is_merged_in_once_and_taken_out_to_the_byte(client, text, home):
    path = settings_of(home, client, text)
    path.chmod(0o640)
    before = READ[client](text) if text else {}
    done = run("install", client)
    assert done.exit_code == 0 and "added" in done.output, done.output
    after = READ[client](path.read_bytes().decode())
    assert servers(path, client) == ((before or {}).get(SECTION[client]) or {}) | {"warmstart": expected(client)}
    assert {k: v for k, v in after.items() if k != SECTION[client]} == {
        k: v for k, v in (before or {}).items() if k != SECTION[client]
    }
    written = path.read_bytes()
    again = run("install", client)
    assert again.exit_code == 0 and "already added" in again.output and path.read_bytes() == written
    gone = run("uninstall", client, "--json")
    assert gone.exit_code == 0 and json.loads(gone.output) == {"path": str(path), "changed": True}
    assert path.read_bytes() == text.encode() and path.stat().st_mode & 0o777 == 0o640
    assert "there was no entry" in run("uninstall", client).output


@pytest.mark.parametrize("client", FILES)
def test_where_there_is_no_file_one_is_made_and_removed_again(client, home):
    path = settings_of(home, client)
    assert run("install", client).exit_code == 0
    assert servers(path, client) == {"warmstart": expected(client)}
    assert run("uninstall", client).exit_code == 0
    assert not path.exists() and (path.parent == home or not path.parent.exists())


@pytest.mark.parametrize(("client", "text"), DAMAGED_CASES)
def test_what_cannot_be_changed_safely_is_left_as_it_is(client, text, home):
    path = settings_of(home, client, text)
    done = run("install", client)
    assert done.exit_code == 1 and path.read_bytes() == text.encode()
    assert "left as it is" in done.output and "to add by hand" in done.output and "Traceback" not in done.output
    gone = run("uninstall", client)
    assert path.read_bytes() == text.encode() and "Traceback" not in gone.output


@pytest.mark.parametrize("client", FILES)
def test_someone_elses_entry_of_our_name_stays(client, home):
    theirs = {
        "claude-code": '{"mcpServers": {"warmstart": {"command": "other", "args": ["x"]}}}',
        "codex": '[mcp_servers.warmstart]\ncommand = "other"\nargs = ["x"]\n',
        "hermes": "mcp_servers:\n  warmstart:\n    command: other\n    args: [x]\n",
    }[client]
    path = settings_of(home, client, theirs)
    for word in ("install", "uninstall"):
        done = run(word, client)
        assert done.exit_code == 1 and path.read_text() == theirs, done.output


@pytest.mark.parametrize("client", FILES)
def test_an_entry_of_an_installation_elsewhere_is_replaced(client, home):
    path = settings_of(home, client, EXISTING[client][0])
    run("install", client)
    path.write_text(path.read_text().replace(str(SCRIPT), "/gone/bin/warmstart"))
    assert "added" in run("install", client).output
    assert servers(path, client)["warmstart"] == expected(client) and "/gone" not in path.read_text()


@pytest.mark.parametrize("client", FILES)
def test_what_a_person_adds_to_the_entry_is_kept(client, home):
    path = settings_of(home, client)
    run("install", client)
    entry = expected(client) | {"env": {"A": "b"}}
    text = {
        "claude-code": lambda: json.dumps({"mcpServers": {"warmstart": entry}}),
        "codex": lambda: path.read_text() + '[mcp_servers.warmstart.env]\nA = "b"\n',
        "hermes": lambda: yaml.safe_dump({"mcp_servers": {"warmstart": entry}}),
    }[client]()
    path.write_text(text)
    assert "already added" in run("install", client).output and path.read_text() == text
    path.write_text(text.replace(str(SCRIPT), "/gone/bin/warmstart"))
    assert run("install", client).exit_code == 1 and "/gone" in path.read_text(), "not lost"


@pytest.mark.parametrize("client", FILES)
def test_it_is_found_again_after_the_client_has_rewritten_its_file(client, home):
    path = settings_of(home, client, EXISTING[client][0])
    run("install", client)
    found = READ[client](path.read_text())
    rewritten = {
        "claude-code": lambda: json.dumps(found | {"new": 1}, indent=4),
        "codex": lambda: path.read_text().replace("[projects", "[tui]\nx = 1\n\n[projects") + "\n# after\n[z]\nq = 1\n",
        "hermes": lambda: "# dumped\n" + yaml.safe_dump(found | {"new": 1}),
    }[client]()
    path.write_text(rewritten)
    assert "removed" in run("uninstall", client).output
    left = READ[client](path.read_text())
    wanted = READ[client](rewritten)
    del wanted[SECTION[client]]["warmstart"]
    assert left == wanted
    assert "# after" in path.read_text() or client != "codex"


def test_projects_have_entries_that_work_on_other_machines(tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for client, name in (("claude-code", ".mcp.json"), ("codex", ".codex/config.toml")):
        assert run("install", client, "--project").exit_code == 0
        entry = servers(project / name, client)["warmstart"]
        assert (entry["command"], entry["args"]) == ("warmstart", ["mcp"])
        assert run("uninstall", client, "--project").exit_code == 0
    assert list(project.iterdir()) == []
    done = run("install", "hermes", "--project")
    assert done.exit_code == 1 and "leave out --project" in done.output


def test_another_home_and_store_are_told_because_clients_hand_on_no_environment(tmp_path, home):
    words = ["--home", str(tmp_path / "h"), "--store", str(tmp_path / "s.db"), "mcp", "install", "codex"]
    assert CliRunner().invoke(main, words).exit_code == 0
    told = ["--home", str(tmp_path / "h"), "--store", str(tmp_path / "s.db"), "mcp"]
    assert servers(home / FILES["codex"], "codex")["warmstart"]["args"] == told


@pytest.mark.parametrize("store", ["s.db", "sqlite:///s.db"])
def test_a_store_is_named_by_its_whole_path(store, tmp_path, home, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(main, ["--store", store, "mcp", "install", "codex"]).exit_code == 0
    assert str(tmp_path / "s.db") in servers(home / FILES["codex"], "codex")["warmstart"]["args"]


def test_the_clients_own_variables_say_where_their_files_are(tmp_path, monkeypatch):
    for variable, client, name in (
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("HERMES_HOME", "hermes", "config.yaml"),
    ):
        monkeypatch.setenv(variable, str(tmp_path / client))
        assert run("install", client).exit_code == 0
        assert servers(tmp_path / client / name, client)["warmstart"]


@pytest.mark.slow
def test_what_was_written_starts_the_server(home):
    run("install", "claude-code")
    entry = servers(home / ".claude.json", "claude-code")["warmstart"]
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    done = subprocess.run(
        [entry["command"], *entry["args"]], input=line + "\n", capture_output=True, text=True, timeout=60
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"] == "warmstart"


def test_yaml_without_a_parser_is_not_touched(home, monkeypatch):
    path = settings_of(home, "hermes", "model: gpt-5\n")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(Refused, match="pyyaml is needed"):
        yaml_text.parse("a: 1")
    done = run("install", "hermes")
    assert done.exit_code == 1 and 'mcp_servers: {"warmstart"' in done.output
    assert path.read_text() == "model: gpt-5\n"
