"""A review after Hermes' turns, where the settings switch it on: in a thread of its own, asking as the parent has asked.

The parent's last request is kept as it went out, seed and all. Hermes' own chain is not used, so neither its screen nor
its database nor its next request knows of the review.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from warmstart.config import ReviewSettings
from warmstart.doors.hermes import host
from warmstart.doors.hermes.seeder import AGENT, SUBAGENT, HermesCall
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:  # loaded when first needed: most Hermes run without reviews
    from warmstart.review import Background, Focus, Reviewed, Schedule

log = logging.getLogger("warmstart.hermes")

_CHAT = "chat_completions"  # the only protocol that a review speaks
_REMEMBERED = 50  # sessions
_LINGER = 10.0  # seconds that the end of Hermes waits for a review at work


class LatestCall(Struct):
    """The latest call of a session to its model."""

    call: HermesCall
    provider: str
    url: str
    request: dict[str, Any]
    messages: list[dict[str, Any]]


FindKey = Callable[[str, str, str], str | None]  # provider, URL, model -> key


class TurnReviewer:
    """Counts turns and calls, and starts reviews. Thread-safe. Keeps nothing while it is switched off."""

    def __init__(self, open: Callable[[], Warmstart], find_key: FindKey | None = None) -> None:
        self._open = open
        self._find_key = find_key or find_hermes_key
        self._lock = threading.Lock()
        self._seen: OrderedDict[str, LatestCall] = OrderedDict()
        self._schedules: OrderedDict[str, Schedule] = OrderedDict()
        self._running: list[Background] = []

    @property
    def _settings(self) -> ReviewSettings:
        return self._open().settings.review

    def begin_turn(self, session: str) -> None:
        if self._settings.hermes:
            self._schedule(session).count_turn()

    def see_call(self, call: HermesCall, told: Mapping[str, Any], request: Mapping[str, Any], response: Any) -> None:
        """After an answer: what was asked, and the answer behind it."""
        if not self._settings.hermes or call.api_mode != _CHAT or call.platform == SUBAGENT or not call.session:
            return
        from warmstart.review.snapshot import plain_message

        choices = getattr(response, "choices", None) or ()
        message = getattr(choices[0], "message", None) if choices else None
        made = len(getattr(message, "tool_calls", None) or ())
        self._schedule(call.session).count_calls(made)
        messages = [plain_message(one) for one in request.get("messages") or ()]
        if not made and isinstance(said := getattr(message, "content", None), str):
            messages.append({"role": "assistant", "content": said})
        rest = {key: value for key, value in request.items() if key != "messages"}
        seen = LatestCall(call, str(told.get("provider") or ""), str(told.get("base_url") or ""), rest, messages)
        self._keep(self._seen, call.session, seen)

    def end_turn(self, session: str, *, ended: bool = False) -> None:
        """Start the review that is due, if one is."""
        if not self._settings.hermes or session not in self._seen:
            return
        focus = self._schedule(session).take(ended=ended)
        if focus:
            self._start(self._seen[session], focus)

    def end_process(self) -> None:
        """A review at work gets a moment more; whatever it has not written by then it never writes."""
        for running in self._running:
            running.wait(_LINGER)

    def _start(self, seen: LatestCall, focus: Focus) -> None:
        from warmstart.endpoints.chat import Endpoint
        from warmstart.review import ReviewRuntime, spawn_review

        key = self._find_key(seen.provider, seen.url, seen.call.model or "")
        if key is None:
            log.warning("session %s is reviewed without its model: its credentials are not known", seen.call.session)
        runtime = ReviewRuntime(
            endpoint=Endpoint(url=seen.url.rstrip("/"), key=key) if key is not None else None,
            request=seen.request,
            session=seen.call.session,
            agent=AGENT,
            platform=seen.call.platform,
            parent=host.find_parent(seen.call.session),
        )
        settings = self._open().settings
        started = spawn_review(seen.messages, runtime, focus=focus, settings=settings, on_done=_tell)
        with self._lock:
            self._running = [*(one for one in self._running if not one.done.is_set()), started]

    def _schedule(self, session: str) -> Schedule:
        from warmstart.review import Schedule

        found = self._schedules.get(session)
        if found is None:
            found = Schedule(self._settings)
            self._keep(self._schedules, session, found)
        return found

    def _keep(self, place: OrderedDict[str, Any], key: str, value: Any) -> None:
        with self._lock:
            place[key] = value
            place.move_to_end(key)
            while len(place) > _REMEMBERED:
                place.popitem(last=False)


def find_hermes_key(provider: str, url: str, model: str) -> str | None:
    """The key that Hermes itself would use there, asked by its own function; None where it means another endpoint."""
    resolve = import_module("hermes_cli.runtime_provider").resolve_runtime_provider
    found = resolve(requested=provider or None, target_model=model or None)
    if str(found.get("base_url") or "").rstrip("/") != url.rstrip("/"):
        return None
    return str(found.get("api_key") or "")


def _tell(done: Reviewed) -> None:
    if done.line:
        log.info("%s", done.line)
