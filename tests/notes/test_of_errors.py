"""Insights point to the note about an error: to approve it, or that it is shown."""

from __future__ import annotations

import json

import pytest

import warmstart
from command_line import run
from notes.stored import RIGHT, WRONG, only, sessions
from transcripts import teach
from warmstart.store.notes import Showing


@pytest.fixture
def ws():
    with warmstart.open() as opened:
        yield opened


def ask(ws):
    return json.loads(run("insights", "--json").stdout)


def test_a_note_that_waits_is_offered(ws):
    teach(ws, *sessions(1, WRONG, WRONG, RIGHT))
    ws.learn()
    note = only(ws, "command", status="proposed")
    insights = ask(ws)
    (error,) = insights["repeated"]
    assert error["note"] == {"id": note.id, "status": "proposed", "shown": 0}
    first, *others = insights["advice"]
    assert first["command"] == f"warmstart notes approve {note.id}" and first["note"] == note.id
    assert note.text not in first["text"], "nobody has decided about the text"
    assert "warmstart learn" not in [advice["command"] for advice in others], "one way for one error"
    shown = run("insights").stdout
    assert f"warmstart notes approve {note.id}" in shown and f"note {note.id}, proposed" in shown


def test_a_note_in_use_is_named(ws):
    teach(ws, *sessions(2, WRONG, RIGHT))
    ws.learn()
    note = only(ws, "command", status="active")
    (advice, *_others) = ask(ws)["advice"]
    assert (advice["command"], advice["note"]) == (f"warmstart notes show {note.id}", note.id)
    assert "not shown yet" in advice["text"]
    ws.notes.record([Showing(note.id, "s-9", "brief", 1e9)])
    ws.learn()
    assert "shown to 1 session so far" in ask(ws)["advice"][0]["text"]
    ws.notes.retire(note.id)
    retired = ask(ws)
    assert retired["repeated"][0]["note"] is None and retired["advice"][0]["command"] == "warmstart learn"


def test_a_note_of_another_project_or_scope_is_not_this_one(ws):
    teach(ws, *sessions(2, WRONG, RIGHT))
    ws.learn()
    other = [(*WRONG[:2], "Exit code 2\nerror: unrecognized subcommand 'bun'"), RIGHT]
    teach(ws, *sessions(2, *other, cwd="/home/dev/other", name="o"))
    insights = json.loads(run("insights", "--project", "/home/dev/other", "--json").stdout)
    assert [error["note"] for error in insights["repeated"]] == [None]
    note = only(ws, "command", project="/home/dev/shop")
    ws.notes.share(note.id)
    assert [error["note"] and error["note"]["id"] for error in ask(ws)["repeated"]] == [note.id]


def test_an_error_is_advised_about_once_and_never_called_unfixed_where_a_fix_is_known(ws):
    teach(ws, *sessions(2, WRONG, RIGHT), *sessions(3, WRONG, first=2))
    ws.learn()
    insights = ask(ws)
    (error,) = insights["repeated"]
    assert error["unfixed"] == 3 and error["fixes"] and error["note"]["status"] == "active"
    assert [advice["command"].split()[1] for advice in insights["advice"]] == ["notes", "experiment"]
