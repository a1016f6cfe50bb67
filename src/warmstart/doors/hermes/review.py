"""Reviews after Hermes' turns, if the settings switch them on: in their own thread, with the session's own request.

The session's last request is kept as it went out, with the seed. Hermes' own code is not involved, so the review appears
neither in its database nor in its next request. Only the line about what was found is shown, where Hermes shows its own.
"""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from warmstart.config import ReviewSettings
from warmstart.doors.hermes import host
from warmstart.doors.hermes.latest import Latest
from warmstart.doors.hermes.seeder import AGENT, SUBAGENT, HermesCall
from warmstart.doors.hermes.wire import FORMS, Form
from warmstart.pipeline import Warmstart

if TYPE_CHECKING:  # loaded when first needed: most users have no reviews
    from warmstart.review import Background, Focus, Reviewed, Schedule

log = logging.getLogger("warmstart.hermes")

_REMEMBERED = 50  # sessions
_LINGER = 10.0  # seconds that the end of Hermes waits for an answer that is under way, and paid for
_SIGN = "💾"
_DEEPEST = 40  # frames between a call of a model and the loop of the agent that makes it


class LatestCall(Struct):
    """A session's latest call to its model."""

    call: HermesCall
    provider: str
    url: str
    request: dict[str, Any]
    messages: list[dict[str, Any]]
    form: Form
    agent: Callable[[], Any]  # Hermes' own agent; None once it is gone


FindKey = Callable[[str, str, str], str | None]  # provider, URL, model -> key


class TurnReviewer:
    """Counts turns and calls, and starts reviews. Thread-safe. Keeps nothing while reviews are off."""

    def __init__(
        self,
        open: Callable[[], Warmstart],
        find_key: FindKey | None = None,
        find_parent: Callable[[str], str | None] = host.find_parent,
    ) -> None:
        self._open = open
        self._find_parent = find_parent
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
        form = FORMS.get(call.api_mode)
        if not self._settings.hermes or form is None or call.platform == SUBAGENT or not call.session:
            return
        from warmstart.endpoints.forms import FORMS as WIRE_FORMS
        from warmstart.review.snapshot import plain_message

        text, tool_calls = read_answer(response)
        self._schedule(call.session).count_calls(tool_calls)
        messages = [plain_message(sent) for sent in request.get(form.field) or ()]
        if not tool_calls and text:
            messages.append(WIRE_FORMS[form.dialect].write_message("assistant", text))
        rest = {key: value for key, value in request.items() if key != form.field}
        provider, url = str(facts.get("provider") or ""), str(facts.get("base_url") or "")
        agent = find_agent()
        known = weakref.ref(agent) if agent is not None else lambda: None
        self._calls.put(call.session, LatestCall(call, provider, url, rest, messages, form, known))

    def end_turn(self, session: str) -> None:
        """Start a review if one is due. The end of a session is no reason for one: most are short."""
        latest = self._calls.get(session)
        if latest is None or not self._settings.hermes:
            return
        focus = self._schedule(session).take()
        if focus:
            self._start(latest, focus)

    def end_process(self) -> None:
        """Stop running reviews: they ask nothing more, and only an answer that is under way is waited for."""
        for running in self._running:
            running.stop()
        for running in self._running:
            running.wait(_LINGER)

    def _start(self, latest: LatestCall, focus: Focus) -> None:
        from warmstart.endpoints.chat import Endpoint
        from warmstart.review import ReviewRuntime, spawn_review

        session = latest.call.session
        agent = latest.agent()
        key = read_key(agent, latest.url)
        if key is None:
            key = self._find_key(latest.provider, latest.url, latest.call.model or "")
        if key is None:
            log.warning("session %s is reviewed without its model: Hermes now uses another endpoint", session)
        runtime = ReviewRuntime(
            endpoint=Endpoint(url=_find_address(latest), key=key) if key is not None else None,
            request=latest.request,
            dialect=latest.form.dialect,
            session=session,
            agent=AGENT,
            platform=latest.call.platform,
            parent=self._find_parent(session),
        )
        settings = self._open().settings
        started = spawn_review(
            latest.messages,
            runtime,
            focus=focus,
            settings=settings,
            on_done=lambda reviewed: show_result(latest.agent(), reviewed),
        )
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


def _find_address(latest: LatestCall) -> str:
    """Return the address up to the version: Anthropic's library adds that to the address by itself."""
    url = latest.url.rstrip("/")
    return f"{url}/v1" if latest.form.dialect == "anthropic" and not url.endswith("/v1") else url


def read_answer(response: Any) -> tuple[str, int]:
    """Return the text of an answer in any of the three protocols, and the number of its tool calls."""
    choices = getattr(response, "choices", None)
    if choices:
        message = getattr(choices[0], "message", None)
        text = getattr(message, "content", None)
        return text if isinstance(text, str) else "", len(getattr(message, "tool_calls", None) or ())
    parts = getattr(response, "content", None) or getattr(response, "output", None)
    texts, calls = [], 0
    for part in parts if isinstance(parts, list) else ():
        kind = getattr(part, "type", None)
        calls += kind in ("tool_use", "function_call")
        if kind == "text":
            texts.append(str(getattr(part, "text", "") or ""))
        elif kind == "message":
            texts += [str(getattr(piece, "text", "") or "") for piece in getattr(part, "content", None) or ()]
    return "".join(texts), calls


def find_agent() -> Any:
    """Return Hermes' agent whose loop makes this call, from the stack: no hook is given it. None if there is none."""
    frame = sys._getframe(1)
    for _depth in range(_DEEPEST):
        agent = frame.f_locals.get("agent")
        if hasattr(agent, "_safe_print") and hasattr(agent, "session_id"):
            return agent
        if frame.f_back is None:
            return None
        frame = frame.f_back
    return None


def read_key(agent: Any, url: str) -> str | None:
    """Return the key that the agent itself uses for an address; None if it uses another address by now."""
    key, own = getattr(agent, "api_key", None), str(getattr(agent, "base_url", "") or "")
    return key if isinstance(key, str) and own.rstrip("/") == url.rstrip("/") else None


def show_result(agent: Any, reviewed: Reviewed) -> None:
    """Show what a review found as Hermes shows its own: on the terminal, and in the chat unless that is switched off."""
    if reviewed.warning:
        log.warning("%s", reviewed.warning)
    if not reviewed.line:
        return
    log.info("%s", reviewed.line)
    if callable(show := getattr(agent, "_safe_print", None)):
        show(f"  {_SIGN} {reviewed.line}")
    send = getattr(agent, "background_review_callback", None)
    if callable(send) and getattr(agent, "memory_notifications", "on") != "off":
        send(f"{_SIGN} {reviewed.line}")
