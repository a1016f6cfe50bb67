"""Stages of a pipe: what they can do, their limits, and that nothing gets out, with bubblewrap and without."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warmstart.lab.sandbox.processes import (
    Ended,
    Sandbox,
    describe_walls,
    find_bwrap,
    make_environment,
    run_program,
    run_python,
    run_statements,
)
from warmstart.lab.sandbox.runner import FILE_BYTES, split_statements

needs_bwrap = pytest.mark.skipif(find_bwrap() is None, reason="bubblewrap does not work here")
BASH = shutil.which("bash", path="/usr/bin:/bin")


@pytest.fixture(params=[pytest.param(True, marks=needs_bwrap, id="bwrap"), pytest.param(False, id="fallback")])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> Sandbox:
    return make_sandbox(tmp_path, request.param)


@pytest.fixture
def walled(tmp_path: Path) -> Sandbox:
    """For tests of bubblewrap alone."""
    return make_sandbox(tmp_path, True)


def make_sandbox(tmp_path: Path, use_bwrap: bool) -> Sandbox:
    folder = Path(os.path.realpath(tmp_path)) / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return Sandbox(folder, use_bwrap)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that must not change."""
    place = Path(os.path.realpath(tmp_path)) / "outside"
    place.mkdir()
    (place / "canary.txt").write_text("CANARY-7261")
    before = [(path, path.stat().st_mode, path.stat().st_mtime_ns) for path in (place, place / "canary.txt")]
    yield place
    assert [path.name for path in place.iterdir()] == ["canary.txt"]
    assert (place / "canary.txt").read_text() == "CANARY-7261"
    assert [(path, path.stat().st_mode, path.stat().st_mtime_ns) for path, _, _ in before] == before


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A real server on loopback that nobody must reach."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


def run(sandbox: Sandbox, *argv: str, seconds: float = 20) -> Ended:
    program = shutil.which(argv[0], path="/usr/bin:/bin")
    assert program
    return sandbox.run([run_program([program, *argv[1:]])], seconds=seconds)


def run_code(sandbox: Sandbox, code: str, seconds: float = 20) -> Ended:
    return sandbox.run([run_python(code)], seconds=seconds)


def find_processes_in(folder: Path) -> list[str]:
    commands = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                commands.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return commands


def test_walls_are_described() -> None:
    walls = describe_walls()
    assert walls[0].startswith("fence")
    assert walls[-1].startswith("bubblewrap" if find_bwrap() else "MISSING here: bubblewrap")


