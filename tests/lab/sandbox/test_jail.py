"""The walls themselves, one by one: what stands behind the fence when the fence lets something through."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from warmstart.lab.sandbox import jail_walls
from warmstart.lab.sandbox.jail import (
    Ended,
    describe_walls,
    make_environment,
    run_jailed,
    run_program,
    run_python,
    run_statements,
)
from warmstart.lab.sandbox.jail_python import split_statements
from warmstart.lab.sandbox.jail_walls import build_filter

LAB = Path(jail_walls.__file__).parent
WALLS = describe_walls()
needs_landlock = pytest.mark.skipif(not any(wall.startswith("Landlock") for wall in WALLS), reason="no Landlock here")
needs_seccomp = pytest.mark.skipif(not any(wall.startswith("seccomp") for wall in WALLS), reason="no seccomp here")
BASH, PERL = shutil.which("bash", path="/usr/bin:/bin"), shutil.which("perl", path="/usr/bin:/bin")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = Path(os.path.realpath(tmp_path)) / "folder"
    place.mkdir()
    (place / "a.txt").write_text("one\ntwo\n")
    return place


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder that must be afterwards as it was before."""
    place = Path(os.path.realpath(tmp_path)) / "outside"
    place.mkdir()
    (place / "canary.txt").write_text("CANARY-7261")
    before = [(path, path.stat().st_mode, path.stat().st_mtime_ns) for path in (place, place / "canary.txt")]
    yield place
    assert [path.name for path in place.iterdir()] == ["canary.txt"]
    assert (place / "canary.txt").read_text() == "CANARY-7261"
    assert [(path, path.stat().st_mode, path.stat().st_mtime_ns) for path, _, _ in before] == before


def run(folder: Path, *argv: str, seconds: float = 5) -> Ended:
    program = shutil.which(argv[0], path="/usr/bin:/bin")
    assert program
    return run_jailed([run_program([program, *argv[1:]])], folder, seconds=seconds)


def test_walls_are_described() -> None:
    assert WALLS[0].startswith("fence") and any(wall.startswith("limits: ") for wall in WALLS)
    if sys.platform == "linux":
        assert "no new privileges" in WALLS
    for name in ("Landlock", "seccomp"):
        assert any(wall.startswith((name, f"MISSING here: {name}")) for wall in WALLS)


def test_programs_run_with_pipes_and_redirects(folder: Path) -> None:
    cat, sort = (shutil.which(name, path="/usr/bin:/bin") or "" for name in ("cat", "sort"))
    ended = run_jailed(
        [run_program([cat, "a.txt", "nope"]), run_program([sort, "-r"], [(1, "out.txt", False)])], folder, seconds=5
    )
    assert ended.exit_codes == (1, 0) and ended.output == ""
    assert ended.errors == "cat: nope: No such file or directory\n"
    assert (folder / "out.txt").read_text() == "two\none\n"
    run_jailed([run_program([cat], [(0, "a.txt", False), (1, "out.txt", True)])], folder, seconds=5)
    assert (folder / "out.txt").read_text() == "two\none\none\ntwo\n"
    both = run_jailed([run_program([cat, "nope"], [(1, "both.txt", False), (2, 1, False)])], folder, seconds=5)
    assert both.errors == "" and "No such file" in (folder / "both.txt").read_text()


def test_nothing_of_the_users_environment_gets_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "CANARY-7261")
    said = run(folder, "env").output
    assert sorted(line.partition("=")[0] for line in said.splitlines()) == sorted(make_environment(folder))
    assert "CANARY" not in run_jailed([run_python("import os; print(dict(os.environ))")], folder, seconds=5).output


def test_time_ends_a_command_and_all_it_started(folder: Path) -> None:
    start = time.monotonic()
    assert run(folder, "sleep", "60", seconds=0.3).exit_code == 124
    assert run_jailed([run_python("while True: pass")], folder, seconds=0.4).timed_out
    assert time.monotonic() - start < 50
    assert find_processes_in(folder) == []


def find_processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has ended, or is not ours
    return found


