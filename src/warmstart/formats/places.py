"""The folders where agents keep their transcripts; `ingest` without a path reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae")
_EXTENSIONS = {"cline": "saoudrizwan.claude-dev", "roo-code": "rooveterinaryinc.roo-cline"}


def usual_places(home: Path, named: Mapping[str, Path], here: Path | None = None) -> Iterator[tuple[str, Path]]:
    """Yield `(agent, folder or file)` for each usual place that exists.

    `named` holds the folders set by the agents' own environment variables, such as CODEX_HOME. `here` is the current
    folder: some programs write into the project's own.
    """
    for agent, path in _candidates(home, named, here):
        try:
            if path.exists():
                yield agent, path
        except OSError:
            continue


def _candidates(home: Path, named: Mapping[str, Path], here: Path | None) -> Iterator[tuple[str, Path]]:
    for claude in dict.fromkeys((named.get("CLAUDE_CONFIG_DIR", home / ".claude"), home / ".config" / "claude")):
        yield "claude-code", claude / "projects"
    codex = named.get("CODEX_HOME", home / ".codex")
    yield "codex", codex / "sessions"
    yield "codex", codex / "archived_sessions"
    yield "copilot-cli", named.get("COPILOT_HOME", home / ".copilot") / "session-state"
    yield "droid", home / ".factory" / "sessions"
    yield "kimi", home / ".kimi-code" / "sessions"
    hermes = named.get("HERMES_HOME", home / ".hermes")
    yield "hermes", hermes / "state.db"
    for profile in _folders(hermes / "profiles"):
        yield "hermes", profile / "state.db"
    for project in _folders(named.get("GEMINI_CLI_HOME", home / ".gemini") / "tmp"):
        yield "gemini-cli", project / "chats"
    data = dict.fromkeys((named.get("XDG_DATA_HOME", home / ".local" / "share"), home / ".local" / "share"))
    for folder in data:  # the same on every system
        yield "opencode", folder / "opencode" / "opencode.db"
        yield "opencode", folder / "opencode" / "storage" / "session"
    pi = named.get("PI_CODING_AGENT_DIR", home / ".pi" / "agent")
    yield "pi", named.get("PI_CODING_AGENT_SESSION_DIR", pi / "sessions")
    for project in _folders(named.get("QWEN_HOME", home / ".qwen") / "projects"):
        yield "qwen-code", project / "chats"
        yield "qwen-code", project / "subagents"
    storages = [home / ".config" / editor / "User" for editor in _EDITORS]
    storages += [home / "Library" / "Application Support" / editor / "User" for editor in _EDITORS]
    storages += [home / "AppData" / "Roaming" / editor / "User" for editor in _EDITORS]
    storages += [home / server / "data" / "User" for server in (".vscode-server", ".cursor-server")]
    for storage in storages:
        for agent, extension in _EXTENSIONS.items():
            yield agent, storage / "globalStorage" / extension / "tasks"
    yield "cline", home / ".cline" / "data" / "tasks"
    yield "cline", home / ".cline" / "data" / "sessions"
    yield "continue", named.get("CONTINUE_GLOBAL_DIR", home / ".continue") / "sessions"
    for conversation in _folders(home / ".openhands" / "conversations"):
        yield "openhands", conversation / "base_state.json"
    if "INSPECT_LOG_DIR" in named:
        yield "inspect", named["INSPECT_LOG_DIR"]
    for folder in dict.fromkeys(path for path in (home, here) if path):  # these write into the project's own folder
        yield "specstory", folder / ".specstory" / "history"
        yield "aider", folder / ".aider.chat.history.md"


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(p for p in parent.iterdir() if p.is_dir())
    except OSError:
        return []


def find_current_folder() -> Path | None:
    """Return the current folder; None where it was deleted."""
    try:
        return Path.cwd()
    except OSError:
        return None
