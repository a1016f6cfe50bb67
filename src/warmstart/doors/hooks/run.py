"""What agents' hooks call: `warmstart hook run AGENT`. One JSON object in, at most one out.

An agent waits for it, so it is short: it loads only what it needs, gives up in time, and whatever happens it ends
well and says nothing but the protocol's answer. Trouble goes to a log under the home.

| event | what happens |
|---|---|
| `SessionStart` | the session's arm is drawn and written down; the best of this project is given, in a third of the budget |
| `UserPromptSubmit` | the first prompt refines it: what fits the task is added, nothing is shown twice |
| `Stop`, `SessionEnd` | the transcript is queued; the end also starts `catching_up` |

After a compaction both parts are given again, byte for byte; after a resume what the agent does not replay itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from warmstart import config
from warmstart.doors.hooks.agents import AGENTS, find_transcripts
from warmstart.doors.hooks.log import log_trouble
from warmstart.errors import ConfigError, Refused
from warmstart.ingest.queue import Queue
from warmstart.model import Task
from warmstart.names import could_hide_secret

if TYPE_CHECKING:
    from warmstart.pipeline import Warmstart

_TIME = 3.0  # seconds until we give up: a person waits
_PATIENCE = 2.0  # the same for a store that others keep busy
_LARGEST_INPUT = 32_000_000  # bytes
_LONGEST_ANSWER = 10_000  # characters; Claude Code shows no more, Codex counts bytes
_MOST_TOKENS = 2_000  # what is sure to fit in there
_OPENING_SHARE = 3  # the opening gets a third of the budget and of the examples
_COLD = "cold"

_finishing = threading.Lock()  # held by whoever ends the process: the answer, or the time


class _Call(NamedTuple):
    """How the hook was called."""

    agent: str
    home: str | None = None
    store: str | None = None


class Event(Struct, frozen=True):
    """What an agent tells its hook. Both use the same names."""

    hook_event_name: str = ""
    session_id: str = ""
    transcript_path: str | None = None
    cwd: str | None = None
    source: str = ""  # of a SessionStart
    model: str | None = None
    prompt: str = ""
    agent_id: str | None = None  # only inside a subagent


_event = msgspec.json.Decoder(Event)


def main(words: Sequence[str]) -> None:
    """The hook's process: AGENT [--home PATH] [--store URL]."""
    call = _read_words(words)
    folder = config.find_homes(call.home)[1]
    threading.Timer(_TIME, _give_up, (folder, call.agent)).start()
    answer: bytes | None = None
    try:
        answer = run(call, sys.stdin.buffer)
    except Exception as error:  # noqa: BLE001 - an agent's session must not suffer from us; the log tells
        log_trouble(folder, call.agent, error)
    _finishing.acquire()
    if answer:
        _write(answer)
    os._exit(0)


def run(call: _Call, stdin: BinaryIO) -> bytes | None:
    """The answer to what is on standard input; None is silence."""
    said = _read(stdin)
    if config.is_off():
        return None
    if call.agent not in AGENTS:
        raise ConfigError(f"no agent {call.agent}; there are: {', '.join(AGENTS)}")
    event = _event.decode(said)
    if event.agent_id:
        return None
    text = _Hook(call, config.load(call.home, call.store), event).answer()
    if not text:
        return None
    context = {"hookEventName": event.hook_event_name, "additionalContext": text}
    return msgspec.json.encode({"hookSpecificOutput": context}) + b"\n"


class _Hook:
    """One event of one agent."""

    def __init__(self, call: _Call, settings: config.Settings, event: Event) -> None:
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
                raise Refused("an event that nobody asked for")
        return None

    # Giving

    def _start(self) -> str | None:
        """Sessions that were killed leave their transcripts queued: the next one's start has them read."""
        try:
            return self._open_session()
        finally:
            if self._event.source == "startup":
                self._catch_up()

    def _open_session(self) -> str | None:
        from warmstart.store import TrialStore

        source = self._event.source
        with self._open() as ws:
            if source == "resume" and self._agent.repeats_itself and TrialStore(ws.store).trial(self._session):
                return None
            # A fork has its parent's conversation, whose arm nobody tells: it is given nothing and left out.
            opening = ws.provision(self._opening(cold=source == "fork"))
            parts = [opening.text or ""]
            if source == "compact" and opening.arm != _COLD and TrialStore(ws.store).trial(self._refined):
                parts.append(ws.provision(self._refinement()).text or "")
        return _join(parts)

    def _refine(self) -> str | None:
        from warmstart.store import TrialStore

        with self._open() as ws:
            trials = TrialStore(ws.store)
            if trials.trial(self._refined):
                return None
            if trials.trial(self._session) is None:  # the hook came in the middle: there was no opening
                ws.provision(self._opening(examples=0))
            return _join([ws.provision(self._refinement()).text or ""])

    def _open(self) -> Warmstart:
        from warmstart.pipeline import Warmstart

        return Warmstart(self._settings, patience=_PATIENCE)

    @property
    def _session(self) -> str:
        """Ids are plain. One that looks like a secret would be kept under another name, and asked for in vain."""
        session = self._event.session_id
        if not session.strip() or len(session) > 200 or could_hide_secret(session):
            raise Refused("a session's id that is none")
        return session

    @property
    def _refined(self) -> str:
        return f"{self._session}#prompt"

    def _opening(self, *, examples: int | None = None, cold: bool = False) -> Task:
        """Nothing is known of the task yet, so only what this very project has."""
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

    # Taking

    def _queue(self) -> None:
        queue = Queue(self._settings.home)
        for path in find_transcripts(self._agent, self._settings, self._event.transcript_path or ""):
            queue.add(path)

    def _catch_up(self) -> None:
        if Queue(self._settings.home).count():
            from warmstart.doors.hooks.catch_up import start_catching_up

            start_catching_up(self._settings.home, self._store)


def _join(parts: Sequence[str]) -> str:
    """As much as the agent will show, the more fitting first to stay."""
    left = [part for part in parts if part]
    while len("\n\n".join(left).encode()) > _LONGEST_ANSWER:
        left = left[1:]
    return "\n\n".join(left)


# The edge


def _read_words(words: Sequence[str]) -> _Call:
    options = dict(zip(words[1::2], words[2::2], strict=False))
    return _Call(words[0] if words else "", options.get("--home"), options.get("--store"))


def _read(stdin: BinaryIO) -> bytes:
    """All of it: whoever writes must not find a closed pipe. What is too much is not kept."""
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
        pass  # nobody listens any more


def _give_up(home: Path, name: str) -> None:
    """The time is over. Not in the middle of an answer: half of one is none."""
    if _finishing.acquire(blocking=False):
        log_trouble(home, name, f"gave up after {_TIME:g} seconds")
        os._exit(0)
