"""`warmstart provision` looks at the project of the current folder, as a hook does; it says so, and what it does not know."""

from __future__ import annotations

import pytest

import warmstart
from command_line import run, run_json
from transcripts import CART, teach, work_lines
from warmstart.doors.cli.quick import run_quickly

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


def test_a_project_of_which_nothing_is_stored_is_named_with_the_nearest(folders):
    for words in (("provision", TASK, "--project", "shpo"), ("provision", TASK, "--project", "shpo", "--json")):
        remark = run(*words).stderr
        assert remark.startswith("project: no session of shpo is stored, so only templates of no project are used")
        assert f"did you mean {folders[0]}?" in remark
    assert "did you mean" not in run("provision", TASK, "--project", "quite-another").stderr
    for known in ("shop", str(folders[1]), "*"):
        assert not run("provision", TASK, "--project", known).stderr


def test_a_template_that_does_not_exist_is_an_error(folders):
    (good,) = run_json("provision", TASK, "--project", "shop")["templates"]
    chosen = ("provision", TASK, "--project", "shop", "--templates")
    assert run(*chosen, "nosuch", code=1).stderr == "Error: no template nosuch; see: warmstart templates list\n"
    assert "no templates no, such;" in run(*chosen, f"no,{good},such", code=1).stderr
    for name in (good, good.rpartition("@")[0], good.rpartition("@")[0].upper()):
        assert run_json(*chosen, name)["templates"] == [good]


def test_no_example_is_asked_for(folders):
    seed = run_json("provision", TASK, "--project", "shop", "--examples", "0")
    assert seed["reason"].endswith("no examples were asked for") and not seed["omitted"]


def test_a_job_without_a_stored_run_is_remarked(folders):
    seed = run_json("provision", TASK, "--project", "shop", "--job", "nosuch")
    assert seed["templates"] and "no run of a job with this id is stored; the nearest of" in seed["reason"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--continues", "--session", "s"), "--continues needs --parent: name the session that is continued"),
        (("--parent", "p"), "--parent needs --session: a preview inherits no arm"),
        (("--arm", "warm"), "--arm needs --session: a preview has no arm"),
    ],
)
def test_an_option_that_would_mean_nothing_is_refused(words, message, capsys):
    assert f"Error: {message}\n" in run("provision", TASK, *words, code=2).stderr
    assert not run_quickly(["provision", TASK, *words]), "click says so"


def test_an_empty_store_names_the_first_step():
    for words in (("provision", TASK), ("provision",), ("provision", "--category", "ops")):
        reason = run_json(*words)["reason"]
        assert reason.startswith("there are no active templates")
        assert reason.endswith("; no session is stored yet; run: warmstart ingest, then: warmstart learn")


def test_a_store_that_a_command_made_is_named(tmp_path):
    for words in (("provision", TASK), ("templates", "list", "--json"), ("sessions", "list")):
        home = tmp_path / words[0]
        named = f"{home / 'warmstart.db'} is a new, empty store\n"
        assert run("--home", home, *words).stderr.endswith(named)
        assert "new, empty" not in run("--home", home, *words).stderr, "once"
    store = tmp_path / "other.db"
    assert f"{store} is a new, empty store\n" in run("--store", store, "templates", "show", "x", code=1).stderr
    assert "new, empty" not in run("provision", TASK).stderr, "its place is the usual one"
