"""Labels that someone put beside transcripts: a `labels.json` in the same folder says which sessions succeeded.

Two shapes: `{id: true | false | reward}` and `[{"file" | "id" | "instance_id": ..., "resolved" | "label" | ...: ...}]`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from warmstart.formats.lenient import DECODE_ERRORS, loose_values
from warmstart.formats.source import Source

_FILE = "labels.json"
_MAX_SIZE = 16 << 20
_NAMES = ("file", "id", "instance_id", "session_id", "task_id")
_VERDICTS = ("resolved", "label", "success", "reward", "score")
_WHOLE = 1.0 - 1e-6  # a reward from here on is full


def label_beside(source: Source, *names: str | None) -> bool | None:
    """The label of the session that goes by one of these names; None where nobody labelled it."""
    path = source.path.parent / _FILE
    try:
        found = path.stat()
    except OSError:
        return None
    labels, wrong = _load(path, found.st_mtime_ns, found.st_size)
    if wrong:
        source.report(f"{_FILE} beside it: {wrong}")
    return next((labels[name] for name in names if name and name in labels), None)


def as_label(value: Any) -> bool | None:
    """A plain yes or no: a boolean, 0 or 1. Anything between says nothing."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return value == 1
    return None


def reward_label(value: Any) -> bool | None:
    """A reward is a success only when it is full."""
    if isinstance(value, bool):
        return value
    return value >= _WHOLE if isinstance(value, (int, float)) else None


def wrapped_label(fields: dict[str, Any]) -> bool | None:
    """The label that a record carries in one of the usual fields."""
    return next((label for key in _VERDICTS if (label := as_label(fields.get(key))) is not None), None)


@lru_cache(maxsize=64)
def _load(path: Path, _changed: int, size: int) -> tuple[dict[str, bool], str | None]:
    if size > _MAX_SIZE:
        return {}, f"longer than {_MAX_SIZE >> 20} MB; not read"
    try:
        data = path.read_bytes()
    except OSError as error:
        return {}, (error.strerror or str(error)).lower()
    try:
        value = msgspec.json.decode(data)
    except DECODE_ERRORS:
        values, wrong = loose_values(data)
        if wrong or not values:
            return {}, wrong or "no JSON"
        value = values[0]
    if isinstance(value, dict):
        found = [(str(name), _verdict(verdict)) for name, verdict in value.items()]
    elif isinstance(value, list):
        found = [(name, _verdict(item)) for item in value if isinstance(item, dict) for name in _names(item)]
    else:
        return {}, "neither an object nor a list"
    return {name: label for name, label in found if label is not None}, None


def _names(item: dict[str, Any]) -> list[str]:
    return [str(item[key]) for key in _NAMES if isinstance(item.get(key), (str, int))]


def _verdict(value: Any) -> bool | None:
    if isinstance(value, dict):
        return next((label for key in _VERDICTS if (label := reward_label(value.get(key))) is not None), None)
    return reward_label(value)
