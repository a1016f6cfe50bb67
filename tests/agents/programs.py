"""Claude Code and Codex themselves, run headless in a home of their own against a scripted model.

`make agents` installs them. They see nothing of the user's environment and talk to nobody but the model on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from agents.server import ModelServer, Received, ScriptedCall, Turn
from places import AGENTS, SRC

_LONGEST = 120  # seconds of one session
_CODEX_SETTINGS = """\
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.scripted]
name = "scripted"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
"""

# settings of a user's own, with odd white space that must survive
OWN_SETTINGS = '{\n\n  "hooks":   {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]} }\n'


class Program(NamedTuple):
    """An agent that runs one session and ends."""

    name: str  # as `hook install` takes it
    package: str
    settings: str  # file that holds its hooks, in the home
    transcripts: str  # pattern of its transcripts, in the home
    words: tuple[str, ...]  # arguments; the prompt comes last
    make_resume: Callable[[str], tuple[str, ...]]  # arguments that go on with a session
    make_shell: Callable[[str], ScriptedCall]
    make_read: Callable[[Path], ScriptedCall]
    find_session: Callable[[str], str]  # in what it printed

    @property
    def path(self) -> Path:
        return AGENTS / "node_modules" / ".bin" / ("claude" if self.name == "claude-code" else self.name)

    @property
    def version(self) -> str:
        """The version that package.json asks for."""
        pinned = json.loads((Path(__file__).parent / "package.json").read_text())["dependencies"]
        return str(pinned[self.package])

    @property
    def is_here(self) -> bool:
        return (AGENTS / ".installed").exists() and self.path.exists()


CLAUDE_CODE = Program(
    name="claude-code",
    package="@anthropic-ai/claude-code",
    settings=".claude/settings.json",
    transcripts=".claude/projects/*/*.jsonl",
    words=("--allowedTools", "Bash,Read", "--output-format", "json", "-p"),
    make_resume=lambda session: ("--resume", session, *CLAUDE_CODE.words),
    make_shell=lambda command: ScriptedCall("Bash", {"command": command}),
    make_read=lambda path: ScriptedCall("Read", {"file_path": str(path)}),
    find_session=lambda printed: str(json.loads(printed)["session_id"]),
)
CODEX = Program(
    name="codex",
    package="@openai/codex",
    settings=".codex/hooks.json",
    transcripts=".codex/sessions/*/*/*/*.jsonl",
    words=("exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust"),
    make_resume=lambda session: ("exec", "resume", *CODEX.words[1:], session),
    make_shell=lambda command: ScriptedCall("exec_command", {"cmd": command}),
    make_read=lambda path: ScriptedCall("exec_command", {"cmd": f"cat {path.name}"}),
    find_session=lambda printed: str(json.loads(printed.partition("\n")[0])["thread_id"]),
)


class AgentRun(NamedTuple):
    """One session that has ended."""

    session: str
    requests: list[Received]
    transcript: Path
    printed: str


class Machine:
    """A home with one agent and one project in it. It can be put back to an earlier state, at the same paths."""

    def __init__(self, program: Program, folder: Path, model: ModelServer) -> None:
        self.program, self.model = program, model
        self.folder = folder / "machine"
        self.home, self.project = self.folder / "home", self.folder / "home" / "shop"
        self._copy = folder / "copy"
        self.project.mkdir(parents=True)
        if program is CODEX:
            settings = self.home / ".codex" / "config.toml"
            settings.parent.mkdir()
            settings.write_text(_CODEX_SETTINGS.format(url=model.url))

    @property
    def settings(self) -> Path:
        """The agent's file of hooks."""
        return self.home / self.program.settings

    def keep(self) -> None:
        """Remember the state of everything."""
        shutil.copytree(self.folder, self._copy, symlinks=True)

    def put_back(self) -> None:
        """Return to the state that was kept."""
        shutil.rmtree(self.folder)
        shutil.copytree(self._copy, self.folder, symlinks=True)

    def variables(self) -> dict[str, str]:
        """Return the whole environment of the agent."""
        variables = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(SRC),
            "WARMSTART_HOLDOUT": os.environ.get("WARMSTART_HOLDOUT", "0"),
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "SCRIPTED_KEY": "none",
        }
        return variables | ({"IS_SANDBOX": "1"} if os.getuid() == 0 else {})

    def warmstart(self, *words: str) -> str:
        """Run our program as the user of this machine would; return what it printed."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "warmstart", *words],
            cwd=self.project,
            env=self.variables(),
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run(self, *turns: Turn, aside: Mapping[str, Sequence[Turn]] | None = None) -> AgentRun:
        """Run a session whose model says these turns. It must end well."""
        self.model.play(*turns, aside=aside)
        return self.ask()

    def ask(self, prompt: str = "show the settings", session: str | None = None) -> AgentRun:
        """Run a session, or go on with one, by the script that plays already: several may run at the same time."""
        words = self.program.make_resume(session) if session else self.program.words
        done = subprocess.run(
            [self.program.path, *words, prompt],
            cwd=self.project,
            env=self.variables(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LONGEST,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        session = self.program.find_session(done.stdout)
        (transcript,) = (path for path in self.home.glob(self.program.transcripts) if session in path.name)
        return AgentRun(session, list(self.model.requests), transcript, done.stdout)
