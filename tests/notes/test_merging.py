"""Counts of sessions merge in any order, and the merged counts that a store keeps are those of its sessions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

import warmstart
from databases import on_both_databases
from insight_sessions import FAIL, GOOD, MONDAY, call, session
from notes.stored import RIGHT, WRONG, sessions
from transcripts import teach
from warmstart.insights import gather_insights
from warmstart.insights.gather import InsightCounts, decode_counts, encode_counts
from warmstart.model import PastSession, Usage
from warmstart.notes import merging
from warmstart.notes.counts import NoteCounts, decode_note_counts, encode_note_counts
from warmstart.notes.digest import digest_both
from warmstart.notes.mine import ProjectHistory
from warmstart.store.history import read_history

CALLS = [
    GOOD,
    FAIL,
    call("Bash", {"command": "python a.py"}, "bash: python: command not found"),
    call("Bash", {"command": "python3 a.py"}),
    call("Bash", {"command": "pytest -q"}, "1 failed"),
    call("Bash", {"command": "pytest -q"}),
    call("Edit", {"file_path": "/src/a.py"}, "File has not been read yet. Read it first before writing to it."),
    call("Read", {"file_path": "docs/missing.md"}, "File does not exist."),
    call("Read", {"file_path": "docs/missing.md"}),
]


@st.composite
def histories(draw: st.DrawFn) -> list[PastSession]:
    made = []
    for number in range(draw(st.integers(1, 7))):
        calls = draw(st.lists(st.sampled_from(CALLS), max_size=8))
        facts = {
            "started": draw(st.sampled_from([None, MONDAY, MONDAY + 86_400, MONDAY - 60 * 86_400])),
            "parent": draw(st.sampled_from([None, None, "k0"])),
            "model": draw(st.sampled_from([None, "m"])),
            "usage": draw(st.sampled_from([None, Usage(input=1000, output=7)])),
            "project": "shop",
            "agent": draw(st.sampled_from(["codex", "claude-code"])),
        }
        made.append(session(*calls, key=f"k{number}", **facts))
    return made


def split(draws: list[int], parts: list[InsightCounts] | list[NoteCounts]):
    """Merge the parts pair by pair in the order that was drawn, so that every way of putting brackets occurs."""
    left = list(parts)
    for draw in draws:
        if len(left) < 2:
            break
        one = left.pop(draw % len(left))
        one.merge(left.pop(draw % len(left)))
        left.append(one)
    while len(left) > 1:
        left[0].merge(left.pop())
    return left[0]


@given(histories(), st.lists(st.integers(0, 100), max_size=8))
@settings(deadline=None)
def test_figures_merge_in_any_order(history, order):
    made = [encode_counts(digest_both(past)[1]) for past in history]
    whole = InsightCounts()
    for past in history:
        whole.add(past, None)
    merged = split(order, [decode_counts(body) for body in made])
    assert merged.freeze(50) == whole.freeze(50) == gather_insights(history, top=50)
    straight = split([], [decode_counts(body) for body in made])
    assert merged.prune() == straight.prune() == decode_counts(encode_counts(merged.prune()))


@given(histories(), st.lists(st.integers(0, 100), max_size=8))
@settings(deadline=None)
def test_notes_merge_in_any_order(history, order):
    digests = [digest_both(past)[0] for past in history]
    whole = NoteCounts()
    for digest in digests:
        whole.add(digest)
    parts = []
    for digest in digests:
        parts.append(NoteCounts())
        parts[-1].add(digest)
    merged = split(order, parts)
    assert merged == whole == decode_note_counts(encode_note_counts(merged))
    assert ProjectHistory("shop", counts=merged).make_notes(1) == ProjectHistory("shop", counts=whole).make_notes(1)


@given(histories(), st.integers(0, 6))
@settings(deadline=None)
def test_a_session_counts_once_whatever_is_merged_first(history, at):
    """The example, the latest session and the kind of a cause do not depend on what was merged first."""
    turned = history[at % len(history) :] + history[: at % len(history)]
    assert gather_insights(turned, top=50) == gather_insights(history, top=50)


@pytest.fixture
def ws(monkeypatch):
    monkeypatch.setattr(merging, "SHARE", 3)  # parts of three sessions and of nine
    with warmstart.open() as opened:
        yield opened


def check(ws) -> None:
    """Compare what the store's merged counts say with the sessions themselves."""
    found = ws.insights(top=50, show=1)
    plain = gather_insights(read_history(ws.store), top=50, show=1)
    blank = {"advice": (), "repeated": (), "shown": None}
    without = [structs.replace(error, note=None) for error in found.repeated]
    assert without == list(plain.repeated)
    assert structs.replace(found, **blank) == structs.replace(plain, **blank)


def count_parts(ws) -> int:
    return len(ws.store.ask("SELECT 1 FROM merged_digests"))


def change(ws, statement, *values) -> None:
    """Run a statement on the store as another program would."""
    with ws.store.writing():
        assert ws.store.ask(f"{statement} RETURNING 1", values)


