"""Drafts of proposals, and how a model's calls are read as drafts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from warmstart.errors import Refused
from warmstart.review.memory import FILES, flatten_note
from warmstart.review.skills import check_skill_name

Kind = Literal["memory", "skill", "template", "note"]
TOOL_NAMES = ("memory", "skill_manage", "template_propose")
MODEL = "review:model"
_CITED = re.compile(r"\s*\[steps?:?\s*([\d,\s-]{1,200})\]\s*\Z", re.I)
_ASKING = re.compile(r"(?i)ask|clarif|confirm|approv|question|input|elicit")
_MOST_CITES = 50
_LONGEST_DESCRIPTION = 1_000


class ProposalDraft(Struct, frozen=True, kw_only=True):
    """A change that a review proposes: a line of memory, a skill or a template; or a note about the project to approve."""

    kind: Kind
    action: str
    target: str
    body: dict[str, Any]
    claim: str  # the text that is checked against the cited steps
    cites: tuple[int, ...]
    write_origin: str = MODEL
    tool_call: str | None = None
    identity: str = ""  # drafts with the same identity are the same; empty: compare the text
    suspicions: tuple[str, ...] = ()


def read_draft(tool: str, arguments: str, tool_call: str) -> ProposalDraft:
    """Read a model's call as a draft. Raises Refused, with what the model should do instead."""
    name = tool.rpartition("__")[2]
    if name not in TOOL_NAMES:
        asks = " Nobody is there to be asked." if _ASKING.search(name) else ""
        raise Refused(f"denied: a review may use only {', '.join(TOOL_NAMES)}.{asks} Go on without it.")
    try:
        given = msgspec.json.decode(arguments or "{}", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        raise Refused("the arguments are no JSON object") from error
    given, cites = _take_cites(given)
    match name:
        case "memory":
            return _read_memory(given, cites, tool_call)
        case "skill_manage":
            return _read_skill(given, cites, tool_call)
        case _:
            return _read_template(given, cites, tool_call)


def is_denied(tool: str) -> bool:
    return tool.rpartition("__")[2] not in TOOL_NAMES


def _read_memory(given: Mapping[str, Any], cites: tuple[int, ...], tool_call: str) -> ProposalDraft:
    action = _read_choice(given, "action", ("add", "replace", "remove"))
    target = _read_choice(given, "target", tuple(FILES))
    content = "" if action == "remove" else flatten_note(_read_text(given, "content"))
    old = "" if action == "add" else _read_text(given, "old_text").strip()
    return ProposalDraft(
        kind="memory",
        action=action,
        target=target,
        body={"content": content, "old_text": old},
        claim=content or old,
        cites=cites,
        tool_call=tool_call,
    )


def _read_skill(given: Mapping[str, Any], cites: tuple[int, ...], tool_call: str) -> ProposalDraft:
    action = _read_choice(given, "action", ("create", "edit", "patch", "delete"))
    name = check_skill_name(_read_text(given, "name"))
    body: dict[str, Any] = {}
    if action in ("create", "edit"):
        body["content"] = _read_text(given, "content").strip() + "\n"
    elif action == "patch":
        body = {"old_string": _read_text(given, "old_string"), "new_string": str(given.get("new_string") or "")}
    claim = body.get("content") or body.get("new_string") or str(given.get("reason") or name.replace("-", " "))
    return ProposalDraft(
        kind="skill", action=action, target=name, body=body, claim=claim, cites=cites, tool_call=tool_call
    )


def _read_template(given: Mapping[str, Any], cites: tuple[int, ...], tool_call: str) -> ProposalDraft:
    name, description = _read_text(given, "name"), str(given.get("description") or "")[:_LONGEST_DESCRIPTION]
    body = {"name": name, "description": description}
    return ProposalDraft(
        kind="template",
        action="propose",
        target=name,
        body=body,
        claim=f"{name} {description}",
        cites=cites,
        tool_call=tool_call,
    )


def _take_cites(given: dict[str, Any]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Take the cited steps out of an argument, or out of the end of a text if the tool's schema has no such argument."""
    rest = {key: value for key, value in given.items() if key != "steps"}
    steps = given.get("steps")
    cites = [n for n in steps if type(n) is int] if isinstance(steps, list) else []
    for key in ("content", "new_string", "description", "old_text"):
        text = rest.get(key)
        if isinstance(text, str) and (match := _CITED.search(text)):
            rest[key] = text[: match.start()]
            cites += _read_numbers(match[1])
    return rest, tuple(sorted(set(cites)))[:_MOST_CITES]


def _read_numbers(text: str) -> list[int]:
    numbers: list[int] = []
    for part in re.findall(r"\d{1,7}(?:\s*-\s*\d{1,7})?", text):
        low, _, high = part.partition("-")
        numbers += range(int(low), min(int(high or low), int(low) + _MOST_CITES) + 1)
    return numbers


def _read_text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"the argument {key} is missing")
    return value


def _read_choice(given: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = given.get(key)
    if value not in allowed:
        raise Refused(f"{key} must be one of {', '.join(allowed)}")
    return str(value)
