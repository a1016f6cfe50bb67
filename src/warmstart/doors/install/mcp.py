"""The entry of our server in the settings of MCP clients: put in, found again, taken out. Their files are not ours.

| client | for the user | with `--project` |
|---|---|---|
| Claude Code | `mcpServers` in `~/.claude.json` | `mcpServers` in `.mcp.json` |
| Codex | `[mcp_servers.warmstart]` in `~/.codex/config.toml` | the same in `.codex/config.toml` (of a trusted project) |
| Hermes | `mcp_servers` in `~/.hermes/config.yaml` | has none |
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from warmstart import config
from warmstart.config import Settings
from warmstart.doors.settings_edit import json_text, toml_text, yaml_text
from warmstart.doors.settings_edit.file import SettingsFile
from warmstart.doors.settings_edit.json_text import Insertion
from warmstart.errors import Refused

NAME = "warmstart"


class Language(NamedTuple):
    """How a client's settings are written, and how our entry gets in and out."""

    parse: Callable[[str], Any]
    put: Callable[[str, Mapping[str, Any]], Insertion]
    remove: Callable[[str], str]
    section: str
    explain: Callable[[Mapping[str, Any]], str]  # what to add by hand, on one line


class Client(NamedTuple):
    title: str
    language: Language
    variable: str  # of the environment, where the client's folder is another
    folder: str  # in the user's home; "" is the home itself
    file: str
    project_file: str | None  # in a project; None: it has none
    more: Mapping[str, Any]  # that its entries have


def _put_json(text: str, entry: Mapping[str, Any]) -> Insertion:
    return json_text.put(text, ("mcpServers", NAME), dict(entry))


def _remove_json(text: str) -> str:
    found = json_text.parse(text)
    servers = found.get("mcpServers") if isinstance(found, dict) else None
    return json_text.remove(text, ("mcpServers", NAME)) if isinstance(servers, dict) and NAME in servers else text


_JSON = Language(
    parse=json_text.parse,
    put=_put_json,
    remove=_remove_json,
    section="mcpServers",
    explain=lambda entry: json.dumps({"mcpServers": {NAME: entry}}),
)
_TOML = Language(
    parse=toml_text.parse,
    put=lambda text, entry: toml_text.append_table(text, ("mcp_servers", NAME), entry),
    remove=lambda text: toml_text.remove_table(text, ("mcp_servers", NAME)),
    section="mcp_servers",
    explain=lambda entry: f"mcp_servers.{NAME} = {{{', '.join(f'{k} = {json.dumps(v)}' for k, v in entry.items())}}}",
)
_YAML = Language(
    parse=yaml_text.parse,
    put=lambda text, entry: yaml_text.put_entry(text, "mcp_servers", NAME, entry),
    remove=lambda text: yaml_text.remove_entry(text, "mcp_servers", NAME),
    section="mcp_servers",
    explain=lambda entry: f"mcp_servers: {json.dumps({NAME: entry})}",
)

CLIENTS = {
    "claude-code": Client(
        "Claude Code", _JSON, "CLAUDE_CONFIG_DIR", "", ".claude.json", ".mcp.json", {"type": "stdio"}
    ),
    "codex": Client("Codex", _TOML, "CODEX_HOME", ".codex", "config.toml", ".codex/config.toml", {}),
    "hermes": Client("Hermes", _YAML, "HERMES_HOME", ".hermes", "config.yaml", None, {}),
}


def find_settings(client: Client, settings: Settings, project: Path | None) -> Path:
    """The file the entry belongs in."""
    if project is not None:
        if client.project_file is None:
            raise Refused(f"{client.title} has no settings of a project; leave out --project")
        return project / client.project_file
    return settings.places.get(client.variable, settings.user_home / client.folder) / client.file


def make_entry(client: Client, settings: Settings, project: Path | None) -> dict[str, Any]:
    """What starts our server. Clients hand on little of the environment, so a home of one's own is told outright.

    A project's file is shared with people whose machines are others: there it is the plain command.
    """
    words = ["warmstart"] if project is not None else _find_command()
    if settings.home != settings.user_home / ".warmstart":
        words += ["--home", str(settings.home.absolute())]
    if settings.store and settings.store != config.load(settings.home, environ={}).store:
        words += ["--store", settings.store if "://" in settings.store else str(Path(settings.store).absolute())]
    return {**client.more, "command": words[0], "args": [*words[1:], "mcp"]}


def _find_command() -> list[str]:
    """The console script of this installation; where there is none, its interpreter."""
    beside = Path(sys.executable).parent
    found = next((path for name in ("warmstart", "warmstart.exe") if (path := beside / name).is_file()), None)
    return [str(found)] if found else [sys.executable, "-P", "-m", "warmstart"]


def install(client: Client, settings: Settings, project: Path | None) -> tuple[Path, bool]:
    """Put the entry in; False where it is there already. One of ours from elsewhere is replaced, any other stays."""
    path, language = find_settings(client, settings, project), client.language
    file, entry = _open(path, settings), make_entry(client, settings, project)
    try:
        known = _find_entry(language, file.read() or "")
        if known is not None:
            if isinstance(known, dict) and all(known.get(key) == entry[key] for key in ("command", "args")):
                return path, False
            if not _is_ours(known) or known.keys() - entry.keys():
                raise Refused(f"there is another entry {NAME} already; if it is to go, remove it by hand")
            file.take_out(language.remove)
        return path, file.put_in(lambda text: [language.put(text, entry)], language.remove)
    except Refused as error:
        raise Refused(f"{_tell(path, error)}. To add by hand: {language.explain(entry)}") from error


def uninstall(client: Client, settings: Settings, project: Path | None) -> tuple[Path, bool]:
    """Take the entry out; False where there is none."""
    path, language = find_settings(client, settings, project), client.language
    file = _open(path, settings)
    try:
        known = _find_entry(language, file.read() or "")
        if known is not None and not _is_ours(known):
            raise Refused(f"the entry {NAME} does not start our server; if it is to go, remove it by hand")
        return path, file.take_out(language.remove)
    except Refused as error:
        raise Refused(_tell(path, error)) from error


def _tell(path: Path, error: Refused) -> str:
    left = "it was left as it is"
    said = str(error).removeprefix(f"{path}: ")
    return f"{path}: {said}" if left in said else f"{path}: {said}; {left}"


def _open(path: Path, settings: Settings) -> SettingsFile:
    return SettingsFile(path, settings.home / "changed", "mcp")


def _find_entry(language: Language, text: str) -> Any:
    found = language.parse(text)
    servers = found.get(language.section) if isinstance(found, dict) else None
    return servers.get(NAME) if isinstance(servers, dict) else None


def _is_ours(entry: Any) -> bool:
    """Whether it starts our server, wherever that is installed."""
    if not isinstance(entry, dict):
        return False
    args = entry.get("args")
    words = [str(word) for word in args] if isinstance(args, list) else []
    called = Path(str(entry.get("command"))).stem == "warmstart" or words[:3] == ["-P", "-m", "warmstart"]
    return called and "mcp" in words
