"""Running programs, code and SQL behind walls: this side starts the launcher, waits, and ends what does not end itself.

The walls (`describe_walls` says which of them stand on this machine) keep a small model's accidents inside a throw-away
folder: no network, no writing elsewhere, no reading of the user's files, no lasting processes. They are no security
boundary for hostile code. Where the system has no Landlock and no seccomp (macOS, some containers) the fence and the
audit hook are all there is.
"""

from __future__ import annotations

import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec import Struct

from warmstart.lab.sandbox.jail_inside import MOST_OUTPUT

__all__ = [
    "MOST_OUTPUT", "PROGRAM_PATH", "Ended", "describe_walls", "make_environment", "run_jailed", "run_program", "run_python",
    "run_statements",
]  # fmt: skip
PROGRAM_PATH = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin")
_PACKAGES = [str(Path(__file__).parents[up]) for up in (2, 1, 0)]  # warmstart, its lab, its sandbox
# The package's own __init__ modules want third-party parts, which the bare interpreter does not see: stand-ins for them.
_BOOTSTRAP = (
    "import sys; from types import ModuleType as M\n"
    "for name, place in (('warmstart', sys.argv[1]), ('warmstart.lab', sys.argv[2]), ('warmstart.lab.sandbox', sys.argv[3])):\n"
    "    sys.modules[name] = M(name); sys.modules[name].__path__ = [place]\n"
    "from warmstart.lab.sandbox.jail_inside import main; main()"
)


class Ended(Struct, frozen=True):
    """How a pipe ended."""

    exit_codes: tuple[int, ...]  # one a stage; none where the time ran out
    output: str
    errors: str  # what the stages said on standard error, stage by stage
    timed_out: bool = False
    flooded: bool = False  # a stage put out so much that all were stopped
    overfull: bool = False  # there is more in the folder than may be; who was still writing was stopped

    @property
    def exit_code(self) -> int:
        """As a shell would report it."""
        return 124 if self.timed_out else 137 if self.was_stopped else self.exit_codes[-1]

    @property
    def was_stopped(self) -> bool:
        return self.flooded or self.overfull


def run_program(argv: Sequence[str], redirects: Sequence[tuple[int, str | int, bool]] = ()) -> dict[str, Any]:
    """A stage that is a program, by its full path; redirects are (stream, path or other stream, append)."""
    return {"kind": "program", "argv": list(argv), "redirects": [list(redirect) for redirect in redirects]}


def run_python(code: str) -> dict[str, Any]:
    """A stage that is Python code."""
    return {"kind": "code", "code": code}


def run_statements(database: Path, sql: str) -> dict[str, Any]:
    """A stage that is SQL on a database file."""
    return {"kind": "sql", "database": str(database), "sql": sql}


def run_jailed(
    stages: Sequence[Mapping[str, Any]], folder: Path, *, seconds: float, here: Path | None = None, most_rows: int = 50
) -> Ended:
    """Run the stages of one pipe behind walls and wait for them, `seconds` at most."""
    orders = {
        "stages": list(stages),
        "folder": str(folder),
        "here": str(here or folder),
        "seconds": int(seconds) + 1,
        "most_rows": most_rows,
    }
    launcher = subprocess.Popen(
        [sys.executable, "-P", "-s", "-S", "-B", "-X", "utf8", "-c", _BOOTSTRAP, *_PACKAGES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=make_environment(folder),
        cwd=folder,
        start_new_session=True,
    )
    try:
        said, _ = launcher.communicate(marshal.dumps(orders), timeout=max(seconds, 0.01))
    except subprocess.TimeoutExpired:
        return Ended((), "", "", timed_out=True)
    finally:
        _end(launcher)
    if launcher.returncode != 0:
        return Ended((126,), "", "the command could not be started")
    report = marshal.loads(said)  # written by our launcher, which no stage can reach
    return Ended(
        tuple(report["exit_codes"]),
        report["output"].decode("utf-8", "replace"),
        report["errors"].decode("utf-8", "replace"),
        flooded=report["flooded"],
        overfull=report["overfull"],
    )


def _end(launcher: subprocess.Popen[bytes]) -> None:
    """End the launcher, which ends its stages and sees them gone, and whatever should be left of its process group."""
    if launcher.poll() is None:
        launcher.terminate()
        with suppress(subprocess.TimeoutExpired):
            launcher.wait(1)
    with suppress(ProcessLookupError, PermissionError):  # nobody is left; macOS says so with the second
        os.killpg(launcher.pid, signal.SIGKILL)
    for stream in (launcher.stdin, launcher.stdout):
        if stream is not None:
            stream.close()
    launcher.wait()


def make_environment(folder: Path) -> dict[str, str]:
    """All that a command sees: nothing of the user's, and the same words and order everywhere."""
    return {
        "PATH": ":".join(PROGRAM_PATH),
        "HOME": str(folder),
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
    }


@lru_cache(1)
def describe_walls() -> tuple[str, ...]:
    """Which walls stand on this machine, found out by raising them once around a process that does nothing else."""
    with TemporaryDirectory(prefix="warmstart-lab-") as place:
        ended = run_jailed([{"kind": "walls"}], Path(os.path.realpath(place)), seconds=10)
    standing = ended.output.splitlines() if ended.exit_code == 0 else []
    always = ["fence: no shell, listed programs and options, paths inside the folder", "audit hook around Python code"]
    missing = [
        f"MISSING here: {name}"
        for name in ("Landlock", "seccomp")
        if not any(wall.startswith(name) for wall in standing)
    ]
    return (*always, *standing, *missing)
