"""Success labels of sessions: from a record's own fields, or from a `labels.json` in the transcript's folder.

`labels.json` has one of two shapes: `{id: true | false | reward}` or
`[{"file" | "id" | "instance_id": ..., "resolved" | "label" | ...: ...}]`.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from warmstart.errors import explain
from warmstart.formats.lenient import DECODE_ERRORS, loose_values
from warmstart.formats.source import Source

_FILE = "labels.json"
_MAX_SIZE = 16 << 20
_NAMES = ("file", "id", "instance_id", "session_id", "task_id")
_VERDICTS = ("resolved", "label", "success", "reward", "score")
_FULL_REWARD = 1.0 - 1e-6


def label_beside(source: Source, *names: str | None) -> bool | None:
    """Return the label in `labels.json` of the session with one of these names; None without one."""
    path = source.path.parent / _FILE
    try:
        status = path.stat()
    except OSError:
        return None
    labels, problem = _load(path, status.st_mtime_ns, status.st_size)
    if problem:
        source.report(f"{_FILE} in its folder cannot be used: {problem}")
    return next((labels[name] for name in names if name and name in labels), None)


def as_label(value: Any) -> bool | None:
    """Read a boolean, 0 or 1 as a label; anything else is no label."""
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)) and value in (0, 1):
        return value == 1
    return None


def reward_label(value: Any) -> bool | None:
    """Read a reward as a label: only a full reward is a success."""
    if isinstance(value, bool):
        return value
    return value >= _FULL_REWARD if isinstance(value, (int, float)) else None


def wrapped_label(record: object) -> bool | None:
    """Return the label in a record's field `resolved`, `label`, `success`, `reward` or `score`."""
    return next((label for key in _VERDICTS if (label := as_label(getattr(record, key, None))) is not None), None)


@lru_cache(maxsize=64)
def _load(path: Path, _changed: int, size: int) -> tuple[dict[str, bool], str | None]:
    if size > _MAX_SIZE:
        return {}, f"it is larger than {_MAX_SIZE >> 20} MB"
    try:
        data = path.read_bytes()
    except OSError as error:
        return {}, explain(error)
    try:
        value = msgspec.json.decode(data)
    except DECODE_ERRORS:
        values, problem = loose_values(data)
        if problem or not values:
            return {}, problem or "it holds no JSON"
        value = values[0]
    if isinstance(value, dict):
        labels = [(str(name), _verdict(verdict)) for name, verdict in value.items()]
    elif isinstance(value, list):
        labels = [(name, _verdict(item)) for item in value if isinstance(item, dict) for name in _names(item)]
    else:
        return {}, "it is neither an object nor a list"
    return {name: label for name, label in labels if label is not None}, None


def _names(item: dict[str, Any]) -> list[str]:
    return [str(item[key]) for key in _NAMES if isinstance(item.get(key), (str, int))]


def _verdict(value: Any) -> bool | None:
    if isinstance(value, dict):
        return next((label for key in _VERDICTS if (label := reward_label(value.get(key))) is not None), None)
    return reward_label(value)
