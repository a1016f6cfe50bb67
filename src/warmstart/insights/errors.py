"""Find repeated errors: the same tool, kind of error, argument shape and message make one group.

Numbers, paths, ids and quoted text in messages are masked, so the same error about another file falls into the same group.
Command lines have too many shapes to group by: there the message decides, and the shape only if there is no message.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from msgspec import Struct, field

from warmstart.calls.fixes import error_line
from warmstart.calls.origins import child_of, find_origin
from warmstart.calls.shapes import command_of, shape
from warmstart.digests import blake2b
from warmstart.excerpt import first
from warmstart.insights.costs import CostMeter, CostTally, FailureSpan
from warmstart.insights.fixes import Ending, describe_next
from warmstart.insights.times import AT_END, Moment, find_latest, make_moment
from warmstart.insights.types import FixedBy, How, KnownNote, Occurrence, RepeatedError
from warmstart.model import PastCall, PastSession

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
Key = tuple[
    str, str | None, str, str
]  # tool, kind (also one of another version), message in lower case, shape ("" where the message decides)
Causes = Mapping[int, Collection[str]]  # index of a failed call -> the specific causes that its message names
_BEFORE = -math.inf


class PlacedCause(NamedTuple):
    """A specific cause, where it was met."""

    project: str
    scope: str
    agent: str
    cause: str


class NoteFinder(Protocol):
    """Finds the notes about errors."""

    def find(self, met: PlacedCause) -> KnownNote | None:
        """Return the note about a cause."""

    def find_made(self, error: str, origins: Collection[int]) -> KnownNote | None:
        """Return the note that a person made of an error, by its name, in one of these origins."""


class Failure(Struct, frozen=True):
    """One failed call of a session and how it was fixed."""

    index: int  # among the session's calls
    ending: Ending | None
    passed: bool | None = None  # whether a failing check passed soon after; None: the call is no check

    @property
    def span(self) -> FailureSpan:
        return FailureSpan(self.index, self.ending.index if self.ending else None)


class ErrorGroup(Struct, omit_defaults=True):
    """The counts of one error. Sessions are counted by origin, of which only a number is kept."""

    count: int = 0
    sessions: set[int] = field(default_factory=set)
    shapes: dict[str, int] = field(default_factory=dict)
    first: Moment = AT_END  # session that message and example are taken from
    message: str = ""
    example: str = ""
    last: tuple[float, Moment] = (_BEFORE, (_BEFORE, ""))  # when it was seen, and the session
    fixes: dict[tuple[How, str], set[int]] = field(default_factory=dict)
    examples: dict[tuple[How, str], dict[str, int]] = field(default_factory=dict)
    checks: int = 0
    passed: set[int] = field(default_factory=set)
    cost: CostTally = field(default_factory=CostTally)
    causes: dict[PlacedCause, int] = field(default_factory=dict)

    def merge(self, other: ErrorGroup) -> None:
        """Add the counts of other sessions."""
        self.count += other.count
        self.sessions |= other.sessions
        _add_counts(self.shapes, other.shapes)
        if other.first < self.first:
            self.first, self.message, self.example = other.first, other.message, other.example
        self.last = max(self.last, other.last)
        for fix, origins in other.fixes.items():
            self.fixes.setdefault(fix, set()).update(origins)
        for fix, examples in other.examples.items():
            _add_counts(self.examples.setdefault(fix, {}), examples)
        self.checks += other.checks
        self.passed |= other.passed
        self.cost.merge(other.cost)
        _add_counts(self.causes, other.causes)


class ErrorTally(Struct, omit_defaults=True):
    """Counts errors, session by session."""

    groups: dict[Key, ErrorGroup] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)  # as in Origins

    def add(self, session: PastSession, failures: Sequence[Failure], meter: CostMeter, causes: Causes) -> None:
        origin = number_origin(find_origin(session))
        if not session.parent:
            self._add_parent(number_origin(child_of(session.agent, session.id)), origin)
        moment = make_moment(session.started, session.key)
        by_key: dict[Key, list[Failure]] = {}
        for failure in failures:
            call = session.calls[failure.index]
            line = find_message(call)
            key = make_error_key(call)
            by_key.setdefault(key, []).append(failure)
            group = self.groups.setdefault(key, ErrorGroup())
            if moment < group.first:
                group.first, group.message, group.example = moment, mask_message(line), _make_excerpt(call, line)
            _add_counts(group.shapes, {_shape(call): 1})
            for cause in causes.get(failure.index, ()):
                _add_counts(group.causes, {PlacedCause(session.project or "", session.scope, session.agent, cause): 1})
        for key, same in by_key.items():
            _count_session(self.groups[key], session, origin, same, meter)

    def merge(self, other: ErrorTally) -> None:
        """Add the errors of other sessions."""
        for name, origin in other.parents.items():
            self._add_parent(name, origin)
        for key, group in other.groups.items():
            own = self.groups.get(key)
            if own is None:
                own = self.groups[key] = ErrorGroup()
            own.merge(group)

    def freeze(self, top: int, find_note: NoteFinder | None) -> tuple[tuple[RepeatedError, ...], int, int]:
        """Return the most repeated errors, the number of other repeated ones, and the number of errors seen once."""
        order = self.sort()
        shown = tuple(self.freeze_one(number, key, find_note) for number, key in enumerate(order[:top], 1))
        return shown, len(order) - len(shown), len(self.groups) - len(order)

    def sort(self) -> list[Key]:
        """Return the repeated errors, the most repeated first."""
        counts = {
            key: (group.count, len(self._settle(group.sessions)))
            for key, group in self.groups.items()
            if group.count > 1
        }
        return sorted(counts, key=lambda key: (-counts[key][0], -counts[key][1], *(part or "" for part in key)))

    def freeze_one(self, number: int, key: Key, find_note: NoteFinder | None) -> RepeatedError:
        """Return one repeated error, as the row with this number."""
        tool, kind, _message, _shape_of_key = key
        group = self.groups[key]
        sessions = self._settle(group.sessions)
        fixes = {fix: self._settle(origins) for fix, origins in group.fixes.items()}
        fixed = set().union(*fixes.values())
        counted = _sort_by_count({fix: len(origins) for fix, origins in fixes.items()})
        seen, (_started, session) = group.last
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
            last_seen=seen if seen != _BEFORE else None,
            last_session=session,
            fixes=tuple(
                FixedBy(how=how, what=what, sessions=count, examples=_choose_examples(group, (how, what)))
                for (how, what), count in counted[:FIXES]
            ),
            unfixed=len(sessions - fixed),
            check=2 * group.checks > group.count,
            passed=len(self._settle(group.passed)),
            cost=group.cost.freeze(),
            note=_choose_note(key, group, find_note) if find_note else None,
        )

    def _add_parent(self, name: int, origin: int) -> None:
        self.parents[name] = min(origin, self.parents.get(name, origin))

    def _settle(self, origins: Collection[int]) -> set[int]:
        """Return the independent origins among these."""
        return {self.parents.get(origin, origin) for origin in origins}


def number_origin(origin: str) -> int:
    """Return the number that stands for an origin: counts of millions of sessions must fit in memory."""
    return int.from_bytes(blake2b(origin.encode("utf-8", "replace"), digest_size=8).digest())


def _choose_note(key: Key, group: ErrorGroup, find_note: NoteFinder) -> KnownNote | None:
    """Return the note about most of an error's occurrences, else the one that a person made of it."""
    notes: Counter[KnownNote] = Counter()
    for cause, count in group.causes.items():
        if (note := find_note.find(cause)) is not None:
            notes[note] += count
    found = max(notes, key=lambda note: (notes[note], note.id), default=None)
    return found or find_note.find_made(name_error(key), group.sessions)


