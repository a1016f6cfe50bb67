"""Find repeated errors: the same tool, kind of error, argument shape and message make one group.

Numbers, paths, ids and quoted text in messages are masked, so the same error about another file falls into the same group.
Command lines have too many shapes to group by: there the message decides, and the shape only if there is no message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field

from warmstart.calls.fixes import error_line
from warmstart.calls.origins import Origins
from warmstart.calls.shapes import command_of, shape
from warmstart.excerpt import first
from warmstart.insights.costs import CostMeter, CostTally, FailureSpan
from warmstart.insights.fixes import Ending, describe_next
from warmstart.insights.times import find_latest
from warmstart.insights.types import FixedBy, How, KnownNote, Occurrence, RepeatedError
from warmstart.model import ErrorKind, PastCall, PastSession

MESSAGE, EXAMPLE, SHAPE = 110, 160, 160  # characters kept
FIXES, EXAMPLES = 3, 3  # fixes shown per error, examples per fix
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
NoteFinder = Callable[[PastSession, int], Iterable[KnownNote]]  # of the failed call with this index
Key = tuple[str, ErrorKind | None, str, str]  # tool, kind, message in lower case, shape ("" where the message decides)


class Failure(Struct, frozen=True):
    """One failed call of a session and how it was fixed."""

    index: int  # among the session's calls
    ending: Ending | None
    passed: bool | None = None  # whether a failing check passed soon after; None: the call is no check

    @property
    def span(self) -> FailureSpan:
        return FailureSpan(self.index, self.ending.index if self.ending else None)


class _Group(Struct):
    """The counts of one error. Sessions are counted by origin."""

    count: int = 0
    sessions: set[str] = field(default_factory=set)
    shapes: Counter[str] = field(default_factory=Counter)
    message: str = ""
    example: str = ""
    last_seen: float | None = None
    last_session: str = ""
    fixes: dict[tuple[How, str], set[str]] = field(default_factory=dict)
    examples: dict[tuple[How, str], Counter[str]] = field(default_factory=dict)
    checks: int = 0
    passed: set[str] = field(default_factory=set)
    cost: CostTally = field(default_factory=CostTally)
    occurrences: list[Occurrence] = field(default_factory=list)
    notes: Counter[KnownNote] = field(default_factory=Counter)


class ErrorTally:
    """Counts errors, session by session."""

    def __init__(self, origins: Origins, *, keep: bool = False, find_notes: NoteFinder | None = None) -> None:
        self._groups: dict[Key, _Group] = {}
        self._origins = origins
        self._keep = keep  # every occurrence
        self._find_notes = find_notes

    def add(self, session: PastSession, failures: Sequence[Failure], meter: CostMeter) -> None:
        origin = self._origins.add(session)
        by_key: dict[Key, list[Failure]] = {}
        for failure in failures:
            call = session.calls[failure.index]
            line = find_message(call)
            key = make_error_key(call)
            by_key.setdefault(key, []).append(failure)
            if key not in self._groups:
                self._groups[key] = _Group(message=mask_message(line), example=_make_excerpt(call, line))
            group = self._groups[key]
            group.shapes[_shape(call)] += 1
            group.notes.update(self._find_notes(session, failure.index) if self._find_notes else ())
            if self._keep:
                group.occurrences.append(_make_occurrence(session, failure, line))
        for key, same in by_key.items():
            _count_session(self._groups[key], session, origin, same, meter)

    def freeze(self, top: int) -> tuple[tuple[RepeatedError, ...], int, int]:
        """Return the most repeated errors, the number of other repeated ones, and the number of errors seen once."""
        order = self._sort()
        shown = tuple(self._freeze(number, key) for number, key in enumerate(order[:top], 1))
        return shown, len(order) - len(shown), len(self._groups) - len(order)

    def show(self, number: int) -> tuple[RepeatedError, tuple[Occurrence, ...]] | None:
        """Return a repeated error by its row, with its occurrences, the latest first; None if there is no such row."""
        order = self._sort()
        if not 0 < number <= len(order):
            return None
        occurrences = sorted(self._groups[order[number - 1]].occurrences, key=lambda one: -(one.at or 0.0))
        return self._freeze(number, order[number - 1]), tuple(occurrences)

    def _sort(self) -> list[Key]:
        counts = {
            key: (group.count, len(self._origins.settle(group.sessions)))
            for key, group in self._groups.items()
            if group.count > 1
        }
        return sorted(counts, key=lambda key: (-counts[key][0], -counts[key][1], *(part or "" for part in key)))

    def _freeze(self, number: int, key: Key) -> RepeatedError:
        tool, kind, _message, _shape_of_key = key
        group = self._groups[key]
        sessions = self._origins.settle(group.sessions)
        fixes = {fix: self._origins.settle(origins) for fix, origins in group.fixes.items()}
        fixed = set().union(*fixes.values())
        counted = _sort_by_count({fix: len(origins) for fix, origins in fixes.items()})
        return RepeatedError(
            number=number,
            tool=tool,
            error_kind=kind,
            shape=_sort_by_count(group.shapes)[0][0],
            shapes=len(group.shapes),
            message=group.message,
            example=group.example,
            count=group.count,
            sessions=len(sessions),
            last_seen=group.last_seen,
            last_session=group.last_session,
            fixes=tuple(
                FixedBy(how=how, what=what, sessions=count, examples=_choose_examples(group, (how, what)))
                for (how, what), count in counted[:FIXES]
            ),
            unfixed=len(sessions - fixed),
            check=2 * group.checks > group.count,
            passed=len(self._origins.settle(group.passed)),
            cost=group.cost.freeze(),
            note=max(group.notes, key=lambda note: (group.notes[note], note.id), default=None),
        )


def mask_message(line: str) -> str:
    """Mask what belongs to one occurrence of a message only."""
    for pattern, mask in _MASKS:
        line = pattern.sub(mask, line)
    return first(" ".join(line.split()), MESSAGE)


def make_error_key(call: PastCall) -> Key:
    """Return a key that is equal for the same error about something else."""
    message = mask_message(find_message(call))
    is_by_message = bool(message) and command_of(call.tool, call.arguments) is not None
    return call.tool, call.outcome.error_kind, message.casefold(), "" if is_by_message else _shape(call)


def _shape(call: PastCall) -> str:
    return first(shape(call.tool, call.arguments), SHAPE)


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


def _count_session(
    group: _Group, session: PastSession, origin: str, failures: Sequence[Failure], meter: CostMeter
) -> None:
    group.count += len(failures)
    group.sessions.add(origin)
    for failure in failures:
        if (ending := failure.ending) is not None:
            fix = (ending.how, ending.what)
            group.fixes.setdefault(fix, set()).add(origin)
            if ending.example:
                group.examples.setdefault(fix, Counter())[ending.example] += 1
        if failure.passed is not None:
            group.checks += 1
        if failure.passed:
            group.passed.add(origin)
    group.cost.add(meter, [failure.span for failure in failures])
    at = session.calls[failures[-1].index].at
    seen = find_latest(session.started if at is None else at)
    if group.last_seen is None or (seen is not None and seen >= group.last_seen):
        group.last_seen, group.last_session = seen, session.key


def _make_occurrence(session: PastSession, failure: Failure, line: str) -> Occurrence:
    call, ending = session.calls[failure.index], failure.ending
    if ending is not None:
        example = f": {ending.example}" if ending.example else ""
        followed = f"{ending.what}{example} (call {session.calls[ending.index].ordinal})"
    elif failure.passed:
        followed = "the check passed after changes"
    else:
        followed = describe_next(session.calls, failure.index)
    at = session.started if call.at is None else call.at
    return Occurrence(
        session=session.key,
        id=session.id,
        call=call.ordinal,
        at=find_latest(at),
        cause=_make_excerpt(call, line),
        followed=followed,
    )


def _choose_examples(group: _Group, fix: tuple[How, str]) -> tuple[str, ...]:
    return tuple(example for example, _count in _sort_by_count(group.examples.get(fix, {}))[:EXAMPLES])


def _sort_by_count(counts: Mapping[_T, int]) -> list[tuple[_T, int]]:
    """Sort by count, the most frequent first; ties alphabetically, so that the output is stable."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
