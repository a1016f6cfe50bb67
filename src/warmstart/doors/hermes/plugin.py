"""The module that Hermes loads: `register(ctx)`. Every entry point is guarded; after any failure the conversation goes on."""

from __future__ import annotations

import atexit
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from warmstart.dialects.providers import text_of_content
from warmstart.doors.agent_tools.warm_session import DESCRIPTION, NAME
from warmstart.doors.guard import hermes as guard
from warmstart.doors.hermes import cron, host, place
from warmstart.doors.hermes.advice import FailureAdviser
from warmstart.doors.hermes.close import Closer
from warmstart.doors.hermes.commands import HINT, WarmCommand, add_arguments, run_warmstart
from warmstart.doors.hermes.journal import (
    BLOCKED,
    CANCELLED,
    INVALID,
    Journal,
    SeenCall,
    UnseededSession,
    describe,
    open_notes,
    open_sightings,
)
from warmstart.doors.hermes.opener import Opener
from warmstart.doors.hermes.place import FindPlace, PlaceKeeper, SessionPlace
from warmstart.doors.hermes.refusal import ProviderRefusal, SeedRemoved, call_again
from warmstart.doors.hermes.review import TurnReviewer
from warmstart.doors.hermes.seeder import SUBAGENT, Ancestry, HermesCall, Seeder
from warmstart.doors.hermes.tool import SCHEMA, TOOLSET, HermesTool
from warmstart.doors.hermes.wire import find_bad_calls

log = logging.getLogger("warmstart.hermes")

REVIEW = "bg-review"  # Hermes' own review thread, which runs under the reviewed session's id
_ALONE = frozenset(("cron", "cli", ""))  # platforms on which, with nobody at the keyboard, a turn is a session
_MOST_TURNS = 200


def register(ctx: host.HermesContext) -> None:
    """Register the plugin with Hermes. Nothing is opened yet."""
    guard.register(ctx)  # first: dangerous calls need a yes even if something below fails
    plugin = Plugin()
    ctx.register_middleware("llm_execution", plugin.call_model)
    ctx.register_hook("pre_llm_call", plugin.begin_turn)
    ctx.register_hook("post_tool_call", plugin.see_tool)
    ctx.register_hook("transform_tool_result", plugin.advise)
    ctx.register_hook("on_session_end", plugin.end_turn)
    ctx.register_hook("on_session_finalize", plugin.end_session)
    ctx.register_hook("on_session_reset", plugin.end_session)
    ctx.register_hook("pre_gateway_dispatch", plugin.receive_message)
    atexit.register(plugin.end_process)
    ctx.register_tool(NAME, TOOLSET, SCHEMA, plugin.tool.handle, description=DESCRIPTION, emoji="🔥")
    ctx.register_command(
        "warm", plugin.command.answer, description="Show what this session started with, and why", args_hint=HINT
    )
    ctx.register_cli_command(
        "warmstart",
        "Warmstart: learn from past sessions, start new ones warm, measure the effect",
        add_arguments,
        run_warmstart,
    )


