"""The course of an experiment: each look is what a report at that time would have shown."""

from __future__ import annotations

from pathlib import Path

from ui_home import add_experiment, make_settings
from warmstart.pipeline import Warmstart


def test_the_last_look_is_the_report(tmp_path: Path) -> None:
    with Warmstart(make_settings(tmp_path)) as ws:
        add_experiment(ws)
        (course,) = ws.experiments.trace("october")
        (effect,) = ws.report("october").effects
        last = course.looks[-1]
        assert (last.sessions, last.low, last.high) == (160, effect.low, effect.high)
        assert last.difference == effect.difference
        assert [look.sessions for look in course.looks] == sorted({look.sessions for look in course.looks})
        widths = [look.high - look.low for look in course.looks if look.low is not None and look.high is not None]
        assert len(widths) > 5 and widths[-1] < widths[0], "the interval narrows"
        assert ws.experiments.trace("holdout") and not any(one.looks for one in ws.experiments.trace("holdout"))
