"""Measure how many of the files that a later session edits are named at its start.

    python bench/where.py [DIR] [--projects A,B] [--json]

DIR (default: the shared corpus' `projects`) holds one archive or folder a project. The sessions of each are replayed in
order of time; the later 30 % are measured, each with what all sessions before it did. Only the first request of a session
is known, as it is stored (its first 1,200 characters), and the folder in which the session starts. Calls that a forked
session copied from its parent are left out; subagents' files belong to the session above them. No disk of the original
machine is there, so no path is checked.

**Share**: of the files that the later sessions edit and that an earlier session had edited or read, those among the
first ten named. Beside it, in the same run and with the same history:
- `popular`: the files that most sessions edited; among equals the latest;
- `recent`: the files edited last, by session and by the order of their first edits in it;
- `bm25`: plain BM25 of the request's words over the parts of all known paths.
The bar: the mean share over the projects is at least 1.25 times the best of the three means, and in no project more than
10 % below the best of the three there.

`unnamed` repeats the shares for the requests that name no file: the product says nothing about the others. `spoken` is
how often the line in the brief appears in the later sessions that edit anything, `line_hit` how often one of its files
was then edited, `line_precision` the share of its files that were.

JSON keys, for each project: `sessions`, `files`, `where`, `popular`, `recent`, `bm25`, `session_mean` (the four shares,
each session counted alike), `unnamed` (`files` and the four shares), `edited_sessions`, `spoken`, `line_hit`,
`line_precision`. Under `mean`: the four shares, `best`, `ratio`, `worst` (the lowest ratio in any project),
`session_mean`, `session_ratio`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from corpus_projects import NAMES, PROJECTS, open_project
from warmstart.model import PastSession
from warmstart.notes.digest import digest_session
from warmstart.notes.touched import Visit, merge_visits, split_path, split_request
from warmstart.notes.types import MOST_FILES
from warmstart.notes.where import find_named, find_where, rank_files

SHARE = 0.7  # of the sessions, which only teach
METHODS = ("where", "popular", "recent", "bm25")
Ranker = Callable[[Sequence[Visit], Visit], list[str]]


def read_visits(sessions: Iterable[PastSession]) -> tuple[list[Visit], dict[str, str]]:
    """Return what each root session did, in order of time, and its first request."""
    visits: list[Visit] = []
    requests: dict[str, str] = {}
    copied, roots = set[str](), list[str]()
    for session in sessions:
        roots += [root for root in (session.root, session.folder) if root and root not in roots]
        digest = digest_session(session, roots=roots, skip=copied)
        copied |= {call.call_id for call in session.calls if len(call.call_id) > 15}
        visits.append(Visit(digest.session, digest.at, digest.folder, digest.words, digest.edited, digest.read))
        if session.parent is None:
            requests[digest.session] = session.task
    return merge_visits(visits), requests


def rank_where(history: Sequence[Visit], new: Visit) -> list[str]:
    """Return what the product would name."""
    return [file.path for file in rank_files(history, new.words, folder=new.folder)]


def rank_popular(history: Sequence[Visit], new: Visit) -> list[str]:
    """Return the files that most sessions edited."""
    counts = Counter(path for visit in history for path in visit.edited)
    last = {path: at for at, visit in enumerate(history) for path in visit.edited}
    return sorted(counts, key=lambda path: (-counts[path], -last[path], path))


def rank_recent(history: Sequence[Visit], new: Visit) -> list[str]:
    """Return the files that were edited last."""
    last = {path: (at, place) for at, visit in enumerate(history) for place, path in enumerate(visit.edited)}
    return sorted(last, key=lambda path: last[path], reverse=True)


def rank_bm25(history: Sequence[Visit], new: Visit) -> list[str]:
    """Return the known files whose paths fit the request best."""
    documents = {path: Counter(split_path(path)) for visit in history for path in (*visit.edited, *visit.read)}
    frequency = Counter(word for document in documents.values() for word in document)
    average = sum(document.total() for document in documents.values()) / max(1, len(documents)) or 1.0
    scores: dict[str, float] = defaultdict(float)
    for path, document in documents.items():
        for word in new.words:
            if count := document[word]:
                rarity = math.log(1 + (len(documents) - frequency[word] + 0.5) / (frequency[word] + 0.5))
                scores[path] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * document.total() / average))
    return sorted(scores, key=lambda path: (-scores[path], path))


RANKERS: dict[str, Ranker] = {
    "where": rank_where,
    "popular": rank_popular,
    "recent": rank_recent,
    "bm25": rank_bm25,
}


class Replay:
    """Replays one project and counts."""

    def __init__(self, visits: Sequence[Visit], requests: dict[str, str]) -> None:
        self.hits: dict[str, list[tuple[int, int]]] = {name: [] for name in METHODS}  # named, known: of each session
        self.unnamed: dict[str, list[tuple[int, int]]] = {name: [] for name in METHODS}
        self.lines: list[tuple[int, int]] = []  # edited, named in the line
        self.edited_sessions = 0
        seen: set[str] = set()
        for at, visit in enumerate(visits):
            if at >= int(len(visits) * SHARE) and visit.edited and visit.session in requests:
                self._measure(visits[:at], visit, requests[visit.session], seen)
            seen.update(visit.edited, visit.read)

    def _measure(self, history: Sequence[Visit], visit: Visit, request: str, seen: set[str]) -> None:
        self.edited_sessions += 1
        where = find_where(history, request, folder=visit.folder)
        if named := where.named:
            self.lines.append((sum(path in visit.edited for path in named), len(named)))
        known = [path for path in visit.edited if path in seen]
        if not known:
            return
        new = Visit(visit.session, visit.at, visit.folder, split_request(request))
        names_files = bool(find_named(request, history))
        for name, rank in RANKERS.items():
            first = set(rank(history, new)[:MOST_FILES])
            hit = (sum(path in first for path in known), len(known))
            self.hits[name].append(hit)
            if not names_files:
                self.unnamed[name].append(hit)

    def figures(self) -> dict[str, Any]:
        """Return the named figures."""
        return {
            "sessions": len(self.hits["where"]),
            "files": sum(known for _hit, known in self.hits["where"]),
            **{name: pool(self.hits[name]) for name in METHODS},
            "session_mean": {name: average(self.hits[name]) for name in METHODS},
            "unnamed": {
                "files": sum(known for _hit, known in self.unnamed["where"]),
                **{name: pool(self.unnamed[name]) for name in METHODS},
            },
            "edited_sessions": self.edited_sessions,
            "spoken": len(self.lines),
            "line_hit": round(mean(hit > 0 for hit, _named in self.lines), 4) if self.lines else None,
            "line_precision": average(self.lines),
        }


def pool(hits: Sequence[tuple[int, int]]) -> float | None:
    """Return the share of all files; None where there is none."""
    whole = sum(known for _hit, known in hits)
    return round(sum(hit for hit, _known in hits) / whole, 4) if whole else None


def average(hits: Sequence[tuple[int, int]]) -> float | None:
    """Return the mean of the sessions' shares; None where there is none."""
    return round(mean(hit / known for hit, known in hits), 4) if hits else None


