"""Which seed a Hermes session gets: decided once, kept by the store, remembered here, and the same on every call."""

from __future__ import annotations

import logging
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from warmstart.dialects.compose import Seed
from warmstart.doors.hermes import cron
from warmstart.doors.hermes.journal import Journal, UnseededSession, describe
from warmstart.doors.hermes.wire import FORMS, Form, put_seed, read_opening
from warmstart.model import Dialect, Task
from warmstart.pipeline import Warmstart
from warmstart.store import TrialStore

log = logging.getLogger("warmstart.hermes")

AGENT = "hermes"
SUBAGENT = "subagent"  # Hermes' name for the platform of sessions that a session starts
_REMEMBERED = 2_000  # sessions; a gateway runs for weeks
_REFUSED = (400, 422, 500)  # what providers and local servers answer to a conversation that they do not take
_OTHER_CAUSE = re.compile(r"max_(?:completion_)?tokens|temperature|context|too long|parameter|quota|billing", re.I)
_PROVIDER = "the provider answered"


class HermesCall(Struct, frozen=True, kw_only=True):
    """One call to a model, as Hermes tells of it."""

    session: str
    api_mode: str
    platform: str = ""
    model: str | None = None
    turn: str = ""
    task: str = ""


Ancestry = Callable[[HermesCall], str | None]  # finds the session that a call's session goes on from


class SeedDecision(Struct, frozen=True):
    """What a session starts with, or why with nothing."""

    seed: Seed | None
    reason: str


class TurnOpening(Struct, frozen=True):
    """How a turn began."""

    text: str
    begun: bool  # the agent has answered before


class Seeder:
    """Decides for each session and puts its seed into its calls. Thread-safe."""

    def __init__(
        self, open: Callable[[], Warmstart], notes: Callable[[], Journal[UnseededSession]], ancestry: Ancestry
    ) -> None:
        self._open = open
        self._notes = notes
        self._ancestry = ancestry
        self._lock = threading.Lock()
        self._decided: OrderedDict[tuple[str, Dialect], SeedDecision] = OrderedDict()
        self._asked: OrderedDict[str, TurnOpening] = OrderedDict()
        self._refusals: OrderedDict[str, int] = OrderedDict()  # how much speaks against the seed; 0: it was taken
        self._told: OrderedDict[str, bool] = OrderedDict()  # noted as not seeded

    # Called for every call

    def add_seed(self, call: HermesCall, request: dict[str, Any]) -> dict[str, Any]:
        """The request with the session's seed, or the very same request."""
        if not call.session or call.platform == SUBAGENT:
            return request
        form = FORMS.get(call.api_mode)
        if form is None:
            self.note(call.session, f"the API mode {call.api_mode or '(none)'} is not known to Warmstart")
            return request
        decision = self._decided.get((call.session, form.dialect)) or self._settle(call, form, request)
        return put_seed(decision.seed, request, form) if decision.seed else request

    def accept(self, call: HermesCall) -> None:
        """The provider took the call: whatever it refuses later, the seed is not the cause."""
        if self._refusals.get(call.session) != 0:
            self._keep(self._refusals, call.session, 0)

    def refuse(self, call: HermesCall, error: Exception) -> None:
        """The provider refused the first calls of a session: the next goes out without the seed."""
        form = FORMS.get(call.api_mode)
        decision = self._decided.get((call.session, form.dialect)) if form else None
        cause = getattr(error, "original", error)  # Hermes wraps what comes from below
        status = getattr(cause, "status_code", None)
        if form is None or decision is None or not decision.seed or status not in _REFUSED:
            return
        before = self._refusals.get(call.session)
        if before == 0:
            return
        plain = status != 500 and not _OTHER_CAUSE.search(str(cause)[:2_000])
        against = (before or 0) + (2 if plain else 1)
        self._keep(self._refusals, call.session, against)
        if against >= 2:
            reason = f"{_PROVIDER} {status} to the first calls with the seed"
            self._decide(call.session, form.dialect, SeedDecision(None, reason))
            self.note(call.session, reason)

    # Told by hooks

    def begin_turn(self, session: str, asked: TurnOpening) -> None:
        """What the user really said, before Hermes adds to it what it remembers."""
        if session not in self._asked:
            self._keep(self._asked, session, asked)

    def forget(self, session: str) -> None:
        """Ask the store again: a person has decided otherwise."""
        with self._lock:
            for key in [key for key in self._decided if key[0] == session]:
                del self._decided[key]

    def note(self, session: str, reason: str) -> None:
        """Once a session: it is not seeded, and why."""
        if session in self._told:
            return
        self._keep(self._told, session, True)
        log.warning("session %s is not seeded: %s", session, reason)
        notes = self._notes()
        if not any(note.session == session for note in notes.read()):  # by an earlier process
            notes.add(UnseededSession(session=session, reason=reason))

    def tell(self, session: str) -> SeedDecision | None:
        """What was decided for a session in this process."""
        with self._lock:
            return next((found for (own, _dialect), found in self._decided.items() if own == session), None)

    def sessions(self) -> list[str]:
        """Those decided on in this process, the latest last."""
        with self._lock:
            return list(dict.fromkeys(session for session, _dialect in self._decided))

    # Deciding

    def _settle(self, call: HermesCall, form: Form, request: Mapping[str, Any]) -> SeedDecision:
        """Final, whatever comes of it: a seed that comes late would change what the provider has cached."""
        try:
            decision = self._choose(call, form, request)
        except Exception as error:  # whatever it is, the session goes on without a seed
            log.debug("choosing a seed failed", exc_info=True)
            decision = SeedDecision(None, describe(error))
        self._decide(call.session, form.dialect, decision)
        if decision.seed is None:
            self.note(call.session, decision.reason)
        return decision

    def _choose(self, call: HermesCall, form: Form, request: Mapping[str, Any]) -> SeedDecision:
        if call.session in self._told:
            return SeedDecision(None, "it has gone on without a seed in another API mode")
        ws = self._open()
        opening = read_opening(request, form)
        asked = self._asked.get(call.session) or TurnOpening(opening.text, opening.begun)
        parent = None
        if TrialStore(ws.store).trial(call.session) is None:
            parent = self._ancestry(call)
            if parent is not None and TrialStore(ws.store).trial(parent) is None:
                parent = None
            if parent is None and asked.begun:
                return SeedDecision(None, "it began before Warmstart was there")
        elif reason := self._was_refused(call.session):
            return SeedDecision(None, reason)
        job = cron.find_job(call.session, call.platform)
        seed = ws.provision(
            Task(
                text=cron.find_prompt(job) or asked.text if job else asked.text,
                job=job,
                agent=AGENT,
                model=call.model,
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
        """By its provider, in an earlier process."""
        noted = (note.reason for note in self._notes().read() if note.session == session)
        return next((reason for reason in noted if reason.startswith(_PROVIDER)), None)

    def _decide(self, session: str, dialect: Dialect, decision: SeedDecision) -> None:
        self._keep(self._decided, (session, dialect), decision)

    def _keep(self, place: OrderedDict[Any, Any], key: Any, value: Any) -> None:
        with self._lock:
            place[key] = value
            place.move_to_end(key)
            while len(place) > _REMEMBERED:
                place.popitem(last=False)
