"""The tool `warm_session` inside Hermes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from warmstart.doors.agent_tools.warm_session import DESCRIPTION, NAME, PARAMETERS, warm_session
from warmstart.doors.hermes import host
from warmstart.doors.hermes.close import Closer
from warmstart.doors.hermes.journal import describe
from warmstart.doors.hermes.place import FindPlace, SessionPlace
from warmstart.doors.hermes.seeder import AGENT
from warmstart.pipeline import Warmstart

TOOLSET = "skills"
SCHEMA: dict[str, Any] = {"name": NAME, "description": DESCRIPTION, "parameters": PARAMETERS}
_READING = 20.0  # seconds to wait for the newest sessions; a tool call may not take longer


class HermesTool:
    """Handles the agent's calls. It is also the host that `warm_session` asks for facts that only Hermes knows."""

    agent = AGENT

    def __init__(
        self,
        open: Callable[[], Warmstart],
        closer: Closer,
        find_place: FindPlace,
        find_asker: Callable[[], SessionPlace],
    ) -> None:
        self._open = open
        self._closer = closer
        self._find_place = find_place
        self._find_asker = find_asker

    def handle(self, arguments: Any, session_id: Any = None, **_context: Any) -> str:
        """Answer a call of the agent: arguments in, JSON out, never an exception."""
        try:
            ws = self._open()
            place = (
                self._find_place(session_id, "") if isinstance(session_id, str) and session_id else self._find_asker()
            )
            border = place.draw_border(ws)
            answer = warm_session(ws, arguments if isinstance(arguments, dict) else {}, self, border)
        except Exception as error:  # noqa: BLE001  # the agent reads it instead of failing
            answer = {"success": False, "error": describe(error)}
        return msgspec.json.encode(answer, enc_hook=str).decode()

    def refresh(self) -> str | None:
        """Read Hermes' database in another process; return a warning if its newest sessions are missing."""
        database, home = host.find_database(), self._open().settings.home
        if not database.exists():
            return None
        self._closer.mark(home, database)
        return _wait(self._closer.run(database, settling=0.0, learn=False), database)


def _wait(process: subprocess.Popen[bytes], database: Path) -> str | None:
    try:
        code = process.wait(_READING)
    except subprocess.TimeoutExpired:
        return "the newest sessions are still being read; only earlier ones were used"
    return f"{database.name} could not be read; only sessions read earlier were used" if code else None
