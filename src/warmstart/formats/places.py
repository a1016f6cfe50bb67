"""The folders where agents keep their transcripts; `ingest` without a path reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

_EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae")
_EXTENSIONS = {"cline": "saoudrizwan.claude-dev", "roo-code": "rooveterinaryinc.roo-cline"}


def usual_places(home: Path, named: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    """Yield `(agent, folder or file)` for each usual place that exists.

    `named` holds the folders set by the agents' own environment variables, such as CODEX_HOME.
    """
    for agent, path in _candidates(home, named):
        try:
            if path.exists():
                yield agent, path
        except OSError:
            continue


def _candidates(home: Path, named: Mapping[str, Path]) -> Iterator[tuple[str, Path]]:
    for claude in dict.fromkeys((named.get("CLAUDE_CONFIG_DIR", home / ".claude"), home / ".config" / "claude")):
        yield "claude-code", claude / "projects"
    codex = named.get("CODEX_HOME", home / ".codex")
    yield "codex", codex / "sessions"
    yield "codex", codex / "archived_sessions"
    hermes = named.get("HERMES_HOME", home / ".hermes")
    yield "hermes", hermes / "state.db"
    for profile in _folders(hermes / "profiles"):
        yield "hermes", profile / "state.db"
    for project in _folders(home / ".gemini" / "tmp"):
        yield "gemini-cli", project / "chats"
    storages = [home / ".config" / editor / "User" for editor in _EDITORS]
    storages += [home / "Library" / "Application Support" / editor / "User" for editor in _EDITORS]
    storages += [home / "AppData" / "Roaming" / editor / "User" for editor in _EDITORS]
    storages += [home / server / "data" / "User" for server in (".vscode-server", ".cursor-server")]
    for storage in storages:
        for agent, extension in _EXTENSIONS.items():
            yield agent, storage / "globalStorage" / extension / "tasks"
    yield "cline", home / ".cline" / "data" / "tasks"


def _folders(parent: Path) -> list[Path]:
    try:
        return sorted(p for p in parent.iterdir() if p.is_dir())
    except OSError:
        return []
