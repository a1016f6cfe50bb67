"""An unchanged tree costs a look at each file: nothing is opened again, transcript or not."""

from __future__ import annotations

import os
from pathlib import Path

import warmstart

LINE = (
    '{"type":"user","sessionId":"s1","uuid":"u1","timestamp":"2026-11-17T09:00:00Z","cwd":"/p",'
    '"message":{"role":"user","content":"Count the files of this folder"}}\n'
)


def test_file_that_is_no_transcript_is_opened_once(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "session.jsonl").write_text(LINE)
    other = folder / "settings.json"
    other.write_text("{" + " " * (len(LINE) - 2) + "}")
    looks = other.stat()
    with warmstart.open(tmp_path / "home") as ws:
        first = ws.ingest(folder)
        assert (first.new, first.skipped, first.unchanged) == (1, 1, 0)
        other.write_text(LINE.replace("s1", "s2"))  # the same size, time and inode: only opening it would show
        os.utime(other, ns=(looks.st_atime_ns, looks.st_mtime_ns))
        again = ws.ingest(folder)
        assert (again.new, again.skipped, again.unchanged) == (0, 1, 1)
        assert ws.ingest(other).new == 1  # a person who names it wants it read
        assert ws.store.health()["sources"] == 2


def test_changed_file_is_looked_at_again(tmp_path: Path) -> None:
    other = tmp_path / "tree" / "notes.json"
    other.parent.mkdir()
    other.write_text("{}")
    with warmstart.open(tmp_path / "home") as ws:
        assert ws.ingest(other.parent).skipped == 1
        assert ws.store.health()["sources"] == 0
        other.write_text(LINE)
        report = ws.ingest(other.parent)
        assert (report.new, report.skipped) == (1, 0)


def test_links_to_folders_are_not_followed_and_links_to_files_are(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "tree", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "session.jsonl").write_text(LINE)
    (folder / "linked.jsonl").symlink_to(elsewhere / "session.jsonl")
    (folder / "loop").symlink_to(folder, target_is_directory=True)
    (folder / "broken.jsonl").symlink_to(tmp_path / "nothing")
    with warmstart.open(tmp_path / "home") as ws:
        report = ws.ingest(folder)
        assert (report.sessions, report.new, report.problems) == (1, 1, [])
