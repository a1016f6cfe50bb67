"""Notes that a person makes of a failed call, and the reasons of decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from ui_home import SAMPLES, make_call, make_session, make_settings
from warmstart.errors import Refused
from warmstart.pipeline import Warmstart


def test_a_note_of_a_call_has_its_cause_and_trigger(tmp_path: Path) -> None:
    settings = structs.replace(make_settings(tmp_path), secrets={"KEY": "hunter2-hunter2-hunter2"})
    with Warmstart(settings) as ws:
        row = make_session(1)
        failed = make_call(row, 0, "cat: docs/plan.md: No such file or directory", tool="Bash")
        failed = structs.replace(
            failed, arguments='{"command":"cat docs/plan.md"}', findings=None, words=None, intent=None
        )
        vague = make_call(row, 1, "hm", tool="Oracle", findings=None, words=None, cause=None)
        ws.store.put_session(row, [failed, vague], [])
        note = ws.notes.make(row.key, 0)
        assert (note.status, note.kind, note.trigger) == ("active", "path", "path:docs/plan.md")
        assert ws.notes.make(row.key, 0, "The plan moved").id == note.id, "the same fact keeps its id"
        with pytest.raises(Refused, match="write the note's sentence yourself"):
            ws.notes.make(row.key, 1)
        with pytest.raises(Refused, match="no call 7"):
            ws.notes.make(row.key, 7)
        own = ws.notes.make(row.key, 1, "Ask the oracle\nwith hunter2-hunter2-hunter2")
        assert own.trigger == "" and own.text.startswith("Ask the oracle with") and "hunter2" not in own.text
        assert "Ask the oracle" in ws.brief_project("/srv/shop", None, "").text
        ws.learn()
        assert {note.id, own.id} <= {one.id for one in ws.notes.list(status="active")}
        assert ws.notes.show(note.id).note.text == "The plan moved"


def test_reasons_are_kept_on_the_record(tmp_path: Path) -> None:
    with Warmstart(make_settings(tmp_path)) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        note = ws.notes.list()[0]
        ws.notes.retire(note.id, reason="not true any more")
        ws.notes.approve(note.id)
        ws.notes.edit(note.id, "Another sentence", reason="shorter")
        reasons = [one.reason for one in ws.notes.show(note.id).decisions[-3:]]
        assert reasons == ["retired: not true any more", "approved", f"edited: shorter: was: {note.text}"]


def test_a_persons_sentence_survives_learning_and_later_decisions(tmp_path: Path) -> None:
    sentence = "The checkout test needs a running redis; start it with make redis"
    with Warmstart(make_settings(tmp_path)) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        note = next(one for one in ws.notes.list(status="active") if one.kind in ("path", "environment", "baseline"))
        ws.notes.edit(note.id, sentence)
        ws.notes.approve(note.id)
        ws.learn()
        assert ws.notes.show(note.id).note.text == sentence
        assert f"- {sentence} ({note.support})" in ws.brief_project(note.project, None, "").text.splitlines()
        with pytest.raises(Refused, match="at most 300 characters; yours has 301"):
            ws.notes.edit(note.id, "x" * 301)


def test_the_reason_why_a_brief_leaves_a_note_out_is_shown(tmp_path: Path) -> None:
    with Warmstart(structs.replace(make_settings(tmp_path), brief=0)) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
        note = ws.notes.list(status="active")[0]
        assert ws.notes.show(note.id).omitted == "the budget is used up"
    with Warmstart(make_settings(tmp_path)) as ws:
        ws.notes.edit(note.id, "Ask Ann")
        assert ws.notes.show(note.id).omitted is None


def test_a_note_of_an_unrecognised_error_belongs_to_its_row_and_sessions(tmp_path: Path) -> None:
    with Warmstart(make_settings(tmp_path)) as ws:
        for number in (1, 2):
            row = make_session(number)
            vague = make_call(row, 0, "hm", tool="Oracle", findings=None, words=None, cause=None)
            ws.store.put_session(row, [vague], [])
        (error,) = ws.insights(show=1).repeated
        assert error.note is None
        note = ws.notes.make(row.key, 0, "Ask the oracle politely")
        shown = ws.notes.show(note.id)
        assert len(shown.met) == note.support == 2
        assert [one.reason for one in shown.decisions] == ["made"]
        known = ws.insights(show=1).shown
        assert known is not None and known.note is not None and known.note.id == note.id
        assert ws.notes.make(make_session(1).key, 0, "Ask the oracle politely.").id == note.id
        assert len(ws.notes.list()) == 1
        ws.learn()
        assert ws.notes.show(note.id).met == shown.met
