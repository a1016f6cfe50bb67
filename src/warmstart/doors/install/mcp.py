"""The entry of our MCP server in the settings of its clients.

| client | for the user | with `--project` |
|---|---|---|
| Claude Code | `mcpServers` in `~/.claude.json` | `mcpServers` in `.mcp.json` |
| Codex | `[mcp_servers.warmstart]` in `~/.codex/config.toml` | the same in `.codex/config.toml` (of a trusted project) |
| Hermes | `mcp_servers` in `~/.hermes/config.yaml` | none |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from warmstart import config
from warmstart.config import Settings
from warmstart.doors.install.program import find_program, name_store
from warmstart.doors.settings_edit import json_text, toml_text, yaml_text
from warmstart.doors.settings_edit.file import Editor, SettingsFile
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

NAME = "warmstart"


class Language(NamedTuple):
    """How a client writes its settings."""

    section: str  # that holds the entries
    parse: Callable[[str], Any]
    put_entry: Callable[[str, str, str, Mapping[str, Any]], Insertion]
    remove_entry: Callable[[str, str, str], str]
    show: Callable[[Mapping[str, Any]], str]  # an entry on one line, to add by hand


class Client(NamedTuple):
    """A program that starts MCP servers."""

    title: str
    language: Language
    variable: str  # names the client's folder, if it is not the usual one
    folder: str  # in the user's home; "" is the home itself
    file: str
    project_file: str | None  # in a project; None: it has none
    more: Mapping[str, Any]  # further fields of its entries


_JSON = Language(
    "mcpServers",
    json_text.parse,
    json_text.put_entry,
    json_text.remove_entry,
    show=lambda entry: json.dumps({"mcpServers": {NAME: entry}}),
)
_TOML = Language(
    "mcp_servers",
    toml_text.parse,
    toml_text.put_entry,
    toml_text.remove_entry,
    show=lambda entry: f"mcp_servers.{NAME} = {{{', '.join(f'{k} = {json.dumps(v)}' for k, v in entry.items())}}}",
)
_YAML = Language(
    "mcp_servers",
    yaml_text.parse,
    yaml_text.put_entry,
    yaml_text.remove_entry,
    show=lambda entry: f"mcp_servers: {json.dumps({NAME: entry})}",
)

CLIENTS = {
    "claude-code": Client(
        "Claude Code", _JSON, "CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json", {"type": "stdio"}
    ),
    "codex": Client("Codex", _TOML, "CODEX_HOME", ".codex", "config.toml", ".codex/config.toml", {}),
    "hermes": Client("Hermes", _YAML, "HERMES_HOME", ".hermes", "config.yaml", None, {}),
}


class McpEntry:
    """Our entry in one client's settings, for the user or for one project."""

    def __init__(self, client: Client, settings: Settings, project: Path | None) -> None:
        self._language, self._client = client.language, client
        self.path = _find_settings(client, settings, project)
        self._settings, self._project = settings, project
        language = client.language
        editor = Editor(language.parse, lambda text: language.remove_entry(text, language.section, NAME))
        self._file = SettingsFile(self.path, settings.home, "mcp", editor)

    def install(self) -> bool:
        """Add the entry; return False if it is there. Ours from elsewhere is replaced, any other refused.

        Raises ConfigError if it would hold a password.
        """
        language, entry = self._language, _make_entry(self._client, self._settings, self._project)
        try:
            known = self._find()
            if known is not None:
                if isinstance(known, dict) and all(known.get(key) == entry[key] for key in ("command", "args")):
                    return False
                if not _is_ours(known) or known.keys() - entry.keys():
                    raise Refused(f"{self.path}: it has another entry {NAME}; if it can go, remove it by hand")
            self._file.replace(lambda text: [language.put_entry(text, language.section, NAME, entry)])
        except Refused as error:
            raise Refused(f"{error}; to add by hand: {language.show(entry)}") from error
        return True

    def uninstall(self) -> bool:
        """Remove the entry; return False if there is none. Raises Refused if it is somebody else's."""
        known = self._find()
        if known is not None and not _is_ours(known):
            raise Refused(f"{self.path}: its entry {NAME} does not start our server; if it can go, remove it by hand")
        return self._file.remove()

    def _find(self) -> Any:
        value = self._file.load()
        entries = value.get(self._language.section) if isinstance(value, dict) else None
        return entries.get(NAME) if isinstance(entries, dict) else None


def _find_settings(client: Client, settings: Settings, project: Path | None) -> Path:
    if project is None:
        return settings.places.get(client.variable, settings.user_home / client.folder) / client.file
    if client.project_file is None:
        raise Refused(f"{client.title} has no settings for a project; leave out --project")
    return project / client.project_file


def _make_entry(client: Client, settings: Settings, project: Path | None) -> dict[str, Any]:
    """Return what starts our server. Clients pass little of the environment on, so an unusual home is written down.

    A project's file is shared with other machines: there it is the plain command.
    """
    words = ["warmstart"] if project is not None else find_program()
    if settings.home != settings.user_home / ".warmstart":
        words += ["--home", str(settings.home.absolute())]
    if settings.store and settings.store != config.load(settings.home, environ={}).store:
        words += ["--store", name_store(settings.store)]
    return {**client.more, "command": words[0], "args": [*words[1:], "mcp"]}


def _is_ours(entry: Any) -> bool:
    """Say whether an entry starts our server, wherever that is installed."""
    if not isinstance(entry, dict):
        return False
    args = entry.get("args")
    words = [str(word) for word in args] if isinstance(args, list) else []
    starts_us = Path(str(entry.get("command"))).stem == "warmstart" or words[:3] == ["-P", "-m", "warmstart"]
    return starts_us and "mcp" in words