@on_both_databases
def test_the_store_keeps_merged_counts_up_to_date(database, ws):
    teach(ws, *sessions(20, WRONG, RIGHT))
    check(ws)
    assert count_parts(ws) == 6 + 2, "six parts of three sessions, two of nine"
    teach(ws, *sessions(2, WRONG, WRONG, RIGHT, name="more"))
    check(ws)
    ws.learn()
    assert count_parts(ws) == 2 * (7 + 2), "the same for notes"
    changed = sessions(1, WRONG, WRONG, WRONG, RIGHT)
    teach(ws, *changed)
    check(ws)


def test_filters_take_parts_only_where_all_sessions_are_wanted(ws):
    teach(ws, *sessions(12, WRONG, RIGHT))
    ws.insights()
    starts = sorted(row.started for row in ws.sessions())
    for since in (starts[0], starts[5], starts[-1]):
        plain = gather_insights(read_history(ws.store, since=since), top=50)
        assert ws.insights(since=since, top=50).overall == plain.overall
    assert ws.insights(agent="nobody").sessions == 0


@on_both_databases
def test_a_deleted_session_leaves_no_merged_counts(database, ws):
    teach(ws, *sessions(9, WRONG, RIGHT))
    ws.insights()
    assert count_parts(ws)
    gone = ws.sessions()[0]
    ws.delete_session(gone.id)
    held = b"".join(body for (body,) in ws.store.ask("SELECT body FROM merged_digests"))
    assert gone.key.encode() not in held and gone.id.encode() not in held
    assert ws.insights().sessions == 8
    check(ws)


@on_both_databases
def test_damaged_parts_are_made_again(database, ws):
    teach(ws, *sessions(9, WRONG, RIGHT))
    before = ws.insights()
    change(ws, "UPDATE merged_digests SET body = ?", b"\xc1")
    assert ws.insights() == before


@on_both_databases
def test_an_unreadable_session_is_counted(database, ws):
    teach(ws, *sessions(3, WRONG, RIGHT))
    change(ws, "UPDATE sessions SET usage = '{'")
    found = ws.insights()
    assert (found.unreadable, found.sessions) == (3, 0)
    assert ws.insights().unreadable == 3
    assert ws.learn().notes is not None


@on_both_databases
@pytest.mark.parametrize(
    ("statement", "left_out"),
    [
        ("UPDATE calls SET error_kind = 'of another version' WHERE error_kind IS NOT NULL", 0),
        ("UPDATE calls SET basis = 'of another version'", 0),
        ("UPDATE calls SET status = 'of another version' WHERE status = 'error'", 3),
        ("UPDATE sessions SET verdict = 'of another version', category = 'more', task_type = 'more'", 0),
        ('UPDATE sessions SET usage = \'{"input": 5, "basis": "of another version"}\'', 0),
        ("UPDATE spent SET basis = 'of another version'", 0),
    ],
)
def test_values_of_another_version_are_counted(database, ws, statement, left_out):
    """A store may hold words that this version does not know: from an older or a newer one, or from a person."""
    teach(ws, *sessions(3, WRONG, RIGHT))
    change(ws, statement)
    for _again in range(2):  # when digests are made, and when they are read
        found = ws.insights(show=1)
        assert (found.sessions, found.unreadable, found.calls) == (3, 0, 6)
        assert found.left_out["unknown"] == left_out
        assert bool(found.repeated) is not bool(left_out)
    assert ws.learn().considered == 3
    assert ws.usage.report().totals.sessions == 3
    check(ws)


@on_both_databases
def test_stored_counts_of_another_version_are_counted(database, ws):
    """Counts that were stored with an unknown kind of error keep it; counts that cannot be read are reported as such."""
    teach(ws, *sessions(3, WRONG, RIGHT))
    ws.insights()
    (key, body), *_others = ws.store.ask("SELECT session_key, figures FROM digests")
    kind = next(iter(decode_counts(body).errors.groups))[1]
    assert kind is not None
    made = body.replace(kind.encode(), b"x" * len(kind))
    assert made != body
    change(ws, "UPDATE digests SET figures = ? WHERE session_key = ?", made, key)
    change(ws, "DELETE FROM merged_digests")
    found = ws.insights()
    assert (found.sessions, found.seen_once, found.unreadable) == (3, 1, 0)
    change(ws, "UPDATE digests SET figures = ? WHERE session_key = ?", b"\xc1", key)
    change(ws, "DELETE FROM merged_digests")
    found = ws.insights()
    assert (found.sessions, found.unreadable) == (2, 1)


def test_counts_are_small():
    """The stored figures of a session grow with its errors, not with its calls."""
    short = len(encode_counts(digest_both(session(*[GOOD] * 10, FAIL))[1]))
    long = len(encode_counts(digest_both(session(*[GOOD] * 1000, FAIL))[1]))
    assert long < short * 1.5
