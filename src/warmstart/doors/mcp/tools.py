"""The MCP tools: for each its description, its arguments and the library call behind it. Answers are the CLI's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import UnsetType

from warmstart.doors.agent_tools import warm_session as warm
from warmstart.doors.mcp.arguments import (
    Arguments,
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
from warmstart.doors.mcp.transcripts import check_transcript
from warmstart.doors.render.as_json import (
    describe_insights,
    describe_seed,
    describe_template,
    describe_trial,
    summarise_template,
)
from warmstart.doors.render.times import read_since
from warmstart.model import Task, TemplateStatus
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
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
    given = {"budget": settings.budget, "examples": settings.examples} | given
    return describe_seed(call.ws.provision(msgspec.convert(given, Task)))


def list_templates(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(TemplatesListArguments, call.given)
    tags = set(or_none(given.tags) or ())
    status: TemplateStatus | None = or_none(given.status)
    listed = [
        summarise_template(row, template)
        for row, template in call.ws.templates.find(status, or_none(given.category), or_none(given.task_type))
        if (status or row.status != "retired") and (not tags or tags & set(template.tags))
    ]
    return {"templates": listed[:MAX_LISTED], "more": max(0, len(listed) - MAX_LISTED)}


def show_template(call: ToolInvocation) -> dict[str, Any]:
    return describe_template(*call.ws.templates.show(read_arguments(TemplateShowArguments, call.given).name))


def capture(call: ToolInvocation) -> LearnedTemplate:
    given = read_arguments(CaptureArguments, call.given)
    return call.ws.capture(
        given.session,
        name=or_none(given.name),
        task_type=or_none(given.task_type),
        max_examples=or_none(given.max_examples),
        description=or_none(given.description),
        tags=tuple(or_none(given.tags) or ()),
    )


def learn(call: ToolInvocation) -> Learned:
    given = read_arguments(LearnArguments, call.given)
    return call.ws.learn(
        agent=or_none(given.agent),
        since=_read_since(given.since),
        project=or_none(given.project),
        verdict=or_none(given.verdict),
        limits=LearnLimits(min_calls=or_none(given.min_calls), max_error_rate=or_none(given.max_error_rate)),
        progress=call.progress,
    )


def show_insights(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(InsightsArguments, call.given)
    insights = call.ws.insights(
        top=given.top,
        agent=or_none(given.agent),
        project=or_none(given.project),
        since=_read_since(given.since),
        progress=call.progress,
    )
    return describe_insights(insights)


def record(call: ToolInvocation) -> dict[str, Any]:
    given = read_arguments(RecordArguments, call.given)
    trial = call.ws.record(given.session, check_transcript(given.path, call.folders))
    return describe_trial(trial, call.ws.experiments.measures(trial))


def warm_session(call: ToolInvocation) -> dict[str, Any]:
    check_texts(call.given)
    answer = warm.warm_session(call.ws, call.given)
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
