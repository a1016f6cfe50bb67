"""The agents whose hooks we know: where their settings and transcripts are, and how their hooks behave.

Sources: the documentation of Claude Code (October 2026) and of Codex (0.160), its source, and both programs (2.1, 0.166).
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from warmstart.config import Settings

_LONGEST_PATH = 4_096


class HookAgent(NamedTuple):
    """A program with hooks."""

    name: str  # as in `Session.agent`
    title: str
    folder: str  # its own, in the user's home and in a project
    variable: str  # names another folder
    file: str  # in the folder; holds the hooks
    transcripts: tuple[str, ...]  # folders in the folder
    endings: tuple[str, ...]  # of transcripts
    timeouts: Mapping[str, int]  # hooked events, with the seconds each may take
    matchers: Mapping[str, str]  # events that are hooked only for some tools
    repeats_itself: bool  # a resumed session still has everything that hooks gave it


CLAUDE_CODE = HookAgent(
    name="claude-code",
    title="Claude Code",
    folder=".claude",
    variable="CLAUDE_CONFIG_DIR",
    file="settings.json",
    transcripts=("projects",),
    endings=(".jsonl",),
    timeouts={
        "SessionStart": 10,
        "UserPromptSubmit": 10,
        "PreToolUse": 5,
        "PostToolUse": 5,
        "PostToolUseFailure": 10,
        "Stop": 10,
        "SessionEnd": 5,
    },
    matchers={"PostToolUse": "Read|Edit|MultiEdit|Write|NotebookEdit"},  # after other tools there is nothing to do
    repeats_itself=False,  # it replays only what came with prompts, and calls SessionStart again
)
CODEX = HookAgent(
    name="codex",
    title="Codex",
    folder=".codex",
    variable="CODEX_HOME",
    file="hooks.json",
    transcripts=("sessions", "archived_sessions"),
    endings=(".jsonl", ".jsonl.zst"),
    timeouts={
        "SessionStart": 10,
        "UserPromptSubmit": 10,
        "PreToolUse": 5,
        "PostToolUse": 10,  # after failed calls, too: there is no PostToolUseFailure
        "Stop": 10,
        "SessionEnd": 3,  # more is cut to 3
    },
    matchers={},
    repeats_itself=True,  # hooks' output becomes part of the recorded conversation
)
AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX)}


def find_home(agent: HookAgent, settings: Settings) -> Path:
    """Return the agent's own folder."""
    return settings.places.get(agent.variable, settings.user_home / agent.folder)


def find_transcripts(agent: HookAgent, settings: Settings, transcript_path: str) -> list[Path]:
    """Return the transcript that a hook names and the folder of its subagents' transcripts, if there is one.

    The path comes from outside: with links resolved, it must be a plain file in the agent's own folders.
    """
    if not transcript_path.endswith(agent.endings) or "\0" in transcript_path or len(transcript_path) > _LONGEST_PATH:
        return []
    try:
        path = Path(os.path.realpath(Path(transcript_path).expanduser()))
        if not stat.S_ISREG(path.stat().st_mode) or not any(map(path.is_relative_to, _list_roots(agent, settings))):
            return []
        subagents = path.with_suffix("") / "subagents"
        return [path, subagents] if subagents.is_dir() else [path]
    except (OSError, RuntimeError, ValueError):
        return []


def _list_roots(agent: HookAgent, settings: Settings) -> Iterator[Path]:
    homes = {find_home(agent, settings), settings.user_home / agent.folder}
    for home in homes:
        for folder in agent.transcripts:
            yield Path(os.path.realpath(home / folder))
