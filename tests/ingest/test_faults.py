"""Bad input: a problem names file and line, everything else is read, and nothing is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import warmstart
from forks import open_forker, run_forks
from places import SRC
from rights import let_in
from transcripts import claude_lines, write_jsonl
from warmstart.errors import SourceError
from warmstart.model import ToolCall, ToolResult

FULL = os.environ.get("WARMSTART_FULL") == "1"


def read(path: Path, data: bytes) -> warmstart.Inspection:
    path.write_bytes(data)
    return warmstart.inspect(path)


def lines(session: str = "s-1", calls: int = 2) -> list[bytes]:
    return [json.dumps(line).encode() for line in claude_lines(session, calls)]


def count(found: warmstart.Inspection) -> tuple[int, int]:
    steps = [step for scored in found.sessions for step in scored.session.steps]
    return sum(isinstance(s, ToolCall) for s in steps), sum(isinstance(s, ToolResult) for s in steps)


def test_truncated(tmp_path):
    whole = b"\n".join(lines())
    found = read(tmp_path / "a.jsonl", whole[:-40])
    assert count(found) == (2, 1)
    (problem,) = found.problems
    assert (problem.line, problem.reason) == (5, "the JSON is cut off")
    assert problem.path.endswith("a.jsonl")


def test_truncated_everywhere_never_raises(tmp_path):
    whole = b"\n".join(lines(calls=1))
    for end in range(1, len(whole), 37):
        read(tmp_path / "a.jsonl", whole[:end])


def test_glued(tmp_path):
    found = read(tmp_path / "a.jsonl", b"".join(lines()))
    assert count(found) == (2, 2)
    assert not found.problems


def test_invalid_utf8_and_lone_surrogates_and_nan(tmp_path):
    good = lines()
    good[2] = good[2].replace(b"fine 0", b"f\xff\xfene \\ud800 0")
    good[1] = good[1].replace(b'"echo 0"', b"NaN")
    found = read(tmp_path / "a.jsonl", b"\n".join(good))
    assert count(found) == (2, 2)
    with warmstart.open() as ws:
        assert ws.ingest(tmp_path / "a.jsonl").new == 1, "mended text can be stored"


def test_duplicate_keys(tmp_path):
    found = read(tmp_path / "a.jsonl", b"\n".join(lines()).replace(b'"name": "Bash"', b'"name": "X", "name": "Bash"'))
    assert found.sessions[0].score.counts.tools == {"Bash": 2}


@pytest.mark.parametrize("deep", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_nesting(tmp_path, deep):
    good = lines()
    bad = good[0].replace(b'"do it"', deep)
    found = read(tmp_path / "a.jsonl", b"\n".join([*good, bad, deep, *lines("s-2")]))
    assert len(found.sessions) == 2
    assert {p.line for p in found.problems} == {6, 7}
    document = read(tmp_path / "b.json", b'{"messages": [{"role": "user", "content": "x"}, ' + deep + b"]}")
    assert document.problems


@pytest.mark.slow
def test_a_200_mb_line(tmp_path):
    path = tmp_path / "a.jsonl"
    good = lines()
    with path.open("wb") as out:
        out.write(good[0] + b"\n")
        out.write(b'{"type": "user", "message": {"content": "')
        for _ in range(200):
            out.write(b"x" * (1 << 20))
        out.write(b'"}}\n')
        out.write(b"\n".join(good[1:]) + b"\n")
    code = (
        "import re, sys, warmstart; found = warmstart.inspect(sys.argv[1]);"
        "print(found.problems[0].line, found.problems[0].reason, sep='|');"
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024)"  # ru_maxrss counts the parent too
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": SRC}
    )
    problem, peak = done.stdout.strip().split("\n")
    assert problem.startswith("2|skipped a line of 200 MB; the limit is")
    assert int(peak) < 300


@pytest.mark.slow
def test_a_document_with_a_huge_element(tmp_path):
    path = tmp_path / "a.json"
    message = {"role": "user", "content": "hello"}
    with path.open("w") as out:
        out.write('{"messages": [' + json.dumps(message) + ', {"role": "user", "content": "')
        for _ in range(60):
            out.write("x" * (1 << 20))
        out.write('"}, ' + json.dumps({"role": "assistant", "content": "bye"}) + "]}")
    found = warmstart.inspect(path)
    assert [step.text for step in found.sessions[0].session.steps] == ["hello", "bye"]
    assert "skipped a value of 60 MB" in found.problems[0].reason


def test_empty_missing_folder_and_forbidden(tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert warmstart.inspect(tmp_path / "empty.jsonl").problems[0].reason == "the file is empty"
    with pytest.raises(SourceError, match="no such file"):
        warmstart.inspect(tmp_path / "missing.jsonl")
    assert warmstart.inspect(tmp_path).sessions == ()
    unknown = tmp_path / "package.json"
    unknown.write_text('{"name": "x", "version": "1"}')
    assert warmstart.inspect(unknown).problems[0].reason == "no reader knows this format"
    assert not warmstart.inspect(tmp_path).problems, "in a folder, other files are skipped"
    os.mkfifo(tmp_path / "pipe.jsonl")
    with pytest.raises(SourceError, match="not a regular file"):
        warmstart.inspect(tmp_path / "pipe.jsonl")
    assert warmstart.inspect(tmp_path).sessions == (), "a pipe in a folder does not block"


def test_no_permission(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", claude_lines())
    write_jsonl(tmp_path / "b.jsonl", claude_lines("s-2"))
    path.chmod(0)
    code = (
        "import os, sys, warmstart\nwarmstart.inspect(sys.argv[1] + '/b.jsonl')\n"  # load everything first
        "if os.getuid() == 0: os.setuid(65534)\n"
        "f = warmstart.inspect(sys.argv[1])\nprint(len(f.sessions), f.problems[0].reason)"
    )
    let_in(path)
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    assert done.stdout.strip() == "1 permission denied", done.stderr


def test_schema_drift_costs_a_field_not_the_line(tmp_path):
    changed = claude_lines()
    changed[1]["message"]["usage"] = "many"
    changed[2]["message"]["content"].insert(0, 7)
    changed[3]["isSidechain"] = {"no": 1}
    found = warmstart.inspect(write_jsonl(tmp_path / "a.jsonl", changed))
    assert count(found) == (2, 2)
    assert len(found.problems) == 3


def test_appending_updates_and_repeating_changes_nothing(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", claude_lines(calls=2))
    with warmstart.open() as ws:
        assert (first := ws.ingest(path)).new == 1
        assert (ws.ingest(path).sessions, ws.ingest(path).unchanged) == (0, 1)
        write_jsonl(path, claude_lines(calls=5))
        again = ws.ingest(path)
        assert (again.new, again.updated) == (0, 1)
        assert first.calls == 2
        assert ws.sessions()[0].calls == 5
        copy = write_jsonl(tmp_path / "copy" / "old.jsonl", claude_lines(calls=3))
        older = ws.ingest(copy)
        assert (older.new, older.updated) == (0, 0), "an older copy never overwrites a longer one"
        assert len(ws.sessions()) == 1


def test_problems_do_not_stop_the_rest(tmp_path):
    for n in range(5):
        write_jsonl(tmp_path / f"{n}.jsonl", claude_lines(f"s-{n}"))
    (tmp_path / "2.jsonl").write_bytes(b'{"type": "user", "sessionId": "s-2", "uuid": "x"\n\x00\xff')
    with warmstart.open() as ws:
        report = ws.ingest(tmp_path, tmp_path / "missing")
    assert report.new == 4
    assert {Path(p.path).name for p in report.problems} == {"2.jsonl", "missing"}


INGEST = """
import warmstart, warmstart.ingest.run

