"""Reviews after Hermes' turns, if the settings switch them on: in their own thread, with the session's own request.

The session's last request is kept as it went out, with the seed. Hermes' own code is not involved, so the review appears
neither on its screen, nor in its database, nor in its next request.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from warmstart.config import ReviewSettings
from warmstart.doors.hermes import host
from warmstart.doors.hermes.latest import Latest
from warmstart.doors.hermes.seeder import AGENT, SUBAGENT, HermesCall
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:  # loaded when first needed: most users have no reviews
    from warmstart.review import Background, Focus, Reviewed, Schedule

log = logging.getLogger("warmstart.hermes")

_CHAT = "chat_completions"  # the only protocol that a review speaks
_REMEMBERED = 50  # sessions
_LINGER = 10.0  # seconds that the end of Hermes waits for a running review


class LatestCall(Struct):
    """A session's latest call to its model."""

    call: HermesCall
    provider: str
    url: str
    request: dict[str, Any]
    messages: list[dict[str, Any]]


FindKey = Callable[[str, str, str], str | None]  # provider, URL, model -> key


class TurnReviewer:
    """Counts turns and calls, and starts reviews. Thread-safe. Keeps nothing while reviews are off."""

    def __init__(self, open: Callable[[], Warmstart], find_key: FindKey | None = None) -> None:
        self._open = open
        self._find_key = find_key or find_hermes_key
        self._lock = threading.Lock()
        self._calls: Latest[str, LatestCall] = Latest(_REMEMBERED)
        self._schedules: Latest[str, Schedule] = Latest(_REMEMBERED)
        self._running: list[Background] = []

    @property
    def _settings(self) -> ReviewSettings:
        return self._open().settings.review

    def begin_turn(self, session: str) -> None:
        if self._settings.hermes:
            self._schedule(session).count_turn()

    def see_call(self, call: HermesCall, facts: Mapping[str, Any], request: Mapping[str, Any], response: Any) -> None:
        """Count an answered call's tool calls, and keep its request with the answer."""
        if not self._settings.hermes or call.api_mode != _CHAT or call.platform == SUBAGENT or not call.session:
            return
        from warmstart.review.snapshot import plain_message

        choices = getattr(response, "choices", None) or ()
        message = getattr(choices[0], "message", None) if choices else None
        tool_calls = len(getattr(message, "tool_calls", None) or ())
        self._schedule(call.session).count_calls(tool_calls)
        messages = [plain_message(sent) for sent in request.get("messages") or ()]
        if not tool_calls and isinstance(text := getattr(message, "content", None), str):
            messages.append({"role": "assistant", "content": text})
        rest = {key: value for key, value in request.items() if key != "messages"}
        provider, url = str(facts.get("provider") or ""), str(facts.get("base_url") or "")
        self._calls.put(call.session, LatestCall(call, provider, url, rest, messages))

    def end_turn(self, session: str, *, ended: bool = False) -> None:
        """Start a review if one is due."""
        latest = self._calls.get(session)
        if latest is None or not self._settings.hermes:
            return
        focus = self._schedule(session).take(ended=ended)
        if focus:
            self._start(latest, focus)

    def end_process(self) -> None:
        """Give running reviews a moment to finish; later results are lost."""
        for running in self._running:
            running.wait(_LINGER)

    def _start(self, latest: LatestCall, focus: Focus) -> None:
        from warmstart.endpoints.chat import Endpoint
        from warmstart.review import ReviewRuntime, spawn_review

        session = latest.call.session
        key = self._find_key(latest.provider, latest.url, latest.call.model or "")
        if key is None:
            log.warning("session %s is reviewed without its model: Hermes now uses another endpoint", session)
        runtime = ReviewRuntime(
            endpoint=Endpoint(url=latest.url.rstrip("/"), key=key) if key is not None else None,
            request=latest.request,
            session=session,
            agent=AGENT,
            platform=latest.call.platform,
            parent=host.find_parent(session),
        )
        settings = self._open().settings
        started = spawn_review(latest.messages, runtime, focus=focus, settings=settings, on_done=_log_result)
        with self._lock:
            self._running = [*(review for review in self._running if not review.done.is_set()), started]

    def _schedule(self, session: str) -> Schedule:
        from warmstart.review import Schedule

        schedule = self._schedules.get(session)
        if schedule is None:
            schedule = Schedule(self._settings)
            self._schedules.put(session, schedule)
        return schedule


def find_hermes_key(provider: str, url: str, model: str) -> str | None:
    """Return the key that Hermes itself would use; None if Hermes would use another endpoint."""
    resolve = import_module("hermes_cli.runtime_provider").resolve_runtime_provider
    runtime = resolve(requested=provider or None, target_model=model or None)
    if str(runtime.get("base_url") or "").rstrip("/") != url.rstrip("/"):
        return None
    return str(runtime.get("api_key") or "")


def _log_result(reviewed: Reviewed) -> None:
    if reviewed.line:
        log.info("%s", reviewed.line)
