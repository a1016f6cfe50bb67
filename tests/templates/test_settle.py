"""The same history leads to the same templates, whatever was learned in between; a filter changes nothing outside it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import warmstart
from transcripts import CART, Call, work_lines, write_jsonl
from warmstart.config import Settings
from warmstart.model import Template
from warmstart.pipeline import Warmstart
from warmstart.templates.mine import LearnLimits

DEPLOY: tuple[Call, ...] = (
    ("Bash", {"command": "helm upgrade shop charts/shop"}, "upgraded"),
    ("Bash", {"command": "kubectl rollout status deploy/shop"}, "rolled out"),
    ("Bash", {"command": "kubectl logs deploy/shop"}, "started"),
)
REPORT: tuple[Call, ...] = (
    ("Grep", {"pattern": "revenue", "path": "/home/dev/shop/reports"}, "q3.csv: revenue"),
    ("Write", {"file_path": "/home/dev/shop/reports/q3.md", "content": "Revenue rose."}, "written"),
)
WORK = {
    "fix the failing cart tests": CART,
    "deploy the shop to the cluster": DEPLOY,
    "write the quarterly revenue report": REPORT,
}
DAY = 1_790_848_800.0  # 2026-10-01T10:00:00Z


def sessions(first: int, last: int) -> list[list[dict[str, Any]]]:
    """Return sessions of three kinds of work in two projects, one a day."""
    kinds = list(WORK.items())
    made = []
    for n in range(first, last):
        task, calls = kinds[n % 3]
        calls = calls[: 1 + n % 4] if n % 5 == 4 else calls
        cwd = f"/home/dev/{'shop' if n % 2 else 'bar'}"
        made.append(work_lines(f"s-{n}", *calls, task=f"{task}, part {n}", cwd=cwd, day=n + 1))
    return made


def fill(ws: Warmstart, *lines: list[dict[str, Any]]) -> None:
    folder = ws.settings.home.parent / f"{ws.settings.home.name}-in"
    for session in lines:
        write_jsonl(folder / f"{session[0]['sessionId']}.jsonl", session)
    ws.ingest(folder)


def describe(ws: Warmstart) -> dict[tuple[str, str], Template]:
    """Return what is in use or waiting, by status and name, without what tells versions apart."""
    found = [(row, ws.templates.show(row.name)[1]) for row, _template in ws.templates.find() if row.status != "retired"]
    plain: dict[str, Any] = {"version": 0, "created": None, "used": 0, "provenance": None}
    return {
        (row.status, row.name): type(t)(**{f: getattr(t, f) for f in t.__struct_fields__} | plain) for row, t in found
    }


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "agent": st.sampled_from(("claude-code", "codex")),
        "since": st.integers(0, 14).map(lambda day: DAY + day * 86_400),
        "project": st.sampled_from(("/home/dev/shop", "/home/dev/bar")),
        "verdict": st.sampled_from(("success", "unknown")),
        "limits": st.builds(
            LearnLimits,
            min_calls=st.sampled_from((None, 2, 3)),
            max_examples=st.sampled_from((None, 1, 2)),
            max_error_rate=st.sampled_from((None, 0.1)),
        ),
    },
)


def is_filter(chosen: dict[str, Any]) -> bool:
    return bool(chosen) and chosen != {"limits": LearnLimits()}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Return a home with twelve sessions and nothing learned yet."""
    home = tmp_path_factory.mktemp("filled") / "home"
    with warmstart.open(home) as ws:
        fill(ws, *sessions(0, 12))
    return home


@pytest.fixture(scope="module")
def learned_alone(filled, tmp_path_factory):
    with warmstart.open(shutil.copytree(filled, tmp_path_factory.mktemp("alone") / "home")) as ws:
        ws.learn()
        return describe(ws)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=st.lists(FILTERS, min_size=1, max_size=4))
def test_a_plain_run_undoes_whatever_filtered_runs_did(filled, learned_alone, tmp_path_factory, runs):
    with warmstart.open(shutil.copytree(filled, tmp_path_factory.mktemp("runs") / "home")) as ws:
        for chosen in runs:
            ws.learn(**chosen)
        ws.learn()
        assert describe(ws) == learned_alone
        assert ws.learn().templates == ws.learn().templates
        assert describe(ws) == learned_alone


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=FILTERS.filter(is_filter))
def test_a_filtered_run_changes_nothing_outside_its_filter(filled, tmp_path_factory, chosen):
    with warmstart.open(shutil.copytree(filled, tmp_path_factory.mktemp("outside") / "home")) as ws:
        ws.learn()
        before = describe(ws)
        filters = {name: value for name, value in chosen.items() if name != "limits"}
        inside = {row.key for row in ws.sessions(limit=None, **filters)}
        ws.learn(**chosen)
        outside = {key: t for key, t in before.items() if not set(t.source_sessions) <= inside}
        after = describe(ws)
        assert outside.items() <= after.items()


def test_no_near_twins_are_active_after_a_filtered_run(filled, tmp_path):
    """Two active templates that share sessions are the same work twice."""
    with warmstart.open(shutil.copytree(filled, tmp_path / "home")) as ws:
        ws.learn()
        ws.learn(agent="claude-code", since=DAY + 4 * 86_400, limits=LearnLimits(min_calls=3))
        active = [template for _row, template in ws.templates.find("active")]
        keys = [key for template in active for key in template.source_sessions]
        assert len(keys) == len(set(keys))


def test_a_new_session_keeps_the_names(filled, tmp_path):
    with warmstart.open(shutil.copytree(filled, tmp_path / "home")) as ws:
        before = {t.name for t in ws.learn().templates}
        fill(ws, *sessions(12, 13))
        assert before <= {t.name for t in ws.learn().templates}
        assert not [row.name for row, _template in ws.templates.find("retired") if row.name not in before]


def test_a_template_that_history_no_longer_gives_is_retired_and_comes_back(tmp_path):
    with warmstart.open(tmp_path / "home") as ws:
        fill(ws, *sessions(0, 12))
        names = {t.name for t in ws.learn().templates if t.status == "active"}
    with Warmstart(Settings(home=tmp_path / "home", min_support=50)) as strict:
        strict.learn()
        assert not strict.templates.find("active")
    with warmstart.open(tmp_path / "home") as ws:
        assert {t.name for t in ws.learn().templates if t.status == "active"} == names


def decide(ws: Warmstart) -> tuple[str, str]:
    """Retire one template and approve another as a person. Returns their names."""
    active = sorted(row.name for row, _template in ws.templates.find("active"))
    ws.templates.retire(active[0], reason="harmful")
    ws.templates.retire(active[1])
    ws.templates.approve(active[1])
    return active[0], active[1]


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=FILTERS)
def test_decisions_of_a_person_stay(filled, tmp_path_factory, chosen):
    with warmstart.open(shutil.copytree(filled, tmp_path_factory.mktemp("person") / "home")) as ws:
        ws.learn()
        retired, approved = decide(ws)
        ws.learn(**chosen)
        ws.learn()
        status = {row.name: row.status for row, _template in ws.templates.find()}
        assert (status[retired], status[approved]) == ("retired", "active")


def test_learning_again_writes_no_decision(filled, tmp_path: Path):
    with warmstart.open(shutil.copytree(filled, tmp_path / "home")) as ws:
        names = [t.name for t in ws.learn().templates]
        before = [ws.templates.show(name)[2] for name in names]
        ws.learn()
        assert [ws.templates.show(name)[2] for name in names] == before
