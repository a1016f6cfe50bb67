"""What every registered reader must survive: cut, glued, changed, huge and hostile files, archives and names.

A reader may raise SourceError, and nothing else. What it reads can be stored. A format that is added to FORMATS is tested
here without a further line, with its fixtures; see docs/howto/add-a-format.md.
"""

from __future__ import annotations

import json
import random
import resource
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.samples import copy_sample, list_samples
from skips import FULL
from warmstart import config, formats
from warmstart.errors import SourceError
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result
from warmstart.model import Session, ToolCall, ToolResult
from warmstart.pipeline import Warmstart

SAMPLES = list_samples()
FILES = [(name, case) for name, case in SAMPLES if case is not None]
TEXTS = [(name, case) for name, case in FILES if case.suffix != ".eval"]
READERS = {known.NAME: known for known in formats.FORMATS}
HOSTILE = (
    *("../../../etc/passwd", "/etc/passwd", "C:\\Windows\\x", "a\x00b", "\ud800", "\u202eevil", "x" * 100_000, "CON"),
    *("#fragment?x=%00", "{{SECRET:x#1}}", "<script>alert(1)</script>", "' OR 1=1 --", "\r\n", " ", "\U0001f600"),
)
HUGE = 33 << 20  # bytes; more than the largest line or value that is read
PEAK = 260 << 20  # bytes that reading any file may take
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Assert that the work inside takes no more memory than any file may."""
    before = find_peak(fresh=True)
    yield
    taken = find_peak(fresh=False) - before
    assert taken < PEAK, f"{taken >> 20} MB"


def find_peak(*, fresh: bool) -> int:
    """Return the most bytes that this process has held since the last fresh start."""
    if CLEAR.exists():
        if fresh:
            CLEAR.write_text("5")
        line = next(line for line in STATUS.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def read(name: str, path: Path) -> tuple[list[Session], Source]:
    """Read a file with one reader; only SourceError may come of it."""
    source = Source(path)
    sessions: list[Session] = []
    try:
        sessions.extend(READERS[name].read(source, judge_result))
    except SourceError as error:
        source.report(error.reason)
    for session in sessions:
        assert session.id and session.format == name
        msgspec.json.encode(session).decode()  # neither lone surrogates nor values that no store takes
    assert all(problem.reason and isinstance(problem.path, str) for problem in source.problems)
    return sessions, source


def count(sessions: list[Session], kind: type = ToolResult) -> int:
    return sum(isinstance(step, kind) for session in sessions for step in session.steps)


def each(samples: list[tuple[str, Any]]) -> Callable[[Any], Any]:
    names = [f"{name}/{case.name}" if case else name for name, case in samples]
    return pytest.mark.parametrize(("name", "case"), samples, ids=names)


def test_every_format_has_a_sample() -> None:
    assert {name for name, _case in SAMPLES} == set(READERS)


@each(SAMPLES)
def test_every_reader_takes_its_sample_whole(name: str, case: Path | None, tmp_path: Path) -> None:
    path = copy_sample(name, case, tmp_path)
    sessions, _source = read(name, path)
    assert sessions or name == "opencode_storage"  # its messages lie in other files
    assert name == formats.detect(Source(path)).NAME


@each(SAMPLES)
def test_a_cut_file_keeps_what_stands_before_the_cut(name: str, case: Path | None, tmp_path: Path) -> None:
    path = copy_sample(name, case, tmp_path)
    data = path.read_bytes()
    whole = count(read(name, path)[0])
    before = 0
    for part in range(41):
        path.write_bytes(data[: len(data) * part // 40])
        sessions, _source = read(name, path)
        kept = count(sessions)
        assert kept <= whole
        if case is not None:  # a cut database may lose any of its pages
            assert kept >= before, f"{kept} results at {part}/40 of the file, {before} at less"
        before = kept
    assert before == whole


@each(SAMPLES)
@pytest.mark.parametrize("gap", [b"", b"\n", b"\n\n\x1e"])
def test_glued_files_keep_the_first(name: str, case: Path | None, gap: bytes, tmp_path: Path) -> None:
    path = copy_sample(name, case, tmp_path)
    whole = count(read(name, path)[0])
    data = path.read_bytes()
    path.write_bytes(data + gap + data)
    sessions, _source = read(name, path)
    assert count(sessions) >= whole
    path.write_bytes(data + gap + b'{"unfinished": [1, {"')
    sessions, _source = read(name, path)
    assert count(sessions) >= whole


JSON_VALUES = st.recursive(
    st.one_of(
        *(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from(HOSTILE)),
        *(st.text(max_size=8), st.just("1" * 400)),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(("type", "id", "text", "x")), inner, max_size=3)
    ),
    max_leaves=6,
)


def list_places(value: Any, limit: int = 400) -> list[tuple[Any, Any]]:
    """Return every container of a JSON value with each of its keys."""
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting and len(places) < limit:
        holder = waiting.pop(0)
        keys: Any = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
        for key in keys:
            places.append((holder, key))
            waiting.append(holder[key])
    return places


def load_records(case: Path) -> list[Any] | None:
    """Return the JSON values of a fixture, one a line or one in all; None where it is no JSON."""
    text = case.read_text()
    try:
        return [json.loads(text)]
    except ValueError:
        pass
    try:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        return None


JSON_FILES = [(name, case) for name, case in TEXTS if load_records(case) is not None]


@each(JSON_FILES)
@settings(max_examples=60 if FULL else 20)
@given(data=st.data())
def test_wrong_types_cost_no_more_than_their_record(name: str, case: Path, tmp_path_factory: Any, data: Any) -> None:
    records = load_records(case) or []
    path = tmp_path_factory.mktemp("changed") / f"sample{case.suffix}"
    for _ in range(data.draw(st.integers(1, 3))):
        holder, key = data.draw(st.sampled_from(list_places(records)))
        if (isinstance(holder, dict) and key in holder) or (isinstance(holder, list) and key < len(holder)):
            holder[key] = data.draw(JSON_VALUES)
    text = "\n".join(json.dumps(record) for record in records)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    read(name, path)
    ask_readers(path)


def ask_readers(path: Path) -> None:
    """Ask every reader about the file; none may raise."""
    try:
        head = Source(path).head
    except SourceError:
        return
    for known in formats.FORMATS:
        known.sniff(head)


@each(FILES)
@settings(max_examples=30 if FULL else 10)
@given(data=st.data())
def test_changed_bytes(name: str, case: Path, tmp_path_factory: Any, data: Any) -> None:
    content = bytearray(case.read_bytes())
    for _ in range(data.draw(st.integers(1, 12))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place : place + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=6))
        if not content:
            return
    path = tmp_path_factory.mktemp("bytes") / f"sample{case.suffix}"
    path.write_bytes(bytes(content))
    ask_readers(path)
    read(name, path)


@each(TEXTS)
def test_huge_and_deep_parts_are_skipped_in_bounded_memory(name: str, case: Path, tmp_path: Path) -> None:
    path = copy_sample(name, case, tmp_path)
    whole = count(read(name, path)[0])
    data = path.read_bytes().rstrip(b"\n")
    for junk in (b'{"text": "' + b"x" * HUGE + b'"}', b"\x00" * 1_000_000 + b"\n" + b'{"a":' * 50_000 + b"[" * 100_000):
        path.write_bytes(data + b"\n" + junk + b"\n")
        with bounded_memory():
            sessions, _source = read(name, path)
        assert count(sessions) >= whole


def rename_all(value: Any, hostile: Iterator[str]) -> Any:
    """Replace ids and names in a JSON value by hostile ones."""
    if isinstance(value, list):
        return [rename_all(item, hostile) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: next(hostile)
        if isinstance(item, str) and ("id" in key.lower() or "name" in key)
        else rename_all(item, hostile)
        for key, item in value.items()
    }


@each(JSON_FILES)
def test_hostile_names_are_stored_and_lead_nowhere(name: str, case: Path, tmp_path: Path) -> None:
    names = (HOSTILE[n % len(HOSTILE)] for n in range(1_000_000))
    records = [rename_all(record, names) for record in load_records(case) or []]
    folder = tmp_path / "in"
    folder.mkdir()
    path = folder / f"sample{case.suffix}"
    path.write_text("\n".join(json.dumps(record) for record in records))
    sessions, _source = read(name, path)
    for session in sessions:
        assert all(len(step.call_id) <= 200 for step in session.steps if isinstance(step, ToolCall | ToolResult))
    before = sorted(tmp_path.rglob("*"))
    with Warmstart(config.load(tmp_path / "home", environ={"HOME": str(tmp_path)})) as ws:
        ws.ingest(path)
    outside = [p for p in tmp_path.rglob("*") if tmp_path / "home" not in (p, *p.parents)]
    assert sorted(outside) == before


# ---- archives ----

ARCHIVES = [(name, case) for name, case in FILES if zipfile.is_zipfile(case)]


def rewrite(case: Path, path: Path, add: Callable[[zipfile.ZipFile], None], rename: Callable[[str], str] = str) -> None:
    """Copy an archive, with its members under other names and more of them."""
    with zipfile.ZipFile(case) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            new.writestr(rename(member), old.read(member))
        add(new)


@each(ARCHIVES)
@pytest.mark.parametrize("kind", ["spaces", "string", "deep"])
def test_a_zip_bomb_is_read_in_bounded_memory(name: str, case: Path, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    filling = {
        "spaces": b" " * 60_000_000,
        "string": b'{"messages": ["' + b"x" * 60_000_000,
        "deep": b"[" * 30_000_000,
    }[kind]
    with zipfile.ZipFile(case) as archive:
        member = next(n for n in archive.namelist() if "sample" in n).rpartition("/")[0] + "/bomb.json"
    rewrite(case, path, lambda archive: archive.writestr(member, filling))
    whole = count(read(name, case)[0])
    with bounded_memory():
        sessions, source = read(name, path)
    assert count(sessions) == whole
    assert any("bomb.json" in problem.reason and "times its size" in problem.reason for problem in source.problems)


@each(ARCHIVES)
def test_names_in_an_archive_lead_nowhere(name: str, case: Path, tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    path = inside / "hostile.zip"
    hostile = (
        "../../out.json",
        "/abs.json",
        "samples/../../up.json",
        "samples/a\nb\x1b[31m.json",
        "samples/" + "n" * 3_000 + ".json",
    )
    rewrite(case, path, lambda archive: [archive.writestr(n, b'{"messages": [') for n in hostile] and None)
    whole, before = count(read(name, case)[0]), sorted(tmp_path.rglob("*"))
    sessions, source = read(name, path)
    assert count(sessions) >= whole
    assert sorted(tmp_path.rglob("*")) == before
    assert all("\n" not in p.reason and "\x1b" not in p.reason and len(p.reason) < 1_000 for p in source.problems)


@each(ARCHIVES)
def test_an_archive_with_a_million_members_is_refused_or_read_in_bounded_memory(
    name: str, case: Path, tmp_path: Path
) -> None:
    path = tmp_path / "many.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    start = int.from_bytes(data[end + 16 : end + 20], "little")
    entry, tail = bytes(data[start:end]), data[end:]
    directory = entry * 400_000
    tail[8:12] = b"\xff\xff\xff\xff"
    tail[12:16] = len(directory).to_bytes(4, "little")
    path.write_bytes(bytes(data[:start]) + directory + bytes(tail))
    del directory
    with bounded_memory():
        _sessions, source = read(name, path)
    assert source.problems


def test_a_packed_document_that_breaks_keeps_its_beginning(tmp_path: Path) -> None:
    words = random.Random(7)
    messages = [{"role": "user", "content": f"{n} {words.randbytes(3_000).hex()}"} for n in range(400)]
    packed = bytearray(zstandard.ZstdCompressor().compress(json.dumps({"messages": messages}).encode()))
    packed[len(packed) * 3 // 4 :] = bytes(len(packed) // 4)
    path = tmp_path / "chat.json.zst"
    path.write_bytes(packed)
    (session,), source = read("openai_chat", path)
    assert len(session.steps) > 100
    assert any("reading stopped" in problem.reason for problem in source.problems)
