"""Which seed a Hermes session gets: decided once, kept by the store, cached here, and the same on every call."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from warmstart.dialects.compose import Seed
from warmstart.doors.hermes import cron
from warmstart.doors.hermes.journal import Journal, UnseededSession, describe
from warmstart.doors.hermes.latest import Latest
from warmstart.doors.hermes.place import FindPlace
from warmstart.doors.hermes.wire import FORMS, Form, put_seed, read_opening
from warmstart.model import Dialect, Task
from warmstart.pipeline import Warmstart
from warmstart.store import TrialStore

log = logging.getLogger("warmstart.hermes")

AGENT = "hermes"
SUBAGENT = "subagent"  # Hermes' name for the platform of sessions that a session starts
_REMEMBERED = 2_000  # sessions
_REFUSED = (400, 422, 500)  # statuses of providers and local servers for a conversation that they do not accept
_OTHER_CAUSE = re.compile(r"max_(?:completion_)?tokens|temperature|context|too long|parameter|quota|billing", re.I)
_PROVIDER = "the provider answered"


class HermesCall(Struct, frozen=True, kw_only=True):
    """One call to a model, as Hermes describes it."""

    session: str
    api_mode: str
    platform: str = ""
    model: str | None = None
    turn: str = ""
    task: str = ""


Ancestry = Callable[[HermesCall], str | None]  # returns the session that a call's session continues


class SeedDecision(Struct, frozen=True):
    """The seed of a session, or the reason for having none."""

    seed: Seed | None
    reason: str


class TurnOpening(Struct, frozen=True):
    """How a turn began."""

    text: str
    begun: bool  # the agent has answered before


class Seeder:
    """Decides on each session's seed and puts it into the session's calls. Thread-safe."""

    def __init__(
        self,
        open: Callable[[], Warmstart],
        notes: Callable[[], Journal[UnseededSession]],
        ancestry: Ancestry,
        find_place: FindPlace,
    ) -> None:
        self._open = open
        self._notes = notes
        self._ancestry = ancestry
        self._find_place = find_place
        self._decided: Latest[tuple[str, Dialect], SeedDecision] = Latest(_REMEMBERED)
        self._openings: Latest[str, TurnOpening] = Latest(_REMEMBERED)
        self._refusals: Latest[str, int] = Latest(_REMEMBERED)  # evidence against the seed; 0: it was accepted
        self._noted: Latest[str, bool] = Latest(_REMEMBERED)  # as not seeded

    # For every call to a model

    def add_seed(self, call: HermesCall, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the session's seed, or the request itself."""
        if not call.session or call.platform == SUBAGENT:
            return request
        form = FORMS.get(call.api_mode)
        if form is None:
            self.note(call.session, f"Warmstart does not know the API mode {call.api_mode or '(none)'}")
            return request
        decision = self._decided.get((call.session, form.dialect)) or self._settle(call, form, request)
        return put_seed(decision.seed, request, form) if decision.seed else request

    def accept(self, call: HermesCall) -> None:
        """Note that the provider accepted a call: the seed is not the cause of later refusals."""
        if self._refusals.get(call.session) != 0:
            self._refusals.put(call.session, 0)

    def refuse(self, call: HermesCall, error: Exception) -> None:
        """Give up the seed if the provider refuses the first calls of a session."""
        form = FORMS.get(call.api_mode)
        decision = self._decided.get((call.session, form.dialect)) if form else None
        cause = getattr(error, "original", error)  # Hermes wraps what comes from below
        status = getattr(cause, "status_code", None)
        if form is None or decision is None or not decision.seed or status not in _REFUSED:
            return
        before = self._refusals.get(call.session)
        if before == 0:
            return
        is_clear = status != 500 and not _OTHER_CAUSE.search(str(cause)[:2_000])
        evidence = (before or 0) + (2 if is_clear else 1)
        self._refusals.put(call.session, evidence)
        if evidence >= 2:
            reason = f"{_PROVIDER} {status} to the first calls with the seed"
            self._decided.put((call.session, form.dialect), SeedDecision(None, reason))
            self.note(call.session, reason)

    # For hooks and commands

    def begin_turn(self, session: str, opening: TurnOpening) -> None:
        """Keep the user's first words, before Hermes adds its memories to them."""
        if session not in self._openings:
            self._openings.put(session, opening)

    def forget(self, session: str) -> None:
        """Ask the store again at the next call: a person has decided otherwise."""
        for key in self._decided:
            if key[0] == session:
                self._decided.delete(key)

    def note(self, session: str, reason: str) -> None:
        """Record, once per session, that it is not seeded and why."""
        if session in self._noted:
            return
        self._noted.put(session, True)
        log.warning("session %s is not seeded: %s", session, reason)
        notes = self._notes()
        if not any(note.session == session for note in notes.read()):  # by an earlier process
            notes.add(UnseededSession(session=session, reason=reason))

    def find_decision(self, session: str) -> SeedDecision | None:
        """Return what this process decided for a session."""
        return next((self._decided.get(key) for key in self._decided if key[0] == session), None)

    def list_sessions(self) -> list[str]:
        """Return the sessions that this process decided on, the latest last."""
        return list(dict.fromkeys(session for session, _dialect in self._decided))

    # Deciding

    def _settle(self, call: HermesCall, form: Form, request: Mapping[str, Any]) -> SeedDecision:
        """Decide once, even on failure: a later seed would change the prefix that the provider has cached."""
        try:
            decision = self._choose(call, form, request)
        except Exception as error:  # the session goes on without a seed
            log.debug("choosing a seed failed", exc_info=True)
            decision = SeedDecision(None, describe(error))
        self._decided.put((call.session, form.dialect), decision)
        if decision.seed is None:
            self.note(call.session, decision.reason)
        return decision

    def _choose(self, call: HermesCall, form: Form, request: Mapping[str, Any]) -> SeedDecision:
        if call.session in self._noted:
            return SeedDecision(None, "it has run without a seed in another API mode")
        ws = self._open()
        opening = read_opening(request, form)
        turn = self._openings.get(call.session) or TurnOpening(opening.text, opening.begun)
        parent = None
        if TrialStore(ws.store).trial(call.session) is None:
            parent = self._ancestry(call)
            if parent is not None and TrialStore(ws.store).trial(parent) is None:
                parent = None
            if parent is None and turn.begun:
                return SeedDecision(None, "it began before Warmstart was enabled")
        elif reason := self._was_refused(call.session):
            return SeedDecision(None, reason)
        job = cron.find_job(call.session, call.platform)
        place = self._find_place(call.session, call.platform)
        seed = ws.provision(
            Task(
                text=cron.find_prompt(job) or turn.text if job else turn.text,
                job=job,
                agent=AGENT,
                model=call.model,
                project=place.project,
                scope=place.name_scope(ws),
                tools=opening.tools,
                budget=ws.settings.budget,
                examples=ws.settings.examples,
                dialect=form.dialect,
                thinking=opening.thinking,
                session=call.session,
                parent=parent,
                continues=parent is not None,
            )
        )
        return SeedDecision(seed, seed.reason)

    def _was_refused(self, session: str) -> str | None:
        """Return why the provider refused the session's seed in an earlier process."""
        reasons = (note.reason for note in self._notes().read() if note.session == session)
        return next((reason for reason in reasons if reason.startswith(_PROVIDER)), None)