class Plugin:
    """The entry points. They read Hermes' arguments and pass them on."""

    def __init__(
        self,
        find_ancestor: Ancestry | None = None,
        find_place: FindPlace = place.find_place,
        find_asker: Callable[[], SessionPlace] = place.find_asker,
    ) -> None:
        self._open = Opener()
        self._closer = Closer()
        self._seeder = Seeder(self._open, self._notes, find_ancestor or find_in_hermes, find_place)
        self._places = PlaceKeeper(self._open, find_place)
        self._reviewer = TurnReviewer(self._open)
        self._adviser = FailureAdviser(self._open, find_place)
        self._review_turns: deque[str] = deque(maxlen=_MOST_TURNS)
        self._complained: set[str] = set()
        self.command = WarmCommand(self._open, self._seeder, self._notes, find_asker)
        self.tool = HermesTool(self._open, self._closer, find_place, find_asker)

    # Around every call to a model

    def call_model(self, request: Any = None, next_call: Callable[..., Any] | None = None, **facts: Any) -> Any:
        """Send the request with the seed (`llm_execution` middleware). If the provider refuses it, send it without."""
        assert next_call is not None
        call = self._guard(lambda: _read_call(facts))
        sent = (self._guard(lambda: self._add_seed(call, request), call.session) if call else None) or request
        try:
            response = next_call(sent)
        except Exception as error:
            if call is None or sent is request:
                raise
            cause = error
            refusal = self._guard(lambda: self._seeder.suspect(call, cause), call.session)
            if refusal is None:
                raise
            response = self._call_without_seed(call, refusal, lambda: call_again(next_call, request))
            sent = request
        if call:
            self._guard(lambda: self._look_at_answer(call, response, seeded=sent is not request))
            if not self._is_review(call.turn):
                self._guard(lambda: self._reviewer.see_call(call, facts, sent, response))
        return response

    def _add_seed(self, call: HermesCall, request: Any) -> Any:
        if threading.current_thread().name == REVIEW:
            self._review_turns.append(call.turn)  # its tools may run in other threads
        return self._seeder.add_seed(call, request)

    def _call_without_seed(self, call: HermesCall, refusal: ProviderRefusal, call_again: Callable[[], Any]) -> Any:
        """Make the call again as Hermes made it. The seed is to blame if that works, and if there was no room for it."""
        is_guilty = True
        try:
            return call_again()
        except SeedRemoved:
            raise
        except Exception:
            is_guilty = refusal.is_full
            raise
        finally:
            if is_guilty:
                self._guard(lambda: self._seeder.withdraw(call, refusal), call.session)

    def _look_at_answer(self, call: HermesCall, response: Any, *, seeded: bool) -> None:
        if seeded:
            self._seeder.accept(call)
        for bad in find_bad_calls(response):
            self._see(call.session, call.turn, bad.call, bad.tool, INVALID)

    # Hooks

    def begin_turn(self, session_id: str = "", user_message: Any = "", **facts: Any) -> dict[str, str] | None:
        """Keep the user's own words (`pre_llm_call`), and give a scheduled job the hint about its model."""
        self._guard(lambda: self._begin_turn(session_id, user_message, facts), session_id)
        if facts.get("platform") != cron.PLATFORM or self._is_review(facts.get("turn_id")):
            return None
        hint = self._guard(lambda: cron.describe_run(session_id, facts.get("model") or ""), session_id)
        return {"context": hint} if hint else None

    def _begin_turn(self, session: str, message: Any, facts: dict[str, Any]) -> None:
        if self._is_review(facts.get("turn_id")):
            return
        self._seeder.begin_turn(session, text_of_content(message), facts.get("conversation_history") or ())
        self._guard(lambda: self._places.keep(session, facts.get("platform") or ""), session)
        if facts.get("platform") == SUBAGENT:
            return
        self._reviewer.begin_turn(session)
        self._closer.catch_up(self._open().settings.home, host.find_database())

    def see_tool(
        self, session_id: str = "", tool_call_id: str = "", tool_name: str = "", status: str = "", **facts: Any
    ) -> None:
        """Record blocked and cancelled calls (`post_tool_call`): the database does not show them."""
        if status in (BLOCKED, CANCELLED):
            self._guard(lambda: self._see(session_id, facts.get("turn_id", ""), tool_call_id, tool_name, status))

    def _see(self, session: str, turn: str, call: str, tool: str, status: str) -> None:
        if session and call and not self._is_review(turn):  # without ids: a call from inside execute_code
            open_sightings(self._open().settings.home).add(
                SeenCall(session=session, call=call, tool=tool, status=status)
            )

    def advise(
        self, session_id: str = "", tool_name: str = "", args: Any = None, result: Any = None, **facts: Any
    ) -> str | None:
        """Add what earlier sessions know about a failure to its result (`transform_tool_result`); None leaves it alone."""
        if not session_id or self._is_review(facts.get("turn_id")):
            return None
        advised = self._guard(lambda: self._adviser.add_advice(session_id, tool_name, args, result), session_id)
        return advised if isinstance(advised, str) else None

    def end_turn(self, session_id: str = "", platform: str = "", **facts: Any) -> None:
        """Mark the database, and start a due review (`on_session_end`, which Hermes calls after every turn)."""
        if session_id and platform != SUBAGENT and not self._is_review(facts.get("turn_id")):
            self._guard(lambda: self._end_turn(platform), session_id)
            self._guard(lambda: self._reviewer.end_turn(session_id), session_id)

    def _end_turn(self, platform: str) -> None:
        home, database = self._open().settings.home, host.find_database()
        self._closer.mark(home, database)
        if platform in _ALONE and not host.is_someone_at_the_keyboard():
            self._closer.start_sometimes(home, database)

    def end_session(self, session_id: str | None = None, **_facts: Any) -> None:
        """Close trials at the session's real end (`on_session_finalize`, `on_session_reset`)."""
        self._guard(self._closer.start_all, session_id or "")

    def end_process(self) -> None:
        """Close trials when Hermes exits, and the store: not every exit reports the sessions' end before."""
        self._guard(self._closer.start_all)
        self._guard(self._reviewer.end_process)
        self._guard(self._open.close)

    def receive_message(self, event: Any = None, session_store: Any = None, **_facts: Any) -> None:
        """Remember the session of a chat message (`pre_gateway_dispatch`), which may be `/warm`."""
        if event is not None and session_store is not None:
            self._guard(lambda: host.remember_chat(event, session_store))

    def _is_review(self, turn: Any) -> bool:
        return threading.current_thread().name == REVIEW or turn in self._review_turns

    # Failures
    def _notes(self) -> Journal[UnseededSession]:
        return open_notes(self._open().settings.home)

    def _guard(self, action: Callable[[], Any], session: str = "") -> Any:
        """Never raise into Hermes: log the error once per session, and let the session go on without Warmstart."""
        try:
            return action()
        except Exception as error:  # the door's edge
            if session not in self._complained:
                self._complained.add(session)
                log.warning("Warmstart is left out of session %s: %s", session or "(unknown)", describe(error))
                log.debug("the failure", exc_info=True)
            return None


def _read_call(facts: dict[str, Any]) -> HermesCall:
    return HermesCall(
        session=facts.get("session_id") or "",
        api_mode=facts.get("api_mode") or "",
        platform=facts.get("platform") or "",
        model=facts.get("model") or None,
        turn=facts.get("turn_id") or "",
        task=facts.get("task_id") or "",
    )


def find_in_hermes(call: HermesCall) -> str | None:
    """Return the session that a call's session continues."""
    return host.find_turn_start(call.session, call.turn, call.task) or host.find_parent(call.session)
