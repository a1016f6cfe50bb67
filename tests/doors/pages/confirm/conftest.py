"""A daemon, a browser, and people who are logged in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from doors.pages.browsing import ARGUMENTS, CHROMIUM
from doors.pages.confirm.daemon import Daemon
from doors.pages.confirm.people import Person


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:  # while it runs no other event loop can: it must not outlive its module
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the approval page was not looked at")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: the page was not looked at")
    with api.sync_playwright() as playwright:
        arguments = [*ARGUMENTS, "--host-resolver-rules=MAP *.example 127.0.0.1"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def daemon(tmp_path: Any) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def people(browser: Any, daemon: Daemon) -> Iterator[Callable[..., Person]]:
    """Makes persons who are not logged in yet."""
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
