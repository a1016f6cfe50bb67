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
from warmstart.review.fork import Fork
from warmstart.review.prompts import Focus
from warmstart.review.reviews import Reviewed, Reviews
from warmstart.review.snapshot import Snapshot, copy_value, name_session, take_messages
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

    @classmethod
    def from_client(cls, client: Any, request: Mapping[str, Any], **facts: Any) -> Self:
        """Make a runtime from the official SDK's client and the keywords of the parent's last `chat.completions.create`."""
        extra = {name: str(value) for name, value in (request.get("extra_headers") or {}).items()}
        own = {name: str(value) for name, value in getattr(client, "_custom_headers", {}).items()}
        endpoint = Endpoint(url=str(client.base_url).rstrip("/"), key=str(client.api_key or ""), headers=own | extra)
        return cls(endpoint=endpoint, request=dict(request), **facts)


class Background:
    """A review that runs in its own thread."""

    def __init__(self, work: Callable[[], Reviewed], on_done: Callable[[Reviewed], None] | None) -> None:
        self.done = threading.Event()  # set after the review and its callback
        self.reviewed: Reviewed | None = None
        self._work = work
        self._on_done = on_done
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)
        self._thread.start()

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
    snapshot = take_messages(messages, session=runtime.session, platform=runtime.platform)
    named = name_session(snapshot.session, runtime.session, runtime.agent, runtime.parent)
    snapshot = structs.replace(snapshot, session=named)
    request = copy_value(runtime.request)
    return Background(lambda: _review(snapshot, runtime, request, loaded, focus), on_done)


def _review(
    snapshot: Snapshot, runtime: ReviewRuntime, request: dict[str, Any], settings: config.Settings, focus: Focus
) -> Reviewed:
    """Review with a separate store: the host's may be busy, or closed by now."""
    with open_store(settings.store_url) as store:
        reviews = Reviews(store, settings, time.time)
        llm = runtime.llm
        if llm is None and runtime.endpoint is not None:
            llm = HttpLLM(structs.replace(runtime.endpoint, timeout=settings.review.timeout))
        fork = Fork(llm, request, reviews.limits) if llm is not None else None
        return reviews.review_snapshot(snapshot, fork, focus)
