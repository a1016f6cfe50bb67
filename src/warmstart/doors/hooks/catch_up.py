"""After a session: a process of its own reads what hooks have queued, closes trials and learns, while nobody waits.

`python -m warmstart.doors.hooks.catch_up`. Only one is at work at a time, at the lowest priority; it makes no output.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from pathlib import Path

from warmstart import config
from warmstart.doors.hooks.log import log_trouble
from warmstart.ingest.queue import Queue

_SETTLE = 1.0  # seconds: agents write the end of a transcript a moment after they say that it ended
_REST = 10  # learning rests this many times as long as it took, however many sessions end


def start_catching_up(home: Path, store: str | None) -> None:
    """Start the process and leave it alone: it outlives the session that started it.

    `-P`: it starts in the user's working folder, which must not be a place to import from.
    """
    import subprocess

    words = [
        sys.executable,
        "-P",
        "-m",
        "warmstart.doors.hooks.catch_up",
        str(home.absolute()),
        *([store] if store else []),
    ]
    flags = 0
    if os.name == "nt":
        flags = subprocess.DETACHED_PROCESS | subprocess.BELOW_NORMAL_PRIORITY_CLASS  # type: ignore[attr-defined]
    subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        creationflags=flags,
    )


def main(home: str, store: str | None = None) -> None:
    """What the process does."""
    if hasattr(os, "nice"):
        os.nice(19)
    time.sleep(_SETTLE)
    try:
        catch_up(config.load(home, store))
    except Exception as error:  # noqa: BLE001 - nobody is there to see it: the log is the edge
        log_trouble(Path(home), "catching up", error)


def catch_up(settings: config.Settings) -> None:
    """Until nothing waits. What is queued while the lock is let go is seen by us or by who takes it next."""
    queue = Queue(settings.home)
    ended: list[Path] = []
    while queue.count():
        with queue.alone() as alone:
            if not alone:
                break
            ended += _work(settings)
    for transcript in ended:  # without the lock: a model may take its time
        _review(settings, transcript)


def _work(settings: config.Settings) -> list[Path]:
    """Read, close, learn; what is to be reviewed afterwards."""
    from warmstart.pipeline import Warmstart

    with Warmstart(settings) as ws:
        ended = _list_transcripts(settings) if settings.review.claude_code else []
        done = ws.catch_up()
        if (done.new or done.updated) and _is_rested(settings.home):
            began = time.monotonic()
            ws.learn()
            _rest(settings.home, time.monotonic() - began)
    return ended


def _list_transcripts(settings: config.Settings) -> list[Path]:
    """Claude Code's own among those that wait: other agents' sessions are not reviewed."""
    from warmstart.doors.hooks.agents import AGENTS, find_transcripts

    waiting = [entry.transcript for entry in Queue(settings.home).take()]
    agent = AGENTS["claude-code"]
    return [path for path in waiting if path in find_transcripts(agent, settings, str(path))]


def _review(settings: config.Settings, transcript: Path) -> None:
    """Off unless switched on. What goes wrong in one leaves a line in the log, and the others are still reviewed."""
    from warmstart.pipeline import Warmstart

    try:
        with Warmstart(settings) as ws:
            for done in ws.reviews.review(transcript, context="session_end"):
                if done.warning:
                    log_trouble(settings.home, "review", done.warning)
    except Exception as error:  # noqa: BLE001 - nobody is there to see it: the log is the edge
        log_trouble(settings.home, "review", error)


def _is_rested(home: Path) -> bool:
    """On a store with very much in it learning takes long: then not after every session."""
    with suppress(OSError):
        return time.time() >= _learned(home).stat().st_mtime
    return True


def _rest(home: Path, took: float) -> None:
    """The file's time says from when on it may be done again."""
    until = time.time() + _REST * took
    _learned(home).touch(0o600)
    os.utime(_learned(home), (until, until))


def _learned(home: Path) -> Path:
    return home / "learned"


if __name__ == "__main__":
    main(*sys.argv[1:3])
