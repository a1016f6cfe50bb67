"""A thread that writes the anchor to places elsewhere, each at its own pace."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from warmstart.confirm.audit.anchor import Anchor
from warmstart.confirm.audit.chain import ChainHead
from warmstart.confirm.audit.elsewhere import AnchorPlace
from warmstart.confirm.problems import OpenProblems
from warmstart.errors import StoreError

_LOOK = 1.0  # seconds between looks at the local anchor
_AGAIN = 60.0  # seconds until the next attempt after a failure


class RemoteAnchorer:
    """Copies the local anchor. What is anchored elsewhere was anchored here before, so it is always in the audit."""

    def __init__(self, anchor: Anchor, places: Sequence[AnchorPlace], problems: OpenProblems) -> None:
        self._anchor = anchor
        self._places = list(places)
        self._problems = problems
        self._written: dict[int, ChainHead] = {}  # by the place's position
        self._due = [0.0 for _ in self._places]
        self._failing: dict[int, str] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="confirm-anchor-elsewhere", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, after a last anchor at the places that can be read back."""
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(_LOOK):
            self._look(time.monotonic())
        self._due = [0.0 if place.every < _AGAIN * 2 else float("inf") for place in self._places]
        self._look(time.monotonic())

    def _look(self, now: float) -> None:
        try:
            head = self._anchor.read()
        except StoreError:
            return  # the local anchorer reports it
        if head is None or head.sequence == 0:
            return
        for number, place in enumerate(self._places):
            if now >= self._due[number] and self._written.get(number) != head:
                self._write(number, place, head, now)

    def _write(self, number: int, place: AnchorPlace, head: ChainHead, now: float) -> None:
        try:
            place.write(head)
            self._written[number] = head
            self._due[number] = now + place.every
            self._failing.pop(number, None)
        except StoreError as error:
            self._due[number] = now + _AGAIN
            self._failing[number] = str(error)
        if self._failing:
            self._problems.begin("elsewhere", "; ".join(self._failing.values()))
        else:
            self._problems.end("elsewhere")
