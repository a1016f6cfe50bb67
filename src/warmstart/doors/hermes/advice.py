"""Advice after a failed tool call in Hermes: the fix that worked in earlier sessions, behind the call's result."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from warmstart.doors.hermes.latest import Latest
from warmstart.doors.hermes.place import FindPlace
from warmstart.doors.hermes.seeder import AGENT
from warmstart.notes.types import CallEvent
from warmstart.pipeline import Warmstart
from warmstart.scopes import Border

_REMEMBERED = 2_000  # sessions
_END = 2_000  # characters at each end of a result in which a failure is looked for
_FAILED = re.compile(
    r'"(?:exit_code": ?-?[1-9]|returncode": ?-?[1-9]|error": ?(?!null|""|false)[^ ]|success": ?false'
    r'|status": ?"(?:error|failed|timeout)")'
)  # a quotation mark inside a text is escaped, so that a name is followed by \"


class FailureAdviser:
    """Adds advice to the results of failed calls. A call that worked costs one search in its result."""

    def __init__(self, open: Callable[[], Warmstart], find_place: FindPlace) -> None:
        self._open = open
        self._find_place = find_place
        self._places: Latest[str, tuple[Border, str | None]] = Latest(_REMEMBERED)

    def add_advice(self, session: str, tool: str, arguments: Any, result: Any) -> str | None:
        """Return the result with advice behind it; None where there is none to give.

        Only sessions that take part in a comparison get advice: of a subagent's session, whose parent may be a cold one,
        the arm is not known.
        """
        if not session or not isinstance(result, str) or not isinstance(arguments, dict) or not looks_failed(result):
            return None
        ws = self._open()
        if ws.find_arm(session) is None:
            return None
        border, folder = self._locate(ws, session)
        advice = ws.advise(
            CallEvent(
                tool=tool,
                arguments=arguments,
                when="after",
                session=session,
                agent=AGENT,
                cwd=folder,
                project=border.project,
                scope=border.scope,
                result=result,
            ),
            kept=True,
        )
        return f"{result}\n\n{advice.text}" if advice.action != "none" and advice.text else None

    def _locate(self, ws: Warmstart, session: str) -> tuple[Border, str | None]:
        """Return what a session may see and its folder: they do not change."""
        known = self._places.get(session)
        if known is None:
            place = self._find_place(session, "")
            known = place.draw_border(ws), place.project
            self._places.put(session, known)
        return known


def looks_failed(result: str) -> bool:
    """Return whether a result is worth the judges' time: Hermes reports a failed command as it reports others."""
    text = result if len(result) <= 2 * _END else result[:_END] + result[-_END:]
    return _FAILED.search(text) is not None
