"""Every way in which a session can ask Warmstart for something. A new door is a new asker at the end of the list."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from borders.world import PLACES, TASK, Place, ask_for
from warmstart.model import DIALECTS, Task
from warmstart.pipeline import Warmstart
from warmstart.scopes import Border


class Asking(NamedTuple):
    """One asker's situation: a place, and everything that it needs to ask from there."""

    ws: Warmstart
    place: Place
    root: Path

    @property
    def scope(self) -> str:
        return self.place.name_scope(self.ws)

    @property
    def border(self) -> Border:
        return Border(self.scope, self.place.project or None)

    @property
    def texts(self) -> list[str]:
        """Requests that try to reach every place: its words, its template's names, no words at all."""
        names = [row.name for row, _template in self.ws.templates.find()]
        return [TASK, "", "coding", "ops", *map(ask_for, PLACES), *names]


Asker = Callable[[Asking], Any]


def ask_provision(asking: Asking) -> Any:
    for number, text in enumerate(asking.texts):
        for dialect in DIALECTS:
            task = Task(text=text, scope=asking.scope, project=asking.place.project or None, dialect=dialect)
            yield asking.ws.provision(task)
            session = f"new-{asking.place.canary}-{number}"
            yield asking.ws.provision(msgspec.structs.replace(task, session=session))


def ask_for_a_list(asking: Asking) -> Any:
    yield asking.ws.templates.find(border=asking.border)


def ask_for_an_export(asking: Asking) -> Any:
    yield asking.ws.templates.export(share=False, border=asking.border)


ASKERS: dict[str, Asker] = {
    "provision": ask_provision,
    "list": ask_for_a_list,
    "export": ask_for_an_export,
}
