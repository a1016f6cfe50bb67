"""The launcher: a bare interpreter that puts walls around each stage of a pipe, starts it, and reports what it put out.

One launcher runs one pipe. It reads its orders from standard input and answers on standard output, both marshalled: JSON
would take longer to load than all the rest. The stages see only /dev/null, each other's pipes and the redirects, which
are opened behind the walls. Standard error is gathered stage by stage, so that two programs that complain at once do so
in the same order every time.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # without the enums of `signal`, 8 ms for every command
import marshal
import os
import select
import sys
import time

from warmstart.lab.sandbox.jail_python import run_code, run_sql
from warmstart.lab.sandbox.jail_walls import FOLDER_BYTES, die_with_parent, raise_walls

TYPE_CHECKING = False  # as in typing, which takes 5 ms to load, for every command
if TYPE_CHECKING:
    from typing import Any, NoReturn

_GRACE = 5  # seconds
MOST_OUTPUT = 1_000_000  # bytes that a stage may put out before it is stopped
_LOOK_EVERY = 0.05  # seconds between looks at how full the folder is, which may take a tenth of the time
_LEAST_BYTES = 512  # that a file or folder counts for
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND
_REPLACE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


def main() -> None:
    """Read orders, run the stages, report."""
    orders = marshal.loads(sys.stdin.buffer.read())
    die_with_parent()
    signal.alarm(orders["seconds"] + _GRACE)  # should nobody be left who waits for us
    stages: list[dict[str, Any]] = orders["stages"]
    pids: list[int] = []
    gathered: dict[int, bytearray] = {}
    errors: list[int] = []
    signal.signal(signal.SIGTERM, lambda _number, _frame: _stop(pids))
    source = os.open("/dev/null", os.O_RDONLY)
    for stage in stages:
        reads, writes = os.pipe()
        error_reads, error_writes = os.pipe()
        pid = os.fork()
        if pid == 0:
            _become(orders, stage, (source, writes, error_writes))
        pids.append(pid)
        for used in (source, writes, error_writes):
            os.close(used)
        source = reads
        errors.append(error_reads)
        gathered[error_reads] = bytearray()
    gathered[source] = bytearray()
    trouble = _gather(gathered, pids, orders["folder"])
    codes = []
    while pids:
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pids[0], 0)[1]))
        del pids[0]
    report = {
        "exit_codes": [code if code >= 0 else 128 - code for code in codes],
        "output": bytes(gathered[source]),
        "errors": b"".join(gathered[error] for error in errors),
        "flooded": trouble == "flooded",
        "overfull": trouble == "overfull" or is_overfull(orders["folder"]),
    }
    sys.stdout.buffer.write(marshal.dumps(report))
    sys.stdout.flush()
    os._exit(0)


def _stop(pids: list[int]) -> NoReturn:
    """End all stages and see them gone, so that nobody writes any more once we have ended."""
    _kill(pids)
    for pid in pids:
        os.waitpid(pid, 0)
    os._exit(1)


def _gather(gathered: dict[int, bytearray], pids: list[int], folder: str) -> str:
    """Read until all is said; why everything was stopped, where somebody said or wrote too much."""
    waiting = set(gathered)
    look_at = time.monotonic() + _LOOK_EVERY
    while waiting:
        for ready in select.select(sorted(waiting), [], [], max(0.0, look_at - time.monotonic()))[0]:
            piece = os.read(ready, 65_536)
            gathered[ready] += piece
            if not piece:
                waiting.discard(ready)
            elif len(gathered[ready]) > MOST_OUTPUT:
                _kill(pids)
                del gathered[ready][MOST_OUTPUT:]
                return "flooded"
        if (began := time.monotonic()) >= look_at:
            if is_overfull(folder):
                _kill(pids)
                return "overfull"
            look_at = time.monotonic() + max(_LOOK_EVERY, 10 * (time.monotonic() - began))
    return ""


def _kill(pids: list[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)  # who has been waited for is not in the list, so no number is used again


def is_overfull(folder: str) -> bool:
    """Whether more lies in the folder than a task may need: the limit of a file does not say how many there are."""
    room, waiting = FOLDER_BYTES, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    room -= max(_LEAST_BYTES, entry.stat(follow_symlinks=False).st_size)
                    if room < 0:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:  # gone, locked, or too deep for a path
            continue
    return False


def _become(orders: dict[str, Any], stage: dict[str, Any], streams: tuple[int, int, int]) -> None:
    """In the child: turn into the program or the code of this stage. Only `run_code` returns control to the caller."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for number, stream in enumerate(streams):
        os.dup2(stream, number, inheritable=True)
    os.closerange(3, 256)
    os.umask(0o022)
    signal.alarm(orders["seconds"] + _GRACE)
    try:
        os.chdir(orders["here"])
    except OSError as failure:  # the command before has moved it away
        _fail("cd", failure, 1)
    kind = stage["kind"]
    standing = raise_walls(orders["folder"], orders["seconds"], runs_code=kind != "program")
    for stream, target, append in stage.get("redirects", ()):
        _redirect(stream, target, append)
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL if kind == "program" else signal.SIG_IGN)
    if kind == "program":
        _start(stage["argv"])
    elif kind == "code":
        run_code(stage["code"], orders["folder"])
    elif kind == "sql":
        sys.stdout.write(run_sql(stage["database"], stage["sql"], orders["most_rows"]))
    else:
        sys.stdout.write("\n".join(standing))
    sys.exit()


def _redirect(stream: int, target: str | int, append: bool) -> None:
    if isinstance(target, int):
        os.dup2(target, stream, inheritable=True)
        return
    try:
        opened = os.open(target, os.O_RDONLY if stream == 0 else _APPEND if append else _REPLACE, 0o644)
    except OSError as failure:
        _fail(target, failure, 1)
    if opened != stream:
        os.dup2(opened, stream, inheritable=True)
        os.close(opened)


def _start(argv: list[str]) -> NoReturn:
    name = argv[0].rpartition("/")[2]
    try:
        os.execv(argv[0], [name, *argv[1:]])
    except OSError as failure:
        _fail(name, failure, 126)


def _fail(name: str, failure: OSError, code: int) -> NoReturn:
    os.write(2, f"{name}: {failure.strerror}\n".encode())
    os._exit(code)
