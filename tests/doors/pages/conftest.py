"""One browser for all tests of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from doors.pages.browsing import ARGUMENTS, CHROMIUM


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Start Chromium once per worker. It must not outlive these tests: while it runs, no other event loop can."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine: the page was not looked at")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield chromium
        chromium.close()
