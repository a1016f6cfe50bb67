"""The agents whose hooks we know: where their settings and transcripts are, and how their hooks behave.

Sources: the documentation of Claude Code (October 2026) and of Codex (0.160), its source, and the programs themselves:
Claude Code 2.1, Codex 0.166, OpenCode 1.18, Pi 0.73, Gemini CLI 0.61, Qwen Code 0.24,
Copilot CLI 1.0.102.
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from warmstart.config import Settings
from warmstart.ingest.queue import join_session, split_session

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
    binary: str  # program that a person runs
    project_folder: str = ""  # in a project, if it is another one than in the home
    unit: int = 1  # of `timeouts` in the settings: 1 for seconds, 1000 for milliseconds
    plugin: str = ""  # our source in doors/install/plugins that `file` is made from; "": hooks in its settings
    below: str = ""  # its own folder in the one that `variable` names, if it shares that with others
    data: str = ""  # folder in the user's home that holds `transcripts`, if it is not `folder`
    data_variable: str = ""  # names another folder for the data of all programs
    keys: tuple[str, ...] = ()  # of the file: with any other the agent ignores all of it; none: it takes any
    opens_at_prompt: bool = False  # the opening goes with the first prompt, and again after the agent has lost it
    kills_shell: bool = False  # when time is up, it ends only the shell that runs us, and waits for us
    ends_silently: bool = False  # it may end without SessionEnd: transcripts are read after every turn


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
    binary="claude",
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
        "SubagentStop": 5,  # a subagent has a rollout of its own, in no folder of its session's
        "Stop": 10,
        "SessionEnd": 3,  # more is cut to 3
    },
    matchers={},
    repeats_itself=True,  # hooks' output becomes part of the recorded conversation
    keys=("hooks", "description"),
    binary="codex",
)
_PLUGIN_TIMEOUTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 10,
    "PreToolUse": 5,
    "PostToolUse": 5,
    "PostToolUseFailure": 10,
    "Stop": 5,
    "SessionEnd": 5,
}
OPENCODE = HookAgent(
    name="opencode",
    title="OpenCode",
    folder=".config/opencode",
    variable="XDG_CONFIG_HOME",
    below="opencode",
    file="plugins/warmstart.js",
    project_folder=".opencode",
    data=".local/share/opencode",
    data_variable="XDG_DATA_HOME",
    transcripts=(".",),
    endings=(".db",),
    timeouts=_PLUGIN_TIMEOUTS,
    unit=1_000,
    matchers={},
    repeats_itself=True,  # the plugin's parts of messages are kept in the database
    binary="opencode",
    plugin="opencode.js",
)
PI = HookAgent(
    name="pi",
    title="Pi",
    folder=".pi/agent",
    variable="PI_CODING_AGENT_DIR",
    file="extensions/warmstart.ts",
    project_folder=".pi",
    transcripts=("sessions",),
    endings=(".jsonl",),
    timeouts=_PLUGIN_TIMEOUTS,
    unit=1_000,
    matchers={},
    repeats_itself=True,  # the extension's messages are kept in the session
    binary="pi",
    plugin="pi.ts",
)
GEMINI_CLI = HookAgent(
    name="gemini-cli",
    title="Gemini CLI",
    folder=".gemini",
    variable="GEMINI_CLI_HOME",
    file="settings.json",
    transcripts=("tmp",),
    endings=(".jsonl", ".json"),
    timeouts={
        "SessionStart": 10,
        "BeforeAgent": 10,
        "BeforeTool": 5,
        "AfterTool": 10,
        "AfterAgent": 10,
        "SessionEnd": 5,
    },
    matchers={},
    repeats_itself=True,  # what came with a prompt is part of the recorded conversation
    binary="gemini",
    unit=1000,
    kills_shell=True,
    opens_at_prompt=True,  # a resumed session drops the prompt that follows a text given at the start
)
QWEN_CODE = HookAgent(
    name="qwen-code",
    title="Qwen Code",
    folder=".qwen",
    variable="QWEN_HOME",
    file="settings.json",
    transcripts=("projects",),
    endings=(".jsonl",),
    timeouts={
        "SessionStart": 10,
        "UserPromptSubmit": 10,
        "PreToolUse": 5,
        "PostToolUse": 5,
        "PostToolUseFailure": 10,
        "SubagentStop": 5,  # a subagent's transcript is in no folder of its session's
        "Stop": 10,
        "SessionEnd": 5,
    },
    matchers={},
    repeats_itself=False,  # the opening is in the system prompt, which is made anew
    binary="qwen",
    ends_silently=True,  # headless, it never sends SessionEnd
)
COPILOT_CLI = HookAgent(
    name="copilot-cli",
    title="Copilot CLI",
    folder=".copilot",
    variable="COPILOT_HOME",
    file="hooks/warmstart.json",  # it reads every file there; this one is ours alone
    transcripts=("session-state",),
    endings=(".jsonl",),
    timeouts={
        "SessionStart": 10,
        "UserPromptSubmit": 10,
        "PreToolUse": 5,
        "PostToolUse": 10,  # after failed commands, too
        "PostToolUseFailure": 10,
        "Stop": 10,
        "SessionEnd": 5,
    },
    matchers={},
    repeats_itself=False,  # it replays only what came with prompts and results, and calls SessionStart again
    binary="copilot",
    project_folder=".github",
)
AGENTS = {agent.name: agent for agent in (CLAUDE_CODE, CODEX, OPENCODE, PI, GEMINI_CLI, QWEN_CODE, COPILOT_CLI)}


def find_home(agent: HookAgent, settings: Settings) -> Path:
    """Return the agent's own folder."""
    named = settings.places.get(agent.variable)
    return named / agent.below if named else settings.user_home / agent.folder


