"""Where the work is: the files that a request will most likely edit, by what earlier sessions did.

Five signs are added up, each scaled to its best file: how recently a file was edited, how often, how well its path fits
the request (BM25 over the parts of paths), whether sessions with similar requests edited it, and whether sessions in the
same folder did, where a project has several worktrees. An edit counts fully, a read in part. How much recency counts
depends on the project: where sessions go on with the files of the one before, it counts most.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct, structs

from warmstart import lazy_regex as re
from warmstart.calls.words import AGENT_WORDS, stem
from warmstart.notes.touched import Visit, drop_addresses, split_path, split_request
from warmstart.notes.trust import is_harmless
from warmstart.notes.types import MOST_FILES

_CANDIDATES = 3  # times as many are looked up on the disk
_MOST_VISITS = 400  # the latest sessions of a project that are looked at
_HALF_LIFE = 3.0  # sessions after which an edit counts half
_LONG_LIFE = 40.0  # the same for similar sessions
_READ = 0.3  # weight of a file that was only read
_RECENT, _CONTINUED = 0.3, 6.0  # weight of recency: at least, and what the square of continuity adds
_OFTEN, _PATH, _SIMILAR, _FOLDER = 0.3, 1.0, 1.0, 1.0
_SURE = 8.0  # BM25 of a path from which on its sign counts fully
_SHARPEN = 1.5  # exponent: one very similar session says more than many slightly similar ones
_PATH_WORD = 0.7  # weight of a word of an edited path in the comparison of sessions; a word of the request has 1
_EVIDENCE = 20  # sessions from which continuity is measured
_USUAL, _USUAL_WEIGHT = 0.2, 3.0  # continuity of a project about which nothing is known, as so many sessions
_K1, _B = 1.2, 0.75  # the usual constants of BM25
_FEW = 2  # sessions just before that a continued session may go on with
_LINE = 5  # files that a brief names at most
_NEAR = 0.5  # score of a file in a brief, relative to the best one
_YOUNG = 50  # sessions that rarity assumes at least: in a young project no word is rare
_FEW_SESSIONS = 6  # so many may share all their words
_SHARED, _RARE, _PART = 2, 6.0, 0.2  # words that similar requests share, their rarity, their part of the new request
_WORK_WORDS = frozenset(  # of the way of working: they stand in requests about any part of the code
    """action add address apply attach attachment branch bug build ci clean comment commit discussion fail failure
    feedback fix git github implement improve investigate issue json lint line local log logs main master md mention
    merge pass paste past pr pull push rebase refactor release remote remove reply request resolve review test text
    ticket txt type update version warn warning workflow yaml""".split()
)
_EMPTY = AGENT_WORDS | _WORK_WORDS | {stem(word) for word in AGENT_WORDS | _WORK_WORDS}
_EDITED_BY_LIKE = "similar requests edited it"
_TOKEN = re.compile(r"[\w.@+\[\]()/~-]{3,200}")
_FILE = re.compile(r"(?:[\w.@+~-]+/)+[\w.@+-]+\.[a-zA-Z]\w{0,5}")

Scores = dict[str, float]


class LikelyFile(Struct, frozen=True, kw_only=True):
    """A file that a request will likely edit, and why."""

    path: str  # relative to the project
    score: float
    reason: str
    sessions: int = 0  # of those with similar requests, how many edited it
    edited: int = 0  # all sessions that edited it


class Where(Struct, frozen=True, kw_only=True):
    """The files that similar requests led to, or why none is named."""

    project: str | None = None
    files: tuple[LikelyFile, ...] = ()
    sessions: int = 0  # earlier sessions with similar requests
    named: tuple[str, ...] = ()  # the files in the line of a brief: similar requests edited them, and they rank high
    support: int = 0  # similar sessions that edited one of those
    silent: str = ""  # why no file is named

    @property
    def line(self) -> str:
        """One line for a brief; empty where no file is named."""
        if not self.named:
            return ""
        paths = ", ".join(f"`{path}`" for path in self.named)
        return f"Requests like this one edited: {paths} ({self.support} session{'s' * (self.support != 1)})"


class Similar(Struct, frozen=True):
    """An earlier session whose request is like this one."""

    visit: Visit
    score: float


def find_where(
    visits: Sequence[Visit],
    text: str,
    *,
    folder: str = "",
    limit: int = MOST_FILES,
    root: Path | None = None,
) -> Where:
    """Return the files that requests like this one led to. `root`: the project on this disk, where files must exist."""
    visits = visits[-_MOST_VISITS:]
    if not any(visit.edited for visit in visits):
        return Where(silent="no earlier session edited a file")
    if own := find_named(text, visits):
        return Where(silent=f"the request names its files: {', '.join(own[:3])}")
    words = split_request(text)
    like = find_like(visits, words)
    if not like:
        return Where(silent="no earlier request is similar")
    supported = Counter(path for visit in like for path in visit.edited)
    shown: list[LikelyFile] = []
    for file in rank_files(visits, words, folder=folder, limit=_CANDIDATES * MOST_FILES):
        if len(shown) < MOST_FILES and is_harmless(file.path) and _is_there(file.path, root):
            count = supported[file.path]
            shown.append(structs.replace(file, sessions=count, reason=_EDITED_BY_LIKE if count else file.reason))
    if not shown:
        return Where(sessions=len(like), silent="the files that similar requests edited are not here")
    near = (file.path for file in shown if file.sessions and file.score >= _NEAR * shown[0].score)
    named = tuple(islice(near, _LINE))
    support = sum(not visit.edited.keys().isdisjoint(named) for visit in like)
    return Where(files=tuple(shown[:limit]), sessions=len(like), named=named, support=support)


def _is_there(path: str, root: Path | None) -> bool:
    try:
        return root is None or (root / path).is_file()
    except (OSError, ValueError):
        return False


def find_named(text: str, visits: Iterable[Visit]) -> list[str]:
    """Return the files that a request names itself: known ones by any end of their paths, others by whole paths."""
    tokens = {token.lstrip("@([").rstrip(".)],:").removeprefix("./") for token in _TOKEN.findall(drop_addresses(text))}
    tokens = {token for token in tokens if "/" in token or "." in token[1:]}
    if not tokens:
        return []
    paths = dict.fromkeys(path for visit in visits for path in (*visit.edited, *visit.read))
    known = [path for path in paths if any(path == token or path.endswith(f"/{token}") for token in tokens)]
    return known or sorted(token for token in tokens if _FILE.fullmatch(token))


def find_like(visits: Sequence[Visit], words: Sequence[str]) -> list[Visit]:
    """Return the earlier sessions that edited files and whose requests are clearly like this one."""
    topics = [word for word in words if word not in _EMPTY]
    documents = [_weigh_words(visit) for visit in visits]
    frequency = Counter(word for document in documents for word in document)
    often = max(_FEW_SESSIONS, len(documents) / 2)  # a program wrote what stands in most requests
    topics = [word for word in topics if frequency[word] <= often]
    rarity = {word: _rate(frequency[word], max(_YOUNG, len(documents))) for word in topics}
    whole = sum(rarity.values()) or 1.0
    like = []
    for visit, document in zip(visits, documents, strict=True):
        shared = [rarity[word] for word in topics if word in document]
        rare = sum(shared)
        if visit.edited and len(shared) >= _SHARED and rare >= max(_RARE, _PART * whole):
            like.append(visit)
    return like


def rank_files(
    visits: Sequence[Visit], words: Sequence[str], *, folder: str = "", limit: int = MOST_FILES
) -> list[LikelyFile]:
    """Return the files that a request will likely edit, the likeliest first.

    `visits`: of the project, in order of time; `words`: of the request, by touched.split_request; `folder`: in which the
    new session runs.
    """
    visits = visits[-_MOST_VISITS:]
    similar = find_similar(visits, words)
    share = sum(visit.folder == folder for visit in visits) / max(1, len(visits))
    paths = {path for visit in visits for path in (*visit.edited, *visit.read)}
    fitting = _score_paths(paths, words)
    continuity = measure_continuity(visits)
    signs: list[tuple[str, float, Scores]] = [
        ("edited recently", _RECENT + _CONTINUED * continuity**2, _score_recent(visits)),
        ("edited often", _OFTEN, _score_often(visits)),
        ("its path fits", _PATH * min(1.0, max(fitting.values(), default=0.0) / _SURE), fitting),
        ("words of earlier requests", _SIMILAR, _score_similar(similar)),
        ("edited in this folder", _FOLDER * (1 - share), _score_recent(visits, folder) if folder else {}),
    ]
    totals: Scores = {}
    reasons: dict[str, tuple[float, str]] = {}
    for reason, weight, scores in signs:
        for path, value in _scale(scores, weight).items():
            totals[path] = totals.get(path, 0.0) + value
            reasons[path] = max(reasons.get(path, (0.0, "")), (value, reason))
    best = sorted(totals, key=lambda path: (-totals[path], path))
    kept = _find_latest(visits)[: round(limit * continuity**2)]
    chosen = {*kept, *[path for path in best if path not in kept][: limit - len(kept)]}
    edits = Counter(path for visit in visits for path in visit.edited)
    return [
        LikelyFile(
            path=path,
            score=round(totals[path], 3),
            reason=reasons[path][1],
            edited=edits[path],
        )
        for path in best
        if path in chosen
    ]


def find_similar(visits: Sequence[Visit], words: Sequence[str]) -> list[Similar]:
    """Return the earlier sessions that share rare words with a request, in their own words or in paths they edited."""
    documents = [_weigh_words(visit) for visit in visits]
    frequency = Counter(word for document in documents for word in document)
    rarity = {word: _rate(frequency[word], len(documents)) for word in words if frequency[word]}
    found = []
    for age, (visit, document) in enumerate(zip(reversed(visits), reversed(documents), strict=True)):
        score = sum(value * document[word] for word, value in rarity.items() if word in document)
        if score > 0:
            score = (score / math.sqrt(8 + len(document))) ** _SHARPEN * 0.5 ** (age / _LONG_LIFE)
            found.append(Similar(visit, score))
    return found


def measure_continuity(visits: Sequence[Visit]) -> float:
    """Return how much of what sessions edit the sessions just before them edited: 0-1."""
    seen: set[str] = set()
    shares: list[float] = []
    for at, visit in enumerate(visits):
        known = [path for path in visit.edited if path in seen]
        if known:
            before = {path for other in visits[max(0, at - _FEW) : at] for path in other.edited}
            shares.append(sum(path in before for path in known) / len(known))
        seen.update(visit.edited, visit.read)
    shares = shares[-_EVIDENCE:]
    return (sum(shares) + _USUAL * _USUAL_WEIGHT) / (len(shares) + _USUAL_WEIGHT)


def _find_latest(visits: Sequence[Visit]) -> list[str]:
    """Return the files that were edited last: where sessions go on with each other, places are kept for them."""
    return list(dict.fromkeys(path for visit in reversed(visits) for path in reversed(visit.edited)))


def _weigh_words(visit: Visit) -> Scores:
    document = {word: _PATH_WORD for path in visit.edited for word in split_path(path)}
    document.update(dict.fromkeys(visit.words, 1.0))
    return document


def _score_recent(visits: Sequence[Visit], folder: str = "") -> Scores:
    scores: Scores = {}
    for age, visit in enumerate(reversed(visits)):
        if not folder or visit.folder == folder:
            _add(scores, visit, 0.5 ** (age / _HALF_LIFE))
    return scores


def _score_often(visits: Sequence[Visit]) -> Scores:
    scores: Scores = {}
    for visit in visits:
        _add(scores, visit, 1.0)
    return scores


def _score_similar(similar: Iterable[Similar]) -> Scores:
    scores: Scores = {}
    for entry in similar:
        _add(scores, entry.visit, entry.score)
    return scores


def _add(scores: Scores, visit: Visit, weight: float) -> None:
    for path in visit.edited:
        scores[path] = scores.get(path, 0.0) + weight
    for path in visit.read:
        if path not in visit.edited:
            scores[path] = scores.get(path, 0.0) + weight * _READ


def _score_paths(paths: Iterable[str], words: Sequence[str]) -> Scores:
    """Return the BM25 of each path that shares a word with the request."""
    documents = {path: Counter(split_path(path)) for path in paths}
    if not documents or not words:
        return {}
    frequency = Counter(word for document in documents.values() for word in document)
    average = sum(document.total() for document in documents.values()) / len(documents) or 1.0
    rarity = {word: _rate(frequency[word], len(documents)) for word in words if frequency[word]}
    scores = {}
    for path, document in documents.items():
        length = _K1 * (1 - _B + _B * document.total() / average)
        counts = ((value, document[word]) for word, value in rarity.items() if document[word])
        if score := sum(value * count * (_K1 + 1) / (count + length) for value, count in counts):
            scores[path] = score
    return scores


def _rate(count: int, total: int) -> float:
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _scale(scores: Mapping[str, float], weight: float) -> Scores:
    most = max(scores.values(), default=0.0)
    return {path: weight * value / most for path, value in scores.items()} if most > 0 and weight > 0 else {}
