"""What a review wants to write, before anyone has looked at it; and how a model's calls are read as that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from warmstart.errors import Refused
from warmstart.review.memory import FILES, flatten_note
from warmstart.review.skills import check_skill_name

Kind = Literal["memory", "skill", "template"]
TOOL_NAMES = ("memory", "skill_manage", "template_propose")
MODEL = "review:model"
_CITED = re.compile(r"\s*\[steps?:?\s*([\d,\s-]{1,200})\]\s*\Z", re.I)
_ASKING = re.compile(r"(?i)ask|clarif|confirm|approv|question|input|elicit")
_MOST_CITES = 50
_LONGEST_DESCRIPTION = 1_000


class ProposalDraft(Struct, frozen=True, kw_only=True):
    """Something to be written."""

    kind: Kind
    action: str
    target: str
    body: dict[str, Any]
    claim: str  # what it says, to be held against the cited steps
    cites: tuple[int, ...]
    write_origin: str = MODEL
    tool_call: str | None = None
    identity: str = ""  # what makes it the same as another; empty: what it says
    suspicions: tuple[str, ...] = ()


def read_wish(tool: str, arguments: str, tool_call: str) -> ProposalDraft:
    """A model's call. Raises Refused, with what the model should do instead, where it may not run or makes no sense."""
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
    action, target = _one_of(given, "action", ("add", "replace", "remove")), _one_of(given, "target", tuple(FILES))
    content = "" if action == "remove" else flatten_note(_text(given, "content"))
    old = "" if action == "add" else _text(given, "old_text").strip()
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
    action = _one_of(given, "action", ("create", "edit", "patch", "delete"))
    name = check_skill_name(_text(given, "name"))
    body: dict[str, Any] = {}
    if action in ("create", "edit"):
        body["content"] = _text(given, "content").strip() + "\n"
    elif action == "patch":
        body = {"old_string": _text(given, "old_string"), "new_string": str(given.get("new_string") or "")}
    claim = body.get("content") or body.get("new_string") or str(given.get("reason") or name.replace("-", " "))
    return ProposalDraft(
        kind="skill", action=action, target=name, body=body, claim=claim, cites=cites, tool_call=tool_call
    )


def _read_template(given: Mapping[str, Any], cites: tuple[int, ...], tool_call: str) -> ProposalDraft:
    name, description = _text(given, "name"), str(given.get("description") or "")[:_LONGEST_DESCRIPTION]
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
    """The cited steps: an argument, or the end of a text where the tool's schema knows no such argument."""
    rest = {key: value for key, value in given.items() if key != "steps"}
    told = given.get("steps")
    found = [n for n in told if type(n) is int] if isinstance(told, list) else []
    for key in ("content", "new_string", "description", "old_text"):
        text = rest.get(key)
        if isinstance(text, str) and (match := _CITED.search(text)):
            rest[key] = text[: match.start()]
            found += _read_numbers(match[1])
    return rest, tuple(sorted(set(found)))[:_MOST_CITES]


def _read_numbers(text: str) -> list[int]:
    found: list[int] = []
    for part in re.findall(r"\d{1,7}(?:\s*-\s*\d{1,7})?", text):
        low, _, high = part.partition("-")
        found += range(int(low), min(int(high or low), int(low) + _MOST_CITES) + 1)
    return found


def _text(given: Mapping[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str) or not value.strip():
        raise Refused(f"the argument {key} is missing")
    return value


def _one_of(given: Mapping[str, Any], key: str, allowed: tuple[str, ...]) -> str:
    value = given.get(key)
    if value not in allowed:
        raise Refused(f"{key} must be one of {', '.join(allowed)}")
    return str(value)
