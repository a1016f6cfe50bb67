"""The tools' arguments. An agent may send anything, so every field has a type and a limit; unknown fields are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

from warmstart.model import Category, Dialect, TaskType, TemplateStatus

MAX_BUDGET = 6_000  # tokens: clients cut longer answers, and half a seed is no seed
_MAX_TEXT = 20_000  # characters of a task or a description
_MAX_ALL = 100_000  # characters of all arguments together
_FREE_TEXT = ("task", "description", "details", "arguments", "result")  # may have several lines
_CONTROL = frozenset(map(chr, (*range(32), 127)))
_LINES = frozenset("\t\n\r")

Name = Annotated[str, Meta(min_length=1, max_length=400)]
Text = Annotated[str, Meta(max_length=_MAX_TEXT)]
Agent = Annotated[str, Meta(min_length=1, max_length=100, description="Only this agent's: claude-code, codex, ...")]
Project = Annotated[str, Meta(min_length=1, max_length=4_000, description="Only of this working folder.")]
Folder = Annotated[str, Meta(min_length=1, max_length=4_000, description="Working folder.")]
Session = Annotated[Name, Meta(description="This session's id.")]
Since = Annotated[str | int, Meta(description="Only sessions since: a number of days, or a date like 2026-10-31.")]
Tags = Annotated[list[Annotated[str, Meta(max_length=100)]], Meta(max_length=20)]
Kind = Annotated[TaskType, Meta(description="What sort of work.")]


class Arguments(Struct, forbid_unknown_fields=True):
    """Arguments of a tool. Missing ones are UNSET."""

    def given(self) -> dict[str, Any]:
        """Return the arguments that the agent gave, under the library's names."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}


class ProvisionArguments(Arguments):
    text: Annotated[Text, Meta(description="What is to be done, in a sentence or two.")] = field(name="task")
    session: (
        Annotated[Name, Meta(description="This session's id. It makes the seed final and measured.")] | UnsetType
    ) = UNSET
    tools: (
        Annotated[
            list[Annotated[str, Meta(max_length=200)]],
            Meta(max_length=500, description="Tools this session has; examples of others are left out."),
        ]
        | UnsetType
    ) = UNSET
    category: Category | UnsetType = UNSET
    task_type: Kind | UnsetType = field(default=UNSET, name="type")
    tags: Annotated[Tags, Meta(description="Only templates with one of these tags.")] | UnsetType = UNSET
    project: Project | UnsetType = UNSET
    budget: Annotated[int, Meta(ge=0, le=MAX_BUDGET, description="Tokens at most. Default 1500.")] | UnsetType = UNSET
    examples: Annotated[int, Meta(ge=0, le=10, description="Examples at most. Default 3.")] | UnsetType = UNSET
    dialect: Annotated[Dialect, Meta(description="text to read it; others to put messages before a session.")] = "text"
    model: Annotated[Name, Meta(description="The model that will read it.")] | UnsetType = UNSET


class TemplatesListArguments(Arguments):
    category: Category | UnsetType = UNSET
    task_type: Kind | UnsetType = field(default=UNSET, name="type")
    tags: Annotated[Tags, Meta(description="With any of these.")] | UnsetType = UNSET
    status: Annotated[TemplateStatus, Meta(description="Without it: all but the retired.")] | UnsetType = UNSET


class TemplateShowArguments(Arguments):
    name: Annotated[Name, Meta(description="NAME or NAME@VERSION.")]


class CaptureArguments(Arguments):
    session: Annotated[Name, Meta(description="A remembered session's id, or the beginning of it.")]
    name: Annotated[Name, Meta(description="What to call the template.")] | UnsetType = UNSET
    task_type: Kind | UnsetType = field(default=UNSET, name="type")
    max_examples: Annotated[int, Meta(ge=1, le=50)] | UnsetType = UNSET
    description: Annotated[Text, Meta(description="What it is good for.")] | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET


class LearnArguments(Arguments):
    agent: Agent | UnsetType = field(default=UNSET, name="source")
    since: Since | UnsetType = UNSET
    project: Project | UnsetType = UNSET
    verdict: Annotated[Literal["success", "unknown"], Meta(description="Only sessions so judged.")] | UnsetType = UNSET
    min_calls: (
        Annotated[int, Meta(ge=1, le=1_000, description="Calls that worked, a session must have. Default 1.")]
        | UnsetType
    ) = UNSET
    max_error_rate: (
        Annotated[float, Meta(ge=0, le=0.5, description="Of a session's judged calls. Default and most: 0.5.")]
        | UnsetType
    ) = UNSET


class InsightsArguments(Arguments):
    agent: Agent | UnsetType = UNSET
    project: Project | UnsetType = UNSET
    since: Since | UnsetType = UNSET
    top: Annotated[int, Meta(ge=1, le=50, description="Lines of each table.")] = 5


class BriefArguments(Arguments):
    text: Annotated[Text, Meta(description="What is to be done.")] | UnsetType = field(default=UNSET, name="task")
    cwd: Folder | UnsetType = UNSET
    project: Project | UnsetType = UNSET
    session: Session | UnsetType = UNSET


class AdviseArguments(Arguments):
    tool: Name
    arguments: dict[str, Any] | str
    when: Annotated[Literal["before", "after"], Meta(description="after: it failed.")] = "before"
    result: Text | UnsetType = UNSET
    session: Session | UnsetType = UNSET
    cwd: Folder | UnsetType = UNSET


class RecordArguments(Arguments):
    session: Annotated[Name, Meta(description="The id that was given to provision.")]
    path: Annotated[
        str, Meta(min_length=1, max_length=4_096, description="Absolute path of that session's transcript file.")
    ]


AnyArguments = TypeVar("AnyArguments", bound=Arguments)
T = TypeVar("T")


def or_none(value: T | UnsetType) -> T | None:
    """Return an argument, or None if the agent did not give it."""
    return None if isinstance(value, UnsetType) else value


class WrongArguments(Exception):
    """The agent's arguments are wrong; the message says how."""


def describe_arguments(kind: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's input."""
    _refs, parts = msgspec.json.schema_components((kind,))
    schema: dict[str, Any] = parts[kind.__name__]
    properties = {
        name: {"type": "string"} | facts if "enum" in facts else facts  # some providers want a type besides the choices
        for name, facts in schema["properties"].items()
    }
    return {"type": "object", "properties": properties, "required": schema["required"], "additionalProperties": False}


def read_arguments(kind: type[AnyArguments], given: Mapping[str, Any]) -> AnyArguments:
    """Return the arguments, typed and checked. Null counts as not given: models write it for missing values."""
    check_texts(given)
    try:
        return msgspec.convert({name: value for name, value in given.items() if value is not None}, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError) as error:
        raise WrongArguments(str(error)[:500].replace("$.", "")) from error


def check_texts(given: Mapping[str, Any]) -> None:
    """Refuse control characters, which terminals, file names and logs act on, and too much text in all."""
    length = 0
    for name, text in _texts(given):
        length += len(text)
        forbidden = _CONTROL - _LINES if name in _FREE_TEXT else _CONTROL
        if not forbidden.isdisjoint(text):
            raise WrongArguments(f"{name[:40]!r} contains a control character")
    if length > _MAX_ALL:
        raise WrongArguments(f"the arguments are longer than {_MAX_ALL} characters")


def _texts(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every text with its argument's name. Not recursive: the sender decides how deep the values nest."""
    pending = list(given.items())
    while pending:
        name, value = pending.pop()
        if isinstance(value, str):
            yield name, value
        elif isinstance(value, Mapping):
            pending += [(name, part) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            pending += [(name, part) for part in value]