def find_file(agent: HookAgent, settings: Settings, project: Path | None) -> Path:
    """Return the file that holds the agent's hooks, for the user or for a project."""
    folder = project / (agent.project_folder or agent.folder) if project else find_home(agent, settings)
    return folder / agent.file


def is_here(agent: HookAgent, settings: Settings) -> bool:
    """Return whether the agent seems to be used on this machine: it is on the path, or has left its folder."""
    return shutil.which(agent.binary) is not None or find_home(agent, settings).is_dir()


def find_transcripts(agent: HookAgent, settings: Settings, transcript_path: str, session: str = "") -> list[Path]:
    """Return the transcript that a hook names and the folders of its subagents' transcripts.

    A session in a database is named `DATABASE#SESSION`.
    The path comes from outside: with links resolved, it must be a plain file in the agent's own folders.
    """
    file, part = split_session(transcript_path)
    if not file.endswith(agent.endings) or "\0" in file or len(file) > _LONGEST_PATH:
        return []
    try:
        path = Path(os.path.realpath(Path(file).expanduser()))
        if not stat.S_ISREG(path.stat().st_mode) or not any(map(path.is_relative_to, _list_roots(agent, settings))):
            return []
        if part:
            return [path.with_name(join_session(path.name, part))]
        folders = [path.with_suffix("") / "subagents"]
        if agent is GEMINI_CLI and session.replace("-", "").isalnum():
            folders.append(path.parent / session)
        return [path, *(folder for folder in folders if folder.is_dir())]
    except (OSError, RuntimeError, ValueError):
        return []


def _list_roots(agent: HookAgent, settings: Settings) -> Iterator[Path]:
    homes = {find_home(agent, settings), settings.user_home / agent.folder}
    if agent.data:
        named = settings.places.get(agent.data_variable)
        homes = {settings.user_home / agent.data, *([named / agent.below] if named else [])}
    for home in homes:
        for folder in agent.transcripts:
            yield Path(os.path.realpath(home / folder))
