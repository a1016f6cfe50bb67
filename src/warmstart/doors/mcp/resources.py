"""Templates as MCP resources, and "start warm" as a prompt: for people who pick them in their client."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, unquote

from warmstart.doors.mcp.answers import write_template
from warmstart.doors.mcp.arguments import ProvisionArguments, WrongArguments, read_arguments
from warmstart.errors import NotFound
from warmstart.model import Task, Template
from warmstart.pipeline import Warmstart
from warmstart.scopes import Border
from warmstart.store import TemplateRow

PREFIX = "warmstart://templates/"
URI_TEMPLATE = PREFIX + "{name}"
MARKDOWN = "text/markdown"
PROMPT = "start_warm"
LONGEST_URI = 2_000
PAGE = 100  # resources in one answer


def list_resources(
    ws: Warmstart, cursor: str | None, border: Border
) -> tuple[list[tuple[TemplateRow, Template]], str | None]:
    """Return a page of the active templates, and the cursor of the next page."""
    start = 0
    if cursor is not None:
        if not cursor.isascii() or not cursor.isdecimal() or len(cursor) > 9:
            raise WrongArguments("no such cursor")
        start = int(cursor)
    active = ws.templates.find("active", border=border)
    following = str(start + PAGE) if start + PAGE < len(active) else None
    return active[start : start + PAGE], following


def name_resource(name: str) -> str:
    return PREFIX + quote(name, safe="")


def read_resource(ws: Warmstart, uri: str, border: Border) -> str:
    """Return an active template as a page. Others, which nobody has decided to use, are refused."""
    if not uri.startswith(PREFIX) or len(uri) > LONGEST_URI:
        raise NotFound(f"no resource {uri[:100]!r}; resources are named {URI_TEMPLATE}")
    name = unquote(uri.removeprefix(PREFIX), errors="replace")
    known = ws.templates.find_version(name, border).name_key
    active = (pair for pair in ws.templates.find("active", border=border) if pair[0].name_key == known)
    page = next((write_template(row, template) for row, template in active), None)
    if page is None:
        raise NotFound(f"the template {name} is not active; read it with the tool template_show")
    return page


def write_prompt(ws: Warmstart, given: dict[str, str], border: Border) -> str:
    """Return the task, preceded by a seed. It is a preview: a client's prompt has no session yet."""
    arguments = read_arguments(ProvisionArguments, {"task": given.get("task", "")})
    if given.keys() - {"task"}:
        raise WrongArguments("the only argument is: task")
    if not arguments.text.strip():
        raise WrongArguments("the argument task is missing: what is to be done?")
    settings = ws.settings
    wanted: dict[str, Any] = {"budget": settings.budget, "examples": settings.examples, "dialect": "text"}
    seed = ws.provision(Task(text=arguments.text, scope=border.scope, project=border.project, **wanted))
    return f"{seed.text}\n\nThe task now:\n{arguments.text}" if seed.text else arguments.text
