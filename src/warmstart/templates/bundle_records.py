"""Turn the JSON record of a template, in any known layout, into a Template.

Records are foreign: every field is checked before it is used, and every text is bounded.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import islice
from typing import Any, get_args

from warmstart.excerpt import ARGUMENT, MESSAGE, RESULT, cut, cut_value
from warmstart.formats.fields import count_of, parse_arguments, parse_time, string_of, text_of
from warmstart.formats.openai_chat import from_messages
from warmstart.judging.score import classify_tools
from warmstart.model import Arguments, Category, Example, ExampleCall, Message, Provenance, TaskType, Template, ToolCall
from warmstart.ports import Judge

_CONTENTS = ("examples", "seed_messages", "system_prompt_addendum", "addendum")  # each of them makes a template
_FLAGS = {"true": True, "false": False, "1": True, "0": False}
_INTENT, _TASK, _DESCRIPTION, _ADDENDUM, _NOTE = 300, 1_200, 500, MESSAGE, 400  # maximum characters
_REQUEST, _CALLS = 1_000, 20  # characters of an exchange's request; its calls
_TAG, _TAGS, _ID, _IDS, _NOTES = 40, 20, 200, 1_000, 20
_MAX_ARGUMENTS = 256 << 10  # bytes; a larger call is no example
_GAP = 60  # characters by which a cut text may exceed its limit, because it says how much was left out
_MAX_DEPTH = 16


def is_template(value: Any) -> bool:
    """Return whether a JSON value is the record of a template."""
    return isinstance(value, dict) and any(key in value and not isinstance(value[key], dict) for key in _CONTENTS)


def is_own(value: dict[str, Any]) -> bool:
    """Return whether Warmstart wrote the record: only Warmstart writes a provenance."""
    return isinstance(value.get("provenance"), dict)


class BundleRecord:
    """A JSON object of a bundle. `own`: its texts may already be cut, which makes them a little longer than a limit."""

    def __init__(self, value: dict[str, Any], *, own: bool) -> None:
        self.value = value
        self.own = own

    def pick(self, *keys: str) -> Any:
        """Return the first value under these keys that is not empty."""
        return next((self.value[key] for key in keys if self.value.get(key) not in (None, "", [])), None)

    def text(self, limit: int, *keys: str) -> str:
        """Return the first text under these keys, cut to the limit."""
        return self.bound(string_of(self.pick(*keys)), limit)

    def bound(self, text: str, limit: int) -> str:
        """Cut a text to the limit."""
        return text if len(text) <= (2 * limit if self.own else limit) else cut(text, limit - _GAP)

    def number(self, key: str, default: int) -> int:
        """Return a whole number, also from decimal text."""
        value = self.value.get(key)
        known = count_of(int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else value)
        return default if known is None else known


def read_template(value: dict[str, Any], name: str, version: int, examples: tuple[Example, ...]) -> Template:
    """Return the template of a record, without its provenance."""
    record = BundleRecord(value, own=is_own(value))
    tags = value.get("tags")
    category, task_type = string_of(value.get("category")).lower(), string_of(value.get("task_type")).lower()
    by_tools = classify_tools(Counter(example.tool for example in examples))
    return Template(
        name=name,
        version=version,
        category=category if category in get_args(Category) else by_tools[0],  # type: ignore[arg-type]
        task_type=task_type if task_type in get_args(TaskType) else by_tools[1],  # type: ignore[arg-type]
        description=record.text(_DESCRIPTION, "description"),
        tags=_texts(re.split(r"\s*,\s*", tags.strip()) if isinstance(tags, str) else tags, _TAG, _TAGS),
        addendum=record.text(_ADDENDUM, "addendum", "system_prompt_addendum"),
        examples=examples,
        source_sessions=find_sessions(value),
        created=parse_time(record.pick("created", "created_at")),
        used=record.number("usage_count", 0),  # of earlier tools; our own bundles leave theirs out
    )


def read_provenance(record: Any, source: str) -> Provenance:
    """Return the provenance of an imported template."""
    known: dict[str, Any] = record if isinstance(record, dict) else {}
    project, agent, parent = (string_of(known.get(key))[:_NOTE] or None for key in ("project", "agent", "parent"))
    suspicions = _texts(known.get("suspicions"), _NOTE, _NOTES)
    return Provenance(
        origin="imported", project=project, agent=agent, parent=parent, source=source, suspicions=suspicions
    )


def find_sessions(value: dict[str, Any]) -> tuple[str, ...]:
    """Return the sessions that a template comes from."""
    sessions = BundleRecord(value, own=False).pick(
        "source_sessions", "source_session_ids", "source_session_id", "source_session"
    )
    return _texts(sessions if isinstance(sessions, list) else [sessions], _ID, _IDS)


def check_example(value: Any) -> str | None:
    """Return why a JSON value is not the record of an example."""
    if not isinstance(value, dict):
        return "not an object"
    return None if _tool(BundleRecord(value, own=False)).strip() else "it names no tool"


def has_worked(record: BundleRecord, judge: Judge) -> bool:
    """Return whether the call worked: as the record says, else as its result is judged. Our own bundles hold no others."""
    flag = record.pick("success", "result_success")
    known = flag if isinstance(flag, bool) else _FLAGS.get(string_of(flag).lower())
    if known is not None or record.own:
        return known is not False
    call = ToolCall("", _tool(record), clean_value(parse_arguments(record.value.get("arguments"))))
    return judge(call, _result(record), None).status == "ok"


def read_example(record: BundleRecord, session: str) -> Example | None:
    """Return the example of a record; None if its arguments are too large."""
    arguments = _arguments(record.value.get("arguments"), own=record.own)
    if arguments is None:
        return None
    calls = _read_calls(record)
    if calls is None:
        return None
    return Example(
        tool=_tool(record),
        arguments=arguments,
        result=record.bound(_result(record), RESULT),
        intent=record.text(_REQUEST if calls else _INTENT, "intent", "context_hint"),
        task=record.text(_TASK, "task"),
        correction=record.text(_NOTE, "correction") or None,
        why=record.text(_NOTE, "why"),
        session=string_of(record.value.get("session"))[:_ID] or session,
        step=count_of(record.pick("step", "turn_number")),
        support=record.number("support", 1),
        successes=record.number("successes", 1),
        failures=record.number("failures", 0),
        calls=calls,
        closing=record.text(_NOTE, "closing"),
        stand_ins=_texts(record.value.get("stand_ins"), _ID, _NOTES),
    )


def _read_calls(record: BundleRecord) -> tuple[ExampleCall, ...] | None:
    """Return the calls of an exchange; None if one of them is too large or no call."""
    listed = record.value.get("calls")
    calls: list[ExampleCall] = []
    for value in listed[:_CALLS] if isinstance(listed, list) and record.own else ():
        call = BundleRecord(value, own=True) if isinstance(value, dict) else None
        arguments = _arguments(value.get("arguments"), own=True) if call else None
        if call is None or arguments is None or not _tool(call).strip():
            return None
        correction = call.text(_NOTE, "correction") or None
        result = call.bound(_result(call), RESULT)
        calls.append(ExampleCall(tool=_tool(call), arguments=arguments, result=result, correction=correction))
    return tuple(calls)


def records_of_messages(messages: list[Any], judge: Judge) -> list[dict[str, Any]]:
    """Return each call of a conversation as the record of an example; the last message before it is its intent."""
    session = from_messages([message for message in messages if isinstance(message, dict)], judge)
    pairs = iter(session.calls())
    records: list[dict[str, Any]] = []
    intent = ""
    for step in session.steps:
        if isinstance(step, Message) and step.role != "system":
            intent = step.text
        elif isinstance(step, ToolCall):
            call, answer = next(pairs)
            records.append(
                {
                    "tool": call.tool,
                    "arguments": call.arguments,
                    "intent": intent,
                    "task": session.task,
                    "step": len(records),
                    "result": answer.text if answer else "",
                    "success": answer is not None and answer.outcome.status == "ok",
                }
            )
    return records


def clean_value(value: Any, depth: int = 0) -> Any:
    """Return a value that every JSON writer accepts: finite numbers, bounded depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if not isinstance(value, (dict, list, tuple)):
        return value
    if depth >= _MAX_DEPTH:
        return "[...]"
    if isinstance(value, dict):
        return {key: clean_value(item, depth + 1) for key, item in value.items()}
    return [clean_value(item, depth + 1) for item in value]


