"""Take the showings that hooks have recorded into the store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from warmstart.notes.index import FOLDER
from warmstart.notes.session_state import SHOWINGS, lock, sweep_sessions

_KEPT = 14 * 86_400.0  # seconds that a session's state is kept after its last call
_ABANDONED = 60  # seconds after which a process that took showings must have died


class RecordedShowing(Struct, frozen=True):
    """A note that was shown to a session, left out because the disk contradicts it, or drawn to be shown or withheld."""

    note: str
    session: str
    at: float  # seconds since the epoch
    how: str  # tell, correct, stop, after; wrong: contradicted by the disk, not shown; drawn: a draw, as below
    experiment: str = ""
    withheld: bool = False
    share: float = 0.0  # probability of being withheld
    action: str = ""  # that was or would have been taken
    expected: float | None = None  # failure rate without the note
    call: str = ""  # id of the call


_showing = msgspec.json.Decoder(RecordedShowing)


def read_showings(home: Path) -> list[RecordedShowing]:
    """Return the recorded showings and forget them. Of two processes, each showing goes to one."""
    with take_showings(home) as showings:
        return showings


@contextmanager
def take_showings(home: Path) -> Iterator[list[RecordedShowing]]:
    """Give the recorded showings; they are forgotten when the block ends well, and given again later if it fails."""
    taken = list(_claim(home / FOLDER))
    yield [showing for path in taken for showing in _read(path)]
    for path in taken:
        path.unlink(missing_ok=True)


def _claim(folder: Path) -> Iterator[Path]:
    """Rename the file of showings, and those of processes that failed a minute ago before they had stored them."""
    now = int(time.time())
    left = [path for path in folder.glob(f".{SHOWINGS}.*.taken") if now - _read_time(path) > _ABANDONED]
    for path in (folder / SHOWINGS, *left):
        mine = folder / f".{SHOWINGS}.{now}.{os.urandom(8).hex()}.taken"
        with suppress(FileNotFoundError):
            path.rename(mine)
            yield mine


def _read_time(taken: Path) -> int:
    stamp = taken.name.removeprefix(f".{SHOWINGS}.").partition(".")[0]
    return int(stamp) if stamp.isdigit() else 0


def _read(path: Path) -> Iterator[RecordedShowing]:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    with os.fdopen(handle, "rb") as file:
        lock(handle)  # a hook may be writing its last line
        for line in file:
            with suppress(msgspec.DecodeError):
                yield _showing.decode(line)


def sweep_states(home: Path, now: float) -> int:
    """Delete the state of sessions that ended long ago; return how many."""
    return sweep_sessions(str(home), now - _KEPT)
