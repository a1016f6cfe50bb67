"""Templates as files that `templates import` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def old_template(name: str = "old one", **more: Any) -> dict[str, Any]:
    """Return a template of one `ls` call."""
    example = {"tool_name": "terminal", "arguments": {"command": "ls"}, "result": "apples", "success": True}
    return {"name": name, "task_type": "file", "examples": [example], "tags": ["fruit"]} | more


def write_bundle(path: Path, *templates: dict[str, Any]) -> Path:
    """Write a file of templates and return its path."""
    path.write_text(json.dumps(list(templates)))
    return path


def example(tool: str, command: str, intent: str, **more: Any) -> dict[str, Any]:
    """Return an example of a command that worked."""
    return {
        "tool_name": tool,
        "arguments": {"command": command},
        "result": "done",
        "success": True,
        "context_hint": intent,
    } | more


def template(name: str, *examples: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a template of these examples."""
    return {"name": name, "examples": list(examples)} | more


DEPLOY = template(
    "deploy",
    example("terminal", "helm upgrade shop", "deploy the shop to the cluster"),
    example("kubectl", "rollout status shop", "see whether the cluster deploy came up"),
    category="ops",
    task_type="code",
    tags=["cluster"],
)

REPORT = template(
    "report",
    example("web_search", "quarterly report template", "write the quarterly report"),
    category="research",
    task_type="research",
    tags=["writing"],
    system_prompt_addendum="Reports are in English.",
)
