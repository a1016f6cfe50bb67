"""`warmstart provision` looks at the project of the current folder, as a hook does, and says so."""

from __future__ import annotations

import pytest

import warmstart
from command_line import run, run_json
from transcripts import CART, teach, work_lines

TASK = "fix the failing cart tests"


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Return two project folders with learned templates, and one without a session."""
    places = [tmp_path / name for name in ("shop", "bar", "empty")]
    for place in places:
        place.mkdir()
    with warmstart.open() as ws:
        for at, place in enumerate(places[:2]):
            teach(ws, *(work_lines(f"{place.name}-{n}", *CART, cwd=str(place), day=n + 1 + 3 * at) for n in range(2)))
        ws.learn()
        assert len(ws.templates.find("active")) == 2
    return places


def test_a_preview_assumes_the_project_of_the_folder(folders, monkeypatch):
    for place in folders[:2]:
        monkeypatch.chdir(place)
        seed = run_json("provision", TASK)
        assert seed["project"].endswith(place.name)
        assert len(seed["templates"]) == 1
        assert f"{place.name}, of this folder" in run("provision", TASK).stderr
    assert len({run_json("provision", TASK, "--project", str(place))["templates"][0] for place in folders[:2]}) == 2


def test_a_preview_elsewhere_looks_at_all_projects_and_says_so(folders, monkeypatch):
    monkeypatch.chdir(folders[2])
    assert run_json("provision", TASK)["project"] == "*"
    assert "project: all, because no session of this folder is stored" in run("provision", TASK).stderr


def test_a_session_is_seeded_from_the_project_of_its_folder(folders, monkeypatch):
    monkeypatch.setenv("WARMSTART_HOLDOUT", "0")
    monkeypatch.chdir(folders[0])
    assert run_json("provision", TASK, "--session", "s1")["templates"]
    monkeypatch.chdir(folders[2])
    assert not run_json("provision", TASK, "--session", "s2")["templates"]
