"""The MCP tools: for each its description, its arguments and the library call behind it. Answers are the CLI's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UnsetType, structs

from warmstart.doors.agent_tools import warm_session as warm
from warmstart.doors.mcp.arguments import (
    AdviseArguments,
    Arguments,
    BriefArguments,
    CaptureArguments,
    InsightsArguments,
    LearnArguments,
    ProvisionArguments,
    RecordArguments,
    TemplateShowArguments,
    TemplatesListArguments,
    WrongArguments,
    check_texts,
    describe_arguments,
    or_none,
    read_arguments,
)
from warmstart.doors.mcp.confirmation import DESCRIPTION as CONFIRMING
from warmstart.doors.mcp.confirmation import ConfirmationArguments, request_confirmation
from warmstart.doors.mcp.notes import advise, write_brief
from warmstart.doors.mcp.transcripts import check_transcript
from warmstart.doors.render.as_json import (
    describe_insights,
    describe_seed,
    describe_template,
    describe_trial,
    summarise_template,
)
from warmstart.doors.render.times import read_since
from warmstart.errors import NotFound, Refused
from warmstart.model import Task, TemplateStatus
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.scopes import Border
from warmstart.templates.mine import LearnLimits

if TYPE_CHECKING:
    from warmstart.templates.library import Learned
    from warmstart.templates.register import LearnedTemplate

MAX_LISTED = 50


class ToolInvocation(NamedTuple):
    """One call of a tool."""

    ws: Warmstart  # open for this call alone
    given: Mapping[str, Any]  # as the agent wrote it
    progress: Progress
    folders: tuple[Path, ...]  # transcripts may be read from these
    border: Border  # nothing beyond it is shown
    project: str | None = None  # the folder whose project the border names

    def find_border(self, project: str | UnsetType) -> Border:
        """Return the border for a call that may name another project of the same scope."""
        return self.border if isinstance(project, UnsetType) else self.ws.draw_border(self.border.scope, project)


class McpTool(NamedTuple):
    """A tool as clients see it."""

    description: str
    schema: dict[str, Any]
    run: Callable[[ToolInvocation], Any]
    reads_only: bool = False
    deletes: bool = False
    takes_long: bool = False  # few such calls run at once, to leave room for the quick ones


def provision(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(ProvisionArguments, call.given).given()
    settings = call.ws.settings
    defaults = {"budget": settings.budget, "examples": settings.examples, "project": call.project}
    given = defaults | given | {"scope": call.border.scope}
    seed = call.ws.provision(msgspec.convert(given, Task))
    return describe_seed(seed) | {"project": call.ws.draw_border(call.border.scope, given["project"]).project}


def list_templates(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(TemplatesListArguments, call.given)
    tags = set(or_none(given.tags) or ())
    status: TemplateStatus | None = or_none(given.status)
    listed = [
        summarise_template(row, template)
        for row, template in call.ws.templates.find(
            status, or_none(given.category), or_none(given.task_type), border=call.border
        )
        if (status or row.status != "retired") and (not tags or tags & set(template.tags))
    ]
    return {"templates": listed[:MAX_LISTED], "more": max(0, len(listed) - MAX_LISTED)}


def show_template(call: ToolInvocation) -> dict[str, Any]:
    name = read_arguments(TemplateShowArguments, call.given).name
    return describe_template(*call.ws.templates.show(name, border=call.border))


def capture(call: ToolInvocation) -> LearnedTemplate:
    given = read_arguments(CaptureArguments, call.given)
    return call.ws.capture(
        _find_session(call, given.session),
        name=or_none(given.name),
        task_type=or_none(given.task_type),
        max_examples=or_none(given.max_examples),
        description=or_none(given.description),
        tags=tuple(or_none(given.tags) or ()),
    )


def _find_session(call: ToolInvocation, name: str) -> str:
    """Return the key of a session within the border. A name that fits others too is not explained: it would list them."""
    try:
        row = call.ws.store.find_session(name)
    except Refused:
        raise NotFound(f"no single session {name!r}; give its whole id") from None
    if not call.border.admits(row.scope, row.project or ""):
        raise NotFound(f"no session {name!r}; see: warmstart sessions list")
    return row.key


def learn(call: ToolInvocation) -> Learned:
    """Learn from every session, and answer with what this border admits."""
    given = read_arguments(LearnArguments, call.given)
    learned = call.ws.learn(
        agent=or_none(given.agent),
        since=_read_since(given.since),
        project=or_none(given.project),
        verdict=or_none(given.verdict),
        limits=LearnLimits(min_calls=or_none(given.min_calls), max_error_rate=or_none(given.max_error_rate)),
        progress=call.progress,
    )
    visible = {row.name for row, _template in call.ws.templates.find(border=call.border)}
    templates = tuple(template for template in learned.templates if template.name in visible)
    return structs.replace(learned, templates=templates, refusals=())


def show_insights(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(InsightsArguments, call.given)
    insights = call.ws.insights(
        top=given.top,
        agent=or_none(given.agent),
        since=_read_since(given.since),
        progress=call.progress,
        border=call.find_border(given.project),
    )
    return describe_insights(insights)


def record(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(RecordArguments, call.given)
    trial = call.ws.record(given.session, check_transcript(given.path, call.folders))
    return describe_trial(trial, call.ws.experiments.measures(trial))


def warm_session(call: ToolInvocation) -> dict[str, Any]:
    check_texts(call.given)
    answer = warm.warm_session(call.ws, call.given, border=call.border)
    if not answer["success"]:
        raise WrongArguments(msgspec.json.encode(answer).decode())
    return answer


def _read_since(since: str | int | UnsetType) -> float | None:
    if isinstance(since, UnsetType):
        return None
    try:
        return read_since(str(since))
    except (ValueError, OverflowError) as error:
        raise WrongArguments(f"since: {str(error)[:200]}") from error


def _tool(description: str, kind: type[Arguments], run: Callable[[ToolInvocation], Any], **more: bool) -> McpTool:
    return McpTool(description, describe_arguments(kind), run, **more)


TOOLS: dict[str, McpTool] = {
    "provision": _tool(
        "Call once at the start of a task: returns a few tool calls that worked in earlier sessions like it, to go by.",
        ProvisionArguments,
        provision,
    ),
    "brief": _tool(
        "Call once at the start of work in a project, if provision was not called: facts that its earlier sessions met.",
        BriefArguments,
        write_brief,
    ),
    "advise": _tool(
        "Call before a call you are unsure of, or after one that failed: the fix that worked here before, if one is known.",
        AdviseArguments,
        advise,
    ),
    "templates_list": _tool(
        "Use to see which kinds of work there are examples for. Names and descriptions only.",
        TemplatesListArguments,
        list_templates,
        reads_only=True,
    ),
    "template_show": _tool(
        "Use after templates_list, to read one template's examples in full.",
        TemplateShowArguments,
        show_template,
        reads_only=True,
    ),
    "capture": _tool(
        "Use when the user asks to keep how a session went: turns that remembered session into a template.",
        CaptureArguments,
        capture,
    ),
    "learn": _tool(
        "Use when the user asks to learn from past sessions: mines all that are remembered. May take a minute.",
        LearnArguments,
        learn,
        takes_long=True,
    ),
    "insights": _tool(
        "Use when asked what keeps going wrong: the most repeated errors, how they were fixed, error rates, costs.",
        InsightsArguments,
        show_insights,
        reads_only=True,
        takes_long=True,
    ),
    "record": _tool(
        "Use after a session that was given a seed, if asked: closes its trial with the transcript file.",
        RecordArguments,
        record,
        takes_long=True,
    ),
    "request_confirmation": _tool(CONFIRMING, ConfirmationArguments, request_confirmation),
    warm.NAME: McpTool(warm.DESCRIPTION, warm.PARAMETERS, warm_session, deletes=True, takes_long=True),
}
