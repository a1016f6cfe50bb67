"""One server for all tests that only read."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from ui_home import log_in, make_home
from warmstart.doors.ui.server import UiServer


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    with UiServer(make_home(tmp_path_factory.mktemp("ui")), port=0) as started:
        yield started


@pytest.fixture(scope="package")
def owner(server: UiServer) -> Iterator[httpx.Client]:
    with log_in(server) as client:
        yield client
