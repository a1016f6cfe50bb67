"""Our plugin, as an agent's own settings say that it is enabled there: it calls the same hooks as `hook install`."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warmstart.config import Settings
from warmstart.doors.hooks.agents import CLAUDE_CODE, CODEX, GEMINI_CLI, QWEN_CODE, HookAgent, find_home

_NAME = "warmstart"  # before the `@` and the marketplace's name
_MANIFESTS = {GEMINI_CLI.name: "gemini-extension.json", QWEN_CODE.name: "qwen-extension.json"}


def find_plugin(agent: HookAgent, settings: Settings, project: Path) -> Path | None:
    """Return the settings file that enables our plugin in this agent, for the user or in this project."""
    return next((file for file, plugins in _list_plugins(agent, settings, project) if _is_enabled(plugins)), None)


def _list_plugins(agent: HookAgent, settings: Settings, project: Path) -> Iterator[tuple[Path, Any]]:
    """Yield settings files with their plugins."""
    home = find_home(agent, settings)
    if agent is CLAUDE_CODE:
        folder = project / agent.folder
        for file in (home / "settings.json", folder / "settings.json", folder / "settings.local.json"):
            yield file, _read(file, json.loads).get("enabledPlugins")
    elif agent is CODEX:
        yield home / "config.toml", _read(home / "config.toml", tomllib.loads).get("plugins")
    elif agent in (GEMINI_CLI, QWEN_CODE):
        manifest = home / "extensions" / _NAME / _MANIFESTS[agent.name]
        yield manifest, {_NAME: manifest.is_file()}


def _read(file: Path, parse: Any) -> Mapping[str, Any]:
    try:
        value = parse(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _is_enabled(plugins: Any) -> bool:
    """Say whether ours is among them: `{name: true}`, or `{name: {"enabled": true}}`."""
    if not isinstance(plugins, dict):
        return False
    ours = [value for name, value in plugins.items() if name.partition("@")[0] == _NAME]
    return any(value is True or (isinstance(value, dict) and value.get("enabled") is True) for value in ours)
