"""Ingesting one session costs the same in a large store: counted in steps of SQLite's machine and in statements, not in time."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

import warmstart
from projects.repositories import git
from scripted_model import LESSON, TEXT
from template_files import write_bundle
from transcripts import outcome_lines, write_jsonl
from warmstart.ingest.projects import ProjectSettler
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store import ProjectStore
from warmstart.store.occurrences import NoteOccurrence, OccurrenceStore

FEW, MANY = 60, 600  # sessions; with 60, one more is less than the 2 % after which all are weighed
FACTOR = 1.2  # trees with ten times the rows are one level deeper


class Cost(NamedTuple):
    """What an ingest asked of SQLite."""

    steps: int
    statements: int


class Sessions:
    """Sessions with a trial and an occurrence of a note each."""

    def __init__(self, ws: Warmstart, tmp_path: Path, folders: int = 3) -> None:
        self.ws = ws
        self.tmp_path = tmp_path
        self.folders = folders
        self.number = 0

    def grow(self, number: int) -> Cost:
        """Add sessions until there are so many, and return the cost of one more."""
        self._ingest(number - self.number)
        return self._ingest(1)

    def _ingest(self, number: int) -> Cost:
        out = self.tmp_path / f"out-{self.number}"
        with self.ws.store.writing():
            drawn = [self._run(out) for _ in range(number)]
            OccurrenceStore(self.ws.store).put(drawn)
        spent: list[int] = []
        connection = self.ws.store._db

        def count(traced: dict[str, Any]) -> None:
            if "'main'." not in traced["sql"]:  # FTS5's own statements, whose counters SQLite never sets back
                spent.append(traced["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, count)
        try:
            assert self.ws.ingest(out).trials == number
        finally:
            connection.trace_v2(0, None)
        return Cost(sum(spent), len(spent))

    def _run(self, out: Path) -> NoteOccurrence:
        name, folder = f"run-{self.number}", f"/home/dev/shop-{self.number % self.folders}"
        self.number += 1
        self.ws.provision(Task(text=TEXT, session=name, project=folder))
        write_jsonl(out / f"{name}.jsonl", outcome_lines(name, [True, False], cwd=folder))
        return NoteOccurrence(note="n", session=name, withheld=self.number % 2 == 0, share=0.5, action="tell", at=5.0)


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Warmstart]:
    with warmstart.open() as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
        yield opened


def test_one_more_session_steps_through_as_many_rows_in_a_store_ten_times_as_large(ws, tmp_path):
    sessions = Sessions(ws, tmp_path)
    few = sessions.grow(FEW)
    many = sessions.grow(MANY)
    assert many.steps < FACTOR * few.steps
    assert many.statements == few.statements
    assert ws.store.rows("weighings", ("occurrence",)) == [(MANY + 1, MANY)], "all were read, the last one not weighed"
    assert ws.store.rows("weighings", ("trial",)) == [(MANY + 1, MANY)]


def test_one_more_session_asks_nothing_about_the_folders_of_others(ws, tmp_path):
    few = Sessions(ws, tmp_path, folders=3).grow(FEW)
    with warmstart.open(tmp_path / "other") as other:
        many = Sessions(other, tmp_path / "of-other", folders=30).grow(FEW)
    assert many.statements == few.statements


def test_a_settled_store_stays_as_settling_everything_would_leave_it(ws, tmp_path):
    """Folders of one name, above each other, that become checkouts, with sessions that are added and deleted."""
    dice = random.Random(7)
    code = tmp_path / "code"
    places = [code / name for name in ("a/shop", "b/shop", "b/shop/web", "c", "c/shop", "d")]
    for n in range(40):
        place = dice.choice(places)
        if n in (12, 24):
            place.mkdir(parents=True)
            git(place, "init", "-q")
            git(place, "remote", "add", "origin", f"git@github.com:org/shop{n}.git")
        if n % 9 == 8:
            ws.delete_session(f"s-{dice.randrange(n)}" if n < 9 else f"s-{n - 2}")
        files = [f"src/{word}/{word}_rules.py" for word in dice.sample(("cart", "stock", "tariff", "refund"), 3)]
        write_jsonl(tmp_path / "in" / f"s-{n}.jsonl", edit_lines(f"s-{n}", place, [*files, "setup.py"]))
        ws.ingest(tmp_path / "in" / f"s-{n}.jsonl")
        before = read_places(ws)
        ProjectSettler(ProjectStore(ws.store), lambda: 0.0).settle()
        assert read_places(ws) == before, f"after session {n} in {place}"


def edit_lines(session: str, place: Path, files: list[str]) -> list[dict[str, Any]]:
    lines = outcome_lines(session, [True] * len(files), cwd=str(place))
    uses = [line["message"]["content"][0] for line in lines if line["type"] == "assistant"]
    for use, file in zip(uses, files, strict=False):
        use |= {"name": "Edit", "input": {"file_path": f"{place}/{file}", "old_string": "a", "new_string": "b"}}
    return lines


def read_places(ws: Warmstart) -> dict[str, tuple[str | None, str | None]]:
    return {row.id: (row.project, row.root) for row in ws.sessions(limit=None)}
