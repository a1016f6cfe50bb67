"""The plugins in this repository: their versions and hooks are ours, and their launcher never hurts a session."""

from __future__ import annotations

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from places import ROOT
from warmstart import __version__
from warmstart.doors.hooks.agents import AGENTS
from warmstart.doors.install.hooks import ENDING_WITH_SHELL, make_groups

PLUGIN = ROOT / "plugins" / "warmstart"
START = json.dumps({"session_id": "s", "hook_event_name": "SessionStart"}, separators=(",", ":"))
CALL = START.replace("SessionStart", "PreToolUse")


def load(*path: str) -> dict[str, Any]:
    return dict(json.loads(ROOT.joinpath(*path).read_text()))


def test_every_file_has_the_version_of_the_package():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    server = load("server.json")
    versions = {
        "claude": load("plugins", "warmstart", ".claude-plugin", "plugin.json")["version"],
        "claude's marketplace": load(".claude-plugin", "marketplace.json")["plugins"][0]["version"],
        "codex": load("plugins", "warmstart", ".codex-plugin", "plugin.json")["version"],
        "gemini": load("gemini-extension.json")["version"],
        "qwen": load("qwen-extension.json")["version"],
        "registry": server["version"],
        "registry's package": server["packages"][0]["version"],
        "installed": __version__,
    }
    assert versions == dict.fromkeys(versions, declared)


@pytest.mark.parametrize(("agent", "file"), [("claude-code", "hooks.json"), ("codex", "codex.json")])
def test_the_hooks_are_those_that_are_installed_without_a_plugin(agent: str, file: str):
    command = f'sh "${{CLAUDE_PLUGIN_ROOT}}/launch.sh" hook run {agent} --caller plugin || true'
    groups = make_groups(AGENTS[agent], command)
    assert load("plugins", "warmstart", "hooks", file) == {"hooks": {event: [group] for event, group in groups.items()}}


@pytest.mark.parametrize(
    ("agent", "file", "root", "end"),
    [
        ("gemini-cli", "hooks.json", "extensionPath", ENDING_WITH_SHELL),
        ("qwen-code", "qwen.json", "CLAUDE_PLUGIN_ROOT", "|| true"),
    ],
)
def test_the_hooks_of_an_extension_are_those_that_are_installed_without_it(agent: str, file: str, root: str, end: str):
    command = f'sh "${{{root}}}/plugins/warmstart/launch.sh" hook run {agent} --caller plugin {end}'
    groups = make_groups(AGENTS[agent], command)
    assert load("hooks", file) == {"hooks": {event: [group] for event, group in groups.items()}}


@pytest.mark.parametrize("agent", ["gemini", "qwen"])
def test_an_extension_runs_the_server_that_knows_of_hooks(agent: str):
    extension = load(f"{agent}-extension.json")
    assert extension["name"] == "warmstart" and (ROOT / extension.get("hooks", "hooks/hooks.json")).is_file()
    launcher, *words = extension["mcpServers"]["warmstart"]["args"]
    assert words == ["mcp", "--hooked"] and (ROOT / launcher.removeprefix("${extensionPath}/")).samefile(
        PLUGIN / "launch.sh"
    )


def test_manifests_name_files_that_are_there():
    codex = load("plugins", "warmstart", ".codex-plugin", "plugin.json")
    for field in ("hooks", "mcpServers", "skills"):
        assert (PLUGIN / codex[field]).exists(), field
    for source in (
        load(".claude-plugin", "marketplace.json")["plugins"][0]["source"],
        load(".agents", "plugins", "marketplace.json")["plugins"][0]["source"]["path"],
    ):
        assert (ROOT / source).samefile(PLUGIN)


def test_the_registry_would_take_the_entry():
    server = load("server.json")
    assert len(server["description"]) <= 100 and server["name"].count("/") == 1
    (package,) = server["packages"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert package["identifier"] == project["name"] and "mcp" in project["optional-dependencies"]


class TestLauncher:
    def launch(self, home: Path, words: str, said: str = CALL, path: str = "/usr/bin:/bin") -> tuple[int, str, str]:
        done = subprocess.run(
            ["sh", PLUGIN / "launch.sh", *words.split()],
            input=said,
            env={"HOME": str(home), "PATH": path},
            capture_output=True,
            text=True,
            timeout=30,
        )
        return done.returncode, done.stdout, done.stderr

    def write_program(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "warmstart").write_text('#!/bin/sh\necho "ran $0 $*"; cat; exit 2\n')
        (folder / "warmstart").chmod(0o755)

    def test_without_the_program_the_person_is_told_at_the_start_and_never_else(self, tmp_path):
        code, out, errors = self.launch(tmp_path, "hook run claude-code", START)
        assert (code, errors) == (0, "") and out.count("\n") == 1
        answer = json.loads(out)
        assert list(answer) == ["systemMessage"] and "pipx install" in answer["systemMessage"]
        assert self.launch(tmp_path, "hook run claude-code", CALL) == (0, "", "")
        assert self.launch(tmp_path, "hook run claude-code", "x" * 300_000) == (0, "", "")

    def test_without_the_program_the_server_says_why_it_does_not_start(self, tmp_path):
        code, out, errors = self.launch(tmp_path, "mcp")
        assert (code, out) == (127, "") and "not installed" in errors

    def test_the_program_is_found_on_the_path_first_then_where_pipx_puts_it(self, tmp_path):
        self.write_program(tmp_path / ".local" / "bin")
        assert (
            self.launch(tmp_path, "hook run codex")[1] == f"ran {tmp_path}/.local/bin/warmstart hook run codex\n{CALL}"
        )
        self.write_program(tmp_path / "other")
        assert f"ran {tmp_path}/other/" in self.launch(tmp_path, "mcp", path=f"{tmp_path}/other:/usr/bin:/bin")[1]

    @pytest.mark.parametrize("root", [PLUGIN, Path("/nowhere")], ids=["program fails", "plugin removed"])
    def test_the_hooks_line_never_fails(self, tmp_path, root: Path):
        self.write_program(tmp_path / ".local" / "bin")  # exit code 2 would refuse the user's prompt
        line = load("plugins", "warmstart", "hooks", "hooks.json")["hooks"]["UserPromptSubmit"][0]["hooks"][0][
            "command"
        ]
        variables = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "CLAUDE_PLUGIN_ROOT": str(root)}
        assert subprocess.run(["sh", "-c", line], env=variables, input=b"", capture_output=True).returncode == 0
