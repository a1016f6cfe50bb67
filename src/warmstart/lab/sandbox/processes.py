"""Run the stages of one pipe in a folder: start them, gather their output, and end what does not end by itself.

Where bubblewrap works, each stage runs inside it: the system read-only, the folder the only place to write, nothing of
the user's files, no network, its own processes. Elsewhere (macOS, many containers) the fence, the path check of code,
limits, a clean environment and the kill of the process group are all there is. Either way this keeps a small model's
mistakes in a throw-away folder; it is no security boundary for hostile code.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Literal

from msgspec import Struct

from warmstart.lab.sandbox import runner

PROGRAM_PATH = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")
MOST_OUTPUT = 1_000_000  # bytes of one stream
FOLDER_BYTES = 64_000_000
_LEAST_BYTES = 512  # that a file or folder counts for
_LOOK_EVERY = 0.05  # seconds between looks at how full the folder is; a look may take a tenth of the time
_GONE_IN = 1.0  # seconds for killed processes to be gone, so that none writes into the folder any more
_RUNNER = str(Path(runner.__file__).resolve())
_PYTHON = (os.path.realpath(sys.executable), "-P", "-s", "-S", "-B", "-X", "utf8", _RUNNER)
_READABLE = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache"),
    *(sys.base_prefix, sys.base_exec_prefix, _RUNNER),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")


class PipeProcess(Struct, frozen=True):
    """One process of a pipe."""

    kind: Literal["program", "code", "sql"]
    arguments: tuple[str, ...] = ()  # as `runner` takes them
    text: str = ""  # the code or the SQL


class Ended(Struct, frozen=True):
    """How a pipe ended."""

    exit_codes: tuple[int, ...]  # one per stage; none where the time ran out
    output: str
    errors: str  # standard error, stage by stage: two programs that complain at once do so in the same order every time
    timed_out: bool = False
    flooded: bool = False  # a stage put out so much that all were stopped
    overfull: bool = False  # the folder holds more than it may; stages that were still writing were stopped

    @property
    def exit_code(self) -> int:
        """The exit code as a shell would report it."""
        return 124 if self.timed_out else 137 if self.was_stopped else self.exit_codes[-1]

    @property
    def was_stopped(self) -> bool:
        return self.flooded or self.overfull


def run_program(argv: Sequence[str], redirects: Sequence[tuple[int, str | int, bool]] = ()) -> PipeProcess:
    """Return a stage that is a program, by its full path; redirects are (stream, path or other stream, append)."""
    written = [_write_redirect(*redirect) for redirect in redirects]
    return PipeProcess("program", (str(len(written)), *written, *argv))


def _write_redirect(stream: int, target: str | int, append: bool) -> str:
    sign = "&" if isinstance(target, int) else "<" if stream == 0 else "+" if append else ">"
    return f"{stream}{sign}{target}"


def run_python(code: str) -> PipeProcess:
    """Return a stage that is Python code."""
    return PipeProcess("code", (), code)


def run_statements(database: Path, sql: str, most_rows: int = 50) -> PipeProcess:
    """Return a stage that is SQL on a database file."""
    return PipeProcess("sql", (str(database), str(most_rows)), sql)


class Sandbox(Struct, frozen=True):
    """A folder in which stages run, behind bubblewrap where that works."""

    folder: Path
    use_bwrap: bool = True

    def run(self, stages: Sequence[PipeProcess], *, seconds: float, here: Path | None = None) -> Ended:
        """Run the stages of one pipe and wait for them, `seconds` at most."""
        bwrap = find_bwrap() if self.use_bwrap else None
        walls = wrap(bwrap, self.folder) if bwrap else []
        where = (str(self.folder), str(here or self.folder), str(int(seconds) + 1))
        processes: list[subprocess.Popen[bytes]] = []
        with ExitStack() as files:
            output: IO[bytes] = files.enter_context(TemporaryFile())
            source: IO[bytes] = files.enter_context(TemporaryFile())
            errors = [files.enter_context(TemporaryFile()) for _ in stages]
            source.write(stages[0].text.encode())
            source.seek(0)
            alive, lifeline = os.pipe()  # every process inherits its end, so reading ends with the last of them
            deadline = time.monotonic() + seconds
            try:
                for stage, stage_errors in zip(stages, errors, strict=True):
                    process = subprocess.Popen(
                        [*walls, *_PYTHON, stage.kind, *where, *stage.arguments],
                        stdin=source,
                        stdout=subprocess.PIPE if len(processes) + 1 < len(stages) else output,
                        stderr=stage_errors,
                        env=make_environment(self.folder),
                        cwd=self.folder,
                        pass_fds=(lifeline,),
                        start_new_session=True,
                    )
                    processes.append(process)
                    source.close()  # so that the stage before notices when this one ends
                    source = process.stdout or source
                stopped = _watch(processes, [output, *errors], self.folder, deadline)
            finally:
                os.close(lifeline)
                for process in processes:
                    _kill(process)
                select.select([alive], [], [], _GONE_IN)
                os.close(alive)
            if stopped == "time":
                return Ended((), "", "", timed_out=True)
            return Ended(
                tuple(code if code >= 0 else 128 - code for code in (process.returncode for process in processes)),
                _read(output),
                "".join(map(_read, errors)),
                flooded=stopped == "flood",
                overfull=stopped == "full" or is_overfull(self.folder),
            )


def _watch(
    processes: Sequence[subprocess.Popen[bytes]], streams: Sequence[IO[bytes]], folder: Path, deadline: float
) -> Literal["", "time", "flood", "full"]:
    """Wait until all stages have ended; return why they must be stopped before that, or what they did too much of."""
    pause = _LOOK_EVERY
    for process in processes:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, min(pause, deadline - time.monotonic())))
            began = time.monotonic()
            if began >= deadline:
                return "time"
            if _flooded(streams):
                return "flood"
            if is_overfull(folder):
                return "full"
            pause = max(_LOOK_EVERY, 10 * (time.monotonic() - began))
    return "flood" if _flooded(streams) else ""


def _flooded(streams: Sequence[IO[bytes]]) -> bool:
    return any(os.fstat(stream.fileno()).st_size > MOST_OUTPUT for stream in streams)


def _read(stream: IO[bytes]) -> str:
    return os.pread(stream.fileno(), MOST_OUTPUT, 0).decode("utf-8", "replace")


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process group, whether or not its first process has ended."""
    with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says so with the second
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def is_overfull(folder: Path) -> bool:
    """Return whether the folder holds more than a task may need: the limit of one file does not bound their number."""
    room, waiting = FOLDER_BYTES, [str(folder)]
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


