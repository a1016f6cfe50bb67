"""Functions on the store that run in a process of their own, so that the pages need not share the interpreter with them.

The process has a low priority. It ends when its standard input does, so it never outlives the server, however that ends.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from msgspec import Struct

from warmstart.config import Settings
from warmstart.errors import WarmstartError
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress

Compute = Callable[[Warmstart, Progress], Any]  # for another process: a function of a module, or a partial of one

_NICE = 10
_REPORT_EVERY = 0.2  # seconds


class BackgroundAnswer(Struct):
    """One message of the process: how far it is, or the end."""

    done: int = 0
    total: int | None = None
    is_end: bool = False
    value: Any = None
    problem: str = ""  # why there is no value


class BackgroundProcess:
    """Runs one function at a time in a process that is started when it is first needed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False

    def run(self, compute: Compute, progress: Progress) -> Any:
        """Return the value of a function on the store. Raise WarmstartError if it cannot be computed."""
        task = pickle.dumps((self._settings, compute))
        process = self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(task)
            process.stdin.flush()
            while not (answer := _receive(process)).is_end:
                progress(answer.done, answer.total, "")
        except (OSError, EOFError, pickle.UnpicklingError) as error:
            code = self._end()
            raise WarmstartError(f"the process that computes it ended with {code}; load the page again") from error
        except BaseException:  # its answer would be taken for that of the next function
            self._end()
            raise
        if answer.problem:
            raise WarmstartError(answer.problem)
        return answer.value

    def close(self) -> None:
        """End the process, whatever it does."""
        self._is_closed = True
        self._end()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._is_closed:
                raise WarmstartError("the server has ended")
            if self._process is None or self._process.poll() is not None:
                environ = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
                command = [sys.executable, "-m", "warmstart.doors.ui.background"]
                self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)
            return self._process

    def _end(self) -> int | None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        process.kill()
        code = process.wait()
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                stream and stream.close()
        return code


def _receive(process: subprocess.Popen[bytes]) -> BackgroundAnswer:
    assert process.stdout is not None
    answer = pickle.load(process.stdout)  # written by our own process only
    assert isinstance(answer, BackgroundAnswer)
    return answer


# Inside the process


def main() -> None:
    """Run the functions that standard input brings, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the server, and that ends this
    with suppress(OSError, AttributeError):
        os.nice(_NICE)
    answers, sys.stdout = sys.stdout.buffer, sys.stderr  # nothing else may be written there
    tasks: queue.SimpleQueue[tuple[Settings, Compute]] = queue.SimpleQueue()

    def read_tasks() -> None:
        try:
            while True:
                tasks.put(pickle.load(sys.stdin.buffer))
        finally:
            os._exit(0)

    def send(answer: BackgroundAnswer) -> None:
        pickle.dump(answer, answers)
        answers.flush()

    threading.Thread(target=read_tasks, daemon=True).start()
    while True:
        send(_compute(*tasks.get(), send))


def _compute(settings: Settings, compute: Compute, send: Callable[[BackgroundAnswer], None]) -> BackgroundAnswer:
    sent = 0.0

    def report(done: int, total: int | None, what: str) -> None:
        nonlocal sent
        if (now := time.monotonic()) - sent > _REPORT_EVERY:
            sent = now
            send(BackgroundAnswer(done, total))

    try:
        with Warmstart(settings) as ws:
            return BackgroundAnswer(is_end=True, value=compute(ws, report))
    except WarmstartError as error:
        return BackgroundAnswer(is_end=True, problem=str(error))
    except Exception as error:  # noqa: BLE001 - the page reports it
        return BackgroundAnswer(is_end=True, problem=f"cannot be computed: {type(error).__name__}: {error}")


if __name__ == "__main__":
    from warmstart.doors.ui import background  # so that answers are of the class that the server knows

    background.main()
