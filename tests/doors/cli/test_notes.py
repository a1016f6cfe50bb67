"""What other commands say about notes: `learn` counts them, `doctor` checks their index files."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import warmstart
from command_line import run
from notes.stored import GONE, RIGHT, THERE, WRONG, sessions
from transcripts import teach


@pytest.fixture
def taught():
    """Two sessions that met the same two causes and agree on a command, and one of another project that met one."""
    with warmstart.open() as ws:
        teach(ws, *sessions(2, WRONG, RIGHT, GONE, THERE))
        teach(ws, *sessions(1, GONE, THERE, cwd="/home/dev/other", name="o"))


def examine() -> list[dict[str, object]]:
    return json.loads(run("doctor", "--json").stdout)["notes"]["projects"]


def test_learn_counts_notes_in_a_line(taught):
    line = next(line for line in run("learn").stdout.splitlines() if "notes list" in line)
    assert line == "4 notes about 2 projects (4 new, 1 proposed); see: warmstart notes list"
    again = next(line for line in run("learn").stdout.splitlines() if "notes list" in line)
    assert again == "4 notes about 2 projects (1 proposed); see: warmstart notes list"


def test_learn_says_nothing_about_notes_where_there_are_none():
    assert "notes" not in run("learn").stdout


def test_doctor_counts_notes_and_checks_their_indexes(taught):
    assert examine() == []
    assert "none" in run("doctor").stdout
    run("learn")
    shop, other = sorted(examine(), key=lambda one: -one["active"])
    assert (shop["active"], shop["proposed"], shop["index"]) == (3, 0, "current")
    assert (other["active"], other["proposed"], other["index"]) == (0, 1, "none")
    (index,) = Path(os.environ["WARMSTART_HOME"], "notes").glob("*.index")
    whole = index.read_bytes()
    for content in (whole[:-20], whole.replace(b"warmstart_notes", b"warmstart_n0tes"), b""):
        index.write_bytes(content)
        assert max(examine(), key=lambda one: one["active"])["index"] == "old"
        assert "run: warmstart learn" in run("doctor").stdout
    index.unlink()
    assert "old" in {one["index"] for one in examine()}
    run("learn")
    assert "old" not in {one["index"] for one in examine()} and index.read_bytes() == whole
