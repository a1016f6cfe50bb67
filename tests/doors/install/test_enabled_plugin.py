"""Our plugin beside `hook install`: recognised in the agents' own settings, whatever else they hold."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from command_line import run_json
from warmstart import config
from warmstart.doors.hooks.agents import AGENTS
from warmstart.doors.install.enabled_plugin import find_plugin

PLACES = {
    "claude-code": (".claude/settings.json", '{"enabledPlugins": {"warmstart@warmstart": true}}'),
    "codex": (".codex/config.toml", '[plugins."warmstart@warmstart"]\nenabled = true\n'),
    "gemini-cli": (".gemini/extensions/warmstart/gemini-extension.json", '{"name": "warmstart"}'),
    "qwen-code": (".qwen/extensions/warmstart/qwen-extension.json", '{"name": "warmstart"}'),
}


def write(agent: str, text: str | None = None, folder: Path | None = None) -> Path:
    name, enabled = PLACES[agent]
    file = (folder or Path(os.environ["HOME"])) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(enabled if text is None else text)
    return file


@pytest.mark.parametrize("agent", PLACES)
def test_installing_says_that_the_plugin_is_there_and_status_shows_it(agent: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not any("plugin" in note for note in run_json("hook", "install", agent)["notes"])
    file = write(agent)
    assert [str(file) in note for note in run_json("hook", "install", agent)["notes"] if "plugin" in note] == [True]
    (place,) = (place for place in run_json("hook", "status")["hooks"] if place["scope"] == "plugin")
    assert (place["agent"], place["path"], place["events"]) == (agent, str(file), list(AGENTS[agent].timeouts))


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("claude-code", '{"enabledPlugins": {"warmstart@warmstart": false, "other@warmstart": true}}'),
        ("claude-code", '{"enabledPlugins": ["warmstart@warmstart"]}'),
        ("claude-code", "[]"),
        ("claude-code", "{"),
        ("codex", '[plugins."warmstart@warmstart"]\nenabled = false\n'),
        ("codex", "plugins = 3\n"),
        ("codex", "= ="),
    ],
)
def test_settings_that_do_not_enable_it(agent: str, text: str, tmp_path):
    write(agent, text)
    assert find_plugin(AGENTS[agent], config.load(), tmp_path) is None


def test_a_project_may_enable_it(tmp_path):
    file = write("claude-code", folder=tmp_path)
    assert find_plugin(AGENTS["claude-code"], config.load(), tmp_path) == file
