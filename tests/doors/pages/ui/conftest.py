"""One server with hostile sessions, and one logged-in browser, for all tests of these pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from doors.pages.ui.reading import Reader
from ui_home import make_home
from warmstart.doors.ui.server import UiServer


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    with UiServer(make_home(tmp_path_factory.mktemp("hostile"), hostile=True), port=0) as started:
        yield started


@pytest.fixture(scope="package")
def reader(browser: Any, server: UiServer) -> Iterator[Reader]:
    opened = Reader(browser, server)
    yield opened
    opened.context.close()


@pytest.fixture(scope="package")
def make_reader(browser: Any, server: UiServer) -> Any:
    def make(**options: Any) -> Reader:
        return Reader(browser, server, **options)

    return make
