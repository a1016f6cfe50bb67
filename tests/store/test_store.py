"""The store on both databases: rows, search, transactions, deletion."""

from __future__ import annotations

import os
import threading

import msgspec
import pytest

from databases import on_both_databases
from store.rows import make_calls, make_session
from warmstart.errors import NotFound, Refused, StoreError
from warmstart.store import SourceRow, Store, open_store

pytestmark = on_both_databases


# Rows


def test_session_and_calls_come_back_as_they_were(store: Store, database: str) -> None:
    row = make_session(
        model="m", project="/p", task="do\0it ✓", ended=2.5, end_reason="stop", label=False, parent="p1", usage="{}"
    )
    calls = make_calls(intent="wanted", excerpt="head … tail", error_kind="other", at=1.5)
    assert store.put_session(row, calls) == "new"
    if database == "postgres":  # whose texts hold no NUL
        row = msgspec.structs.replace(row, task="do\ufffdit ✓")
    assert store.find_session("k1") == row
    assert store.find_session("k1").label is False
    assert store.calls_of("k1") == calls
    assert store.calls_of("nothing") == []


def test_same_digest_changes_nothing_but_the_way_back(store: Store) -> None:
    store.put_session(make_session(), make_calls())
    assert store.put_session(make_session(updated=99.0), make_calls()) == "same"
    assert store.find_session("k1").updated == 10.0
    assert store.put_session(make_session(source_uri="/moved.jsonl"), make_calls()) == "same"
    assert store.find_session("k1").source_uri == "/moved.jsonl"


def test_appended_transcript_updates_and_keeps_first_seen(store: Store) -> None:
    store.put_session(make_session(), make_calls())
    longer = make_session(digest="d2", calls=3, first_seen=20.0, updated=20.0)
    assert store.put_session(longer, make_calls(count=3)) == "updated"
    found = store.find_session("k1")
    assert (found.first_seen, found.updated, found.digest) == (10.0, 20.0, "d2")
    assert len(store.calls_of("k1")) == 3


def test_older_copy_elsewhere_does_not_overwrite(store: Store) -> None:
    store.put_session(make_session(), make_calls())
    assert store.put_session(make_session(digest="d0", calls=1, source_uri="/old.jsonl"), make_calls(count=1)) == "same"
    assert (store.find_session("k1").digest, len(store.calls_of("k1"))) == ("d1", 2)
    equal = make_session(digest="d3", source_uri="/old.jsonl")
    assert store.put_session(equal, make_calls()) == "updated"  # of the same length: the newer copy wins
    rewritten = make_session(digest="d4", source_uri="/old.jsonl", calls=0, results=0)
    assert store.put_session(rewritten, []) == "updated"  # the file itself became shorter
    assert store.calls_of("k1") == []


def test_calls_of_another_session_are_not_taken(store: Store) -> None:
    with pytest.raises(ValueError, match="another session"):
        store.put_session(make_session("k1"), make_calls("k2"))
    with pytest.raises(NotFound):
        store.find_session("k1")


def test_half_a_surrogate_pair_is_stored_as_a_question_mark(store: Store) -> None:
    store.put_session(make_session(task="cut \ud83d"), make_calls(excerpt="\udc00!"))
    assert store.find_session("k1").task == "cut ?"
    assert store.calls_of("k1")[0].excerpt == "?!"


def test_sources(store: Store) -> None:
    row = SourceRow(
        uri="/a", size=1, mtime_ns=2**62, inode=2**64 - 1, reader=7, read_at=3.0, problems='[{"path":"/a"}]'
    )
    store.put_source(row)
    other = SourceRow(uri="/b", size=1, mtime_ns=2, read_at=3.0)
    store.put_source(other)
    assert store.sources() == [row, other]
    grown = msgspec.structs.replace(row, size=2)
    store.put_source(grown)
    assert store.sources() == [grown, other]


# Finding


