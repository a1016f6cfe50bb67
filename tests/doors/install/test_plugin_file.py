"""A plugin of ours in an agent's folder: written, known again, deleted; a file of somebody else's stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warmstart import config
from warmstart.doors.hooks.agents import HookAgent
from warmstart.doors.install import plugin_file
from warmstart.doors.install.plugin_file import MARK, PluginFile
from warmstart.errors import Refused

AGENT = HookAgent(
    name="acme", title="Acme", folder=".acme", variable="ACME_HOME", file="plugins/warmstart.js", transcripts=(),
    endings=(), timeouts={"SessionStart": 10}, matchers={}, repeats_itself=False, binary="acme", plugin="acme.js",
)  # fmt: skip


@pytest.fixture
def plugin(monkeypatch, tmp_path) -> PluginFile:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "acme.js").write_text(f"// {MARK} acme`\nrun(__COMMAND__, __EVENTS__)\n")
    monkeypatch.setattr(plugin_file, "files", lambda package: tmp_path)
    return PluginFile(AGENT, config.load(), None)


def test_it_is_written_once_and_deleted_with_its_folders(plugin):
    home = Path(os.environ["HOME"])
    before = sorted(home.rglob("*"))
    assert plugin.install(["warm start", "hook"]) and not plugin.install(["warm start", "hook"])
    assert plugin.path.read_text().endswith('run(["warm start", "hook"], {"SessionStart": 10})\n')
    assert plugin.list_events() == ["SessionStart"]
    assert plugin.install(["other"]) and "warm start" not in plugin.path.read_text()
    assert plugin.uninstall() and not plugin.uninstall()
    assert sorted(home.rglob("*")) == before


def test_folders_of_others_stay(plugin):
    plugin.path.parent.mkdir(parents=True)
    (plugin.path.parent / "own.js").write_text("mine")
    plugin.install(["warmstart"])
    plugin.uninstall()
    assert [path.name for path in plugin.path.parent.iterdir()] == ["own.js"]


def test_a_file_that_is_not_ours_is_neither_replaced_nor_deleted(plugin):
    plugin.path.parent.mkdir(parents=True)
    plugin.path.write_text("mine")
    for change in (lambda: plugin.install(["warmstart"]), plugin.uninstall):
        with pytest.raises(Refused, match="not ours"):
            change()
    assert (plugin.path.read_text(), plugin.list_events()) == ("mine", [])
