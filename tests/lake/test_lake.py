"""A lake holds the same sessions as a store, whoever writes it and however often, and answers the same."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import warmstart
from command_line import run, run_json, start_python
from lake.making import fill, hash_files, write_sessions
from notes.stored import RIGHT, WRONG, sessions
from transcripts import write_jsonl
from warmstart.engines import FailedUnit, InProcess, Processes
from warmstart.lake.files import NewerLake, name_folder
from warmstart.lake.tables import SESSIONS
from warmstart.usage.report import UsageQuery

pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def ws():
    with warmstart.open() as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_sessions(tmp_path / "transcripts", 5)


def test_the_lake_answers_as_the_store_does(ws, folder, tmp_path):
    report = fill(ws, tmp_path / "lake", folder)
    assert (report.sessions, report.new, report.problems) == (5, 5, [])
    ws.ingest(folder)
    ws.learn()
    lake = ws.lake(str(tmp_path / "lake"))
    stored = ws.insights(top=50)
    assert ws.insights_of(lake, top=50) == stored and stored.sessions == 5 and stored.repeated
    for by in ("day", "agent", "model", "project", "session"):
        assert lake.usage(UsageQuery(by=by)) == ws.usage.report(by)
    notes = ws.notes.list()
    assert notes
    ws.learn_from(lake)
    assert ws.notes.list() == notes


def test_writing_again_adds_nothing(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    before = hash_files(tmp_path / "lake")
    again = fill(ws, tmp_path / "lake", folder)
    assert (again.sessions, again.new) == (5, 0) and hash_files(tmp_path / "lake") == before


def test_only_new_and_changed_sessions_are_added(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    write_sessions(folder, 1, 5)
    longer = sessions(1, WRONG, WRONG, WRONG, RIGHT)[0]
    write_jsonl(folder / "000.jsonl", longer)
    report = fill(ws, tmp_path / "lake", folder)
    assert report.new == 2
    ws.ingest(folder)
    assert ws.insights_of(ws.lake(str(tmp_path / "lake")), top=9).calls == ws.insights().calls


def test_two_teams_write_one_lake(ws, folder, tmp_path):
    """Two writers that split the same sessions differently leave copies; each session counts once."""
    both = write_sessions(tmp_path / "other", 9)
    fill(ws, tmp_path / "second", both)
    fill(ws, tmp_path / "first", folder)  # neither sees what the other writes
    shutil.copytree(tmp_path / "second", tmp_path / "first", dirs_exist_ok=True)
    lake = ws.lake(str(tmp_path / "first"))
    assert lake.insights().sessions == 9
    before = lake.insights(top=50)
    report = lake.compact()
    assert report.dropped == 5 and report.after == 1
    assert lake.insights(top=50) == before


def test_a_half_written_file_is_left_out_and_named(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    (file,) = (tmp_path / "lake" / "sessions").rglob("*.parquet")
    part = file.with_name(file.name + ".part")
    part.write_bytes(file.read_bytes()[:100])
    lake = ws.lake(str(tmp_path / "lake"))
    assert lake.insights().sessions == 5 and not lake.lake.problems, "an unfinished file has another name"
    os.truncate(file, 200)
    lake = ws.lake(str(tmp_path / "lake"))
    lake.usage(UsageQuery())
    assert {Path(one.path).name for one in lake.lake.problems} == {file.name}
    file.unlink()
    fill(ws, tmp_path / "lake", folder)
    assert ws.lake(str(tmp_path / "lake")).insights().sessions == 5, "writing again restores it"


def rewrite_schema(lake: Path, change) -> None:
    """Rewrite the sessions of a lake as another version would have written them."""
    for file in list((lake / "sessions").rglob("*.parquet")):
        table = change(pq.read_table(io.BytesIO(file.read_bytes())))
        body = io.BytesIO()
        pq.write_table(table, body)
        calls = next((lake / "calls").rglob(f"{file.stem}-*.parquet"))
        name = hashlib.blake2b(body.getvalue(), digest_size=16).hexdigest()
        file.with_name(f"{name}.parquet").write_bytes(body.getvalue())
        calls.rename(calls.with_name(f"{name}-{calls.stem.partition('-')[2]}.parquet"))
        file.unlink()


def test_a_file_of_an_older_version_is_read(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    before = ws.lake(str(tmp_path / "lake")).insights(top=50)
    rewrite_schema(tmp_path / "lake", lambda table: table.drop_columns(["source", "opening"]))
    assert ws.lake(str(tmp_path / "lake")).insights(top=50) == before


def test_a_file_of_a_newer_version_is_refused(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    newer = {b"warmstart.lake": b"99"}
    rewrite_schema(tmp_path / "lake", lambda table: table.replace_schema_metadata(newer))
    with pytest.raises(NewerLake, match="upgrade"):
        ws.lake(str(tmp_path / "lake")).insights()


def test_no_clock_is_compared(folder, tmp_path):
    """Two machines whose clocks differ by years write the same files."""
    made = []
    for year, name in ((0.0, "a"), (4e9, "b")):
        ws = warmstart.open()
        ws._clock = lambda at=year: at
        fill(ws, tmp_path / name, folder)
        made.append(hash_files(tmp_path / name))
        ws.close()
    assert made[0] == made[1] and made[0]


def test_processes_write_the_same_lake(ws, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("warmstart.lake.units.UNIT_FILES", 2)
    fill(ws, tmp_path / "one", folder)
    fill(ws, tmp_path / "two", folder, jobs=2)
    assert hash_files(tmp_path / "one") == hash_files(tmp_path / "two")


def double_or_die(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), 9)
    if number == 4:
        raise ValueError("poison")
    return 2 * number


def test_a_killed_process_costs_only_its_own_unit():
    taken: list[int] = []
    ahead = []
    results = []
    for result in Processes(2).map(double_or_die, (taken.append(unit) or unit for unit in range(9))):
        results.append(result)
        ahead.append(len(taken) - len(results))
    assert max(ahead) <= 4, "units wait where they come from"
    failed = {one.unit: one.reason for one in results if isinstance(one, FailedUnit)}
    assert sorted(one for one in results if not isinstance(one, FailedUnit)) == [0, 2, 4, 10, 12, 14, 16]
    assert "killed" in failed[3] and failed[4] == "ValueError: poison"


DRIVE = """
import sys
from warmstart.doors.cli.main import main
from warmstart.lake import units
units.UNIT_FILES = 1
main(["ingest", sys.argv[1], "--lake", sys.argv[2], "--jobs", "2"], prog_name="warmstart")
"""


def list_processes(session: int) -> list[int]:
    """Return the living processes of a session."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _parent, _group, own = stat.read_text().rpartition(")")[2].split()[:4]
            if int(own) == session and state not in "ZX":
                found.append(int(stat.parent.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_driver_that_is_ended_leaves_no_workers_and_a_lake_that_is_completed(ws, tmp_path, monkeypatch, how):
    """Ctrl-C reaches the workers too; kill -9 the driver alone."""
    folder, lake = write_sessions(tmp_path / "transcripts", 24, 0, *(WRONG, RIGHT) * 60), tmp_path / "lake"
    driver = start_python(DRIVE, str(folder), str(lake), start_new_session=True)
    deadline = time.monotonic() + 60
    while not hash_files(lake / "sessions") and time.monotonic() < deadline:
        time.sleep(0.01)
    (os.killpg if how == signal.SIGINT else os.kill)(driver.pid, how)
    _output, errors = driver.communicate(timeout=30)
    assert driver.returncode and "Traceback" not in errors, errors
    while list_processes(driver.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not list_processes(driver.pid), "no worker outlives the driver"
    made = len(hash_files(lake / "sessions"))
    assert 0 < made < 24, "it was ended in the middle"
    monkeypatch.setattr("warmstart.lake.units.UNIT_FILES", 1)
    again = fill(ws, lake, folder)
    assert (again.sessions, again.new, again.problems) == (24, 24 - made, [])
    fill(ws, tmp_path / "whole", folder)
    assert hash_files(lake) == hash_files(tmp_path / "whole")


def test_a_poison_unit_is_reported_in_process():
    results = list(InProcess().map(double_or_die, [1, 4]))
    assert results[0] == 2 and isinstance(results[1], FailedUnit)


def test_a_full_disk_is_an_error_and_leaves_nothing_unfinished(ws, folder, small_disk):
    ballast = small_disk / "ballast"
    with pytest.raises(OSError, match="No space"):
        ballast.write_bytes(bytes(3_000_000))
    report = fill(ws, small_disk / "lake", folder)
    assert report.new == 0 and "No space left" in report.problems[0].reason
    assert not hash_files(small_disk / "lake")
    ballast.unlink()
    assert fill(ws, small_disk / "lake", folder).new == 5
    fill(ws, small_disk / "other", folder)
    assert hash_files(small_disk / "lake") == hash_files(small_disk / "other")


def test_deleted_sessions_are_gone_and_stay_away(ws, folder, tmp_path):
    fill(ws, tmp_path / "lake", folder)
    ws.ingest(folder)
    gone = ws.sessions()[0]
    done = run_json("lake", "delete", str(tmp_path / "lake"), gone.key, "--yes", "--json")
    assert done["key"] == gone.key and done["files"] == {"sessions": 1, "calls": 1, "digests": 1}
    held = b"".join(file.read_bytes() for file in (tmp_path / "lake").rglob("*.parquet"))
    assert gone.key.encode() not in held
    report = fill(ws, tmp_path / "lake", folder)
    assert (report.forgotten, report.new) == (1, 0)
    assert ws.lake(str(tmp_path / "lake")).insights().sessions == 4


def test_personal_scopes_are_written_only_when_asked(ws, folder, tmp_path, monkeypatch):
    from warmstart.ingest import records

    monkeypatch.setattr(records.ScopeNamer, "name", lambda *_: "profile:work")
    report = fill(ws, tmp_path / "lake", folder)
    assert (report.personal, report.new) == (5, 0) and not hash_files(tmp_path / "lake")
    assert ws.lake(str(tmp_path / "lake")).ingest([folder], personal=True).new == 5


def test_other_file_systems(ws, folder):
    fill(ws, "memory://lake", folder)
    lake = ws.lake("memory://lake")
    assert lake.insights().sessions == 5
    assert lake.compact().after == 1


class Buckets(MemoryFileSystem):
    """Buckets as s3fs has them: folders make a missing bucket, and errors are the library's own."""

    protocol = "bucket"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    error: ClassVar[Exception | None] = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.removeprefix("bucket://").strip("/")

    def exists(self, path: str, **_more: Any) -> bool:
        if self.error:
            raise self.error
        return any(f"{name}/".startswith(f"{path}/") for name in self.store)

    def find(self, path: str, **_more: Any) -> list[str]:
        return [name for name in self.store if name.startswith(f"{path}/")]

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        self.store[path.split("/")[0]] = b""

    def pipe_file(self, path: str, value: bytes, **_more: Any) -> None:
        if path.split("/")[0] not in self.store:
            raise FileNotFoundError("The specified bucket does not exist")
        self.store[path] = value

    def cat_file(self, path: str, **_more: Any) -> bytes:
        return self.store[path]


def test_buckets(ws, folder, monkeypatch):
    fsspec.register_implementation("bucket", Buckets, clobber=True)
    report = fill(ws, "bucket://mistyped/lake", folder)
    assert "does not exist" in report.problems[0].reason and not Buckets.store, "no bucket is made"
    monkeypatch.setitem(Buckets.store, "team", b"")
    assert fill(ws, "bucket://team/lake", folder).new == 5
    assert ws.lake("bucket://team/lake").insights().sessions == 5
    monkeypatch.setattr(Buckets, "error", RuntimeError("Unable to locate credentials"))
    for words in (("insights", "--lake"), ("lake", "compact"), ("ingest", str(folder), "--lake")):
        assert "RuntimeError: Unable to locate credentials" in run(*words, "bucket://team/lake", code=1).stderr
    assert "names no folder or bucket" in run("insights", "--lake", "bucket://", code=2).stderr


def test_secrets_do_not_reach_the_lake(ws, tmp_path):
    secret = "ghp_" + "a1B2" * 9
    write_sessions(tmp_path / "t", 1, 0, (*WRONG[:1], {"command": f"curl -H 'Authorization: token {secret}'"}, "x"))
    fill(ws, tmp_path / "lake", tmp_path / "t")
    held = [pq.read_table(io.BytesIO(file.read_bytes())) for file in (tmp_path / "lake").rglob("*.parquet")]
    assert held and all(secret not in str(table.to_pylist()) for table in held)


def test_folder_names_are_one_level(tmp_path):
    for project in ("", "..", "/home/a/b", "x" * 1000, "github.com/a/b", "日本"):
        name = name_folder(project)
        assert name and "/" not in name and name not in (".", "..") and len(name) < 200


def test_commands(folder, tmp_path):
    lake = str(tmp_path / "lake")
    assert "5 new in the lake" in run("ingest", str(folder), "--lake", lake).stdout
    assert run_json("insights", "--lake", lake, "--json")["sessions"] == 5
    assert run_json("usage", "--lake", lake, "--json")["totals"]["sessions"] == 5
    assert run_json("learn", "--lake", lake, "--json")["considered"] == 5
    assert "1 file of sessions became 1" in run("lake", "compact", lake).stdout
    for wrong in (("--engine", "tcp://127.0.0.1:9"), ("--personal",)):
        assert f"{wrong[0]} belongs to --lake" in run("ingest", str(folder), *wrong, code=2).stderr


def test_the_columns_that_people_query_stay():
    """docs/howto/lake.md names these."""
    assert {"key", "project", "scope", "agent", "started", "spent", "errors", "verdict"} <= set(SESSIONS.names)
