"""Advice for one process that asks about many calls: the library, the command line, MCP, Hermes and benches."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warmstart.notes.advise import advise_after, advise_before, find_matches, make_place, note_file
from warmstart.notes.after import find_causes
from warmstart.notes.exposure import Exposure
from warmstart.notes.index import FOLDER, FOLDERS, LoadedIndex, find_index, open_index
from warmstart.notes.index_files import name_index
from warmstart.notes.session_state import SessionFile, SessionMemory
from warmstart.notes.types import Advice, CallEvent

_SESSIONS = 1_000  # remembered at a time
_NONE = Advice()
_Stamp = tuple[int, int, int]  # time, size and number of a file


class Adviser:
    """Answers calls from the indexes under a home. It remembers which notes each session was shown. Thread-safe.

    `levels`: by kind, under "" for all others. `disk`: check notes on the real disk before they are shown. `exposure`:
    which sessions get advice, and the record of what they got. `kept`: remember sessions in files, as hooks do, so that
    other processes know which notes a session was shown.
    """

    def __init__(
        self,
        home: Path,
        levels: Mapping[str, str] | None = None,
        *,
        disk: bool = True,
        exposure: Exposure | None = None,
        kept: bool = False,
    ) -> None:
        self._home = home
        self._levels: Mapping[str, str] = levels or {}
        self._disk = disk
        self._exposure = exposure
        self._kept = kept
        self._folders = str(home / FOLDER / FOLDERS)
        self._known_folders: tuple[_Stamp, dict[str, tuple[str, str] | None]] = ((0, 0, 0), {})
        self._indexes: dict[tuple[str, str], tuple[_Stamp, LoadedIndex]] = {}
        self._sessions: OrderedDict[str, SessionMemory] = OrderedDict()
        self._nameless = SessionMemory(knows_files=False)  # calls without a session count as one: none is stopped twice
        self._lock = threading.Lock()

    def advise(self, event: CallEvent) -> Advice:
        """Return what to do about a call."""
        with self._lock:
            index = self._find_index(event)
            if index is None:
                return _NONE
            call = {"tool": event.tool, "arguments": event.arguments, "cwd": event.cwd, "agent": event.agent}
            call["call_id"] = event.call_id
            if event.when == "before":
                return self._advise_before(event, call, index)
            return self._advise_after(event, call, index)

    def _advise_before(self, event: CallEvent, call: dict[str, Any], index: LoadedIndex) -> Advice:
        if self._kept and not find_matches(call, index, make_place(call, index), set()):
            return _NONE
        with self._remember(event.session or "") as state:
            advice = advise_before(call, index, self._levels, state, disk=self._disk)
            return self._give(advice, event, state)

    def _advise_after(self, event: CallEvent, call: dict[str, Any], index: LoadedIndex) -> Advice:
        place = make_place(call, index)
        causes = None if event.error is False else find_causes(call, event.result or "", place, failed=event.error)
        if causes is None:
            if index.watches_files:
                with self._remember(event.session or "") as state:
                    note_file(call, index, state)
            return _NONE
        if not any(index.find(f"={key}") for key in causes):
            return _NONE
        with self._remember(event.session or "") as state:
            advice = advise_after(causes, call, index, self._levels, state, disk=self._disk)
            return self._give(advice, event, state)

    def _give(self, advice: dict[str, Any] | None, event: CallEvent, state: SessionMemory) -> Advice:
        """Record the advice and return it."""
        if event.session and self._exposure is not None:
            self._exposure.record(state.newly_wrong, event.session, "wrong")
            state.newly_wrong.clear()
            if advice is not None:
                how = advice["action"] if event.when == "before" else "after"
                self._exposure.record([advice["note"]], event.session, how)
        return _answer(advice)

    @contextmanager
    def _remember(self, session: str) -> Iterator[SessionMemory]:
        if not session:
            yield self._nameless
        elif self._kept:
            with SessionFile(str(self._home), session) as kept:
                if kept.advises is None:
                    kept.advises = True  # for this call; whether the session gets advice is not decided here
                self._connect(kept)
                yield kept
        else:
            state = self._sessions.setdefault(session, SessionMemory(session))
            self._connect(state)
            self._sessions.move_to_end(session)
            if len(self._sessions) > _SESSIONS:
                self._sessions.popitem(last=False)
            yield state

    def _connect(self, state: SessionMemory) -> None:
        """Let a session's state ask whether it gets advice, and record what is drawn for it."""
        exposure = self._exposure
        if exposure is not None and state.ask is None:
            state.ask = lambda: exposure.ask(state.session)
            state.recorder = lambda draw: exposure.record_draw(state.session, draw)

    def _find_index(self, event: CallEvent) -> LoadedIndex | None:
        if event.scope:  # folders belong to the machine's own user
            return self._load(str(self._home / FOLDER / name_index(event.project or "", event.scope)), "")
        if event.project:
            path = str(self._home / FOLDER / name_index(event.project))
            if os.path.exists(path):
                return self._load(path, "")
        folder = event.cwd or event.project or ""
        stamp = _stamp(self._folders)
        if stamp != self._known_folders[0]:
            self._known_folders = (stamp, {})
        places = self._known_folders[1]
        if folder not in places:
            places[folder] = find_index(str(self._home), folder)
        known = places[folder]
        return self._load(*known) if known else None

    def _load(self, path: str, root: str) -> LoadedIndex | None:
        """Return an index as it is now: read again where `learn` has written it anew."""
        stamp = _stamp(path)
        known = self._indexes.get((path, root))
        if known is None or known[0] != stamp:
            opened = open_index(path, root)
            if opened is None:
                return None
            known = self._indexes[path, root] = (stamp, LoadedIndex(opened))
            opened.close()
        return known[1]


def _stamp(path: str) -> _Stamp:
    """Return a value that changes whenever the file changes."""
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return (0, 0, 0)
    return (now.st_mtime_ns, now.st_size, now.st_ino)


def _answer(advice: dict[str, Any] | None) -> Advice:
    if advice is None:
        return _NONE
    return Advice(action=advice["action"], text=advice["text"], note=advice["note"], arguments=advice.get("arguments"))
