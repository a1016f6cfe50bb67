"""The topics of sessions: their requests in plain words, clusters of one kind of work, and names for them."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

from warmstart.calls.prose import find_topic_words, plain

_NO_NAMES = frozenset(("tmp", "home", "root", "testbed", "workspace", "project", "src", "app"))
_COMMIT = re.compile(r"@[0-9a-f]{12}$")  # of a project that is known by its root commit
_PATHS = re.compile(r"\S*[/\\\d]\S*")  # they differ where a program fills them in
_NEAR = 0.22  # minimum cosine for a session to join a cluster
_LEADERS = 40  # maximum clusters while clustering
_FEW = 4  # from this many sessions on, a word of a single session does not count
_TOOL_WEIGHT = 0.8  # weight of a tool; a word of the task has 1

Vector = dict[str, float]


def drop_boilerplate(tasks: Sequence[str]) -> list[str]:
    """Return tasks without the lines that a program adds to every request. A task of such lines only stays."""
    lines = [[line.strip() for line in plain(task).splitlines() if line.strip()] for task in tasks]
    counts = Counter(mask for task_lines in lines for mask in {_PATHS.sub("_", line) for line in task_lines})
    often = max(3, len(tasks) // 2)
    kept = ([line for line in task_lines if counts[_PATHS.sub("_", line)] < often] for task_lines in lines)
    return ["\n".join(own or task_lines) for own, task_lines in zip(kept, lines, strict=True)]


class _Cluster:
    """Sessions around a common centre."""

    def __init__(self) -> None:
        self.members: list[int] = []
        self._centre: Vector = {}
        self._length = 1.0

    def add(self, index: int, vector: Vector) -> None:
        self.members.append(index)
        for name, weight in vector.items():
            self._centre[name] = self._centre.get(name, 0.0) + weight
        self._length = _length(self._centre)

    def nearness(self, vector: Vector) -> float:
        dot = sum(weight * self._centre.get(name, 0.0) for name, weight in vector.items())
        return dot / (_length(vector) * self._length) if dot else 0.0


def cluster(tasks: Sequence[str], tools: Sequence[Counter[str]], limit: int) -> list[list[int]]:
    """Group sessions by kind of work; returns their indices.

    Early sessions found clusters; later ones join the nearest or found their own. The largest clusters stay, and every
    session goes to the nearest of them: work that happened once is not a kind.
    """
    vectors = _weigh([set(find_topic_words(task)) for task in tasks], tools)
    clusters: list[_Cluster] = []
    for index, vector in enumerate(vectors):
        nearest = max(clusters, key=lambda cluster: cluster.nearness(vector), default=None)
        if nearest is None or (nearest.nearness(vector) < _NEAR and len(clusters) < _LEADERS):
            nearest = _Cluster()
            clusters.append(nearest)
        nearest.add(index, vector)
    kinds = [cluster for cluster in clusters if len(cluster.members) > 1] or clusters[:1]
    kinds = sorted(kinds, key=lambda cluster: -len(cluster.members))[:limit]
    kinds.sort(key=lambda cluster: cluster.members[0])
    groups: list[list[int]] = [[] for _ in kinds]
    for index, vector in enumerate(vectors):
        near = [cluster.nearness(vector) for cluster in kinds]
        groups[near.index(max(near))].append(index)
    return [members for members in groups if members]


def _weigh(tasks: Sequence[set[str]], tools: Sequence[Counter[str]]) -> list[Vector]:
    spread = Counter(word for task in tasks for word in task) + Counter(f"t:{tool}" for used in tools for tool in used)
    least = 2 if len(tasks) >= _FEW else 1  # a word of one session alone brings it near to no other
    vectors = []
    for task, used in zip(tasks, tools, strict=True):
        vector = {word: _rarity(spread[word], len(tasks)) for word in sorted(task) if spread[word] >= least}
        for tool, calls in sorted(used.items()):
            name = f"t:{tool}"
            vector[name] = _TOOL_WEIGHT * _rarity(spread[name], len(tasks)) * (1 + math.log(calls))
        vectors.append(vector)
    return vectors


def _rarity(seen: int, of: int) -> float:
    return math.log((1 + of) / (1 + seen)) + 0.3


def _length(vector: Vector) -> float:
    return math.sqrt(sum(weight * weight for weight in vector.values())) or 1.0


def slug(text: str, limit: int = 40) -> str:
    """Return a text as lower-case letters, digits and dashes."""
    folded = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    whole = re.sub(r"[^a-z0-9]+", "-", folded.lower()).strip("-")
    if len(whole) <= limit:
        return whole
    head, cut_at_word, _rest = whole[: limit + 1].rpartition("-")
    return head.strip("-") if cut_at_word else whole[:limit]


def place_name(project: str | None, agent: str) -> str:
    """Return the name of the project's folder; the agent if that says nothing."""
    last = (project or "").rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    last = _COMMIT.sub("", last)
    name = slug(last, 24)
    if not name or name in _NO_NAMES or re.fullmatch(r"[0-9a-f]{16,}|\d+", name):
        return slug(agent, 24) or "agent"
    return name


def unique_name(parts: Iterable[str], extra: Sequence[str], taken: set[str]) -> str:
    """Return a name made of these parts, longer only if another template has it already."""
    base = slug("-".join(filter(None, parts)), 60)
    for more in ("", *extra):
        name = f"{slug(base, 59 - len(slug(more, 24)))}-{slug(more, 24)}" if more else base
        if name and name not in taken:
            return name
    mark = hashlib.blake2b("\0".join((base, *extra)).encode(), digest_size=3).hexdigest()
    base = slug(base, 50)
    name, number = f"{base}-{mark}", 2
    while name in taken:
        name, number = f"{base}-{mark}{number}", number + 1
    return name
