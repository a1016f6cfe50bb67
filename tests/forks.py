"""Child processes for tests of crashes and races: one start of Python, then forks that have everything loaded.

The forks come from a fresh interpreter, because a fork of pytest itself would copy it in the middle of its threads.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from places import SRC

PRELUDE = """
import os, random, shutil, signal, sys, time, traceback

def fork(work, *arguments):
    pid = os.fork()
    if pid:
        return pid
    try:
        work(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def join(pids):
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert not any(codes), codes

def kill(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    for pid in pids:
        os.waitpid(pid, 0)
"""


def start_forker(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start an interpreter that runs the code, in which `fork`, `join` and `kill` are defined."""
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(SRC)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_forks(code: str, *arguments: object) -> str:
    """Run the code to its end and return its output."""
    process = start_forker(code, *arguments)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return out


class Forker:
    """An interpreter that answers each line with a line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self, line: str) -> str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def open_forker(code: str, *arguments: object) -> Iterator[Forker]:
    """Run code that reads lines from its standard input and prints one line for each."""
    process = start_forker(code, *arguments)
    try:
        yield Forker(process)
    finally:
        _out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