def name_error(key: Key) -> str:
    """Return a short name of an error."""
    text = "\0".join(part or "" for part in key)
    return blake2b(text.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _add_counts(counts: dict[_T, int], others: Mapping[_T, int]) -> None:
    for name, count in others.items():
        counts[name] = counts.get(name, 0) + count


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
    group: ErrorGroup, session: PastSession, origin: int, failures: Sequence[Failure], meter: CostMeter
) -> None:
    group.count += len(failures)
    group.sessions.add(origin)
    for failure in failures:
        if (ending := failure.ending) is not None:
            fix = (ending.how, ending.what)
            group.fixes.setdefault(fix, set()).add(origin)
            if ending.example:
                _add_counts(group.examples.setdefault(fix, {}), {ending.example: 1})
        if failure.passed is not None:
            group.checks += 1
        if failure.passed:
            group.passed.add(origin)
    group.cost.add(meter, [failure.span for failure in failures])
    at = session.calls[failures[-1].index].at
    seen = find_latest(session.started if at is None else at)
    group.last = max(group.last, (_BEFORE if seen is None else seen, make_moment(session.started, session.key)))


def list_occurrences(session: PastSession, failures: Iterable[Failure], key: Key) -> list[Occurrence]:
    """Return the occurrences of one error in a session."""
    return [
        _make_occurrence(session, failure)
        for failure in failures
        if make_error_key(session.calls[failure.index]) == key
    ]


def _make_occurrence(session: PastSession, failure: Failure) -> Occurrence:
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
        cause=_make_excerpt(call, find_message(call)),
        followed=followed,
    )


def _choose_examples(group: ErrorGroup, fix: tuple[How, str]) -> tuple[str, ...]:
    return tuple(example for example, _count in _sort_by_count(group.examples.get(fix, {}))[:EXAMPLES])


def _sort_by_count(counts: Mapping[_T, int]) -> list[tuple[_T, int]]:
    """Sort by count, the most frequent first; ties alphabetically, so that the output is stable."""
    return sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