def ingest():
    with warmstart.open() as ws:
        ws.ingest(sys.argv[1])
"""


@pytest.mark.slow
def test_16_ingests_at_once(tmp_path):
    sessions = 40 if FULL else 15
    for n in range(sessions):
        write_jsonl(tmp_path / "in" / f"{n}.jsonl", claude_lines(f"s-{n}", calls=20))
    run_forks(INGEST + "join([fork(ingest) for _ in range(16)])", tmp_path / "in")
    with warmstart.open() as ws:
        assert len(ws.sessions(limit=None)) == sessions
        assert ws.store.health()["calls"] == 20 * sessions
        assert ws.store.health()["integrity"] == "ok"


@pytest.mark.slow
def test_kill_9_during_ingest(tmp_path):
    sessions = 400 if FULL else 200
    for n in range(sessions):
        write_jsonl(tmp_path / "in" / f"{n:03}.jsonl", claude_lines(f"s-{n}", calls=10))
    code = """
for line in sys.stdin:
    child = fork(ingest)
    time.sleep(float(line))
    kill([child])
    print(flush=True)
"""
    kept = 0
    with open_forker(INGEST + code, tmp_path / "in") as forker:
        for wait in (0.05, 0.1, 0.2, 0.3):
            forker.ask(str(wait))
            with warmstart.open() as ws:
                assert ws.store.health()["integrity"] == "ok"
                assert (now := len(ws.sessions(limit=None))) >= kept, "stored sessions stay"
                kept = now
                assert ws.store.health()["calls"] == 10 * now, "a session is stored whole or not at all"
    with warmstart.open() as ws:
        ws.ingest(tmp_path / "in")
        assert ws.store.health()["calls"] == 10 * sessions


@pytest.mark.slow
def test_a_full_disk_is_reported_and_loses_nothing(tmp_path):
    for n in range(150):
        write_jsonl(tmp_path / "in" / f"{n:03}.jsonl", claude_lines(f"s-{n}", calls=30, text="x" * 700))
    code = (
        "import resource, signal, sys, warmstart\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))\n"
        "try:\n    warmstart.open().ingest(sys.argv[1])\nexcept warmstart.StoreFull as error:\n    print('full:', error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "in")],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": SRC},
    )
    assert done.stdout.startswith("full:"), done.stderr
    with warmstart.open() as ws:
        assert ws.store.health()["integrity"] == "ok"
        ws.ingest(tmp_path / "in")
        assert len(ws.sessions(limit=None)) == 150
