"""What `warmstart bundle` prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from bundles.team import PROJECT, Member
from command_line import run
from notes.stored import GONE, RIGHT, THERE, WRONG


def test_advice_is_given_once_and_cut_texts_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anna = Member(tmp_path, "anna")
    anna.work(WRONG, RIGHT, GONE, THERE)
    with anna.open() as ws:
        note = ws.notes.list(kind="command")[0]
        ws.notes.edit(note.id, f"use bun run test {'and look at its output ' * 5}")
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("WARMSTART_HOME", str(anna.home))
    pushed = run("bundle", "push", tmp_path / "b", "--project", PROJECT).stdout
    assert "look at its …" in pushed
    assert "0 of yours already there" in pushed
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path / "cleo"))
    checked = run("bundle", "check", tmp_path / "b", code=1)
    assert checked.stderr.count("warmstart bundle trust") == 1
    assert "more file" in checked.stderr
