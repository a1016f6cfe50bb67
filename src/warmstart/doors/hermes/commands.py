"""`/warm` in a session, and `hermes warmstart ...` on the command line."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from warmstart.dialects.compose import Seed
from warmstart.doors.hermes import host
from warmstart.doors.hermes.journal import Journal, UnseededSession, describe
from warmstart.doors.hermes.seeder import AGENT, Seeder
from warmstart.doors.render.terminal import clean, when
from warmstart.errors import WarmstartError
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store import TrialStore

HINT = "status | templates | why | cold"
USAGE = "/warm [status] | templates | why [SESSION] | cold [SESSION]"
_LATELY = 7 * 86_400.0
_SHOWN = 20


class WarmCommand:
    """Answers `/warm` with plain text."""

    def __init__(
        self, open: Callable[[], Warmstart], seeder: Seeder, notes: Callable[[], Journal[UnseededSession]]
    ) -> None:
        self._open = open
        self._seeder = seeder
        self._notes = notes

    def answer(self, words: str = "") -> str:
        """What Hermes calls."""
        asked, _, rest = words.strip().partition(" ")
        try:
            return self._answer(asked.lower() or "status", rest.strip())
        except Exception as error:  # noqa: BLE001  # shown to the person who asked
            return f"Warmstart: {describe(error)}"

    def _answer(self, asked: str, session: str) -> str:
        match asked:
            case "status":
                return "\n".join(self._status())
            case "templates":
                return "\n".join(self._templates())
            case "why":
                return "\n".join(self._why(self._find(session)))
            case "cold":
                return self._make_cold(self._find(session))
            case _:
                return f"Warmstart: no such word: {clean(asked)}. Use {USAGE}"

    def _find(self, session: str) -> str:
        found = session or host.find_session() or next(iter(self._seeder.sessions()[-1:]), None)
        if found is None:
            raise WarmstartError(f"it cannot be told which session is meant; name it: {USAGE}")
        return found

    def _status(self) -> list[str]:
        ws = self._open()
        lines = []
        if session := host.find_session() or next(iter(self._seeder.sessions()[-1:]), None):
            lines.append(f"This session ({clean(session)}): {self._summary(session)}")
        stats = ws.templates.stats()
        kinds = ", ".join(f"{count} {status}" for status, count in sorted(stats["by_status"].items())) or "none yet"
        lines.append(f"Templates: {kinds}. Sessions started with Warmstart: {stats['provisions']}.")
        running = TrialStore(ws.store).running()
        share = f"experiment {running.name}" if running else f"{ws.settings.holdout:.0%} of sessions stay cold"
        lines.append(f"Comparing: {share}. Results: hermes warmstart report")
        lately = [note for note in self._notes().read() if note.at > time.time() - _LATELY]
        for (named, reason), count in Counter((bool(note.session), note.reason) for note in lately).most_common(5):
            what = f"Sessions not seeded in the last 7 days: {count}, because" if named else "In the last 7 days:"
            lines.append(f"{what} {clean(reason)}")
        return lines

    def _summary(self, session: str) -> str:
        seed = self._seed(session)
        if seed is not None:
            if not seed:
                return f"{seed.arm}, nothing shown: {clean(seed.reason)}"
            return f"{seed.arm}, {seed.tokens} tokens from {', '.join(map(clean, seed.templates))}"
        return clean(self._not_seeded(session) or "not started yet")

    def _seed(self, session: str) -> Seed | None:
        """What the session was given: in this process, or in an earlier one."""
        decision = self._seeder.tell(session)
        if decision is not None:
            return decision.seed
        ws = self._open()
        return ws.provision(Task(session=session, agent=AGENT)) if TrialStore(ws.store).trial(session) else None

    def _not_seeded(self, session: str) -> str | None:
        noted = [note.reason for note in self._notes().read() if note.session == session]
        return f"not seeded: {noted[-1]}" if noted else None

    def _why(self, session: str) -> list[str]:
        seed = self._seed(session)
        if seed is None:
            return [clean(self._not_seeded(session) or f"Session {session} has not started with Warmstart.")]
        lines = [f"Arm: {seed.arm}. {clean(seed.reason)}."]
        if seed.templates:
            lines.append(f"Shown: {', '.join(map(clean, seed.templates))} ({seed.tokens} of {seed.budget} tokens)")
        lines += [f"Left out: {clean(one.template)}: {clean(one.reason)}" for one in seed.omitted[:_SHOWN]]
        return lines

    def _make_cold(self, session: str) -> str:
        self._open().provision(Task(session=session, agent=AGENT, cold=True))
        self._seeder.forget(session)
        return f"Session {clean(session)} goes on cold, and is left out of the comparison."

    def _templates(self) -> list[str]:
        found = [(row, template) for row, template in self._open().templates.find() if row.status != "retired"]
        lines = [
            f"{clean(row.name)}@{row.version}  {row.status}  {len(template.examples)} examples, used {row.used} times, "
            f"{when(row.created)}  {clean(template.description)[:80]}"
            for row, template in found[:_SHOWN]
        ]
        if len(found) > _SHOWN:
            lines.append(f"... and {len(found) - _SHOWN} more: hermes warmstart templates list")
        return lines or ["No templates yet. To learn some: hermes warmstart ingest, then: hermes warmstart learn"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All words are Warmstart's own; `hermes warmstart help` shows them."""
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="as after `warmstart`")


def run_warmstart(arguments: Any) -> None:
    """Pass the words on to `warmstart`, in a process of its own: it may read Hermes' database."""
    words = list(getattr(arguments, "words", ()) or ())
    if not words or words[0] == "help":
        words = ["--help"]
    sys.stdout.flush()
    sys.exit(subprocess.run([sys.executable, "-P", "-m", "warmstart", *words], check=False).returncode)
