"""A conversation worth reviewing, and a place to review it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from review.conversations import TOOLS
from review.endpoint import Endpoint
from warmstart.endpoints.chat import Endpoint as Where
from warmstart.review import ReviewRuntime


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    found = Endpoint()
    yield found
    found.close()


@pytest.fixture
def runtime(endpoint: Endpoint) -> ReviewRuntime:
    where = Where(url=endpoint.url, key="sk-parent-key")
    return ReviewRuntime(
        endpoint=where,
        request={"model": "m", "tools": TOOLS},
        session="s-1",
        agent="mine",
        parent="s-0",
        platform="cli",
    )
