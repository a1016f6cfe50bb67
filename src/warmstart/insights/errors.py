"""Find repeated errors: the same tool, kind of error, argument shape and message make one group.

Numbers, paths, ids and quoted text in messages are masked, so the same error about another file falls into the same group.
Command lines have too many shapes to group by: there the message decides, and the shape only if there is no message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from warmstart.calls.fixes import error_line
from warmstart.calls.shapes import command_of, shape
from warmstart.excerpt import first
from warmstart.insights.costs import CostMeter, CostTally, FailureSpan
from warmstart.insights.fixes import Ending
from warmstart.insights.times import find_latest
from warmstart.insights.types import FixedBy, How, RepeatedError
from warmstart.model import ErrorKind, PastCall, PastSession

MESSAGE, EXAMPLE, SHAPE = 110, 160, 160  # characters kept
FIXES = 3  # fixes shown per error
_MASKS = (
    (re.compile(r"\{\{[^{}]{0,80}\}\}"), "<secret>"),
    (re.compile(r"(?<!\w)(['\"`])(?:(?!\1).){1,120}\1(?!\w)|‘[^’]{1,120}’|“[^”]{1,120}”"), "<text>"),
    (re.compile(r"\b[a-z][a-z0-9+.-]{1,12}://[^\s'\"<>)]+", re.I), "<url>"),
    (re.compile(r"[^\s@<>()]{1,64}@[\w-]+(?:\.[\w-]+)+"), "<email>"),
    (re.compile(r"(?<![\w/<])[\w.@+-]+(?:/[\w.@+()-]+)+"), "<path>"),
    (re.compile(r"(?<![\w<])(?:[A-Za-z]:[\\/]|~?/|\.{1,2}/)[^\s'\":;,()<>\[\]]+"), "<path>"),
    (
        re.compile(
            r"\b[\w-]*[A-Za-z_]\.(?:[jt]sx?|py|go|rs|rb|java|json|ya?ml|toml|md|txt|sh|c|h|cpp|css|html|lock)\b"
        ),
        "<path>",
    ),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::[\d.]+)?Z?)?(?!\w)"), "<date>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<id>"),
    (re.compile(r"#?\b(?=\w*\d)(?=\w*[A-Za-z])[\w-]{4,}\b"), "<id>"),
    (re.compile(r"(?<![\w<])[-+]?[#$€]?\d(?:[\d.,:_]*\d)?%?(?![\w>])"), "<n>"),
)
_TAG = re.compile(r"</?[a-z_]+>")
_LETTER = re.compile(r"[^\W\d_]")

_T = TypeVar("_T")
Key = tuple[str, ErrorKind | None, str, str]  # tool, kind, message in lower case, shape ("" where the message decides)


class Failure(Struct, frozen=True):
    """One failed call of a session and how it was fixed."""

    index: int  # among the session's calls
    ending: Ending | None

    @property
    def span(self) -> FailureSpan:
        return FailureSpan(self.index, self.ending.index if self.ending else None)


class _Group(Struct):
    """The counts of one error."""

    count: int = 0
    sessions: int = 0
    shapes: Counter[str] = field(default_factory=Counter)
    message: str = ""
    example: str = ""
    last_seen: float | None = None
    last_session: str = ""
    fixes: Counter[tuple[How, str]] = field(default_factory=Counter)
    unfixed: int = 0
    cost: CostTally = field(default_factory=CostTally)


class ErrorTally:
    """Counts errors, session by session."""

    def __init__(self) -> None:
        self._groups: dict[Key, _Group] = {}

    def add(self, session: PastSession, failures: Sequence[Failure], meter: CostMeter) -> None:
        by_key: dict[Key, list[Failure]] = {}
        for failure in failures:
            call = session.calls[failure.index]
            call_shape = first(shape(call.tool, call.arguments), SHAPE)
            line = find_message(call)
            message = mask_message(line)
            key = _make_key(call, call_shape, message)
            by_key.setdefault(key, []).append(failure)
            if key not in self._groups:
                self._groups[key] = _Group(message=message, example=_make_excerpt(call, line))
            self._groups[key].shapes[call_shape] += 1
        for key, same in by_key.items():
            _count_session(self._groups[key], session, same, meter)

    def freeze(self, top: int) -> tuple[tuple[RepeatedError, ...], int, int]:
        """Return the most repeated errors, the number of other repeated ones, and the number of errors seen once."""
        repeated = {key: group for key, group in self._groups.items() if group.count > 1}
        order = sorted(
            repeated, key=lambda key: (-repeated[key].count, -repeated[key].sessions, *(part or "" for part in key))
        )
        shown = tuple(_freeze(key, repeated[key]) for key in order[:top])
        return shown, len(order) - len(shown), len(self._groups) - len(repeated)


def mask_message(line: str) -> str:
    """Mask what belongs to one occurrence of a message only."""
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return first(" ".join(line.split()), MESSAGE)


def _make_key(call: PastCall, call_shape: str, message: str) -> Key:
    is_by_message = bool(message) and command_of(call.tool, call.arguments) is not None
    return call.tool, call.outcome.error_kind, message.casefold(), "" if is_by_message else call_shape


def find_message(call: PastCall) -> str:
    """Return the line that names the error: the judge's cause, else one of the excerpt; never a line of box drawing."""
    if call.outcome.cause:
        return call.outcome.cause
    line = error_line(call)
    if line and not _LETTER.search(line):
        line = next((other for other in (call.excerpt or "").splitlines() if _LETTER.search(other)), "")
    return line.strip(" \t│┃|╭╮╰╯─")


def _make_excerpt(call: PastCall, line: str) -> str:
    if line:
        return first(line, EXAMPLE)
    text = " ".join(_TAG.sub(" ", call.excerpt or "").split())
    return first(text, EXAMPLE) if _LETTER.search(text) else ""


def _count_session(group: _Group, session: PastSession, failures: Sequence[Failure], meter: CostMeter) -> None:
    group.count += len(failures)
    group.sessions += 1
    ending = failures[-1].ending
    if ending is None:
        group.unfixed += 1
    else:
        group.fixes[ending.how, ending.what] += 1
    group.cost.add(meter, [failure.span for failure in failures])
    at = session.calls[failures[-1].index].at
    seen = find_latest(session.started if at is None else at)
    if group.last_seen is None or (seen is not None and seen >= group.last_seen):
        group.last_seen, group.last_session = seen, session.key


def _freeze(key: Key, group: _Group) -> RepeatedError:
    tool, kind, _message, _shape = key
    return RepeatedError(
        tool=tool,
        error_kind=kind,
        shape=_sort_by_count(group.shapes)[0][0],
        shapes=len(group.shapes),
        message=group.message,
        example=group.example,
        count=group.count,
        sessions=group.sessions,
        last_seen=group.last_seen,
        last_session=group.last_session,
        fixes=tuple(
            FixedBy(how=how, what=what, sessions=count) for (how, what), count in _sort_by_count(group.fixes)[:FIXES]
        ),
        unfixed=group.unfixed,
        cost=group.cost.freeze(),
    )


def _sort_by_count(counts: Mapping[_T, int]) -> list[tuple[_T, int]]:
    """Sort by count, the most frequent first; ties alphabetically, so that the output is stable."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
