"""Several processes fill a store as one does: the same rows and the same report, whichever process is first and whatever fails."""

from __future__ import annotations

import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import warmstart
from hermes_databases import write_weather_chats
from ingest.packing import checkpoint, commit, encode_session, make_repository, pack
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.engines import FailedUnit, InProcess
from warmstart.formats.source import Source
from warmstart.ingest import parallel, place_reader
from warmstart.ingest.parallel import Workers
from warmstart.ingest.read import Scored, scan
from warmstart.ingest.records import Recorder
from warmstart.ingest.run import Ingest, Ingested
from warmstart.ingest.units import IngestUnit, ReaderSetup
from warmstart.pipeline import Warmstart

DATA = Path(__file__).parents[1] / "data"
SECRET = "ghp_" + "a1B2" * 9
TABLES = ("sources", "sessions", "calls", "spent", "project_names", "settled_folders", "forgotten", "worded_sessions")


def write_tree(tree: Path) -> Path:
    """Write transcripts of every format, copies, subagents, archives, a branch, and files that cannot be read."""
    for folder in DATA.iterdir():
        for case in folder.glob("case*"):
            if not case.name.endswith(".expected.json"):
                (tree / folder.name).mkdir(parents=True, exist_ok=True)
                shutil.copy(case, tree / folder.name)
    for name, session, calls in (("a", "twice", 3), ("b", "twice", 5), ("c", "twice", 4), ("d", "grows", 2)):
        write_jsonl(tree / "copies" / f"{name}.jsonl", claude_lines(session, calls, text=f"token {SECRET}"))
    sidechain = claude_lines("grows", 2, isSidechain=True, agentId="x")
    write_jsonl(tree / "copies" / "grows" / "subagents" / "agent-x.jsonl", sidechain)
    (tree / "half.jsonl").write_bytes(encode_session("half")[:-60])
    (tree / "broken.jsonl").write_bytes(b'{"type": "user", "sessionId": "s-2", "uuid": "x"\n\x00\xff')
    (tree / "surrogate.jsonl").write_bytes(encode_session("odd").replace(b"fine 0", b"f\\ud800 0"))
    (tree / f"{SECRET}.jsonl").write_bytes(encode_session("named"))
    (tree / "empty.json").write_bytes(b"")
    (tree / "settings.json").write_text("{}")
    packed = {"in/1.jsonl": encode_session("p-1"), "in/2.jsonl": b"{", "in/twice.jsonl": encode_session("twice", 1)}
    (tree / "pack.tar.zst").write_bytes(pack(packed, "tar.zst"))
    write_weather_chats(tree / "state.db", 3)
    commit(make_repository(tree / "repo"), "entire/checkpoints/v1", checkpoint("0123456789ab", "checked", 2))
    return tree


def change_tree(tree: Path) -> None:
    write_jsonl(tree / "copies" / "d.jsonl", claude_lines("grows", 9))
    packed = {"in/1.jsonl": encode_session("p-1"), "in/3.jsonl": encode_session("p-3")}
    (tree / "pack.tar.zst").write_bytes(pack(packed, "tar.zst"))
    write_jsonl(tree / "new.jsonl", claude_lines("new"))


def read_tables(ws: Warmstart) -> dict[str, list[str]]:
    return {table: sorted(map(repr, ws.store.ask(f"SELECT * FROM {table}"))) for table in TABLES}


def open_at(home: Path, store: Path | str) -> Warmstart:
    return Warmstart(config.load(home, str(store)), lambda: 1_800_000_000.0)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[str]]:
    """The addresses of two empty stores."""
    if request.param == "sqlite":
        yield [str(tmp_path / "one.db"), str(tmp_path / "two.db")]
        return
    server = request.getfixturevalue("postgres")
    addresses = [server.make_store(), server.make_store()]
    yield addresses
    for address in addresses:
        server.recycle_store(address)


def test_several_processes_fill_a_store_as_one_does(
    stores: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "UNIT_FILES", 9)
    tree = write_tree(tmp_path / "tree")
    with open_at(tmp_path / "home", stores[0]) as one, open_at(tmp_path / "home", stores[1]) as two:
        for ws in (one, two):
            ws.place_session("20260201_000001_abcdef", "hermes", "/srv/shop", "profile:work")
        reports = [one.ingest(tree)]
        assert two.ingest(tree, jobs=2) == reports[0]
        assert read_tables(two) == read_tables(one)
        change_tree(tree)
        for ws in (one, two):
            ws.delete_session("half")
        reports.append(one.ingest(tree))
        assert two.ingest(tree, jobs=2) == reports[1]
        assert read_tables(two) == read_tables(one)
        monkeypatch.setattr("warmstart.engines.ProcessPoolExecutor", None)  # no process starts
        reports.append(one.ingest(tree))
        assert two.ingest(tree, jobs=2) == reports[2]
        assert read_tables(two) == read_tables(one) and SECRET not in repr(read_tables(two))
    first, second, third = reports
    assert first.new > 40 and first.updated and first.unreadable and first.skipped and first.problems
    assert second.new == 2 and second.updated and second.forgotten == 1
    assert not third.sessions and third.unchanged > 40


