"""A real agent, run headless in a home of its own against a scripted model.

`make agents` installs the agents. They see nothing of the user's environment and talk to nobody but the model on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agents.server import ModelServer, Received, ScriptedCall, Turn
from places import AGENTS, SRC

_LONGEST = 120  # seconds of one session
# settings of a user's own, with odd white space that must survive
OWN_SETTINGS = '{\n\n  "hooks":   {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]} }\n'


@dataclass(frozen=True)
class Program:
    """An agent that runs one session and ends."""

    name: str  # as `hook install` takes it
    title: str  # as people write it
    package: str
    binary: str
    settings: str  # file that holds its hooks, in the home
    transcripts: str  # pattern of its transcripts, in the home; their paths hold the session's id, but for a database
    words: tuple[str, ...]  # arguments; the prompt comes last
    make_resume: Callable[[str], tuple[str, ...]]  # arguments that go on with a session
    make_shell: Callable[[str], ScriptedCall]
    make_read: Callable[[Path], ScriptedCall]
    find_session: Callable[[str], str]  # in what it printed
    own_settings: str = OWN_SETTINGS  # what the user has in `settings` before our hooks; "": there is no such file
    prepare: Callable[[Path, str], None] = lambda home, url: None  # writes what it needs to find the model
    make_variables: Callable[[Path, str], Mapping[str, str]] = lambda home, url: {}  # of its environment
    read_transcript: Callable[[Path], str] = Path.read_text
    always: bool = False  # its tests run without WARMSTART_FULL=1, too
    id_length: int | None = None  # characters of the session's id in a transcript's name; None: all

    @property
    def path(self) -> Path:
        return AGENTS / "node_modules" / ".bin" / self.binary

    @property
    def version(self) -> str:
        """The version that package.json asks for."""
        asked = json.loads((Path(__file__).parent / "package.json").read_text())
        return str((asked["dependencies"] | asked["devDependencies"])[self.package])

    @property
    def is_here(self) -> bool:
        return (AGENTS / ".installed").exists() and self.path.exists()

    def find_transcript(self, home: Path, session: str) -> Path:
        """Return the transcript of a session."""
        known = (session[: self.id_length], ".db")
        paths = home.glob(self.transcripts)
        found = [path for path in paths if any(part in str(path.relative_to(home)) for part in known)]
        return max(found, key=lambda path: path.stat().st_size)  # a resumed Gemini CLI also leaves an empty one


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
        program.prepare(self.home, model.url)

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
        }
        return variables | self.program.make_variables(self.home, self.model.url)

    def list_processes(self) -> list[str]:
        """Return the command lines of processes that were started on this machine and still run (Linux)."""
        mark = f"HOME={self.home}".encode()
        lines = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    lines.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        return lines

    def list_files(self) -> set[str]:
        """Return the files in the home that belong neither to the agent nor to Warmstart."""
        places = (self.program.settings, self.program.transcripts)
        own = {*(Path(place).parts[0] for place in places), ".warmstart", ".cache", ".npm"}
        files = (path.relative_to(self.home) for path in self.home.rglob("*") if path.is_file())
        return {str(path) for path in files if path.parts[0] not in own}

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
        transcript = self.program.find_transcript(self.home, session)
        return AgentRun(session, list(self.model.requests), transcript, done.stdout)
