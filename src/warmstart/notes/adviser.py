"""Advice for one process that asks about many calls: the library, the command line, MCP and benches."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warmstart.notes.advise import advise_after, advise_before, make_place, note_file
from warmstart.notes.after import find_causes
from warmstart.notes.index import LoadedIndex, find_index, open_index
from warmstart.notes.session_state import SessionMemory
from warmstart.notes.types import Advice, CallEvent, Level

_SESSIONS = 1_000  # remembered at a time
_NONE = Advice()


class Adviser:
    """Answers calls from the indexes under a home. It remembers what each session was told."""

    def __init__(self, home: Path, levels: Mapping[str, Level] | None = None, *, disk: bool = True) -> None:
        """`levels`: by kind, under "" for all others. `disk`: check notes on the real disk before they are shown."""
        self._home = home
        self._levels: Mapping[str, str] = levels or {}
        self._disk = disk
        self._indexes: dict[str, tuple[tuple[int, int, int], LoadedIndex]] = {}
        self._sessions: OrderedDict[str, SessionMemory] = OrderedDict()

    def advise(self, event: CallEvent) -> Advice:
        """Return what to do about a call."""
        index = self._find_index(event.project or event.cwd)
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

    def _find_index(self, folder: str | None) -> LoadedIndex | None:
        path = find_index(str(self._home), folder)
        if path is None:
            return None
        try:
            known = Path(path).stat()
        except OSError:
            return None
        stamp = (known.st_mtime_ns, known.st_size, known.st_ino)
        if path not in self._indexes or self._indexes[path][0] != stamp:
            opened = open_index(path)
            if opened is None:
                return None
            self._indexes[path] = (stamp, LoadedIndex(opened))
            opened.close()
        return self._indexes[path][1]


def _answer(advice: dict[str, Any] | None) -> Advice:
    if advice is None:
        return _NONE
    return Advice(action=advice["action"], text=advice["text"], note=advice["note"], arguments=advice.get("arguments"))
