"""Advice for one process that asks about many calls: the library, the command line, MCP and benches."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warmstart.notes.advise import advise_after, advise_before, make_place, note_file
from warmstart.notes.after import find_causes
from warmstart.notes.index import FOLDER, FOLDERS, LoadedIndex, find_index, open_index
from warmstart.notes.index_files import name_index
from warmstart.notes.session_state import SessionMemory
from warmstart.notes.types import Advice, CallEvent

_SESSIONS = 1_000  # remembered at a time
_NONE = Advice()
_Stamp = tuple[int, int, int]  # time, size and number of a file


class Adviser:
    """Answers calls from the indexes under a home. It remembers what each session was told."""

    def __init__(self, home: Path, levels: Mapping[str, str] | None = None, *, disk: bool = True) -> None:
        """`levels`: by kind, under "" for all others. `disk`: check notes on the real disk before they are shown."""
        self._home = home
        self._levels: Mapping[str, str] = levels or {}
        self._disk = disk
        self._folders = str(home / FOLDER / FOLDERS)
        self._known_folders: tuple[_Stamp, dict[str, tuple[str, str] | None]] = ((0, 0, 0), {})
        self._indexes: dict[tuple[str, str], tuple[_Stamp, LoadedIndex]] = {}
        self._sessions: OrderedDict[str, SessionMemory] = OrderedDict()

    def advise(self, event: CallEvent) -> Advice:
        """Return what to do about a call."""
        index = self._find_index(event)
        if index is None:
            return _NONE
        call = {"tool": event.tool, "arguments": event.arguments, "cwd": event.cwd, "agent": event.agent}
        state = self._remember(event.session or "")
        if event.when == "before":
            return _answer(advise_before(call, index, self._levels, state, disk=self._disk))
        if event.error is False:
            note_file(call, index, state)
            return _NONE
        causes = find_causes(call, event.result or "", make_place(call, index), failed=event.error)
        if causes is None:
            note_file(call, index, state)
            return _NONE
        return _answer(advise_after(causes, call, index, self._levels, state, disk=self._disk))

    def _remember(self, session: str) -> SessionMemory:
        if not session:
            return SessionMemory(knows_files=False)  # nobody's call: nothing was told before
        state = self._sessions.setdefault(session, SessionMemory())
        self._sessions.move_to_end(session)
        if len(self._sessions) > _SESSIONS:
            self._sessions.popitem(last=False)
        return state

    def _find_index(self, event: CallEvent) -> LoadedIndex | None:
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
    """Return what tells one state of a file from another."""
    try:
        now = os.stat(path)
    except (OSError, ValueError):
        return (0, 0, 0)
    return (now.st_mtime_ns, now.st_size, now.st_ino)


def _answer(advice: dict[str, Any] | None) -> Advice:
    if advice is None:
        return _NONE
    return Advice(action=advice["action"], text=advice["text"], note=advice["note"], arguments=advice.get("arguments"))
