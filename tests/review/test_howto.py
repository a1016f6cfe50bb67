"""The how-to's code runs, and it names every setting."""

from __future__ import annotations

import re
from typing import Any

import openai
import pytest

from places import HOWTO
from review.conversations import TOOLS, conversation
from review.endpoint import Endpoint
from warmstart import config

PAGE = (HOWTO / "review.md").read_text()


def test_every_setting_is_there() -> None:
    assert all(f"`{name}`" in PAGE for name in config.ReviewSettings.__struct_fields__)


def test_the_loop_runs(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, Any] = {"messages": conversation(), "tools": TOOLS, "openai": openai}
    exec(code, names)
    done = names["review"].wait(30)
    assert done is not None and done.warning == "" and len(endpoint.raw) == 2