class Backwards(InProcess):
    """Runs units that crossed a border, three at a time, and the last of them first. One with a poison file fails."""

    def map(self, function: Any, units: Iterable[IngestUnit]) -> Iterator[Any]:
        waiting = iter(units)
        while some := [pickle.loads(pickle.dumps(unit)) for unit in islice(waiting, 3)]:
            for unit in reversed(some):
                poison = any(one.wanted.place.shown.endswith("poison.jsonl") for one in unit.places)
                yield FailedUnit(unit, "it was killed") if poison else function(unit)


def ingest_backwards(ws: Warmstart, tree: Path) -> Ingested:
    settings = ws.settings
    setup = ReaderSetup(
        store=settings.store_url, secrets=settings.secrets, home=settings.home, tools=settings.tools, folder=None
    )
    recorder = Recorder(settings.secrets, settings.home)
    run = Ingest(ws.store, recorder, settings.tools, lambda: 1_800_000_000.0, workers=Workers(Backwards(), setup))
    return run.run([tree])


def test_results_are_stored_in_the_order_of_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "UNIT_FILES", 2)
    tree = write_tree(tmp_path / "tree")
    with open_at(tmp_path / "home", tmp_path / "one.db") as one, open_at(tmp_path / "home", tmp_path / "two.db") as two:
        assert ingest_backwards(two, tree) == one.ingest(tree)
        assert read_tables(two) == read_tables(one)


def test_a_poison_file_is_named_and_everything_else_is_stored(tmp_path: Path) -> None:
    for name in ("1", "2-poison", "3"):
        write_jsonl(tmp_path / "tree" / f"{name}.jsonl", claude_lines(f"s-{name}"))
    with open_at(tmp_path / "home", tmp_path / "one.db") as ws:
        report = ingest_backwards(ws, tmp_path / "tree")
        assert (report.new, report.unreadable) == (2, 1)
        assert [(Path(one.path).name, one.reason) for one in report.problems] == [
            ("2-poison.jsonl", "not read: it was killed")
        ]
        assert ws.ingest(tmp_path / "tree").new == 1, "it is tried again"


def test_a_file_at_which_a_reader_fails_is_named_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at_poison(source: Source, tools: Mapping[str, str]) -> Iterator[Scored]:
        yield from scan(source, tools)
        if source.path.name == "2-poison.jsonl":
            raise KeyError(f"export TOKEN={SECRET}")

    monkeypatch.setattr(place_reader, "scan", fail_at_poison)
    for name in ("1", "2-poison", "3"):
        write_jsonl(tmp_path / "tree" / f"{name}.jsonl", claude_lines(f"s-{name}"))
    with open_at(tmp_path / "home", tmp_path / "one.db") as ws:
        report = ws.ingest(tmp_path / "tree")
        assert (report.new, report.unreadable, ws.store.health()["sources"]) == (3, 1, 2)
    (problem,) = report.problems
    assert problem.path.endswith("2-poison.jsonl") and problem.reason.startswith("reading it failed: KeyError")
    assert SECRET not in problem.reason


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_process_and_is_finished_by_the_next(tmp_path: Path, number: int) -> None:
    for name in range(400):
        write_jsonl(tmp_path / "tree" / f"{name}.jsonl", claude_lines(f"s-{name}", 20))
    command = [sys.executable, "-m", "warmstart", "ingest", str(tmp_path / "tree"), "--jobs", "2"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    with warmstart.open() as ws:
        while running.poll() is None and not ws.count_sessions():
            time.sleep(0.01)
        children = find_children(running.pid)
        running.send_signal(number)
        _output, errors = running.communicate(timeout=60)
        assert len(children) == 2 and b"Traceback" not in errors
        until = time.monotonic() + 20
        while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(Path(f"/proc/{child}").exists() for child in children)
        assert ws.store.health()["integrity"] == "ok" and 0 < ws.count_sessions() < 400
        ws.ingest(tmp_path / "tree")
        assert ws.count_sessions() == 400 and ws.store.health()["calls"] == 400 * 20


def find_children(pid: int) -> list[int]:
    """Return the processes of a pool; Python's tracker of resources is none of them."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]