def test_a_flood_is_stopped(folder: Path) -> None:
    ended = run(folder, "yes")
    assert ended.flooded and ended.exit_code == 137 and len(ended.output) == 1_000_000
    ended = run_jailed([run_python("import sys\nwhile True: print('x' * 999, file=sys.stderr)")], folder, seconds=5)
    assert ended.flooded and len(ended.errors) == 1_000_000


def test_files_cannot_grow_without_end(folder: Path) -> None:
    code = "with open('big', 'wb') as f:\n    for _ in range(1000): f.write(b'x' * 1_000_000)"
    ended = run_jailed([run_python(code)], folder, seconds=10)
    assert ended.exit_code == 1 and "File too large" in ended.errors
    assert (folder / "big").stat().st_size <= jail_walls.FILE_BYTES
    assert run_jailed([run_python("open('hole', 'w').truncate(1 << 40)")], folder, seconds=5).exit_code == 1


def test_memory_is_limited(folder: Path) -> None:
    ended = run_jailed([run_python("x = bytearray(3_000_000_000)")], folder, seconds=5)
    assert ended.errors.endswith("MemoryError\n") if sys.platform == "linux" else ended.exit_code in (0, 1)


@needs_landlock
def test_landlock_keeps_programs_in(folder: Path, outside: Path) -> None:
    canary, target = str(outside / "canary.txt"), str(outside / "x")
    for argv in (
        ["cat", canary], ["cat", "/etc/passwd"], ["cat", "../outside/canary.txt"], ["ls", str(outside)], ["cp", "a.txt", target],
        ["touch", target], ["mkdir", target], ["mv", "a.txt", target], ["mv", canary, "x"], ["rm", canary], ["ln", "-s", "/etc", "e"],
        ["ln", canary, "hard"], ["tee", canary], ["truncate", "-s", "0", canary], ["find", str(outside), "-delete"],
        ["cp", canary, "copy"], ["mkfifo", "fifo"], ["cat", "/proc/self/environ"], ["sed", "-i", "s/C/D/", canary],
    ):  # fmt: skip
        ended = run(folder, *argv)
        assert ended.exit_code != 0, argv
        assert "CANARY" not in ended.output + ended.errors
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt"]
    redirected = run_jailed([run_program(["/bin/echo", "x"], [(1, target, False)])], folder, seconds=5)
    assert redirected.exit_code == 1 and "Permission denied" in redirected.errors


@needs_landlock
def test_a_program_in_the_folder_cannot_be_started(folder: Path) -> None:
    shutil.copy("/bin/echo", folder / "mine")
    (folder / "mine").chmod(0o755)
    ended = run_jailed([run_program([str(folder / "mine"), "x"])], folder, seconds=5)
    assert ended.exit_code == 126 and "Permission denied" in ended.errors


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A real server on loopback that must see nobody."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        yield server
        with pytest.raises(BlockingIOError):
            server.accept()


