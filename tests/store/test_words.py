"""Sessions found by their words: what is searched, filters, changes, deletion without traces, older stores."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from databases import on_both_databases
from ui_home import make_call, make_session
from warmstart.errors import Refused
from warmstart.store import SqliteStore, Store, open_store
from warmstart.store import sqlite as module
from warmstart.store.sqlite_file import migrate
from warmstart.store.words import SessionFilter, SessionWords, find_words

ALL = SessionFilter()


def put(store: Store, number: int, task: str, command: str = "make", **facts: object) -> str:
    row = make_session(number, task, **facts)
    fields = {
        "tool": "Bash",
        "intent": None,
        "excerpt": "unsearchedresult",
        "findings": '["E501"]',
        "words": "please not",
    }
    arguments = json.dumps({"command": command, "path": "src/shop\nbasket.py"})
    call = make_call(row, 0, "cannot find the gizmo", arguments=arguments, **fields)
    store.put_session(row, [call], [])
    return row.key


def find(store: Store, text: str, wanted: SessionFilter = ALL, limit: int = 50, offset: int = 0) -> list[str]:
    found = SessionWords(store).find(text, wanted, limit=limit, offset=offset)
    return [row.id for row in found.sessions]


@on_both_databases
def test_tasks_tools_commands_paths_and_errors_are_searched(store: Store) -> None:
    put(store, 1, "Repair the checkout", "pytest tests/test_orders.py -k total")
    put(store, 2, "Write the report")
    for text in ("checkout", "REPAIR checkout", "test_orders.py", "total pytest", "chec", "orders tot"):
        assert find(store, text) == ["id-1"], text
    for text in ("bash", "gizmo", "E501", "please", "environment", "basket", "src/shop basket.py"):
        assert find(store, text) == ["id-2", "id-1"], text
    assert find(store, "unsearchedresult") == [], "results are not indexed: sessions search reads them"
    assert find(store, "repair report") == [], "every word must be there"
    with pytest.raises(Refused, match="no word"):
        find(store, '"* --')
    for text in ('" OR "', "task:checkout", "a NEAR b", "(((x", "^checkout", "checkout*"):
        find(store, text)  # no text is taken for a query language


@on_both_databases
def test_filters_order_and_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        put(
            store,
            number,
            "fix it",
            agent=("codex", "hermes")[number % 2],
            verdict=("success", "failure")[number % 3 > 0],
        )
    assert find(store, "fix", limit=3) == ["id-11", "id-10", "id-9"]
    assert find(store, "fix", limit=3, offset=10) == ["id-1", "id-0"]
    chosen = SessionFilter(agent="codex", verdict="success", project="/srv/shop", scope="")
    for few in (5_000, 3):  # sessions of a small project are gathered first; the same are found
        monkeypatch.setattr("warmstart.store.words.FEW", few)
        found = SessionWords(store).find("fix", chosen, limit=1, offset=0)
        assert (found.total, found.is_more, [row.id for row in found.sessions]) == (2, False, ["id-6"])
        late = SessionFilter(since=1_790_000_000.0 + 10 * 60, project="/srv/shop")
        assert find(store, "fix", late) == ["id-11", "id-10"]
        assert find(store, "fix", SessionFilter(project="/srv/none")) == []
    assert find(store, "fix", SessionFilter(since=1_790_000_000.0 + 11 * 60)) == ["id-11"]
    monkeypatch.setattr("warmstart.store.words.COUNTED", 3)
    found = SessionWords(store).find("fix", SessionFilter(scope=""), limit=2, offset=0)
    assert (found.total, found.is_more, len(found.sessions)) == (3, True, 2)
    assert find(store, "fix", SessionFilter(scope=""), limit=2, offset=10) == ["id-1", "id-0"]


@on_both_databases
def test_the_newest_come_first_in_whatever_order_they_are_stored(store: Store) -> None:
    for number in (4, 1, 7, 2):
        put(store, number, "fix it")
    put(store, 5, "fix it", started=None)
    put(store, 6, "fix it", started=1e300)
    assert find(store, "fix") == ["id-6", "id-7", "id-4", "id-2", "id-1", "id-5"], "unknown times come last"


def test_many_sessions_of_one_second_are_all_found(store: SqliteStore) -> None:
    """Each second has 4096 numbers in the index; what does not fit takes those of the next."""
    for number in range(3):
        put(store, number, "fix it", started=1_790_000_000.5)
    with store.writing():
        full = (1_790_000_000 + 1) * 4096 - 1
        store._db.execute("UPDATE worded_sessions SET id = ? WHERE session_key = ?", (full, f"{2:032x}"))
    put(store, 3, "fix it", started=1_790_000_000.5)
    put(store, 4, "mend it", started=1_790_000_001.5)
    assert find(store, "fix")[0] == "id-3" and find(store, "mend") == ["id-4"]


@on_both_databases
def test_a_changed_session_loses_its_old_words(store: Store) -> None:
    put(store, 1, "paint it green")
    put(store, 1, "paint it blue", digest="other", messages=9)
    assert find(store, "green") == [] and find(store, "blue") == ["id-1"]
    assert SessionWords(store).find("paint", ALL, limit=9, offset=0).total == 1


def test_a_deleted_session_leaves_no_word_in_the_files(store: SqliteStore) -> None:
    key = put(store, 1, "quetzalcoatl")
    put(store, 2, "keep this one")
    assert b"quetzalcoatl" in store.path.read_bytes() + Path(f"{store.path}-wal").read_bytes()
    store.forget_session(key, 1.0)
    assert find(store, "quetzalcoatl") == []
    store.erase()
    store.close()
    for file in store.path.parent.glob("warmstart.db*"):
        assert b"quetzalcoatl" not in file.read_bytes(), file
        assert b"quetzal" not in file.read_bytes(), "nor in pieces that FTS5 stores"
    assert find(open_store(store.path), "keep") == ["id-2"], "vacuuming keeps the numbers of the others"


def test_an_older_store_is_indexed_later_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "warmstart.db"
    migrations = [*module.KIND.load_migrations()]
    before = next(one.number for one in migrations if one.name == "0015_search") - 1
    with open_store(tmp_path / "new.db") as new:
        for number in range(5):
            put(new, number, f"task number{number}")
        rows = new.rows("list_sessions", (None, None, None, None, None, 99, 0))
        calls = [call.to_columns() for row in rows for call in new.calls_of(row[0])]
    path.touch(mode=0o600)
    db = apsw.Connection(str(path))
    migrate(db, module.KIND, migrations[:before])
    db.executemany(module.QUERIES["put_session"], rows)
    db.executemany(module.QUERIES["put_call"], calls)
    db.close()
    with open_store(path) as store:
        words = SessionWords(store)
        found = words.find("number3", ALL, limit=9, offset=0)
        assert (found.total, found.unsearched) == (0, 5), "opening does not wait for the index"
        put(store, 9, "task number9")
        assert find(store, "number9") == ["id-9"], "what is stored from now on is found at once"
        assert words.complete() == 5
        assert find(store, "number3") == ["id-3"] and words.count_missing() == 0
        assert words.complete() == 0


def test_words_become_a_query() -> None:
    assert find_words("src/a_b.py") == ["src", "a", "b", "py"]
    assert module.make_match(["src", "py"]) == '"src" "py"*'
    assert find_words(" -- ") == []


def test_the_words_of_a_batch_are_written_together(tmp_path: Path) -> None:
    rows = [make_session(number, f"Repair part{number}") for number in range(9, 0, -1)]  # the newest first
    with open_store(tmp_path / "db") as store:
        store.put_sessions([(row, [make_call(row, 0, "no gizmo")], []) for row in rows])
        ((segments,),) = store.ask("SELECT count(DISTINCT segid) FROM session_words_idx")
        assert segments == 1, "a segment for each session would have to be merged later"
        assert find(store, "repair") == [f"id-{number}" for number in range(9, 0, -1)]
        assert find(store, "part4") == ["id-4"]
