"""The tools: what each is for, what it takes, and the one call of the library behind it. Answers are the CLI's JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from warmstart.doors.agent_tools import warm_session as warm
from warmstart.doors.mcp.arguments import (
    Arguments,
    Capture,
    InsightsWanted,
    Learn,
    Provision,
    Record,
    TemplateShow,
    TemplatesList,
    WrongArguments,
    check_texts,
    describe_arguments,
    read_arguments,
)
from warmstart.doors.mcp.confirmation import DESCRIPTION as CONFIRMING
from warmstart.doors.mcp.confirmation import Confirmation, request_confirmation
from warmstart.doors.mcp.transcripts import check_transcript
from warmstart.doors.render.as_json import (
    describe_insights,
    describe_seed,
    describe_template,
    describe_trial,
    summarise_template,
)
from warmstart.doors.render.times import read_since
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress

MAX_LISTED = 50
_LIMITS = ("min_calls", "max_error_rate")  # of learning; the rest are filters


class Call(NamedTuple):
    """One call of a tool, with what it may use."""

    ws: Warmstart  # open for this call alone
    given: Mapping[str, Any]  # as the agent wrote it
    tell: Progress
    folders: tuple[Path, ...]  # that transcripts may be read from


class Tool(NamedTuple):
    """A tool as clients see it."""

    description: str
    schema: dict[str, Any]
    run: Callable[[Call], Any]
    reads_only: bool = False
    deletes: bool = False
    takes_long: bool = False  # such calls wait for each other, so that they leave room for the quick ones


def provision(call: Call) -> dict[str, Any]:
    given = read_arguments(Provision, call.given).given()
    settings = call.ws.settings
    given = {"budget": settings.budget, "examples": settings.examples} | given
    return describe_seed(call.ws.provision(msgspec.convert(given, Task)))


def list_templates(call: Call) -> dict[str, Any]:
    given = read_arguments(TemplatesList, call.given).given()
    tags, status = set(given.pop("tags", ())), given.get("status")
    found = [
        summarise_template(row, template)
        for row, template in call.ws.templates.find(**given)
        if (status or row.status != "retired") and (not tags or tags & set(template.tags))
    ]
    return {"templates": found[:MAX_LISTED], "more": max(0, len(found) - MAX_LISTED)}


def show_template(call: Call) -> dict[str, Any]:
    return describe_template(*call.ws.templates.show(read_arguments(TemplateShow, call.given).name))


def capture(call: Call) -> Any:
    given = read_arguments(Capture, call.given).given()
    return call.ws.capture(given.pop("session"), **given | {"tags": tuple(given.get("tags", ()))})


def learn(call: Call) -> Any:
    given = _with_since(read_arguments(Learn, call.given).given())
    limits = {name: given.pop(name) for name in _LIMITS if name in given}
    return call.ws.learn(limits=limits, progress=call.tell, **given)


def tell_insights(call: Call) -> dict[str, Any]:
    given = _with_since(read_arguments(InsightsWanted, call.given).given())
    return describe_insights(call.ws.insights(progress=call.tell, **given))


def record(call: Call) -> dict[str, Any]:
    given = read_arguments(Record, call.given)
    trial = call.ws.record(given.session, check_transcript(given.path, call.folders))
    return describe_trial(trial, call.ws.experiments.measures(trial))


def warm_session(call: Call) -> dict[str, Any]:
    check_texts(call.given)
    answer = warm.warm_session(call.ws, call.given)
    if not answer["success"]:
        raise WrongArguments(msgspec.json.encode(answer).decode())
    return answer


def _with_since(given: dict[str, Any]) -> dict[str, Any]:
    if "since" not in given:
        return given
    try:
        return given | {"since": read_since(str(given["since"]))}
    except (ValueError, OverflowError) as error:
        raise WrongArguments(f"since: {str(error)[:200]}") from error


def _tool(description: str, kind: type[Arguments], run: Callable[[Call], Any], **more: bool) -> Tool:
    return Tool(description, describe_arguments(kind), run, **more)


TOOLS: dict[str, Tool] = {
    "provision": _tool(
        "Call once at the start of a task: returns a few tool calls that worked in earlier sessions like it, to go by.",
        Provision,
        provision,
    ),
    "templates_list": _tool(
        "Use to see which kinds of work there are examples for. Names and descriptions only.",
        TemplatesList,
        list_templates,
        reads_only=True,
    ),
    "template_show": _tool(
        "Use after templates_list, to read one template's examples in full.",
        TemplateShow,
        show_template,
        reads_only=True,
    ),
    "capture": _tool(
        "Use when the user asks to keep how a session went: turns that remembered session into a template.",
        Capture,
        capture,
    ),
    "learn": _tool(
        "Use when the user asks to learn from past sessions: mines all that are remembered. May take a minute.",
        Learn,
        learn,
        takes_long=True,
    ),
    "insights": _tool(
        "Use when asked what keeps going wrong: the most repeated errors, how they were fixed, error rates, costs.",
        InsightsWanted,
        tell_insights,
        reads_only=True,
        takes_long=True,
    ),
    "record": _tool(
        "Use after a session that was given a seed, if asked: closes its trial with the transcript file.",
        Record,
        record,
        takes_long=True,
    ),
    "request_confirmation": _tool(CONFIRMING, Confirmation, request_confirmation),
    warm.NAME: Tool(warm.DESCRIPTION, warm.PARAMETERS, warm_session, deletes=True, takes_long=True),
}
