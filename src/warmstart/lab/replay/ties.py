"""Find recorded sessions of one task, so that they are in one half and count as one in an interval.

Certain ties are: one session in several files, one session that started the other, the same request word for word, the
task's id if the format has one. People and simulated users word one task differently each time, so sessions also count as
one task if they share something that few others have: an identifying value (an order's id, a file's path) in the request or
in a call that worked, a whole call that worked, or most of the request's rare wording. Things that many sessions share
(`.`, `ls`, README.md, boilerplate of requests) tie nothing.

Rare things also coincide by chance, and a chain of them would tie all to all: such a tie is left out if it would make one
task of more than a fifth of the sessions, and the report says how many were.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from warmstart.calls.shapes import classify_text, command_of, operands, strings_in, values_of
from warmstart.lab.replay.match import RecordedCall, normal_form

_FEWEST, _RARE_SHARE, _MOST = 3, 10, 20  # sessions that may share a rare thing: a tenth, within these bounds,
_SMALL_SHARE = 3  # but never more than a third: among three sessions nothing is rare
_LARGEST_SHARE = 5  # a task has a fifth of all sessions at most
_SHINGLE = 3  # words
_SHARED_SHINGLES, _ALIKE = 3, 0.5  # near-duplicates share so many, and this part of all their rare ones
_READ = 2_000  # characters of a request
_SHORTEST, _LONGEST, _DIGITS = 5, 200, 6  # characters of an identifying value; digits alone must be more
_SPECIFIC = 40  # a call of so many characters is hardly made twice by chance, even without an identifying value
_TASK_IDS = {  # agent -> the part of its session ids that names the task; the rest distinguishes runs
    "tau-bench": re.compile(r"(.+)-\d+-[0-9a-f]{8}$"),
    "mini-swe-agent": re.compile(r"(.+)-[0-9a-f]{8}$"),
}
_WORD = re.compile(r"\w+")


class Traces(Struct, frozen=True):
    """The marks of a session's task; sessions that share one are of the same task."""

    certain: tuple[str, ...] = ()  # sharing one is enough
    values: frozenset[str] = frozenset()  # sharing a rare one is enough
    shingles: frozenset[str] = frozenset()  # sharing most of the rare ones is enough


class Joined(Struct, frozen=True):
    """Sessions by task."""

    families: dict[str, str]  # session -> name of its task
    left_loose: int = 0  # rare things that tie nothing, because a task would have become too large


def task_in_id(agent: str, session_id: str) -> str | None:
    """Return the task's id if the session's id contains it."""
    match = _TASK_IDS[agent].match(session_id) if agent in _TASK_IDS else None
    return match[1] if match else None


def trace_values(request: str, calls: Iterable[RecordedCall]) -> frozenset[str]:
    """Return identifying values of the request and of calls that worked, and such calls as a whole."""
    traces = {value for word in request[:_READ].split() if _identifies(value := word.strip(".,;:!?()[]{}<>'\"`"))}
    for call in calls:
        if call.status != "ok":
            continue
        values = {value for value in _strings(call) if _identifies(value)}
        tool, form = normal_form(call.tool, call.arguments)
        if values or len(form) >= _SPECIFIC:
            traces.add(f"{tool} {hashlib.blake2b(form, digest_size=8).hexdigest()}")
        traces |= values
    return frozenset(traces)


def trace_wording(request: str) -> frozenset[str]:
    """Return all sequences of three words."""
    words = _WORD.findall(request[:_READ].lower())
    return frozenset(" ".join(words[at : at + _SHINGLE]) for at in range(len(words) - _SHINGLE + 1))


def join(traces: Mapping[str, Traces]) -> Joined:
    """Join sessions into tasks, each with a name that depends on its sessions alone."""
    forest = _Forest(traces)
    for key, trace in traces.items():
        for tie in trace.certain:
            forest.tie(f"tie {tie}", key)
    most = min(max(len(traces) // _RARE_SHARE, _FEWEST), _MOST, len(traces) // _SMALL_SHARE)
    largest = max(len(traces) // _LARGEST_SHARE, most)
    by_value = _sharing({key: trace.values for key, trace in traces.items()}, most)
    alike = _near_duplicates({key: trace.shingles for key, trace in traces.items()}, most)
    loose = 0
    for group in sorted([*by_value, *alike], key=lambda group: (len(group), group)):  # the rarest first
        refused = sum(not forest.join(group[0], other, largest) for other in group[1:])
        loose += refused > 0
    return Joined({key: forest.name(key) for key in traces}, loose)


class _Forest:
    """Union-find that counts sessions, not the ties between them."""

    def __init__(self, sessions: Iterable[str]) -> None:
        self._sizes = dict.fromkeys(sessions, 1)
        self._above: dict[str, str] = {}

    def tie(self, one: str, other: str) -> None:
        """Join two nodes, however large their task becomes."""
        first, second = sorted((self._top(one), self._top(other)))
        if first != second:
            self._above[second] = first
            self._sizes[first] = self._sizes.get(first, 0) + self._sizes.get(second, 0)

    def join(self, one: str, other: str, largest: int) -> bool:
        """Join two sessions unless their task would become too large; return whether they are one now."""
        first, second = self._top(one), self._top(other)
        if first != second and self._sizes[first] + self._sizes[second] > largest:
            return False
        self.tie(one, other)
        return True

    def name(self, session: str) -> str:
        return hashlib.blake2b(self._top(session).encode("utf-8", "replace"), digest_size=8).hexdigest()

    def _top(self, node: str) -> str:
        while (up := self._above.setdefault(node, node)) != node:
            self._above[node] = self._above[up]
            node = up
        return node


def _sharing(owned: Mapping[str, frozenset[str]], most: int) -> list[tuple[str, ...]]:
    """Return groups of sessions that share something rare."""
    owners: dict[str, list[str]] = {}
    for key in sorted(owned):
        for thing in owned[key]:
            owners.setdefault(thing, []).append(key)
    return sorted({tuple(keys) for keys in owners.values() if 1 < len(keys) <= most})


def _near_duplicates(wording: Mapping[str, frozenset[str]], most: int) -> Iterator[tuple[str, ...]]:
    """Yield pairs of sessions whose requests are mostly the same, apart from boilerplate."""
    spread = Counter(shingle for shingles in wording.values() for shingle in shingles)
    rare = {key: [s for s in shingles if spread[s] <= most] for key, shingles in wording.items()}
    owners: dict[str, list[str]] = {}
    for key in sorted(rare):
        for shingle in rare[key]:
            owners.setdefault(shingle, []).append(key)
    shared = Counter(
        (one, other) for keys in owners.values() for at, one in enumerate(keys) for other in keys[at + 1 :]
    )
    for (one, other), count in shared.items():
        if count >= _SHARED_SHINGLES and count / (len(rare[one]) + len(rare[other]) - count) >= _ALIKE:
            yield one, other


def _strings(call: RecordedCall) -> Sequence[str]:
    line = command_of(call.tool, call.arguments)
    if line is not None:
        return sorted(operands(line))
    return [text for _form, value in values_of(call.arguments).values() for text in strings_in(value)]


def _identifies(text: str) -> bool:
    """Return whether a text names one thing and not a kind: an id, an address, a path of some depth."""
    if not _SHORTEST <= len(text) <= _LONGEST:
        return False
    form = classify_text(text)
    if form == "digits":
        return len(text) >= _DIGITS
    if form.endswith("path"):
        return "/" in text.strip("./~")
    return form in ("email", "url") or form.endswith("id")