def test_find_by_key_id_and_beginnings(store: Store) -> None:
    store.put_session(make_session("aaa1", id="one"), [])
    store.put_session(make_session("aab2", id="two"), [])
    store.put_session(make_session("aab2x", id="two-longer"), [])
    assert store.find_session("aab2").id == "two"  # whole keys and ids come before prefixes
    assert store.find_session("two").key == "aab2"
    assert store.find_session("aaa").id == "one"
    assert store.find_session("two-").key == "aab2x"
    for ambiguous in ("aa", "tw"):
        with pytest.raises(Refused, match=r"several sessions: .*two"):
            store.find_session(ambiguous)
    for nothing in ("", "zzz", "%", "a_"):
        with pytest.raises(NotFound):
            store.find_session(nothing)


def test_one_id_used_by_two_agents_is_ambiguous(store: Store) -> None:
    store.put_session(make_session("k1", id="1"), [])
    store.put_session(make_session("k2", id="1", agent="codex"), [])
    with pytest.raises(Refused, match="codex"):
        store.find_session("1")


def test_list_filters_and_pages(store: Store) -> None:
    for n in range(5):
        agent, verdict = ("codex", "failure") if n % 2 else ("claude-code", "success")
        store.put_session(make_session(f"k{n}", started=float(n), agent=agent, verdict=verdict, project=f"/p{n}"), [])
    store.put_session(make_session("k9", started=None), [])
    assert [row.key for row in store.list_sessions()] == ["k4", "k3", "k2", "k1", "k0", "k9"]
    assert [row.key for row in store.list_sessions(2, 1)] == ["k3", "k2"]
    assert [row.key for row in store.list_sessions(None, agent="codex", verdict="failure", since=2.0)] == ["k3"]
    assert [row.key for row in store.list_sessions(project="/p0")] == ["k0"]


# Transactions


def test_several_puts_commit_together_or_not_at_all(store: Store) -> None:
    with pytest.raises(RuntimeError), store.writing():
        store.put_session(make_session("k1"), make_calls("k1"))
        raise RuntimeError
    assert len(store.list_sessions(None)) == 0
    with store.writing():
        store.put_session(make_session("k1"), make_calls("k1"))
        with pytest.raises(StoreError, match=r"UNIQUE|duplicate key"):  # this one is undone, the others are not
            store.put_session(make_session("k2"), [*make_calls("k2"), *make_calls("k2")])
        store.put_session(make_session("k3"), [])
    assert [row.key for row in store.list_sessions()] == ["k3", "k1"]


def test_reading_does_not_wait_for_a_writer(store: Store, url: str) -> None:
    store.put_session(make_session("k1"), [])
    with open_store(url, patience=0.0) as reader, store.writing():
        store.put_session(make_session("k2"), [])
        assert [row.key for row in reader.list_sessions()] == ["k1"]
        with open_store(url, patience=0.0) as late:
            assert len(late.list_sessions(None)) == 1
        with pytest.raises(StoreError, match="busy"):
            reader.forget_session("k1", 0.0)
    assert len(store.list_sessions(None)) == 2


def test_threads_share_a_store(store: Store) -> None:
    def write(thread: int) -> None:
        for n in range(20):
            key = f"{thread}-{n}"
            with store.writing():
                store.put_session(make_session(key), make_calls(key))

    threads = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.list_sessions(None)) == 160


def test_closed_and_forked_stores_say_so(store: Store) -> None:
    store._process = -1  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="fork"):
        store.sources()
    store._process = os.getpid()  # type: ignore[attr-defined]
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.sources()


# Deleting


def test_delete_takes_the_calls_with_it(store: Store) -> None:
    store.put_session(make_session("k1"), make_calls("k1"))
    store.forget_session("k1", 0.0)
    assert store.health()["calls"] == 0
    with pytest.raises(NotFound):
        store.forget_session("k1", 0.0)
