"""A daemon, a browser, and people who are logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from doors.pages.confirm.daemon import Daemon
from doors.pages.confirm.people import Person


@pytest.fixture
def daemon(tmp_path: Any) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def people(browser: Any, daemon: Daemon) -> Iterator[Callable[..., Person]]:
    """Make people who are not logged in yet."""
    made: list[Person] = []

    def make(**options: Any) -> Person:
        made.append(Person(browser, daemon, **options))
        return made[-1]

    yield make
    for person in made:
        person.context.close()


@pytest.fixture
def alice(people: Callable[..., Person]) -> Person:
    return people().log_in()
