"""A home that knows templates of the project, of another one and of none."""

from __future__ import annotations

from pathlib import Path

import pytest

import warmstart
from doors.hooks.events import PROJECT, PROMPT
from template_files import example, template, write_bundle

OPENING = template(
    "cart",
    example("Bash", "uv run pytest -q tests/cart", "run the cart tests"),
    category="coding",
    provenance={"project": PROJECT, "agent": "claude-code"},
)

DEPLOYING = template(
    "deploying",
    example("Bash", "helm upgrade shop ./chart", PROMPT),
    category="ops",
    provenance={"project": PROJECT, "agent": "claude-code"},
)

ANYWHERE = template("anywhere", example("Bash", "terraform plan -out x", "plan the infrastructure"), category="general")

ELSEWHERE = template(
    "elsewhere",
    example("Bash", "make -C bar ship", "ship the bar"),
    provenance={"project": "/home/dev/bar", "agent": "claude-code"},
)


@pytest.fixture
def taught(tmp_path: Path) -> None:
    with warmstart.open() as ws:
        ws.templates.import_(write_bundle(tmp_path / "t.json", OPENING, DEPLOYING, ANYWHERE, ELSEWHERE), approve=True)
