"""Which seed a Hermes session gets: decided once, kept by the store, cached here, and the same on every call.

The decision waits for the first message that is a task. It is made anew only where Hermes compacts the conversation, since
the provider's cached prefix ends there anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct, structs

from warmstart.arms import COLD
from warmstart.calls.words import find_words
from warmstart.dialects.compose import Seed
from warmstart.doors.hermes import cron
from warmstart.doors.hermes.journal import Journal, UnseededSession, describe
from warmstart.doors.hermes.latest import Latest
from warmstart.doors.hermes.place import FindPlace, store_place
from warmstart.doors.hermes.refusal import ProviderRefusal, read_refusal
from warmstart.doors.hermes.turns import LONG_TALK, TurnOpening, Turns, read_turn
from warmstart.doors.hermes.wire import FORMS, Form, find_summary, put_seed, read_opening
from warmstart.model import Dialect, Task
from warmstart.pipeline import Warmstart
from warmstart.store import PlaceStore, TrialStore
from warmstart.templates.small_talk import is_small_talk

log = logging.getLogger("warmstart.hermes")

AGENT = "hermes"
SUBAGENT = "subagent"  # Hermes' name for the platform of sessions that a session starts
_REMEMBERED = 2_000  # sessions
_FEW = 5  # different words below which a request that leads to nothing is taken for more of the same topic


class HermesCall(Struct, frozen=True, kw_only=True):
    """One call to a model, as Hermes describes it."""

    session: str
    api_mode: str
    platform: str = ""
    model: str | None = None
    turn: str = ""
    task: str = ""


Ancestry = Callable[[HermesCall], str | None]  # returns the session that a call's session continues or works for


class SeedDecision(Struct, frozen=True):
    """The seed of a session, or the reason for having none."""

    seed: Seed | None
    reason: str
    summary: str = ""  # digest of the summary in the requests that it is for


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
        self._turns = Turns()
        self._decided: Latest[tuple[str, Dialect], SeedDecision] = Latest(_REMEMBERED)
        self._shown: Latest[str, bool] = Latest(_REMEMBERED)  # sessions that have run with their seed
        self._doubts: Latest[str, bool] = Latest(_REMEMBERED)  # sessions whose seed may have caused an error
        self._noted: Latest[str, bool] = Latest(_REMEMBERED)  # as not seeded

    # For every call to a model

    def add_seed(self, call: HermesCall, request: dict[str, Any]) -> dict[str, Any]:
        """Return the request with the session's seed, or the request itself."""
        if not call.session:
            return request
        form = FORMS.get(call.api_mode)
        if form is None:
            self.note(call.session, f"Warmstart does not know the API mode {call.api_mode or '(none)'}")
            return request
        summary = find_summary(request, form)
        decision = self._decided.get((call.session, form.dialect))
        if decision is None or (decision.summary != summary and decision.seed is not None):
            decision = self._settle(call, form, request, summary)
        return put_seed(decision.seed, request, form) if decision and decision.seed else request

    def accept(self, call: HermesCall) -> None:
        """Note that the provider accepted a call with the seed."""
        if call.session not in self._shown:
            self._shown.put(call.session, True)

    def suspect(self, call: HermesCall, error: Exception) -> ProviderRefusal | None:
        """Return the refusal that the seed may have caused; None for any other error.

        A server's fault is put down to the seed when it happens twice before the first answer.
        """
        refusal = read_refusal(error)
        if refusal is None or refusal.is_certain:
            return refusal
        if call.session in self._shown:
            return None
        if call.session in self._doubts:
            return refusal
        self._doubts.put(call.session, True)
        return None

    def withdraw(self, call: HermesCall, refusal: ProviderRefusal) -> None:
        """Let the session go on without its seed, in this process and in later ones."""
        shown = call.session in self._shown
        for key in self._decided:
            decision = self._decided.get(key)
            if key[0] == call.session and decision:
                self._decided.put(key, SeedDecision(None, f"not seeded: {refusal.why}", decision.summary))
        self._open().withdraw_seed(call.session, refusal.why, shown=shown)
        self.note(call.session, refusal.why)

    # For hooks and commands

    def begin_turn(self, session: str, text: str, history: Sequence[Any] = ()) -> None:
        """Keep the user's words, before Hermes adds its memories to them."""
        self._turns.begin(session, text, history)

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

    def _settle(self, call: HermesCall, form: Form, request: Mapping[str, Any], summary: str) -> SeedDecision | None:
        """Decide once, even on failure: a later seed would change the prefix that the provider has cached.

        None: the session has no task yet.
        """
        try:
            decision = self._choose(call, form, request, summary)
        except Exception as error:  # the session goes on without a seed
            log.debug("choosing a seed failed", exc_info=True)
            decision = SeedDecision(None, describe(error))
        if decision is None:
            return None
        decision = structs.replace(decision, summary=summary)
        self._decided.put((call.session, form.dialect), decision)
        if decision.seed is None:
            self.note(call.session, decision.reason)
        return decision

    def _choose(self, call: HermesCall, form: Form, request: Mapping[str, Any], summary: str) -> SeedDecision | None:
        if call.session in self._noted:
            return SeedDecision(None, "it has run without a seed in another API mode")
        ws = self._open()
        facts = read_opening(request, form)
        turn = self._turns.find(call.session) or read_turn(facts.asked, facts.begun)
        place = self._find_place(call.session, call.platform)
        task = Task(
            text=turn.text,
            agent=AGENT,
            model=call.model,
            project=place.project,
            scope=place.name_scope(ws),
            tools=facts.tools,
            budget=ws.settings.budget,
            examples=ws.settings.examples,
            dialect=form.dialect,
            thinking=facts.thinking,
            session=call.session,
        )
        if TrialStore(ws.store).trial(call.session) is None:
            opened = self._open_session(ws, call, task, turn)
            if not isinstance(opened, Task):
                return opened
            task = opened
            store_place(ws, place, summary)
        else:
            self._shown.put(call.session, True)  # in an earlier process, or in another protocol
        seed = ws.provision(task)
        if summary and not seed.withdrawn and seed.arm != COLD and not self._began_with(ws, call, summary):
            seed = self._provision_part(ws, call, structs.replace(task, text=turn.task), summary)
        return SeedDecision(seed, seed.reason)

    def _open_session(
        self, ws: Warmstart, call: HermesCall, task: Task, turn: TurnOpening
    ) -> Task | SeedDecision | None:
        """Return the task of a session that has no trial yet, or why it gets no seed; None: it has no task yet."""
        if job := cron.find_job(call.session, call.platform):
            return structs.replace(task, text=cron.find_prompt(job) or turn.text, job=job)
        parent = self._ancestry(call)
        if call.platform == SUBAGENT:  # the work is its own, the arm is its parent's
            return structs.replace(task, parent=parent)
        if parent is not None and TrialStore(ws.store).trial(parent) is not None:
            task = structs.replace(task, text=turn.task or self._find_task(parent), parent=parent)
            return structs.replace(task, continues=self._keeps_topic(ws, task, parent))
        if turn.worked:
            return SeedDecision(None, "it began before Warmstart was enabled")
        if is_small_talk(turn.text):
            return None
        if turn.talk > LONG_TALK:
            return SeedDecision(None, "its first task came after a long talk that the provider has cached")
        return task

    def _find_task(self, session: str) -> str:
        """Return the latest task of a session that was compacted in the middle of a turn."""
        turn = self._turns.find(session)
        return turn.task if turn else ""

    def _began_with(self, ws: Warmstart, call: HermesCall, summary: str) -> bool:
        """Return whether the session's own seed was chosen for a conversation that began with this summary."""
        place = PlaceStore(ws.store).find(call.session, AGENT)
        return place is not None and place.summary == summary

    def _provision_part(self, ws: Warmstart, call: HermesCall, task: Task, summary: str) -> Seed:
        """Return the seed of the part of a session that begins with a summary: a new one if the topic has changed."""
        part = structs.replace(task, session=f"{call.session}#{summary}", parent=call.session)
        keeps = call.platform == SUBAGENT or self._keeps_topic(ws, part, call.session)
        return ws.provision(structs.replace(part, continues=keeps, job=cron.find_job(call.session, call.platform)))

    def _keeps_topic(self, ws: Warmstart, task: Task, before: str) -> bool:
        """Return whether a compacted conversation goes on with the same work, so that its examples stay."""
        if is_small_talk(task.text) or ws.find_withdrawn(before):
            return True
        preview = ws.provision(structs.replace(task, session=None, parent=None))
        return not preview.templates and len(set(find_words(task.text))) < _FEW
