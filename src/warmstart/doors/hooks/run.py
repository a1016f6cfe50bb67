"""The process behind agents' hooks, `warmstart hook run AGENT`: one JSON object in, at most one out (see also calls).

An agent waits for it, so it loads only what it needs and gives up in time. It always exits with 0 and prints nothing but
the protocol's answer; errors go to a log under the home.

| event | what happens |
|---|---|
| `SessionStart` | assigns the session to an arm and gives this project's best examples, in a third of the budget |
| `UserPromptSubmit` | adds, at the first prompt, examples that fit the task; nothing is shown twice |
| `Stop`, `SubagentStop`, `SessionEnd` | the transcript is queued; the session's end also starts `catching_up` |

After a compaction both parts are given again, byte for byte; after a resume only the part that the agent does not replay.
Gemini CLI gets its opening with the first prompt, and again with the first one after a compaction.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import msgspec
from msgspec import Struct

from warmstart import config
from warmstart.arms import gets_advice
from warmstart.doors.hooks.agents import AGENTS, find_transcripts
from warmstart.doors.hooks.calls import SETTINGS
from warmstart.doors.hooks.gemini_log import still_shows
from warmstart.doors.hooks.log import log_trouble
from warmstart.doors.hooks.pipes import read_input, write_answer
from warmstart.doors.hooks.protocols import find_words
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
_SHORT_PATIENCE = 0.5  # at a call: the next call can be answered instead
_LONGEST_ANSWER = 10_000  # characters; Claude Code shows no more, Codex counts bytes
_MOST_TOKENS = 2_000  # always fit in there
_OPENING_SHARE = 3  # the opening gets a third of the budget
_OPENING_EXAMPLES = 1  # at most, before the prompt is known: the prompt's own examples follow
_COLD = "cold"

_doing = "before the store was opened"  # what a process that gives up was doing
_finishing = threading.Lock()  # held by the thread that ends the process: with the answer, or because time is up


class HookCall(NamedTuple):
    """The command line of the hook."""

    agent: str
    home: str | None = None
    store: str | None = None
    caller: str | None = None  # who runs us, besides the agent's settings


class Event(Struct, frozen=True):
    """An event, in the words of Claude Code."""

    hook_event_name: str = ""
    session_id: str = ""
    transcript_path: str | None = None
    cwd: str | None = None
    source: str = ""  # of a SessionStart
    model: str | None = None
    prompt: str = ""
    agent_id: str | None = None  # only inside a subagent
    agent_transcript_path: str | None = None  # of a SubagentStop


def main(words: Sequence[str], data: bytes | None = None) -> None:
    """Run the hook: AGENT [--home PATH] [--store URL] [--caller NAME]. `data`: the event, if it has been read already."""
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
        write_answer(answer)
    os._exit(0)


def run(call: HookCall, stdin: BinaryIO) -> bytes | None:
    """Return the answer to the event on standard input; None is silence."""
    data = read_input(stdin)
    if config.is_off():
        return None
    if call.agent not in AGENTS:
        raise ConfigError(f"unknown agent {call.agent}; known: {', '.join(AGENTS)}")
    raw = msgspec.json.decode(data, type=dict[str, Any])
    words = find_words(call.agent)
    event = msgspec.convert(words.translate(raw), Event)
    if event.agent_id and event.hook_event_name != "SubagentStop":
        return None
    text = _Hook(call, config.load(call.home, call.store), event).answer()
    if not text:
        return None
    answer = words.encode({"hookEventName": event.hook_event_name, "additionalContext": text}, raw)
    return msgspec.json.encode(answer) + b"\n" if answer else None


def admit_session(call: HookCall, session: str, folder: str) -> None:
    """Assign a session to an arm in mid-session, and record whether it gets advice at its calls."""
    if call.agent in AGENTS:
        event = Event(session_id=session, cwd=folder)
        _Hook(call, config.load(call.home, call.store), event).admit()


class _Hook:
    """One event of one agent."""

    def __init__(self, call: HookCall, settings: config.Settings, event: Event) -> None:
        self._agent = AGENTS[call.agent]
        self._store, self._caller = call.store, call.caller or SETTINGS
        self._settings = settings
        self._event = event

    def answer(self) -> str | None:
        match self._event.hook_event_name:
            case "SessionStart" | "UserPromptSubmit" if self._is_private:
                return None
            case "SessionStart":
                return self._start() if self._claim() else None
            case "UserPromptSubmit":
                return self._refine() if self._claim() else None
            case "Stop" | "SubagentStop":
                self._queue()
                if self._agent.ends_silently:
                    self._catch_up()
            case "SessionEnd":
                self._queue()
                self._catch_up()
            case _:
                raise Refused("an event that is not hooked")
        return None

    @property
    def _is_private(self) -> bool:
        """Whether the store is a server's that may take no project: nothing is asked or recorded there."""
        return self._settings.is_shared and not self._settings.store_projects

    def _claim(self) -> bool:
        with SessionFile(str(self._settings.home), self._session) as state:
            return state.claim(self._caller, time.time(), renew=True)

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
                self._remember(ws, known.given)
                return None
            # A fork continues its parent's conversation, whose arm is not known here: it gets nothing and is left out.
            task = self._opening(cold=source == "fork")
            if not task.cold and ws.brief(task).text:  # what the project knows replaces general examples
                task = self._opening(examples=0)
            opening = ws.provision(task)
            self._remember(ws, opening.arm)
            self._join_project(ws)
            parts = [opening.text or ""]
            if source == "compact" and opening.arm != _COLD and TrialStore(ws.store).trial(self._refined):
                parts.append(ws.provision(self._refinement()).text or "")
        return _join(parts)

    def admit(self) -> None:
        """Open a session without an opening: it began before the hook was there.

        A server is not asked at a call: the next prompt opens the session.
        """
        from warmstart.store import TrialStore, locate_store

        if locate_store(self._settings.store_url) is None:
            with SessionFile(str(self._settings.home), self._session) as state:
                state.start(advises=False, knows_files=False)
            return
        with self._open(_SHORT_PATIENCE) as ws:
            known = TrialStore(ws.store).trial(self._session)
            self._remember(ws, known.given if known else ws.provision(self._opening(examples=0)).arm)

    def _remember(self, ws: Warmstart, arm: str | None) -> None:
        """Record for the hooks at calls whether the session gets advice, how notes are tried, and which files it has read."""
        source = self._event.source
        with SessionFile(str(self._settings.home), self._session) as state:
            is_new = source in ("startup", "clear")
            state.start(advises=gets_advice(arm), knows_files=is_new, withholding=ws.find_withholding())
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
            known = trials.trial(self._session)
            if known is None:  # the hook was installed in mid-session: there was no opening
                self._remember(ws, ws.provision(self._opening(examples=0)).arm)
            opening = ws.provision(self._opening()).text if self._agent.opens_at_prompt else None
            if trials.trial(self._refined) and (not opening or self._still_shows(opening)):
                return None
            return _join([opening or "", ws.provision(self._refinement()).text or ""])

    def _still_shows(self, opening: str) -> bool:
        """Return whether the agent's conversation still has the opening; if not, it was compacted or rewound."""
        files = find_transcripts(self._agent, self._settings, self._event.transcript_path or "")
        if not files or still_shows(files[0], opening):
            return True
        with SessionFile(str(self._settings.home), self._session) as state:
            state.forget_files()
        return False

    def _open(self, patience: float = _PATIENCE) -> Warmstart:
        from warmstart.pipeline import Warmstart

        global _doing
        _doing = "while it used the store" + (" on a server" if self._settings.is_shared else "")
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
        budget, most = self._budget // _OPENING_SHARE, min(self._settings.examples, _OPENING_EXAMPLES)
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
        transcript = self._event.agent_transcript_path or self._event.transcript_path or ""
        for path in find_transcripts(self._agent, self._settings, transcript, self._event.session_id):
            queue.add(path)

    def _catch_up(self) -> None:
        from warmstart.doors.hooks.catch_up import has_work, start_catching_up

        if has_work(self._settings.home):
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
    return HookCall(words[0] if words else "", options.get("--home"), options.get("--store"), options.get("--caller"))


def _give_up(home: Path, name: str) -> None:
    """End the process because time is up, unless the answer is being written."""
    if _finishing.acquire(blocking=False):
        used = time.process_time()  # little of the time that is over: the machine was busy, or a server did not answer
        log_trouble(home, name, f"gave up after {_TIME:g} seconds, {used:.1f} of them of processor time, {_doing}")
        os._exit(0)
