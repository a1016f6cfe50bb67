"""Measure how many of a project's later errors its notes foresee.

    python bench/foresight.py [DIR] [--projects A,B] [--json] [--show N]

DIR (default: the shared corpus' `projects`) holds one archive or folder a project. The sessions of each are replayed in
order of time: the first 70 % only teach, the later 30 % are measured, and each teaches as soon as it has ended. Calls that
a forked session copied from its parent are left out. No disk of the original machine is there, so nothing is verified.

The rules:
- **errors**: calls of the later sessions that were judged as errors.
- **foreseeable**: an error with a specific cause that two earlier root sessions had met. Causes are what
  `notes.sightings` names: a missing path, a missing program, module or variable, an option or subcommand, a linter rule,
  compiler code or test, a file too large to read, or a message of a tool that is the same when values are masked.
- **named**: a note about one of these causes stands in the brief of the session (300 tokens).
- **stopped**: at level `stop` the call would have been refused or rewritten before it ran; a note stops once a session.
- **prevented**: named or stopped. The bar is 75 % of the foreseeable.
- **fix given**: of the errors that were not stopped and whose fix the session then found, those for which the advice
  after the failure gives a fix; `fix_equal`: the same one that then worked. The bar is 25 %.
- **false stops**: calls that worked but would have been stopped or rewritten. The bar is 0.3 % of the calls that worked.
  `told_good`: calls that worked and would have been told something.
- **seed**: the baseline. Templates are learned from the first 70 %; an error is named by the seed of its session if the
  seed's text contains the cause's subject: the path, program, rule, failing command or message. `brief_text` applies this
  same rule to the brief.

JSON keys, for each project and for `all`: `sessions`, `errors`, `foreseeable`, `named`, `stopped`, `prevented`,
`prevented_share`, `fixable`, `fix_given`, `fix_equal`, `fix_share`, `good`, `false_stops`, `false_share`,
`false_by_kind`, `told_good`, `brief_tokens`, `seed_named`, `brief_text`, `seed_tokens`.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import structs

from corpus_projects import NAMES, PROJECTS, open_project
from warmstart import Task, config
from warmstart.dialects.tokens import estimate
from warmstart.model import PastSession
from warmstart.notes.adviser import Adviser
from warmstart.notes.brief import write_brief
from warmstart.notes.digest import REACH, digest_session, find_fix, read_calls, read_command
from warmstart.notes.index_files import write_folders, write_index
from warmstart.notes.marks import Place
from warmstart.notes.mine import ProjectHistory
from warmstart.notes.trust import find_suspicions
from warmstart.notes.types import Advice, CallEvent, Note
from warmstart.pipeline import Warmstart

SHARE = 0.7  # of the sessions, which only teach


class Replay:
    """Replays one project and counts."""

    def __init__(self, sessions: list[PastSession], seeds: dict[str, str], home: Path) -> None:
        self._home = home
        self.counts: Counter[str] = Counter()
        self.false_kinds: Counter[str] = Counter()
        self.brief_tokens: list[int] = []
        self.briefs: list[tuple[PastSession, str]] = []
        self._seeds = seeds
        history, copied = ProjectHistory("project"), set[str]()
        first_measured = int(len(sessions) * SHARE)
        for at, session in enumerate(sessions):
            if at >= first_measured:
                self._measure(session, history, copied)
            history.add(digest_session(session, skip=copied))
            copied |= {call.call_id for call in session.calls if len(call.call_id) > 15}

    def _measure(self, session: PastSession, history: ProjectHistory, copied: set[str]) -> None:
        notes = [note for note in history.make_notes() if not find_suspicions(note)]  # others wait for a person
        brief = write_brief(notes, estimate, task=session.task)
        self.briefs.append((session, brief.text))
        self.brief_tokens.append(brief.tokens)
        self.counts["sessions"] += 1
        by_key = {note.key: note for note in notes}
        by_id = {note.id: note for note in notes}
        kinds = {note.id: note.kind for note in notes}
        folder = session.folder or session.project or "/project"
        adviser = self._make_adviser(notes, folder)
        seed = self._seeds.get(session.key, "")
        entries = read_calls(session, Place(session.folder or session.project))
        for at, entry in enumerate(entries):
            status = entry.call.outcome.status
            if entry.call.call_id in copied or status not in ("ok", "error"):
                continue
            event = CallEvent(
                tool=entry.call.tool,
                arguments=entry.call.arguments if not entry.commands else {"command": read_command(entry.call) or ""},
                session=session.id,
                agent=session.agent,
                cwd=folder,
            )
            advice = adviser.advise(event)
            stops = advice.action in ("stop", "correct")
            after = structs.replace(event, when="after", result=entry.call.excerpt or "", error=status == "error")
            help_after = adviser.advise(after) if not stops else Advice()
            if status == "ok":
                self.counts["good"] += 1
                self.counts["false_stops"] += stops
                self.counts["told_good"] += advice.action == "tell"
                self.false_kinds.update([kinds.get(advice.note or "", "?")] if stops else [])
                continue
            self.counts["errors"] += 1
            known = [by_key[sighting.key] for sighting in entry.sightings if sighting.key in by_key]
            foreseeable = any(history.is_known(sighting.key) for sighting in entry.sightings)
            if foreseeable:
                named = any(note.id in brief.notes for note in known)
                self.counts["foreseeable"] += 1
                self.counts["named"] += named
                self.counts["stopped"] += stops
                self.counts["prevented"] += named or stops
                self.counts["seed_named"] += any(names(seed, note) for note in known)
                self.counts["brief_text"] += any(names(brief.text, note) for note in known)
            if stops:
                continue
            later = entries[at + 1 : at + 1 + REACH]
            fixes = {fix for sighting in entry.sightings if (fix := find_fix(sighting, entry, later))}
            given = by_id.get(help_after.note or "")
            self.counts["fixable"] += bool(fixes)
            self.counts["fix_given"] += bool(fixes) and given is not None and bool(given.fix)
            self.counts["fix_equal"] += given is not None and given.fix in fixes

    def _make_adviser(self, notes: list[Note], folder: str) -> Adviser:
        """Return the adviser of a session: the index that `learn` would write, at level `stop` for every kind."""
        active = [structs.replace(note, status="active") for note in notes]
        index = write_index(self._home, "project", active, roots=[folder])
        write_folders(self._home, {folder: index})
        return Adviser(self._home, {"": "stop"}, disk=False)


def names(text: str, note: Note) -> bool:
    """Return whether a text names the cause of a note: the path, rule or failing command itself, or its message."""
    call = note.trigger.partition(":")[2]
    probe = call if note.kind == "command" and note.subject in call.split() else note.subject
    return re.search(rf"(?<![\w-]){re.escape(probe[:40])}", text, re.I) is not None


def make_seeds(transcripts: Path, sessions: list[PastSession]) -> tuple[dict[str, str], list[int]]:
    """Return the seeds of the later sessions, from templates of the first ones, and their tokens."""
    cut = int(len(sessions) * SHARE)
    later = {session.key for session in sessions[cut:]}
    texts: dict[str, str] = {}
    tokens = []
    with TemporaryDirectory() as scratch:
        settings = config.load(Path(scratch) / "home", environ={"HOME": scratch})
        with Warmstart(settings) as ws:
            ws.ingest(transcripts)
            for key in later:
                ws.store.run("delete_session", (key,))
            ws.templates.learn()
            for session in sessions[cut:]:
                seed = ws.provision(
                    Task(text=session.task, dialect="text", agent=session.agent, project=session.project)
                )
                texts[session.key] = seed.text or ""
                tokens.append(seed.tokens)
    return texts, tokens


def figures(counts: Counter[str], false_kinds: Counter[str], briefs: list[int], seeds: list[int]) -> dict[str, Any]:
    """Return the named figures of one replay."""
    keys = ("sessions", "errors", "foreseeable", "named", "stopped", "prevented", "fixable", "fix_given", "fix_equal")
    return {
        **{key: counts[key] for key in keys},
        "prevented_share": share(counts["prevented"], counts["foreseeable"]),
        "fix_share": share(counts["fix_given"], counts["fixable"]),
        "good": counts["good"],
        "false_stops": counts["false_stops"],
        "false_share": share(counts["false_stops"], counts["good"]),
        "false_by_kind": dict(false_kinds),
        "told_good": counts["told_good"],
        "brief_tokens": round(mean(briefs), 1) if briefs else 0,
        "brief_text": counts["brief_text"],
        "seed_named": counts["seed_named"],
        "seed_tokens": round(mean(seeds), 1) if seeds else 0,
    }


def share(part: int, whole: int) -> float | None:
    """Return part / whole; None where there is nothing to divide by."""
    return round(part / whole, 4) if whole else None


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=PROJECTS)
    parser.add_argument("--projects", default=",".join(NAMES))
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", type=int, default=0, help="print the first N briefs of each project")
    options = parser.parse_args()
    if not options.dir.is_dir():
        sys.exit(f"{options.dir}: no such folder")
    rows: dict[str, dict[str, Any]] = {}
    total, kinds = Counter[str](), Counter[str]()
    briefs: list[int] = []
    seeds: list[int] = []
    for name in options.projects.split(","):
        with open_project(options.dir, name) as (transcripts, sessions):
            texts, tokens = make_seeds(transcripts, sessions)
            with TemporaryDirectory() as home:
                replay = Replay(sessions, texts, Path(home))
        rows[name] = figures(replay.counts, replay.false_kinds, replay.brief_tokens, tokens)
        total += replay.counts
        kinds += replay.false_kinds
        briefs += replay.brief_tokens
        seeds += tokens
        for session, text in replay.briefs[: options.show]:
            print(f"--- {name} {session.id}: {session.task[:100]!r}\n{text}\n")
    rows["all"] = figures(total, kinds, briefs, seeds)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'project':20}{'errors':>8}{'foresee.':>9}{'named':>7}{'stopped':>8}{'prev.':>7}", end="")
    print(f"{'fix given':>11}{'false':>8}{'brief':>7}{'seed named':>11}{'seed':>6}")
    for name, row in rows.items():
        prevented = "-" if row["prevented_share"] is None else f"{row['prevented_share']:.0%}"
        fixed = "-" if row["fix_share"] is None else f"{row['fix_share']:.0%}"
        print(
            f"{name:20}{row['errors']:8}{row['foreseeable']:9}{row['named']:7}{row['stopped']:8}{prevented:>7}", end=""
        )
        print(f"{fixed:>11}{row['false_share'] or 0:8.2%}{row['brief_tokens']:7.0f}{row['seed_named']:11}", end="")
        print(f"{row['seed_tokens']:6.0f}")


if __name__ == "__main__":
    main()
