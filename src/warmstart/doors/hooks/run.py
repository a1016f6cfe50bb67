"""The process behind agents' hooks, `warmstart hook run AGENT`: one JSON object in, at most one out (see calls, too).

An agent waits for it, so it loads only what it needs and gives up in time. It always exits with 0 and prints nothing but
the protocol's answer; errors go to a log under the home.

| event | what happens |
|---|---|
| `SessionStart` | assigns the session to an arm and gives this project's best examples, in a third of the budget |
| `UserPromptSubmit` | adds, at the first prompt, examples that fit the task; nothing is shown twice |
| `Stop`, `SessionEnd` | the transcript is queued; the end also starts `catching_up` |

After a compaction both parts are given again, byte for byte; after a resume only the part that the agent does not replay.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from warmstart import config
from warmstart.arms import gets_advice
from warmstart.doors.hooks.agents import AGENTS, find_transcripts
from warmstart.doors.hooks.log import log_trouble
from warmstart.errors import ConfigError, Refused
from warmstart.ingest.queue import Queue
from warmstart.model import Task
from warmstart.names import could_hide_secret
from warmstart.notes.index import FOLDER, find_index
from warmstart.notes.index_files import add_folder, name_index
from warmstart.notes.session_state import SessionFile

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart

_TIME = 3.0  # seconds until the hook gives up: a person waits
_PATIENCE = 2.0  # seconds to wait for a busy store
_SHORT_PATIENCE = 0.5  # at a call, which has an answer at the next one, too
_LARGEST_INPUT = 32_000_000  # bytes
_LONGEST_ANSWER = 10_000  # characters; Claude Code shows no more, Codex counts bytes
_MOST_TOKENS = 2_000  # always fit in there
_OPENING_SHARE = 3  # the opening gets a third of the budget and of the examples
_COLD = "cold"

_finishing = threading.Lock()  # held by the thread that ends the process: with the answer, or because time is up


class HookCall(NamedTuple):
    """The command line of the hook."""

    agent: str
    home: str | None = None
    store: str | None = None


class Event(Struct, frozen=True):
    """An event, as both agents write it."""

    hook_event_name: str = ""
    session_id: str = ""
    transcript_path: str | None = None
    cwd: str | None = None
    source: str = ""  # of a SessionStart
    model: str | None = None
    prompt: str = ""
    agent_id: str | None = None  # only inside a subagent


_event = msgspec.json.Decoder(Event)


def main(words: Sequence[str], data: bytes | None = None) -> None:
    """Run the hook: AGENT [--home PATH] [--store URL]. `data`: the event, if it has been read already."""
    call = _read_words(words)
    folder = config.find_homes(call.home)[1]
    threading.Timer(_TIME, _give_up, (folder, call.agent)).start()
    answer: bytes | None = None
    try:
        answer = run(call, sys.stdin.buffer if data is None else BytesIO(data))
    except Exception as error:  # noqa: BLE001 - an agent's session must not suffer; the log reports it
        log_trouble(folder, call.agent, error)
    _finishing.acquire()
    if answer:
        _write(answer)
    os._exit(0)


def run(call: HookCall, stdin: BinaryIO) -> bytes | None:
    """Return the answer to the event on standard input; None is silence."""
    data = _read(stdin)
    if config.is_off():
        return None
    if call.agent not in AGENTS:
        raise ConfigError(f"unknown agent {call.agent}; known: {', '.join(AGENTS)}")
    event = _event.decode(data)
    if event.agent_id:
        return None
    text = _Hook(call, config.load(call.home, call.store), event).answer()
    if not text:
        return None
    context = {"hookEventName": event.hook_event_name, "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": context}) + b"\n"


def admit_session(call: HookCall, session: str, folder: str) -> None:
    """Assign a session to an arm that is met in the middle, and record whether it gets advice at its calls."""
    if call.agent in AGENTS:
        event = Event(session_id=session, cwd=folder)
        _Hook(call, config.load(call.home, call.store), event).admit()


class _Hook:
    """One event of one agent."""

    def __init__(self, call: HookCall, settings: config.Settings, event: Event) -> None:
        self._agent = AGENTS[call.agent]
        self._store = call.store
        self._settings = settings
        self._event = event

    def answer(self) -> str | None:
        match self._event.hook_event_name:
            case "SessionStart":
                return self._start()
            case "UserPromptSubmit":
                return self._refine()
            case "Stop":
                self._queue()
            case "SessionEnd":
                self._queue()
                self._catch_up()
            case _:
                raise Refused("an event that is not hooked")
        return None

    # Seeds

    def _start(self) -> str | None:
        """Open the session. A new one also starts the reading of transcripts that killed sessions left in the queue."""
        try:
            return self._open_session()
        finally:
            if self._event.source == "startup":
                self._catch_up()

    def _open_session(self) -> str | None:
        from warmstart.store import TrialStore

        source = self._event.source
        with self._open() as ws:
            known = TrialStore(ws.store).trial(self._session)
            if source == "resume" and self._agent.repeats_itself and known:
                self._remember(known.arm)
                return None
            # A fork continues its parent's conversation, whose arm is not known here: it gets nothing and is left out.
            task = self._opening(cold=source == "fork")
            if not task.cold and ws.brief(task).text:  # what the project knows replaces general examples
                task = self._opening(examples=0)
            opening = ws.provision(task)
            self._remember(opening.arm)
            self._join_project(ws)
            parts = [opening.text or ""]
            if source == "compact" and opening.arm != _COLD and TrialStore(ws.store).trial(self._refined):
                parts.append(ws.provision(self._refinement()).text or "")
        return _join(parts)

    def admit(self) -> None:
        """Open a session without an opening: it began before the hook was there."""
        from warmstart.store import TrialStore

        with self._open(_SHORT_PATIENCE) as ws:
            known = TrialStore(ws.store).trial(self._session)
            self._remember(known.arm if known else ws.provision(self._opening(examples=0)).arm)

    def _remember(self, arm: str | None) -> None:
        """Write down for the hooks at calls whether the session gets advice, and which files it has read."""
        source = self._event.source
        with SessionFile(str(self._settings.home), self._session) as state:
            state.start(advises=gets_advice(arm), knows_files=source in ("startup", "clear"))
            if source in ("compact", "clear"):
                state.forget_files()

    def _join_project(self, ws: Warmstart) -> None:
        """Let the hooks at calls find the notes of a fresh clone or worktree, which `learn` does not know yet."""
        home, folder = self._settings.home, self._project
        if folder and find_index(str(home), folder) is None and (home / FOLDER).is_dir():
            place = ws.projects.find(folder)
            add_folder(home, place.root or folder, home / FOLDER / name_index(place.name))

    def _refine(self) -> str | None:
        from warmstart.store import TrialStore

        with self._open() as ws:
            trials = TrialStore(ws.store)
            if trials.trial(self._refined):
                return None
            if trials.trial(self._session) is None:  # the hook was installed in mid-session: there was no opening
                self._remember(ws.provision(self._opening(examples=0)).arm)
            return _join([ws.provision(self._refinement()).text or ""])

    def _open(self, patience: float = _PATIENCE) -> Warmstart:
        from warmstart.pipeline import Warmstart

        return Warmstart(self._settings, patience=patience)

    @property
    def _session(self) -> str:
        """The session's id. One that looks like a secret would be stored under another name and never found again."""
        session = self._event.session_id
        if not session.strip() or len(session) > 200 or could_hide_secret(session):
            raise Refused("not a session id")
        return session

    @property
    def _refined(self) -> str:
        return f"{self._session}#prompt"

    def _opening(self, *, examples: int | None = None, cold: bool = False) -> Task:
        """Return the task of the opening: the prompt is not known yet, so only this project's own examples count."""
        budget, most = self._budget // _OPENING_SHARE, -(-self._settings.examples // _OPENING_SHARE)
        return Task(
            session=self._session,
            agent=self._agent.name,
            model=self._event.model,
            project=self._project,
            own=True,
            dialect="text",
            budget=budget,
            examples=most if examples is None else examples,
            cold=cold,
        )

    def _refinement(self) -> Task:
        return Task(
            text=self._event.prompt,
            session=self._refined,
            parent=self._session,
            adds=True,
            agent=self._agent.name,
            model=self._event.model,
            project=self._project,
            dialect="text",
            budget=self._budget - self._budget // _OPENING_SHARE,
            examples=self._settings.examples,
        )

    @property
    def _budget(self) -> int:
        return min(self._settings.budget, _MOST_TOKENS)

    @property
    def _project(self) -> str:
        folder = self._event.cwd or ""
        return folder.rstrip("/") or folder

    # Transcripts
    def _queue(self) -> None:
        queue = Queue(self._settings.home)
        for path in find_transcripts(self._agent, self._settings, self._event.transcript_path or ""):
            queue.add(path)

    def _catch_up(self) -> None:
        if Queue(self._settings.home).count():
            from warmstart.doors.hooks.catch_up import start_catching_up

            start_catching_up(self._settings.home, self._store)