@needs_seccomp
@pytest.mark.skipif(BASH is None, reason="no bash here")
def test_seccomp_keeps_programs_from_the_network_and_from_forking(folder: Path, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    ended = run(folder, "bash", "-c", f"echo hello > /dev/tcp/127.0.0.1/{port}")
    assert ended.exit_code != 0 and "Operation not permitted" in ended.errors
    ended = run(folder, "bash", "-c", "ls & wait", seconds=1)
    assert "a.txt" not in ended.output
    ended = run(folder, "bash", "-c", f"kill -9 {os.getpid()}")  # we are still here
    assert ended.exit_code != 0


@needs_seccomp
@pytest.mark.skipif(PERL is None, reason="no perl here")
def test_seccomp_refuses_calls_by_number(folder: Path) -> None:
    numbers = jail_walls._ARCHITECTURES[os.uname().machine][1]
    for name in (
        "socket",
        "ptrace",
        "unshare",
        "mount",
        "keyctl",
        "bpf",
        "perf_event_open",
        "setsid",
        "io_uring_setup",
    ):
        ended = run(folder, "perl", "-e", f"my $r = syscall({numbers[name]}, 0, 0, 0, 0); print $r, ' ', $!+0")
        assert ended.output == "-1 1", name


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
    "__import__('_ctypes')", "socket.create_connection(('127.0.0.1', {port}), 1)", "socket.socket().connect(('127.0.0.1', {port}))",
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


def _fill(outside: Path, listener: socket.socket) -> list[str]:
    return [code.format(outside=outside, port=listener.getsockname()[1]) for code in HOSTILE_CODE]


def test_code_behind_all_walls(folder: Path, outside: Path, listener: socket.socket) -> None:
    sources = _fill(outside, listener)
    ended = run_jailed([run_python(_PROBE.format(sources=sources))], folder, seconds=20)
    _expect_refusals(sources, ended.output, ended.errors)
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt"]


def test_the_audit_hook_alone_holds(folder: Path, outside: Path, listener: socket.socket) -> None:
    """As on macOS: without Landlock, seccomp and limits."""
    sources = _fill(outside, listener)
    start = f"import sys; sys.path.insert(0, {str(LAB)!r}); from jail_python import run_code\nrun_code(sys.argv[1], {str(folder)!r})"
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-S", "-B", "-c", start, _PROBE.format(sources=sources)],
        cwd=folder, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    _expect_refusals(sources, done.stdout, done.stderr)
    assert sorted(path.name for path in folder.iterdir()) == ["a.txt"]


def _expect_refusals(sources: list[str], output: str, errors: str) -> None:
    assert output, errors
    outcomes = json.loads(output)
    assert len(outcomes) == len(sources)
    for source, (kind, said) in zip(sources, outcomes, strict=True):
        assert kind in ("PermissionError", "URLError", "FileNotFoundError", "IndexError"), (source, kind, said)
        assert "CANARY" not in said


@needs_landlock
@needs_seccomp
def test_what_gets_around_the_hook_meets_the_walls(folder: Path, outside: Path, listener: socket.socket) -> None:
    """`_posixsubprocess` and SQLite's ATTACH never ask the hook."""
    code = f"""
import sqlite3, _posixsubprocess, os
try:
    sqlite3.connect('mine.db').execute("ATTACH '{outside}/x.db' AS x").execute('create table x.t(a)')
except sqlite3.Error as error:
    print('sqlite', error)
try:
    import subprocess
    r, w = os.pipe()
    args = [[b'/bin/touch', b'{outside}/x'], [b'/bin/touch'], True, (w,), None, None, -1, -1, -1, -1, -1, -1, r, w, True, False]
    print('fork', _posixsubprocess.fork_exec(*args, -1, None, None, None, -1, None, False))
except (OSError, TypeError) as error:
    print('fork', type(error).__name__)
"""
    ended = run_jailed([run_python(code)], folder, seconds=5)
    assert "sqlite unable to open" in ended.output, ended
    assert "fork PermissionError" in ended.output or "fork TypeError" in ended.output, ended


def test_ordinary_code_works(folder: Path) -> None:
    code = """
import asyncio, collections, csv, datetime, json, math, pathlib, random, re, shutil, sqlite3, statistics, tempfile, threading, zoneinfo
shutil.copy2('a.txt', 'b.txt'); shutil.copytree('.', 'tree/copy', ignore=lambda *_: ['tree']); shutil.rmtree('tree')
with tempfile.TemporaryDirectory() as place: pathlib.Path(place, 'x').write_text('é')
sqlite3.connect('new.db').execute('create table t(a)')
thread = threading.Thread(target=lambda: print('thread')); thread.start(); thread.join()
async def f(): return 'async'
print(asyncio.run(f()), pathlib.Path('.').resolve().name, sorted(p.name for p in pathlib.Path().iterdir()), __name__)
open('/dev/null', 'w').write('x')
"""
    ended = run_jailed([run_python(code)], folder, seconds=10)
    assert (ended.errors, ended.exit_code) == ("", 0)
    assert ended.output == "thread\nasync folder ['a.txt', 'b.txt', 'new.db'] __main__\n"


def test_tracebacks_show_the_code_only(folder: Path) -> None:
    ended = run_jailed([run_python("import json\n\ndef load():\n    json.loads('{')\n\nload()\n")], folder, seconds=5)
    assert ended.exit_code == 1
    lines = ended.errors.splitlines()
    assert lines[0] == "Traceback (most recent call last):" and lines[-1].startswith("json.decoder.JSONDecodeError: ")
    assert [line for line in lines if "File" in line] == [
        '  File "<code>", line 6, in <module>',
        '  File "<code>", line 4, in load',
    ]
    assert run_jailed([run_python("import sys; sys.exit(3)")], folder, seconds=5).exit_codes == (3,)
    assert "SyntaxError" in run_jailed([run_python("x = (")], folder, seconds=5).errors
    assert "null bytes" in run_jailed([run_python("x = '\0'")], folder, seconds=5).errors


def test_sql(folder: Path) -> None:
    (folder / "d.db").touch()

    def ask(sql: str) -> dict[str, object]:
        answer: dict[str, object] = json.loads(
            run_jailed([run_statements(folder / "d.db", sql)], folder, seconds=5, most_rows=2).output
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


_MISSING = """
import sys; sys.path.insert(0, sys.argv[1])
import jail_walls
class OldKernel:
    def syscall(self, *_): return -1
    def prctl(self, *_): return -1
    def capset(self, *_): return -1
print(jail_walls.raise_walls(sys.argv[2], 5, runs_code=True, libc=OldKernel()))
"""


def test_a_system_without_walls_goes_on_with_what_it_has(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-S", "-c", _MISSING, str(LAB), str(folder)], capture_output=True, text=True, timeout=30
    )
    assert done.stdout.startswith("['limits: cpu") and "Landlock" not in done.stdout and "seccomp" not in done.stdout


def evaluate(program: bytes, number: int, architecture: int, argument: int = 0) -> str:
    """What the kernel would say to a call: a seccomp program run by hand."""
    data = struct.pack("<IIQ6Q", number, architecture, 0, argument, 0, 0, 0, 0, 0)
    lines = list(struct.iter_unpack("HBBI", program))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = lines[at]
        at += 1
        if code == 0x20:
            value = struct.unpack_from("<I", data, operand)[0]
        elif code == 0x06:
            return {0x7FFF0000: "allow", 0x80000000: "kill", 0x00050001: "EPERM", 0x00050026: "ENOSYS"}[operand]
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += if_true if holds else if_false


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_on_either_architecture(machine: str) -> None:
    architecture, numbers = jail_walls._ARCHITECTURES[machine]
    codes = build_filter(architecture, numbers, pid=77, runs_code=True)
    starts = build_filter(architecture, numbers, pid=77, runs_code=False)
    assert len(codes) % 8 == 0 and len(codes) // 8 < 4096
    read, write = (0, 1) if machine == "x86_64" else (63, 64)
    for program in (codes, starts):
        assert evaluate(program, read, architecture) == evaluate(program, write, architecture) == "allow"
        assert evaluate(program, read, 0x40000003) == "kill"
        for name in (
            *("socket", "connect", "ptrace", "unshare", "mount", "keyctl", "bpf", "perf_event_open", "setsid"),
            *("setpriority", "sched_setaffinity", "sched_setattr", "ioprio_set"),
        ):
            assert evaluate(program, numbers[name], architecture) == "EPERM"
        assert evaluate(program, numbers["clone3"], architecture) == "ENOSYS"
        assert evaluate(program, numbers["clone"], architecture, 0x00010F00) == "allow"  # a thread
        assert evaluate(program, numbers["clone"], architecture, 17) == "EPERM"  # a process
        assert evaluate(program, numbers["socketpair"], architecture, 1) == "allow"
        assert evaluate(program, numbers["socketpair"], architecture, 2) == "EPERM"
        assert evaluate(program, numbers["tgkill"], architecture, 77) == "allow"
        assert evaluate(program, numbers["kill"], architecture, 1) == "EPERM"
        assert evaluate(program, numbers["kill"], architecture, 0xFFFFFFFF) == "EPERM"
        assert evaluate(program, numbers["prlimit64"], architecture, 0) == "allow"
    assert evaluate(codes, numbers["execve"], architecture) == "EPERM"
    assert evaluate(starts, numbers["execve"], architecture) == "allow"
    for name in ("fchmodat", "utimensat", "fchmodat2"):  # of a path from here, or of what a descriptor leads to
        assert evaluate(codes, numbers[name], architecture, 0xFFFFFF9C) == "allow"
        assert evaluate(codes, numbers[name], architecture, 5) == "EPERM"
        assert evaluate(starts, numbers[name], architecture, 5) == "allow"
    for name in ("fchmod", "fchown", "fchownat"):
        assert evaluate(codes, numbers[name], architecture, 5) == "EPERM"
        assert evaluate(starts, numbers[name], architecture, 5) == "allow"
    if machine == "x86_64":
        assert evaluate(codes, 0x40000000 + 41, architecture) == "ENOSYS"


@pytest.mark.parametrize(
    "change",
    [
        "os.chmod(name, 0o600, dir_fd=fd)",
        "os.utime(name, (1, 1), dir_fd=fd)",
        "os.chown(name, os.getuid(), os.getgid(), dir_fd=fd)",
        "os.fchmod(os.open(os.__file__, os.O_RDONLY), 0o644)",
        "os.chmod(os.open(os.__file__, os.O_RDONLY), 0o644)",
        "os.utime(os.open(os.__file__, os.O_RDONLY), ns=(os.stat(os.__file__).st_atime_ns,) * 2)",
        "os.fchown(os.open(os.__file__, os.O_RDONLY), os.getuid(), os.getgid())",
    ],
)
def test_metadata_is_changed_by_path_or_not_at_all(folder: Path, outside: Path, change: str) -> None:
    """Landlock does not look at it, and a relative path from another folder looks as if it led inside."""
    library = Path(os.__file__).parent
    code = f"""import os
fd = os.open(os.path.dirname(os.__file__), os.O_RDONLY)
deep = 'd/' * {len(library.parts) + 2}
os.makedirs(deep)
os.chdir(deep)
name = '../' * {len(library.parts) - 1} + {str(outside / "canary.txt")[1:]!r}
{change}
"""
    before = Path(os.__file__).stat()
    ended = run_jailed([run_python(code)], folder, seconds=5)
    after = Path(os.__file__).stat()
    assert ended.exit_code == 1 and "PermissionError" in ended.errors
    assert (after.st_mode, after.st_mtime_ns) == (before.st_mode, before.st_mtime_ns)


def test_metadata_in_the_folder_can_be_changed(folder: Path) -> None:
    code = "import os, shutil\nshutil.copy2('a.txt', 'b.txt')\nos.chmod('b.txt', 0o700)\nos.utime('b.txt', (7, 7))\n"
    code += "shutil.copytree('.', 'c', ignore=lambda *_: ['c'])\nprint(os.stat('b.txt').st_mtime)"
    ended = run_jailed([run_python(code)], folder, seconds=5)
    assert (ended.exit_code, ended.output) == (0, "7.0\n"), ended.errors
    for argv in (("/usr/bin/touch", "-d", "@9", "b.txt"), ("/bin/cp", "-p", "a.txt", "e.txt")):
        assert run_jailed([run_program(argv)], folder, seconds=5).exit_code == 0


@needs_seccomp
@pytest.mark.parametrize("change", ["os.setpriority(os.PRIO_PROCESS, {}, 5)", "os.sched_setaffinity({}, {{0}})"])
def test_other_processes_are_left_their_share(folder: Path, change: str) -> None:
    pid = os.getpid()
    before = os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid)
    ended = run_jailed([run_python("import os\n" + change.format(pid))], folder, seconds=5)
    assert ended.exit_code == 1 and "PermissionError" in ended.errors
    assert (os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid)) == before


def test_a_folder_cannot_be_filled_without_end(folder: Path) -> None:
    fill = "b = b'x' * 15_000_000\nfor n in range(200):\n    open(f'f{n}', 'wb').write(b)\nprint('all written')"
    ended = run_jailed([run_python(fill)], folder, seconds=20)
    assert ended.overfull and ended.exit_code == 137
    assert "all written" not in ended.output
    again = run_jailed([run_python("print('hello')")], folder, seconds=5)
    assert again.overfull
    for path in folder.glob("f*"):
        path.unlink()
    assert not run_jailed([run_python("print('hello')")], folder, seconds=5).overfull
