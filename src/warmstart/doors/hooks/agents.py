"""The agents whose hooks we know: where their settings and transcripts are, and what their hooks do.

Read in the documentation of Claude Code (October 2026) and in the documentation and source of Codex (0.160).
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

    name: str  # as its transcripts are called
    title: str
    folder: str  # its own, in the user's home and in a project
    variable: str  # what names another one
    file: str  # the one in it that holds hooks
    transcripts: tuple[str, ...]  # the folders in it that hold transcripts
    endings: tuple[str, ...]  # of transcripts
    timeouts: Mapping[str, int]  # the events that are hooked, with the seconds they may take
    repeats_itself: bool  # a resumed session still has all that hooks gave it before


CLAUDE_CODE = HookAgent(
    name="claude-code",
    title="Claude Code",
    folder=".claude",
    variable="CLAUDE_CONFIG_DIR",
    file="settings.json",
    transcripts=("projects",),
    endings=(".jsonl",),
    timeouts={"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "SessionEnd": 5},
    repeats_itself=False,  # only what came with prompts is replayed; SessionStart is asked again
)
CODEX = HookAgent(
    name="codex",
    title="Codex",
    folder=".codex",
    variable="CODEX_HOME",
    file="hooks.json",
    transcripts=("sessions", "archived_sessions"),
    endings=(".jsonl", ".jsonl.zst"),
    timeouts={"SessionStart": 10, "UserPromptSubmit": 10, "Stop": 10, "SessionEnd": 3},  # more than 3 is cut to 3
    repeats_itself=True,  # what hooks give becomes a part of the conversation's record
)
AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX)}


def find_home(agent: HookAgent, settings: Settings) -> Path:
    """The agent's own folder."""
    return settings.places.get(agent.variable, settings.user_home / agent.folder)


def find_transcripts(agent: HookAgent, settings: Settings, told: str) -> list[Path]:
    """What a hook's `transcript_path` leads to, and its subagents' beside it; nothing where it is no transcript.

    The path comes from outside: only a plain file in the agent's own folders counts, wherever links may lead.
    """
    if not told.endswith(agent.endings) or "\0" in told or len(told) > _LONGEST_PATH:
        return []
    try:
        path = Path(os.path.realpath(Path(told).expanduser()))
        if not stat.S_ISREG(path.stat().st_mode) or not any(map(path.is_relative_to, _roots(agent, settings))):
            return []
        beside = path.with_suffix("") / "subagents"
        return [path, beside] if beside.is_dir() else [path]
    except (OSError, RuntimeError, ValueError):
        return []


def _roots(agent: HookAgent, settings: Settings) -> Iterator[Path]:
    homes = {find_home(agent, settings), settings.user_home / agent.folder}
    for home in homes:
        for folder in agent.transcripts:
            yield Path(os.path.realpath(home / folder))