@pytest.mark.parametrize("script", ["exit 1", "sleep 0; exit 126"])
def test_a_bwrap_that_may_not_work_here_is_not_used(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that forbids namespaces."""
    broken = tmp_path / "bwrap"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_bwrap.__wrapped__() is None
    broken.unlink()
    assert find_bwrap.__wrapped__() is None


def test_programs_run_with_pipes_and_redirects(sandbox: Sandbox) -> None:
    cat, sort = (shutil.which(name, path="/usr/bin:/bin") or "" for name in ("cat", "sort"))
    folder = sandbox.folder
    ended = sandbox.run(
        [run_program([cat, "a.txt", "nope"]), run_program([sort, "-r"], [(1, "out.txt", False)])], seconds=20
    )
    assert ended.exit_codes == (1, 0) and ended.output == ""
    assert ended.errors == "cat: nope: No such file or directory\n"
    assert (folder / "out.txt").read_text() == "two\none\n"
    sandbox.run([run_program([cat], [(0, "a.txt", False), (1, "out.txt", True)])], seconds=20)
    assert (folder / "out.txt").read_text() == "two\none\none\ntwo\n"
    sandbox.run([run_program([cat, "nope"], [(1, "both.txt", False), (2, 1, False)])], seconds=20)
    assert "No such file" in (folder / "both.txt").read_text()
    missing = sandbox.run([run_program([cat], [(0, "nope", False)])], seconds=20)
    assert (missing.exit_code, missing.errors) == (1, "nope: No such file or directory\n")
    gone = sandbox.run([run_program([cat, "a.txt"])], seconds=20, here=folder / "gone")
    assert (gone.exit_code, gone.errors) == (1, "cd: No such file or directory\n")


def test_nothing_of_the_users_environment_gets_in(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "CANARY-7261")
    output = run(sandbox, "env").output
    assert sorted(line.partition("=")[0] for line in output.splitlines()) == sorted(make_environment(sandbox.folder))
    assert "CANARY" not in run_code(sandbox, "import os; print(dict(os.environ))").output


@pytest.mark.slow
def test_time_ends_a_command_and_all_it_started(sandbox: Sandbox) -> None:
    start = time.monotonic()
    assert run(sandbox, "sleep", "60", seconds=0.3).exit_code == 124
    assert run_code(sandbox, "while True: pass", seconds=0.4).timed_out
    assert run_code(sandbox, "import os, time; os.close(1); os.close(2); time.sleep(60)", seconds=1).timed_out
    if BASH:
        assert run(sandbox, "bash", "-c", "sleep 61 & sleep 62", seconds=1).timed_out
    assert time.monotonic() - start < 50
    assert find_processes_in(sandbox.folder) == []


@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_processes_left_behind_end_with_the_command(sandbox: Sandbox) -> None:
    ended = run(sandbox, "bash", "-c", "sleep 63 >/dev/null 2>&1 & echo done")
    assert ended.output == "done\n"
    waited = time.monotonic() + 10
    while find_processes_in(sandbox.folder) and time.monotonic() < waited:
        time.sleep(0.01)  # killed, but not yet gone
    assert find_processes_in(sandbox.folder) == []


def test_a_flood_is_stopped(sandbox: Sandbox) -> None:
    ended = run(sandbox, "yes")
    assert ended.flooded and ended.exit_code == 137 and len(ended.output) == 1_000_000
    ended = run_code(sandbox, "import sys\nwhile True: print('x' * 999, file=sys.stderr)")
    assert ended.flooded and len(ended.errors) == 1_000_000


def test_files_cannot_grow_without_end(sandbox: Sandbox) -> None:
    code = "with open('big', 'wb') as f:\n    for _ in range(1000): f.write(b'x' * 1_000_000)"
    ended = run_code(sandbox, code)
    assert ended.exit_code == 1 and "File too large" in ended.errors
    assert (sandbox.folder / "big").stat().st_size <= FILE_BYTES
    assert run_code(sandbox, "open('hole', 'w').truncate(1 << 40)").exit_code == 1


def test_a_folder_cannot_be_filled_without_end(sandbox: Sandbox) -> None:
    fill = "b = b'x' * 15_000_000\nfor n in range(200):\n    open(f'f{n}', 'wb').write(b)\nprint('all written')"
    ended = run_code(sandbox, fill)
    assert ended.overfull and ended.exit_code == 137
    assert "all written" not in ended.output
    assert run_code(sandbox, "print('hello')").overfull
    for path in sandbox.folder.glob("f*"):
        path.unlink()
    assert not run_code(sandbox, "print('hello')").overfull


def test_memory_is_limited(sandbox: Sandbox) -> None:
    ended = run_code(sandbox, "x = bytearray(3_000_000_000)")
    assert ended.errors.endswith("MemoryError\n") if sys.platform == "linux" else ended.exit_code in (0, 1)


@needs_bwrap
def test_bwrap_keeps_programs_in(walled: Sandbox, outside: Path) -> None:
    """bubblewrap holds even if the fence lets something through."""
    canary, target = str(outside / "canary.txt"), str(outside / "x")
    for argv in (
        ["cat", canary], ["cat", "/etc/passwd"], ["cat", "../outside/canary.txt"], ["ls", str(outside)], ["cp", "a.txt", target],
        ["touch", "/usr/x"], ["touch", "/x"], ["touch", "../x"], ["mkdir", target], ["mv", "a.txt", target], ["rm", canary],
        ["tee", "/etc/x"], ["truncate", "-s", "0", canary], ["find", str(outside), "-delete"], ["cat", "/proc/self/environ"],
        ["ls", str(Path.home())], ["mount", "-t", "tmpfs", "x", "."],
    ):  # fmt: skip
        ended = run(walled, *argv)
        assert ended.exit_code != 0, argv
        assert "CANARY" not in ended.output + ended.errors
    assert sorted(path.name for path in walled.folder.iterdir()) == ["a.txt"]


@needs_bwrap
@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_bwrap_keeps_programs_from_the_network_and_from_other_processes(
    walled: Sandbox, listener: socket.socket
) -> None:
    port = listener.getsockname()[1]
    ended = run(walled, "bash", "-c", f"echo hello > /dev/tcp/127.0.0.1/{port}")
    assert ended.exit_code != 0 and "refused" in ended.errors
    assert run(walled, "bash", "-c", f"kill -9 {os.getpid()}").exit_code != 0  # and this test goes on


@needs_bwrap
def test_what_gets_around_the_path_check_meets_bwrap(walled: Sandbox, outside: Path) -> None:
    """SQLite's ATTACH causes no audit event."""
    code = f"""
import sqlite3
try:
    sqlite3.connect('mine.db').execute("ATTACH '{outside}/x.db' AS x").execute('create table x.t(a)')
except sqlite3.Error as error:
    print(error)
"""
    assert "unable to open" in run_code(walled, code).output


HOSTILE_CODE = [
    "open('{outside}/x', 'w')", "open('{outside}/canary.txt').read()", "open('{outside}/canary.txt', 'a')", "open('/etc/passwd')",
    "open('../outside/canary.txt')", "os.open('{outside}/x', os.O_CREAT | os.O_WRONLY)", "os.listdir('{outside}')",
    "os.scandir('/')", "list(pathlib.Path('{outside}').glob('*'))[0]", "os.remove('{outside}/canary.txt')", "os.mkdir('{outside}/d')",
    "os.rename('a.txt', '{outside}/x')", "os.rename('{outside}/canary.txt', 'x')", "os.chmod('{outside}/canary.txt', 0)",
    "os.utime('{outside}/canary.txt', (0, 0))", "os.truncate('{outside}/canary.txt', 0)", "os.symlink('{outside}', 'link')",
    "os.link('{outside}/canary.txt', 'hard')", "shutil.copy('a.txt', '{outside}/x')", "shutil.copy('{outside}/canary.txt', 'x')",
    "shutil.rmtree('{outside}')", "shutil.move('a.txt', '{outside}/x')", "os.chdir('{outside}')", "os.system('touch {outside}/x')",
    "os.popen('ls').read()", "subprocess.run(['touch', '{outside}/x'])", "subprocess.check_output('ls', shell=True)", "os.fork()",
    "os.execv('/bin/ls', ['ls'])", "os.posix_spawn('/bin/ls', ['ls'], {{}})", "os.spawnv(os.P_WAIT, '/bin/ls', ['ls'])",
    "__import__('pty').spawn('ls')", "os.kill(os.getppid(), 9)", "os.kill(1, 0)", "__import__('ctypes').CDLL(None)",
    "socket.create_connection(('127.0.0.1', {port}), 1)", "socket.socket().connect(('127.0.0.1', {port}))",
    "urllib.request.urlopen('http://127.0.0.1:{port}')", "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "socket.socket(socket.AF_UNIX).connect('/run/x')", "socket.socket().bind(('127.0.0.1', 0))",
    "sqlite3.connect('{outside}/x.db').execute('create table t(a)')", "sqlite3.connect('file:{outside}/x.db', uri=True)",
    "pathlib.Path('{outside}/x').touch()", "pathlib.Path('{outside}/canary.txt').unlink()",
    "multiprocessing.Process(target=print).start()", "glob.glob('{outside}/*')[0]",
]  # fmt: skip
_PROBE = """
import glob, json, multiprocessing, os, pathlib, shutil, socket, sqlite3, subprocess, urllib.request
outcomes = []
for source in {sources!r}:
    try:
        outcomes.append(['done', repr(eval(source))])
    except BaseException as error:
        outcomes.append([type(error).__name__, str(error)])
print(json.dumps(outcomes))
"""


def test_code_keeps_to_the_folder(sandbox: Sandbox, outside: Path, listener: socket.socket) -> None:
    sources = [code.format(outside=outside, port=listener.getsockname()[1]) for code in HOSTILE_CODE]
    ended = run_code(sandbox, _PROBE.format(sources=sources), seconds=60)
    assert ended.output, ended.errors
    outcomes = json.loads(ended.output)
    assert len(outcomes) == len(sources)
    for source, (kind, message) in zip(sources, outcomes, strict=True):
        assert kind in ("PermissionError", "URLError", "FileNotFoundError", "IndexError"), (source, kind, message)
        assert "CANARY" not in message
    assert sorted(path.name for path in sandbox.folder.iterdir()) == ["a.txt"]


def test_ordinary_code_works(sandbox: Sandbox) -> None:
    code = """
import asyncio, collections, csv, datetime, json, math, os, pathlib, random, re, shutil, sqlite3, statistics, tempfile, threading, zoneinfo
shutil.copy2('a.txt', 'b.txt'); shutil.copytree('.', 'tree/copy', ignore=lambda *_: ['tree']); shutil.rmtree('tree')
with tempfile.TemporaryDirectory() as place: pathlib.Path(place, 'x').write_text('é')
sqlite3.connect('new.db').execute('create table t(a)')
thread = threading.Thread(target=lambda: print('thread')); thread.start(); thread.join()
async def f(): return 'async'
os.chmod('b.txt', 0o700); os.utime('b.txt', (7, 7))
print(asyncio.run(f()), pathlib.Path('.').resolve().name, sorted(p.name for p in pathlib.Path().iterdir()), __name__)
open('/dev/null', 'w').write('x')
"""
    ended = run_code(sandbox, code)
    assert (ended.errors, ended.exit_code) == ("", 0)
    assert ended.output == "thread\nasync folder ['a.txt', 'b.txt', 'new.db'] __main__\n"


def test_tracebacks_show_the_code_only(sandbox: Sandbox) -> None:
    ended = run_code(sandbox, "import json\n\ndef load():\n    json.loads('{')\n\nload()\n")
    assert ended.exit_code == 1
    lines = ended.errors.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1].startswith("json.decoder.JSONDecodeError: ")
    assert [line for line in lines if "File" in line] == [
        '  File "<code>", line 6, in <module>',
        '  File "<code>", line 4, in load',
    ]
    assert run_code(sandbox, "import sys; sys.exit(3)").exit_codes == (3,)
    assert "SyntaxError" in run_code(sandbox, "x = (").errors
    assert "null bytes" in run_code(sandbox, "x = '\0'").errors


def test_sql(sandbox: Sandbox) -> None:
    (sandbox.folder / "d.db").touch()

    def ask(sql: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(
            sandbox.run([run_statements(sandbox.folder / "d.db", sql, 2)], seconds=20).output
        )
        return answer

    assert ask("create table t(a, b); insert into t values(1, 'x;y'), (2, x'00ff'), (9e999, null)") == {
        "rows_changed": 3
    }
    assert ask("select * from t") == {
        "columns": ["a", "b"], "rows": [[1, "x;y"], [2, "x'00ff'"]], "rows_cut": "only the first 2 rows are shown",
    }  # fmt: skip
    assert ask("select a from t where b is null -- the end;") == {"columns": ["a"], "rows": [["inf"]]}
    assert "error" in ask("selec") and "error" in ask(" ; ") and "error" in ask("select * from nope")


def test_statements_are_split_where_they_end() -> None:
    assert split_statements("a; b") == ["a;", " b;"]
    assert split_statements("select ';'; -- x;\n") == ["select ';';", " -- x;\n;"]
    trigger = "create trigger r after insert on t begin select 1; select 2; end;"
    assert split_statements(trigger) == [trigger]
