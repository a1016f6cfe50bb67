"""Progress where standard error is no terminal."""

from __future__ import annotations

import pytest

from warmstart.doors.render.terminal import progress_bar


def test_progress_without_a_terminal_is_a_line_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with progress_bar("lab", clock=lambda: now) as progress:
        for second in range(35):
            now = float(second)
            progress(second, 40, f"task \x1b{second}")
    assert (
        capsys.readouterr().err
        == "lab: 10 of 40 task \ufffd10\nlab: 20 of 40 task \ufffd20\nlab: 30 of 40 task \ufffd30\n"
    )


def test_short_work_prints_no_progress(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    with progress_bar("reading", clock=lambda: now) as progress:
        for second in range(10):
            now = float(second)
            progress(second, None, "a.jsonl")
        now = 12.0
        progress(7, None, "b.jsonl")
    assert capsys.readouterr().err == "reading: 7 b.jsonl\n"
