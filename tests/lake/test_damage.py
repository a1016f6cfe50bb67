"""A damaged or missing file of a lake is named and left out, nothing is built on it, and the documented repair restores it."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from urllib.parse import quote

import pytest

import warmstart
from command_line import run, run_json
from lake.making import fill, hash_files, write_sessions
from warmstart.lake import units
from warmstart.lake.files import Lake, LakeFile
from warmstart.usage.report import UsageQuery

pq = pytest.importorskip("pyarrow.parquet")
TABLES = ("sessions", "calls", "digests")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five transcripts, and their lake with two files of each table in one project's month."""
    place = tmp_path_factory.mktemp("filled")
    with pytest.MonkeyPatch.context() as patch, warmstart.open(place / "home") as ws:
        patch.setattr(units, "UNIT_FILES", 3)
        fill(ws, place / "lake", write_sessions(place / "transcripts", 5))
    return place


@pytest.fixture
def lake(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled / "lake", tmp_path / "lake"))


@pytest.fixture
def ws(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(units, "UNIT_FILES", 3)
    with warmstart.open() as opened:
        yield opened


def list_files(lake: Path, table: str) -> list[Path]:
    return sorted((lake / table).rglob("*.parquet"))


def damage(lake: Path, table: str) -> Path:
    file = list_files(lake, table)[0]
    body = bytearray(file.read_bytes())
    body[40:44] = b"oops"
    file.write_bytes(body)
    return file


def read_keys(file: Path, column: str = "key") -> list[str]:
    return pq.read_table(io.BytesIO(file.read_bytes()))[column].to_pylist()


def count_rows(lake: Path, table: str) -> int:
    return sum(pq.ParquetFile(file).metadata.num_rows for file in list_files(lake, table))


@pytest.mark.parametrize("table", TABLES)
def test_the_documented_repair_restores_every_file(ws, filled, lake, table):
    damage(lake, table).unlink()
    fill(ws, lake, filled / "transcripts")
    assert hash_files(lake) == hash_files(filled / "lake")


@pytest.mark.parametrize("table", ("sessions", "calls"))
def test_compaction_leaves_a_month_with_a_damaged_file_alone(lake, table):
    file = damage(lake, table)
    before = hash_files(lake)
    done = run("lake", "compact", str(lake), code=1)
    assert hash_files(lake) == before
    assert "left alone, because files cannot be read: 1 month of a project" in done.stdout
    assert done.stderr.count(file.name) == 1


def test_a_damaged_file_of_sessions_is_named_by_every_reader(filled, lake):
    file = damage(lake, "sessions")
    for command in ("insights", "usage", "learn"):
        done = run(command, "--lake", str(lake))
        assert done.stderr.count(file.name) == 1
        assert "1 file of the lake that could not be read" in " ".join(done.stdout.split())
    for command in ("insights", "usage"):
        done = run(command, "--lake", str(lake), "--json")
        assert json.loads(done.stdout)["unread_files"] == 1
        assert json.loads(done.stderr)["problem"]["path"] == str(file)
    assert run("ingest", str(filled / "transcripts"), "--lake", str(lake)).stderr.count(file.name) == 0
    assert hash_files(lake) == hash_files(filled / "lake"), "the same bytes replace the damaged file"


def test_sessions_without_calls_are_not_learned_from(ws, lake):
    """Insights are made of digests, which are whole; without those, the sessions do not count."""
    file = damage(lake, "calls")
    library = ws.lake(str(lake))
    learned = ws.learn_from(library)
    assert (learned.unread_files, [one.path for one in library.lake.problems]) == (1, [str(file)])
    assert 0 < learned.considered < 5
    assert (library.insights().sessions, library.insights().unread_files) == (5, 0)
    for digests in list_files(lake, "digests"):
        digests.unlink()
    found = library.insights()
    assert found.unread_files == 1 and found.sessions == learned.considered


def test_damaged_digests_are_made_again(ws, filled, lake):
    file = damage(lake, "digests")
    expected = ws.lake(str(filled / "lake")).insights(top=50)
    done = run("insights", "--lake", str(lake))
    assert done.stderr.count(file.name) == 1 and "made again" in done.stderr
    assert ws.lake(str(lake)).insights(top=50) == expected
    assert hash_files(lake) == hash_files(filled / "lake")


@pytest.mark.parametrize("damaged_first", (True, False))
def test_other_versions_count_in_place_of_unreadable_ones(ws, filled, lake, tmp_path, monkeypatch, damaged_first: bool):
    """A repair from other transcripts writes other files, beside those whose calls are missing or damaged.

    Of two equal versions the one in the first file counts, whether or not its calls turn out to be damaged.
    """
    monkeypatch.setattr(units, "UNIT_FILES", 99)
    fill(ws, tmp_path / "other", write_sessions(tmp_path / "t", 6))
    file = damage(lake, "calls")
    list_in_order = Lake.list_files

    def list_damaged_at_one_end(self: Lake, table: str) -> list[LakeFile]:
        listed = list_in_order(self, table)
        return sorted(listed, key=lambda one: file.name.startswith(one.name.partition("-")[0]), reverse=damaged_first)

    monkeypatch.setattr(Lake, "list_files", list_damaged_at_one_end)
    shutil.copytree(tmp_path / "other", lake, dirs_exist_ok=True)
    whole = ws.lake(str(tmp_path / "other"))
    library = ws.lake(str(lake))
    assert ws.learn_from(library).considered == 6
    assert library.compact().left_alone == 1
    file.unlink()
    report = library.compact()
    assert (report.after, report.left_alone, report.problems) == (1, 0, [])
    assert library.insights(top=50) == whole.insights(top=50)
    assert library.usage(UsageQuery()) == whole.usage(UsageQuery())
    assert [count_rows(lake, table) for table in TABLES] == [count_rows(tmp_path / "other", table) for table in TABLES]


def test_a_session_is_deleted_by_its_short_id(ws, filled, lake):
    ws.ingest(filled / "transcripts")
    gone = ws.sessions()[0]
    before = [count_rows(lake, table) for table in TABLES]
    assert "no session 'nosuch'" in run("lake", "delete", str(lake), "nosuch", "--yes", code=1).stderr
    assert "matches several" in run("lake", "delete", str(lake), gone.id[:1], "--yes", code=1).stderr
    assert not (lake / "deleted").exists()
    done = run("lake", "delete", str(lake), ws.store.shorten_id(gone), "--yes")
    assert f"deleted {gone.key}: 1 row of sessions (1 file), {gone.calls} rows of calls (1 file)" in done.stdout
    assert "1 row of digests (1 file)" in done.stdout
    ws.lake(str(lake)).insights()
    assert [count_rows(lake, table) for table in TABLES] == [before[0] - 1, before[1] - gone.calls, before[2] - 1]
    assert "deleted before" in run("lake", "delete", str(lake), gone.key, "--yes").stdout


def test_deletion_says_that_a_damaged_file_may_hold_the_session(lake):
    file = damage(lake, "calls")
    sessions = next(one for one in list_files(lake, "sessions") if file.name.startswith(one.stem))
    key = read_keys(sessions)[0]
    done = run("lake", "delete", str(lake), key, "--yes", code=1)
    assert "1 file cannot be read and may still hold it" in done.stdout and file.name in done.stderr
    file.unlink()
    assert run_json("lake", "delete", str(lake), key, "--yes")["rows"]["sessions"] == 1
    for table, column in (("sessions", "key"), ("calls", "session_key"), ("digests", "key")):
        assert all(key not in read_keys(one, column) for one in list_files(lake, table))


def test_digests_of_an_older_version_are_read_and_compaction_moves_them(ws, filled, lake):
    for folder in list((lake / "digests").iterdir()):
        folder.rename(folder.with_name("project=" + quote(folder.name.removeprefix("project="), safe="")))
    before = hash_files(lake)
    library = ws.lake(str(lake))
    assert library.insights().sessions == 5 and hash_files(lake) == before
    library.compact()
    projects = {table: {file.parts[-3] for file in list_files(lake, table)} for table in TABLES}
    assert projects["digests"] == projects["sessions"] == projects["calls"]


def test_a_lake_that_cannot_be_written_is_one_message(filled, tmp_path, monkeypatch):
    from warmstart.lake.files import open_lake

    monkeypatch.setattr(units, "UNIT_FILES", 1)
    files = type(open_lake(str(tmp_path)).files)
    write, written = files.pipe_file, []

    def fail(self, path, body, **more):
        if len(written) >= 4:
            raise OSError(28, "No space left on device")
        written.append(path)
        return write(self, path, body, **more)

    monkeypatch.setattr(files, "pipe_file", fail)
    lake = str(tmp_path / "lake")
    done = run("ingest", str(filled / "transcripts"), "--lake", lake, code=1)
    assert done.stderr.splitlines() == [
        f"{lake}: No space left on device; not all sessions of 3 transcripts were written; "
        "mend that, and run the command again"
    ]
    asked = run("insights", "--lake", lake)
    assert "no session could be counted" in asked.stdout and "No space left" in asked.stderr
    monkeypatch.setattr(files, "pipe_file", write)
    assert run_json("insights", "--lake", lake)["sessions"] == 2


@pytest.mark.parametrize(
    "words", (("insights", "--lake"), ("usage", "--lake"), ("learn", "--lake"), ("lake", "compact"))
)
def test_readers_refuse_what_is_no_lake(tmp_path, words):
    (tmp_path / "file").touch()
    assert "there is no such lake" in run(*words, str(tmp_path / "missing"), code=1).stderr
    assert "this is no lake" in run(*words, str(tmp_path / "file"), code=1).stderr
