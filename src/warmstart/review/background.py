"""Review in the background of a host that has just finished a turn. A failing review never disturbs the host."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from msgspec import Struct, field, structs

from warmstart import config
from warmstart.endpoints.chat import LLM, Endpoint, HttpLLM
from warmstart.endpoints.forms import CHAT, FORMS
from warmstart.model import Dialect
from warmstart.review.fork import Fork
from warmstart.review.prompts import Focus
from warmstart.review.reviews import Reviewed, Reviews
from warmstart.review.snapshot import copy_value, name_session, take_messages
from warmstart.store import open_store

log = logging.getLogger("warmstart.review")

THREAD = "warmstart-review"


class ReviewRuntime(Struct, frozen=True, kw_only=True):
    """How the parent calls its model; a review calls it the same way."""

    endpoint: Endpoint | None = None  # None, and no llm: review without a model
    request: dict[str, Any] = field(default_factory=dict)  # the parent's request (model, tools ...) without messages
    llm: LLM | None = None  # instead of the endpoint
    session: str = ""  # the agent's own id
    agent: str = ""
    parent: str | None = None  # session that started it
    platform: str = ""  # cli, telegram, ...
    dialect: Dialect = "openai"  # the protocol of the messages and the request: openai, anthropic or responses

    @classmethod
    def from_client(cls, client: Any, request: Mapping[str, Any], **facts: Any) -> Self:
        """Make a runtime from the official SDK's client and the keywords of the parent's last `chat.completions.create`."""
        extra = {name: str(value) for name, value in (request.get("extra_headers") or {}).items()}
        own = {name: str(value) for name, value in getattr(client, "_custom_headers", {}).items()}
        endpoint = Endpoint(url=str(client.base_url).rstrip("/"), key=str(client.api_key or ""), headers=own | extra)
        return cls(endpoint=endpoint, request=dict(request), **facts)


class Background:
    """A review that runs in its own thread."""

    def __init__(
        self,
        work: Callable[[], Reviewed],
        on_done: Callable[[Reviewed], None] | None,
        stopped: threading.Event | None = None,
    ) -> None:
        self.done = threading.Event()  # set after the review and its callback
        self._stopped = stopped or threading.Event()
        self.reviewed: Reviewed | None = None
        self._work = work
        self._on_done = on_done
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ask the model nothing more. An answer that is under way is still used: it is paid for."""
        self._stopped.set()

    def wait(self, timeout: float | None = None) -> Reviewed | None:
        """Return the result, or None if the review is still running."""
        self.done.wait(timeout)
        return self.reviewed if self.done.is_set() else None

    def _run(self) -> None:
        try:
            self.reviewed = self._work()
            if self._on_done:
                self._on_done(self.reviewed)
        except Exception as error:  # the thread's edge: a review must never harm its host
            warning = f"the review failed: {type(error).__name__}"
            log.warning("%s", warning)
            log.debug("the failure", exc_info=True)
            self.reviewed = self.reviewed or Reviewed(session="", ended="failed", warning=warning)
        finally:
            self.done.set()


def spawn_review(
    messages: Sequence[Any],
    runtime: ReviewRuntime | None = None,
    *,
    focus: Focus = "both",
    settings: config.Settings | None = None,
    on_done: Callable[[Reviewed], None] | None = None,
) -> Background:
    """Review a conversation in the background. The conversation is copied now and never changed.

    With a runtime the model is called as the parent calls it: same endpoint, same credentials, and a request whose messages
    and tools begin byte for byte like the parent's. `on_done` is called in the review's thread.
    """
    runtime = runtime or ReviewRuntime()
    loaded = settings or config.load()
    form = FORMS[runtime.dialect]
    request = copy_value(runtime.request)
    to_chat = None if form is CHAT else lambda wire: form.to_chat(wire, request)
    snapshot = take_messages(messages, session=runtime.session, platform=runtime.platform, to_chat=to_chat)
    named = name_session(snapshot.session, runtime.session, runtime.agent, runtime.parent)
    snapshot = structs.replace(snapshot, session=named)
    stopped = threading.Event()

    def work() -> Reviewed:
        """Review with a separate store: the host's may be busy, or closed by now."""
        with open_store(loaded.store_url) as store:
            reviews = Reviews(store, loaded, time.time)
            llm = runtime.llm
            if llm is None and runtime.endpoint is not None:
                llm = HttpLLM(structs.replace(runtime.endpoint, timeout=loaded.review.timeout), form=form)
            fork = Fork(llm, request, reviews.limits, form, stopped.is_set) if llm is not None else None
            return reviews.review_snapshot(snapshot, fork, focus)

    return Background(work, on_done, stopped)
