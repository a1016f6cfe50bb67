"""Read queued transcripts, close trials and learn, in a background process that outlives the agent's session.

`python -m warmstart.doors.hooks.catch_up HOME`. One works at a time, at the lowest priority and without output.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from warmstart import config
from warmstart.doors.hooks.learning import LearningTurn, learn_in_turn
from warmstart.doors.hooks.log import log_trouble
from warmstart.ingest.queue import Queue
from warmstart.notes.showings import sweep_states

_SETTLE = 1.0  # seconds: agents write a transcript's end shortly after they report the session's end
_PATIENCE = 30.0  # seconds to wait for another process that learns and does not read the queue, as Hermes's does


def start_catching_up(home: Path, store: str | None) -> None:
    """Start the process, detached. `-P`: it starts in the user's working folder and must not import from there.

    The environment names the store: everybody on the machine can read the words of a command.
    """
    import subprocess

    words = [sys.executable, "-P", "-m", __name__, str(home.absolute())]
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
        env={**os.environ, "WARMSTART_STORE": store} if store else None,
    )


def main(home: str) -> None:
    """Run the process."""
    if hasattr(os, "nice"):
        os.nice(19)
    time.sleep(_SETTLE)
    try:
        catch_up(config.load(home))
    except Exception as error:  # noqa: BLE001 - the edge of a process without output: the log reports it
        log_trouble(Path(home), "catching up", error)


def has_work(home: Path) -> bool:
    """Return whether transcripts wait to be read, or sessions to be learned from."""
    return Queue(home).count() > 0 or LearningTurn(home).is_due()


def catch_up(settings: config.Settings) -> None:
    """Work until the queue is empty. Entries added while the lock is free are seen here or by its next holder."""
    ended: list[Path] = []
    queue = Queue(settings.home)
    until = time.monotonic() + _PATIENCE
    while has_work(settings.home):
        with queue.alone() as alone:
            if alone:
                ended += _work(settings)
        if not alone:
            if time.monotonic() > until:
                break
            time.sleep(0.2)
    for transcript in ended:  # without the lock: a model may be slow
        _review(settings, transcript)


def _work(settings: config.Settings) -> list[Path]:
    """Read, close trials and learn; return the transcripts to review afterwards."""
    from warmstart.pipeline import Warmstart

    with Warmstart(settings) as ws:
        sweep_states(settings.home, time.time())
        ended = _list_transcripts(settings) if settings.review.claude_code else []
        report = ws.catch_up()
        learn_in_turn(ws, has_changed=bool(report.new or report.updated))
    return ended


def _list_transcripts(settings: config.Settings) -> list[Path]:
    """Return the queued transcripts of Claude Code: other agents' sessions are not reviewed."""
    from warmstart.doors.hooks.agents import AGENTS, find_transcripts

    waiting = [entry.transcript for entry in Queue(settings.home).take()]
    agent = AGENTS["claude-code"]
    return [path for path in waiting if path in find_transcripts(agent, settings, str(path))]


def _review(settings: config.Settings, transcript: Path) -> None:
    """Review one session. An error is logged, and the other sessions are still reviewed."""
    from warmstart.pipeline import Warmstart

    try:
        with Warmstart(settings) as ws:
            for reviewed in ws.reviews.review(transcript, context="session_end"):
                if reviewed.warning:
                    log_trouble(settings.home, "review", reviewed.warning)
    except Exception as error:  # noqa: BLE001 - the edge of a process without output: the log reports it
        log_trouble(settings.home, "review", error)


if __name__ == "__main__":
    main(sys.argv[1])
