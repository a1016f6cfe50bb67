"""Tasks of the lab: every right way passes, every wrong outcome fails, and training and tests share nothing."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import pytest
from msgspec import Struct

from warmstart.lab.chores.checks import build_database, json_holds, says_number, says_only, table_holds, text_of
from warmstart.lab.chores.draw import POOLS
from warmstart.lab.chores.families import FAMILIES, Family
from warmstart.lab.chores.make import make_sessions, make_tasks, take
from warmstart.lab.chores.tasks import Finished, LabTask
from warmstart.lab.sandbox.workshop import Workshop

SEED = 7
TESTED = {family.name for family in FAMILIES if not family.held_out}
TOOLS = {"terminal", "read_file", "write_file", "search_files", "execute_code", "sqlite_query"}
COUNTING = " ".join(map(str, range(1, 200)))
STRUCTURE = frozenset(  # of files and sentences, the same for every instance
    "txt log csv json db md py src name mode from likes We have no INTEGER TEXT def start return True LICENSE AUTHORS "
    "Free for all Owner Written by".split()
)


class Solved(Struct, frozen=True):
    """A task after its own solution."""

    task: LabTask
    folder: Path
    answer: str

    def outcome(self, folder: Path | None = None, answer: str | None = None) -> bool:
        return self.task.check(Finished(folder or self.folder, self.answer if answer is None else answer))

    @property
    def wants_answer(self) -> bool:
        return not self.outcome(answer="")

    def changed(self) -> set[str]:
        """Return files that are new or changed."""
        there = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
        return {path for path in there if (self.folder / path).read_bytes() != _as_bytes(self.task.files.get(path))}

    def unchanged(self) -> set[str]:
        return {path for path in self.task.files if (self.folder / path).is_file()} - self.changed()


Copies = Callable[[Solved], Path]


def _as_bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _solve(task: LabTask, place: Path, by: LabTask | None = None) -> Solved:
    """Return a copy of the task's folder after its solution, or after another task's."""
    with Workshop(task.files) as workshop:
        results = [workshop.run(call) for call in (by or task).solution]
        shutil.copytree(workshop.folder, place)
    return Solved(task, place, results[-1])


def _lay_out(task: LabTask, place: Path) -> Path:
    for path, content in task.files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(_as_bytes(content) or b"")
    place.mkdir(exist_ok=True)
    return place


def _all_words(tasks: list[LabTask]) -> set[str]:
    """Return every name and value in the files of tasks."""
    words: set[str] = set()
    for task in tasks:
        for path, content in task.files.items():
            words |= set(re.findall(r"[A-Za-z]+|\d+", path))
            if isinstance(content, str):
                words |= set(re.findall(r"[A-Za-z]+|\d+", content))
            else:
                words |= _database_words(content)
    return words


def _database_words(content: bytes) -> set[str]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(content)
        told = "\n".join(line for line in connection.iterdump() if line.startswith(("INSERT", "CREATE")))
    return set(re.findall(r"[A-Za-z]+|\d+", told)) - {"INSERT", "INTO", "VALUES", "CREATE", "TABLE"}


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> list[Solved]:
    """Return the first task of every family, held-out ones too, after its solution."""
    root = tmp_path_factory.mktemp("solved")
    tasks = make_tasks(random_seed=SEED, split="test", per_family=1)
    tasks += make_tasks(random_seed=SEED, split="test", per_family=1, held_out=True)
    return [_solve(task, root / task.id) for task in tasks]


@pytest.fixture
def copies(tmp_path: Path) -> Copies:
    """Return a function that copies a solved folder, to damage the copy."""
    numbers = count()
    return lambda one: Path(shutil.copytree(one.folder, tmp_path / f"copy-{next(numbers)}"))


def test_there_are_enough_families_tools_and_tasks() -> None:
    held_out = {family.name for family in FAMILIES if family.held_out}
    tasks = make_tasks(random_seed=0, split="test")
    assert len(TESTED) >= 12 and len(held_out) >= 4 and len({family.name for family in FAMILIES}) == len(FAMILIES)
    assert len(tasks) >= 60 and {task.family for task in tasks} == TESTED
    assert {call.tool for task in tasks for call in task.solution} == TOOLS
    assert {task.family for task in make_tasks(random_seed=0, split="train", held_out=True)} == held_out
    other_tools = {call.tool for s in make_sessions(0, held_out=True) for task in s.tasks for call in task.solution}
    assert other_tools == TOOLS


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_phrasings_are_several_short_and_reworded_for_tests(family: Family) -> None:
    assert len(family.phrasings) == 3 and len({*family.phrasings, *family.rewordings}) >= 5
    slots = [set(re.findall(r"{(\w+)}", text)) for text in (*family.phrasings, *family.rewordings)]
    assert all(one == slots[0] for one in slots), "a phrasing lacks a value that is needed"
    for split in ("train", "test"):
        for task in make_tasks(random_seed=SEED, split=split, per_family=6, held_out=family.held_out):
            assert len(task.request.split()) <= 25 and "{" not in task.request


def test_tests_are_half_reworded_in_every_selection() -> None:
    tasks = make_tasks(random_seed=SEED, split="test", per_family=6)
    for some in (tasks, take(tasks, 20), take(tasks, 30)):
        reworded = sum("-test-reworded-" in task.id for task in some)
        assert 0.35 <= reworded / len(some) <= 0.65
    phrasings = {family.name: family for family in FAMILIES}
    for task in tasks:
        known = any(_fits(task.request, text) for text in phrasings[task.family].phrasings)
        assert known == ("-test-same-" in task.id), task.request


def _fits(request: str, phrasing: str) -> bool:
    pattern = "".join(part if at % 2 == 0 else r"[\w.]+" for at, part in enumerate(re.split(r"{(\w+)}", phrasing)))
    return re.fullmatch(pattern.replace("?", r"\?").replace(". ", r"\. "), request) is not None


def test_splits_share_no_name_and_no_value() -> None:
    for pool in POOLS.values():
        assert not set(pool["train"]) & set(pool["test"])
    everywhere = {split: {word for pool in POOLS.values() for word in pool[split]} for split in ("train", "test")}
    assert not everywhere["train"] & everywhere["test"]
    train = [task for held in (False, True) for s in make_sessions(SEED, held_out=held) for task in s.tasks]
    test = make_tasks(random_seed=SEED, split="test", per_family=12)
    assert _all_words(train) & _all_words(test) <= STRUCTURE
    assert not {task.request for task in train} & {task.request for task in test}
    assert not {repr(task.solution) for task in train} & {repr(task.solution) for task in test}


def test_same_seed_same_tasks_whatever_the_hash_seed() -> None:
    script = (
        "from warmstart.lab.chores.make import make_tasks, make_sessions, take\n"
        "tasks = make_tasks(random_seed=3, split='test')\n"
        "print([(t.id, t.request, sorted(t.files.items()), t.solution) for t in tasks])\n"
        "print([t.id for t in take(tasks, 20)], [(s.id, [t.request for t in s.tasks]) for s in make_sessions(3)])\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1] and len(said[0]) > 10_000
    assert [t.request for t in make_tasks(random_seed=1, split="test")] != [
        t.request for t in make_tasks(random_seed=2, split="test")
    ]


def test_fewer_tasks_are_a_part_of_more_in_the_same_order() -> None:
    many = make_tasks(random_seed=SEED, split="test", per_family=8)
    few = make_tasks(random_seed=SEED, split="test", per_family=3)
    ids = {task.id for task in few}
    same = [task for task in many if task.id in ids]
    assert [(t.id, t.request, t.solution) for t in same] == [(t.id, t.request, t.solution) for t in few]
    assert {task.id for task in take(many, 20)} == {task.id for task in take(few, 20)}
    assert {task.id for task in take(many, 10)} < {task.id for task in take(many, 20)}


@pytest.mark.parametrize("wanted", [0, 5, 15, 20, 40, 75, 500])
def test_take_is_even_over_families(wanted: int) -> None:
    tasks = make_tasks(random_seed=SEED, split="test")
    taken = take(tasks, wanted)
    per_family = Counter(task.family for task in taken)
    assert len(taken) == min(wanted, len(tasks))
    assert [task.id for task in taken] == [task.id for task in tasks if task in taken]
    if wanted >= len(TESTED):
        assert max(per_family.values()) - min(per_family[name] for name in TESTED) <= 1


def test_sessions_are_enough_to_learn_from() -> None:
    for held_out in (False, True):
        sessions = make_sessions(SEED, held_out=held_out)
        per_family = Counter(session.family for session in sessions)
        assert set(per_family) == {family.name for family in FAMILIES if family.held_out == held_out}
        assert min(per_family.values()) >= 4 and len({session.id for session in sessions}) == len(sessions)
        for session in sessions:
            assert {task.family for task in session.tasks} == {session.family}
            paths = [path for task in session.tasks for path in task.files]
            assert len(set(paths)) == len(paths), f"{session.id}: two tasks have a file of the same name"
            assert len({task.request for task in session.tasks}) == len(session.tasks)


@pytest.mark.slow
def test_every_solution_of_its_own_is_right(solved: list[Solved], tmp_path: Path) -> None:
    for one in solved:
        assert one.outcome(), f"{one.task.id}: {one.task.request} {one.answer}"
        assert len(one.answer) < 260, one.answer
    every = [task for held_out in (False, True) for s in make_sessions(SEED, held_out=held_out) for task in s.tasks]
    every += make_tasks(random_seed=SEED, split="test")
    other_ways = [task for task in every if task.id.endswith("-train-01")]
    for task in every if os.environ.get("WARMSTART_FULL") == "1" else other_ways:
        one = _solve(task, tmp_path / task.id)
        assert one.outcome(), f"{task.id}: {task.request} {one.answer}"


def test_nothing_is_solved_at_the_start(tmp_path: Path) -> None:
    for task in make_tasks(random_seed=SEED, split="test", per_family=6):
        folder = _lay_out(task, tmp_path / task.id)
        everything = "\n".join(content for content in task.files.values() if isinstance(content, str))
        for answer in ("", "Done.", task.request, everything, COUNTING, f"{task.request} {everything} {COUNTING}"):
            right = task.family == "show_file" and answer == everything and len(task.files) == 1
            assert task.check(Finished(folder, answer)) is right, f"{task.id}: {answer[:80]}"


def test_no_other_familys_solution_is_right(solved: list[Solved], tmp_path: Path) -> None:
    ordered = sorted(solved, key=lambda one: one.task.id)
    for at, one in enumerate(ordered):
        for step in (1, 5, 14):  # neighbours are alike by name, others by tool
            other = ordered[(at + step) % len(ordered)].task
            if one.task.family in TESTED:
                wrong = _solve(one.task, tmp_path / f"{one.task.id} by {other.id}", by=other)
                assert not wrong.outcome(), f"{one.task.id} by {other.id}: {wrong.answer}"


def test_wrong_answers_are_rejected(solved: list[Solved]) -> None:
    answered = [one for one in solved if one.wants_answer]
    assert len({one.task.family for one in answered if one.task.family in TESTED}) >= 7
    for one in answered:
        right = text_of(one.answer)
        told = "\n".join(content for content in one.task.files.values() if isinstance(content, str))
        wrong = ["", "Done.", COUNTING, " ".join(one.task.files), "." + right[1:4]]
        is_number = re.fullmatch(r"\s*\d+(?:\.0)?\s*", right) is not None
        wrong += [f"{right}\n{told}"] if told and not is_number and not one.task.family.startswith("find_") else []
        wrong += [f"{right}\n{' '.join(one.task.files)}"] if one.task.family.startswith("find_") else []
        if is_number:
            number = round(float(right))
            wrong += [str(number + step) for step in (-1, 1, 10)] + [f"{number}0", f"{number} or {number + 1}"]
            wrong += [f"{right} {COUNTING}"]
            assert one.outcome(answer=f"There are {number} of them.") and one.outcome(answer=f"{number}.0")
        for answer in wrong:
            if answer.strip() != right.strip() and not _says_the_same(one, answer):
                assert not one.outcome(answer=answer), f"{one.task.id}: {answer[:100]}"


def _says_the_same(one: Solved, answer: str) -> bool:
    """If the folder has only the file that was to be shown, printing all files prints it."""
    return one.task.family in ("show_file", "license") and answer in one.answer


def test_missing_wrong_and_misplaced_files_are_rejected(solved: list[Solved], copies: Copies) -> None:
    written = [one for one in solved if one.changed()]
    assert len({one.task.family for one in written if one.task.family in TESTED}) >= 6
    for one in written:
        for path in one.changed():
            is_database = path.endswith(".db")
            folder = copies(one)
            (folder / path).unlink()
            assert not one.outcome(folder), f"{one.task.id}: {path} is missing"
            folder = copies(one)
            (folder / path).rename(folder / "elsewhere.txt")
            assert not one.outcome(folder), f"{one.task.id}: {path} is elsewhere"
            folder = copies(one)
            (folder / path).write_bytes(_as_bytes(one.task.files.get(path)) or b"")
            assert not one.outcome(folder), f"{one.task.id}: {path} as before"
            for text in ("", "x", "[]", "{}", "null"):
                folder = copies(one)
                (folder / path).write_text(text)
                assert not one.outcome(folder), f"{one.task.id}: {path} is {text}"
            if not is_database and one.task.family != "birthday_card":
                for text in _near_misses((one.folder / path).read_text()):
                    folder = copies(one)
                    (folder / path).write_text(text)
                    assert not one.outcome(folder), f"{one.task.id}: {path} is {text}"


def _near_misses(text: str) -> Iterator[str]:
    lines = text.splitlines()
    yield text + "more\n"
    yield "more\n" + text
    yield text + text
    yield re.sub(r"[A-Za-z]", "_", text, count=1)
    if any(character.isdigit() for character in text):
        yield re.sub(r"\d", lambda found: str((int(found[0]) + 1) % 10), text, count=1)
    if len(lines) > 1:
        yield "\n".join(lines[:-1])
        yield "\n".join(lines[1:])
        yield "\n".join(reversed(lines))


def test_damaged_inputs_are_rejected(solved: list[Solved], copies: Copies) -> None:
    seen = 0
    for one in solved:
        for path in one.unchanged():
            seen += 1
            folder = copies(one)
            (folder / path).unlink()
            assert not one.outcome(folder), f"{one.task.id}: {path} was deleted"
            folder = copies(one)
            if path.endswith(".db"):
                _drop_a_row(folder / path)
            else:
                (folder / path).write_text((folder / path).read_text() + "damage\n")
            assert not one.outcome(folder), f"{one.task.id}: {path} was changed"
    assert seen >= 15


def _drop_a_row(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        (table,) = connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
        connection.execute(f"DELETE FROM {table} WHERE rowid = 1")
        connection.commit()


def test_databases_with_wrong_rows_are_rejected(solved: list[Solved], copies: Copies) -> None:
    changed = [(one, path) for one in solved for path in one.changed() if path.endswith(".db")]
    assert {one.task.family for one, _path in changed} >= {"insert_and_count", "update_row"}
    for one, path in changed:
        if one.task.family == "create_table":
            continue
        with closing(sqlite3.connect(one.folder / path)) as connection:
            (table,) = connection.execute("SELECT name FROM sqlite_master LIMIT 1").fetchone()
            columns = [row[0] for row in connection.execute(f"SELECT name FROM pragma_table_info('{table}')")]
        for damage in (
            f"UPDATE {table} SET {columns[1]} = {columns[1]} + 1 WHERE rowid = 1",
            f"UPDATE {table} SET {columns[1]} = CAST({columns[1]} AS TEXT) || 'x' WHERE rowid = 2",
            f"INSERT INTO {table} SELECT * FROM {table} LIMIT 1",
            f"DELETE FROM {table} WHERE rowid = 1",
            f"CREATE TABLE other AS SELECT * FROM {table}",
            f"ALTER TABLE {table} RENAME TO other",
        ):
            folder = copies(one)
            with closing(sqlite3.connect(folder / path)) as connection:
                connection.execute(damage)
                connection.commit()
            assert not one.outcome(folder), f"{one.task.id}: {damage}"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("3", True),
        ("There are 3 lines with warning in api.log.", True),
        ("3.0", True),
        ('{"output": "3\\n", "exit_code": 0}', True),
        ('{"output": "", "exit_code": 3}', False),
        ("3 of 7", False),
        ("2", False),
        ("13", False),
        ("3.5", False),
        ("-3", False),
        ("three", False),
        ("1 2 3 4 5", False),
        ("v3", False),
        ("", False),
    ],
)
def test_a_number_is_said_alone(answer: str, right: bool, tmp_path: Path) -> None:
    assert says_number(3)(Finished(tmp_path, answer)) is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Nina and Tom", True),
        ('{"rows": [["Tom"], ["Nina"]]}', True),
        ("Nina", False),
        ("Nina, Tom and Peter", False),
        ("Ninas Tomb", False),
        ("", False),
    ],
)
def test_names_are_said_without_others(answer: str, right: bool, tmp_path: Path) -> None:
    assert says_only(["Nina", "Tom"], ["Nina", "Tom", "Peter"])(Finished(tmp_path, answer)) is right


def test_odd_things_in_place_of_a_file_are_only_wrong(solved: list[Solved], copies: Copies) -> None:
    for one in solved:
        for path in one.changed():
            folder = copies(one)
            (folder / path).unlink()
            (folder / path).mkdir()
            assert not one.outcome(folder)
            (folder / path).rmdir()
            os.mkfifo(folder / path)
            assert not one.outcome(folder)
            (folder / path).unlink()
            for content in (b"\xff\x00\xfe", b"[" * 100_000, b'{"a": 1' + b"0" * 400 + b"}", b"SQLite format 3\x00"):
                (folder / path).write_bytes(content)
                assert not one.outcome(folder)
    for one in solved:
        if one.wants_answer:
            assert not one.outcome(answer="[" * 100_000) and not one.outcome(answer="9" * 5_000)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE zz(a, b AS (zeroblob(900000)))",
        "CREATE TABLE zz(a, b AS (zeroblob(90000)))",
        "CREATE TABLE zz(a)",
    ],
)
def test_a_database_that_a_model_has_blown_up_is_not_read_to_its_end(tmp_path, sql):
    """Checks run in the lab's own process, without walls around them."""
    path = tmp_path / "a.db"
    path.write_bytes(build_database("t", {"a": "integer"}, [(1,)]))
    check = table_holds("a.db", "t", [(1,)], alone=False)
    assert check(Finished(tmp_path, ""))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)
        connection.execute(
            "INSERT INTO zz(a) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 2000) SELECT n FROM c"
        )
        connection.commit()
    tracemalloc.start()
    assert not check(Finished(tmp_path, ""))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000


def test_json_nested_deeper_than_recursion_goes_is_not_the_one_asked_for(tmp_path):
    (tmp_path / "a.json").write_text("[" * 600 + "]" * 600)
    assert not json_holds("a.json", [1])(Finished(tmp_path, ""))