def _join(parts: Sequence[str]) -> str:
    """Join as many parts as the agent will show; the later ones fit the task better."""
    shown = [part for part in parts if part]
    while len("\n\n".join(shown).encode()) > _LONGEST_ANSWER:
        shown = shown[1:]
    return "\n\n".join(shown)


# Input and output


def _read_words(words: Sequence[str]) -> HookCall:
    options = dict(zip(words[1::2], words[2::2], strict=False))
    return HookCall(words[0] if words else "", options.get("--home"), options.get("--store"))


def _read(stdin: BinaryIO) -> bytes:
    """Read everything, so that the writer never meets a closed pipe, but keep only a limited size."""
    kept: list[bytes] = []
    size = 0
    while chunk := stdin.read(1_000_000):
        size += len(chunk)
        if size <= _LARGEST_INPUT:
            kept.append(chunk)
    if size > _LARGEST_INPUT:
        raise Refused("the input is too large")
    return b"".join(kept)


def _write(answer: bytes) -> None:
    try:
        sys.stdout.buffer.write(answer)
        sys.stdout.buffer.flush()
    except OSError:
        pass  # the agent has gone


def _give_up(home: Path, name: str) -> None:
    """End the process because time is up, unless the answer is being written."""
    if _finishing.acquire(blocking=False):
        log_trouble(home, name, f"gave up after {_TIME:g} seconds")
        os._exit(0)