def make_environment(folder: Path) -> dict[str, str]:
    """Return all that a command sees of an environment: nothing of the user's, the same words and order everywhere."""
    return {
        "PATH": ":".join(PROGRAM_PATH),
        "HOME": str(folder),
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }


def wrap(bwrap: str, folder: Path) -> list[str]:
    """Return the bubblewrap command to put before a stage's own."""
    command = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL"]
    for path in _READABLE:
        command += ["--ro-bind-try", path, path]
    for path in _DEVICES:
        command += ["--dev-bind-try", path, path]
    return [*command, "--bind", str(folder), str(folder), "--remount-ro", "/", "--"]


@lru_cache(1)
def find_bwrap() -> str | None:
    """Return the path of `bwrap` if a stage can run in it here; containers often forbid its namespaces."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return None
    with TemporaryDirectory(prefix="warmstart-lab-") as place:
        folder = os.path.realpath(place)
        command = [*wrap(bwrap, Path(folder)), *_PYTHON, "code", folder, folder, "30"]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=folder, timeout=30)
        except (OSError, subprocess.TimeoutExpired):
            return None
    return bwrap if done.returncode == 0 else None


def describe_walls() -> tuple[str, ...]:
    """Return what keeps a model's commands in on this machine."""
    return (
        "fence: no shell, listed programs and options, paths inside the folder",
        "path check in Python code",
        "limits: time, output, files, memory",
        "bubblewrap: the system read-only, only the folder writable, no network, own processes"
        if find_bwrap()
        else "MISSING here: bubblewrap (bwrap), so commands run with your own rights",
    )
