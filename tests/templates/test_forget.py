"""Deleting a session leaves nothing of it in the store, and ingest does not bring it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import structs

import warmstart
from warmstart.doors.cli.main import main
from warmstart.errors import NotFound
from warmstart.model import Task
from warmstart.store import TrialStore

SAMPLES = Path(warmstart.__file__).parent / "samples"
TASK = "the order total test fails again: run it, find out why and fix it"


@pytest.fixture
def ws(tmp_path):
    with warmstart.open(tmp_path) as opened:
        opened.ingest(SAMPLES)
        opened.learn()
        yield opened


def shown_sessions(ws: warmstart.Warmstart) -> set[str]:
    return {example.session for _row, template in ws.templates.find() for example in template.examples}


def test_its_calls_leave_every_template_and_the_others_stay(ws):
    key = next(iter(shown_sessions(ws)))
    others = shown_sessions(ws) - {key}
    forgotten = ws.delete_session(key)
    assert forgotten.key == key
    assert forgotten.examples + len(forgotten.templates) > 0
    assert shown_sessions(ws) == others
    assert all(key not in template.source_sessions for _row, template in ws.templates.find())
    with pytest.raises(NotFound):
        ws.session(key)
    assert ws.store.health()["integrity"] == "ok"
    assert ws.provision(Task(project="*", text=TASK, agent="codex")).templates, "the index still works"


def test_a_template_mined_from_it_alone_is_deleted(ws):
    key = ws.sessions()[-1].key
    template = ws.capture(key, name="only-this-one")
    assert f"{template.name}@{template.version}" in ws.delete_session(key).templates
    with pytest.raises(NotFound):
        ws.templates.show("only-this-one")


def test_reading_the_transcript_again_does_not_bring_it_back(ws):
    before = len(ws.sessions())
    ws.delete_session(ws.sessions()[0].key)
    for row in ws.store.sources():  # make every file look changed, so that it is read again
        ws.store.put_source(structs.replace(row, size=row.size + 1))
    assert ws.ingest(SAMPLES).sessions == before
    assert len(ws.sessions()) == before - 1


def test_seeds_already_given_lose_its_examples(ws):
    ws.provision(Task(project="*", text=TASK, agent="codex", session="seeded-1"))
    trial = TrialStore(ws.store).trial("seeded-1")
    keys = {pick.example.session for pick in TrialStore(ws.store).picks(trial)}
    gone = keys.pop()
    ws.delete_session(gone)
    trial = TrialStore(ws.store).trial("seeded-1")
    assert trial.arm == "warm", "the arm stays"
    assert {pick.example.session for pick in TrialStore(ws.store).picks(trial)} == keys


def test_no_byte_of_it_stays_in_the_file(ws, tmp_path):
    row = next(row for row in ws.sessions() if row.agent == "codex")
    mark = (
        ws.session(row.key).calls[0].call_id.encode()
    )  # the name of its file, which holds its id, stays in the table of sources
    assert any(mark in path.read_bytes() for path in tmp_path.rglob("warmstart.db*"))
    ws.delete_session(row.key)
    ws.close()
    left = [path.name for path in tmp_path.rglob("*") if path.is_file() and mark in path.read_bytes()]
    assert left == []


def test_the_command_asks_and_reports(ws, tmp_path):
    key = ws.sessions()[0].key
    ws.close()
    words = ["--home", str(tmp_path), "sessions", "delete", key[:12]]
    refused = CliRunner().invoke(main, words)
    assert refused.exit_code == 2
    assert "--yes" in refused.output
    done = CliRunner().invoke(main, [*words, "--yes", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["key"] == key
    assert CliRunner().invoke(main, [*words, "--yes"]).exit_code == 1