def compare(rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the means over projects, and the ratios to the best of the three others."""
    measured = [row for row in rows.values() if row["files"]]
    if not measured:
        sys.exit("no later session edits a file that an earlier one had seen")
    means = {name: round(mean(row[name] for row in measured), 4) for name in METHODS}
    session_means = {name: round(mean(row["session_mean"][name] for row in measured), 4) for name in METHODS}
    best = max(METHODS[1:], key=lambda name: means[name])
    best_session = max(session_means[name] for name in METHODS[1:])
    return {
        **means,
        "best": best,
        "ratio": divide(means["where"], means[best]),
        "worst": min((row["ratio"] for row in measured if row["ratio"] is not None), default=None),
        "session_mean": session_means,
        "session_ratio": divide(session_means["where"], best_session),
    }


def divide(part: float, whole: float) -> float | None:
    """Return the ratio of two shares; None where there is nothing to compare with."""
    return round(part / whole, 3) if whole else None


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=PROJECTS)
    parser.add_argument("--projects", default=",".join(NAMES))
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.dir.is_dir():
        sys.exit(f"{options.dir}: no such folder")
    rows: dict[str, dict[str, Any]] = {}
    for name in options.projects.split(","):
        with open_project(options.dir, name) as (_transcripts, sessions):
            rows[name] = Replay(*read_visits(sessions)).figures()
        row = rows[name]
        row["ratio"] = divide(row["where"], max(row[other] for other in METHODS[1:])) if row["files"] else None
    means = compare(rows)
    if options.json:
        print(json.dumps({**rows, "mean": means}, indent=2))
        return
    print(
        f"{'share of known edited files':28}{'files':>6}" + "".join(f"{name:>9}" for name in METHODS) + f"{'ratio':>8}"
    )
    for name, row in rows.items():
        print_row(name, row, row["files"], row["ratio"])
    print_row("mean", means, "", means["ratio"])
    print_row("mean, sessions alike", means["session_mean"], "", means["session_ratio"])
    print("requests that name no file:")
    for name, row in rows.items():
        print_row(f"  {name}", row["unnamed"], row["unnamed"]["files"], None)
    print("the line in the brief:")
    for name, row in rows.items():
        if row["spoken"]:
            print(f"  {name:26}{row['spoken']} of {row['edited_sessions']} sessions;", end=" ")
            print(f"a file right in {row['line_hit']:.0%}, {row['line_precision']:.0%} of its files")
        else:
            print(f"  {name:26}silent in {row['edited_sessions']} sessions")


def print_row(name: str, shares: dict[str, Any], files: object, ratio: float | None) -> None:
    """Print a line of the table."""
    cells = "".join(f"{shares[key]:9.1%}" if shares[key] is not None else f"{'-':>9}" for key in METHODS)
    print(f"{name:28}{files:>6}{cells}" + (f"{ratio:8.2f}" if ratio is not None else ""))


if __name__ == "__main__":
    main()
