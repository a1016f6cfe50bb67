"""Mask large submissions in processes of their own, each within a time limit.

Masking holds Python's lock, and an agent chooses what is masked: in the daemon's own process a body full of secrets would
hold up the people who decide. A process can also be ended when its time is over, which a thread cannot.
"""

from __future__ import annotations

import os
import queue
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from warmstart.confirm.errors import BadRequest
from warmstart.confirm.masking.submission import MaskedSubmission, Submission
from warmstart.errors import StoreError

BUDGET = 10.0  # seconds for one submission
_START = 60.0  # seconds for a process to load what it needs, on a busy machine
_PROCESSES = 2


class OutsideMasker:
    """A small pool of masking processes, started when first needed. `mask` may be called from several threads."""

    def __init__(self, secrets: Mapping[str, str], key: str, *, budget: float = BUDGET) -> None:
        self._setting = msgspec.json.encode((dict(secrets), key))
        self._budget = budget
        self._idle: queue.LifoQueue[_Process | None] = queue.LifoQueue()
        self._all: set[_Process] = set()
        self._lock = threading.Lock()
        self._closed = False
        for _ in range(_PROCESSES):
            self._idle.put(None)  # not started yet

    def mask(self, submission: Submission) -> MaskedSubmission:
        """Return the masked texts. Raise BadRequest if that takes too long."""
        process = self._idle.get()
        try:
            process = process or self._start()
            answer = process.ask(msgspec.json.encode(submission), self._budget)
        except BaseException as error:
            if process is not None:
                self._end(process)
            process = None
            if isinstance(error, TimeoutError):
                raise BadRequest(
                    f"the arguments could not be searched for secrets within {self._budget:g} seconds; send less text "
                    "that looks like secrets",
                    code="too_dense",
                ) from None
            if isinstance(error, OSError):
                raise StoreError(f"the masking process failed: {error}") from error
            raise
        finally:
            self._idle.put(process)
        return msgspec.json.decode(answer, type=MaskedSubmission)

    def warm(self) -> None:
        """Start one process, so that the first large submission does not wait for it."""
        process = self._idle.get()
        try:
            process = process or self._start()
        except OSError:
            process = None  # the next submission tries again and reports it
        finally:
            self._idle.put(process)

    def close(self) -> None:
        """End all processes, also those at work."""
        with self._lock:
            self._closed = True
            processes = list(self._all)
        for process in processes:
            self._end(process)

    def _start(self) -> _Process:
        with self._lock:
            if self._closed:
                raise OSError("the daemon is stopping")
            process = _Process()
            self._all.add(process)
        try:
            process.ask(self._setting, _START)
        except BaseException:
            self._end(process)
            raise
        return process

    def _end(self, process: _Process) -> None:
        with self._lock:
            self._all.discard(process)
        process.end()


class _Process:
    """One masking process."""

    def __init__(self) -> None:
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        command = [sys.executable, "-m", "warmstart.confirm.masking.worker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)

    def ask(self, frame: bytes, seconds: float) -> bytes:
        """Send a frame and return the answer. Raise TimeoutError, or OSError if the process ended."""
        deadline = time.monotonic() + seconds
        self._send(len(frame).to_bytes(4, "big") + frame, deadline)
        size = int.from_bytes(self._receive(4, deadline), "big")
        return self._receive(size, deadline)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):
                stream and stream.close()

    def _send(self, data: bytes, deadline: float) -> None:
        assert self._process.stdin
        number = self._process.stdin.fileno()
        os.set_blocking(number, False)
        left = memoryview(data)
        while left:
            _wait(number, selectors.EVENT_WRITE, deadline)
            left = left[os.write(number, left) :]

    def _receive(self, size: int, deadline: float) -> bytes:
        assert self._process.stdout
        number = self._process.stdout.fileno()
        data = bytearray()
        while len(data) < size:
            _wait(number, selectors.EVENT_READ, deadline)
            chunk = os.read(number, size - len(data))
            if not chunk:
                raise OSError("it ended without an answer")
            data += chunk
        return bytes(data)


def _wait(number: int, event: int, deadline: float) -> None:
    """Wait until a pipe is ready. Raise TimeoutError after the deadline."""
    with selectors.DefaultSelector() as selector:
        selector.register(number, event)
        if not selector.select(max(0.0, deadline - time.monotonic())):
            raise TimeoutError