def _tool(record: BundleRecord) -> str:
    return string_of(record.pick("tool", "tool_name"))[:_ID]


def _result(record: BundleRecord) -> str:
    return _to_text(record.pick("result", "result_summary"))


def _arguments(value: Any, *, own: bool) -> Arguments | None:
    """Return the arguments, parsed if they are JSON text; None if they are too large."""
    if not isinstance(value, (dict, str, type(None))):
        value = _to_text(value)
    parsed = clean_value(value if own and isinstance(value, str) else parse_arguments(value))
    kept: Arguments = parsed if own and _fits(parsed) else cut_value(parsed, ARGUMENT - _GAP)
    return kept if len(json.dumps(kept)) <= _MAX_ARGUMENTS else None


def _to_text(value: Any) -> str:
    """Return a result as text. Some tools left it as JSON."""
    if isinstance(value, str):
        return value
    value = clean_value(value)
    if isinstance(value, list) and value and all(isinstance(part, dict) and "type" in part for part in value):
        return text_of(value)
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _fits(value: Any) -> bool:
    """Return whether arguments may have been cut before: marks and placeholders in them must not be cut again."""
    if isinstance(value, str):
        return len(value) <= 2 * ARGUMENT
    if isinstance(value, (dict, list)):
        return len(value) <= 400 and all(map(_fits, value.values() if isinstance(value, dict) else value))
    return True


def _texts(values: Any, limit: int, count: int) -> tuple[str, ...]:
    texts = (string_of(value)[:limit] for value in (values if isinstance(values, list) else ()))
    return tuple(islice((text for text in texts if text.strip()), count))
