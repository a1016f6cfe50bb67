"""`/warm` in a session, and `hermes warmstart ...` on the command line."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from warmstart.dialects.compose import Seed
from warmstart.doors.hermes import host
from warmstart.doors.hermes.journal import Journal, UnseededSession, describe
from warmstart.doors.hermes.place import SessionPlace
from warmstart.doors.hermes.seeder import AGENT, Seeder
from warmstart.doors.hermes.windows import INSIDE
from warmstart.doors.hooks.learning import LearningTurn
from warmstart.doors.render.terminal import clean, format_time
from warmstart.errors import WarmstartError
from warmstart.model import Task, Template
from warmstart.pipeline import Warmstart
from warmstart.plurals import format_count
from warmstart.scopes import EVERYWHERE, Border
from warmstart.store import TemplateRow, TrialStore
from warmstart.store.trials import read_scope

HINT = "status | templates | proposals | why | cold"
USAGE = "/warm [status] | templates | proposals | why [SESSION] | cold [SESSION]"
_LATELY = 7 * 86_400.0
_SHOWN, _FEW = 20, 3


class WarmCommand:
    """Answers `/warm` with plain text."""

    def __init__(
        self,
        open: Callable[[], Warmstart],
        seeder: Seeder,
        notes: Callable[[], Journal[UnseededSession]],
        find_asker: Callable[[], SessionPlace],
    ) -> None:
        self._open = open
        self._seeder = seeder
        self._notes = notes
        self._find_asker = find_asker

    def answer(self, words: str = "") -> str:
        """Answer the words after `/warm`."""
        action, _, session = words.strip().partition(" ")
        try:
            return self._answer(action.lower() or "status", session.strip())
        except Exception as error:  # noqa: BLE001  # shown to the person who asked
            return f"Warmstart: {describe(error)}"

    def _answer(self, action: str, session: str) -> str:
        match action:
            case "status":
                return "\n".join(self._show_status())
            case "templates":
                return "\n".join(self._list_templates())
            case "proposals":
                return "\n".join(self._list_proposals() or ["No proposals wait for a decision."])
            case "why":
                return "\n".join(self._explain(self._find(session)))
            case "cold":
                return self._make_cold(self._find(session))
            case _:
                return f"Warmstart: unknown word {clean(action)}. Use {USAGE}"

    def _find(self, session: str) -> str:
        current = session or self._find_current()
        if current is None:
            raise WarmstartError(f"the current session is not known; name it: {USAGE}")
        if self._find_asker().is_personal and current != host.find_session():
            raise WarmstartError("only the session of this chat can be named here")
        return current

    def _find_current(self) -> str | None:
        if self._find_asker().is_personal:
            return host.find_session()
        return host.find_session() or next(iter(self._seeder.list_sessions()[-1:]), None)

    def _find_border(self) -> Border:
        """Return what the asker may see: the machine's own user sees all projects."""
        place = self._find_asker()
        border = place.draw_border(self._open())
        return border if place.is_personal else Border(border.scope, EVERYWHERE)

    def _show_status(self) -> list[str]:
        ws = self._open()
        lines = []
        if session := self._find_current():
            lines.append(f"This session ({clean(session)}): {self._summarise(session)}")
        if self._find_asker().is_personal:
            waiting = self._list_proposals()
            lines.append(f"Templates of this chat, and shared ones: {len(self._list_usable())}.")
            return [*lines, *([f"Proposals that wait: {len(waiting)}.", *waiting[:_FEW]] if waiting else [])]
        stats = ws.templates.stats()
        counts = ", ".join(f"{count} {status}" for status, count in sorted(stats["by_status"].items())) or "none yet"
        lines.append(f"Templates: {counts}. Sessions started with Warmstart: {stats['provisions']}.")
        running = TrialStore(ws.store).running()
        share = f"experiment {running.name}" if running else f"{ws.settings.holdout:.0%} of sessions stay cold"
        lines.append(f"Comparing: {share}. Results: hermes warmstart report")
        if last := LearningTurn(ws.settings.home).read_last():
            found = f"{format_count(last.active, 'template')} in use ({last.new} new or changed)"
            lines.append(
                f"Learned by itself {format_time(last.at)} (UTC) from {format_count(last.sessions, 'session')}: "
                f"{found}, {format_count(last.notes, 'note')}."
            )
        if waiting := self._list_proposals():
            lines += [f"Proposals that wait for you: {len(waiting)}.", *waiting[:_FEW]]
        recent = [note for note in self._notes().read() if note.at > time.time() - _LATELY]
        for (named, reason), count in Counter((bool(note.session), note.reason) for note in recent).most_common(5):
            start = f"Sessions not seeded in the last 7 days: {count}, because" if named else "In the last 7 days:"
            lines.append(f"{start} {clean(reason)}")
        return lines

    def _summarise(self, session: str) -> str:
        seed = self._seed(session)
        if seed is not None:
            if not seed:
                return f"{seed.arm}, nothing shown: {clean(seed.reason)}"
            return f"{seed.arm}, {seed.tokens} tokens from {', '.join(map(clean, seed.templates))}"
        return clean(self._not_seeded(session) or "not started yet")

    def _seed(self, session: str) -> Seed | None:
        """Return the session's seed, decided in this process or in an earlier one."""
        decision = self._seeder.find_decision(session)
        if decision is not None:
            return decision.seed
        ws = self._open()
        trial = TrialStore(ws.store).trial(session)
        return ws.provision(Task(session=session, agent=AGENT, scope=self._find_scope(session))) if trial else None

    def _find_scope(self, session: str) -> str:
        """Return the scope of a session that the asker may ask about."""
        trial = TrialStore(self._open().store).trial(session)
        return read_scope(trial) if trial else self._find_border().scope

    def _not_seeded(self, session: str) -> str | None:
        reasons = [note.reason for note in self._notes().read() if note.session == session]
        return f"not seeded: {reasons[-1]}" if reasons else None

    def _explain(self, session: str) -> list[str]:
        seed = self._seed(session)
        if seed is None:
            return [clean(self._not_seeded(session) or f"Session {session} was not started with Warmstart.")]
        lines = [f"Arm: {seed.arm}. {clean(seed.reason)}."]
        if seed.templates:
            templates = ", ".join(map(clean, seed.templates))
            lines.append(f"Shown: {templates} ({seed.tokens} tokens, budget {seed.budget})")
        lines += [f"Left out: {clean(omitted.template)}: {clean(omitted.reason)}" for omitted in seed.omitted[:_SHOWN]]
        return lines

    def _make_cold(self, session: str) -> str:
        self._open().provision(Task(session=session, agent=AGENT, cold=True, scope=self._find_scope(session)))
        self._seeder.forget(session)
        return f"Session {clean(session)} continues cold. Comparisons count it in the arm that was drawn for it."

    def _list_proposals(self) -> list[str]:
        """Return what reviews propose, one line each; in a chat of a gateway only what its own session led to."""
        rows = self._open().reviews.list("waiting")
        if self._find_asker().is_personal:
            own = host.find_session()
            rows = [row for row in rows if own and row.session == own]
        return [
            f"{row.id[:8]}  {row.kind} {row.action}: {clean(row.summary)[:100]}  "
            f"(hermes warmstart review apply {row.id[:8]}, or discard)"
            for row in rows[-_SHOWN:]
        ]

    def _list_templates(self) -> list[str]:
        usable = self._list_usable()
        lines = [
            f"{clean(row.name)}@{row.version}  {row.status}  {len(template.examples)} examples, used {row.used} times, "
            f"{format_time(row.created)}  {clean(template.description)[:80]}"
            for row, template in usable[:_SHOWN]
        ]
        if len(usable) > _SHOWN:
            lines.append(f"... and {len(usable) - _SHOWN} more: hermes warmstart templates list")
        return lines or [
            "No templates yet. They are learned when sessions end; for older sessions run: "
            "hermes warmstart ingest; hermes warmstart learn"
        ]

    def _list_usable(self) -> list[tuple[TemplateRow, Template]]:
        found = self._open().templates.find(border=self._find_border())
        return [(row, template) for row, template in found if row.status != "retired"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Accept any words: they are Warmstart's own, and `hermes warmstart help` shows them."""
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="...", help="as after `warmstart`")


def run_warmstart(arguments: Any) -> None:
    """Pass the words to `warmstart` in a separate process: it may read Hermes' database."""
    words = list(getattr(arguments, "words", ()) or ())
    if not words or words[0] == "help":
        words = ["--help"]
    sys.stdout.flush()
    environ = {**os.environ, INSIDE: AGENT}
    sys.exit(subprocess.run([sys.executable, "-P", "-m", "warmstart", *words], env=environ, check=False).returncode)
