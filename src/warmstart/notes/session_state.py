"""What hooks remember of a session between calls, without a database: small files that lines are appended to.

One file a session under `notes/sessions`, named by a hash of the session's id: whether the session gets advice, which
notes it was told, which files it has read or written. `notes/showings.jsonl` has a line for each showing, until `learn`
takes them into the store.
"""

from __future__ import annotations

import os

from warmstart.notes.compact_json import dump_json
from warmstart.notes.index import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

SESSIONS = "sessions"
SHOWINGS = "showings.jsonl"
_LARGEST_STATE = 262_144  # bytes; a session that fills it gets no more advice
_LARGEST_SHOWINGS = 4_000_000
_LONGEST = 400  # characters of a path


class SessionMemory:
    """What is known of a session, in this process."""

    def __init__(self, *, advises: bool = True, knows_files: bool = True) -> None:
        self.advises: bool | None = advises  # None: not decided yet
        self.knows_files = knows_files  # whether every file that the session has read is on record
        self.newly_wrong: list[str] = []  # notes that the disk has contradicted since they were last recorded
        self._lines: set[tuple[str, str, str]] = set()

    def has(self, word: str, note: str, context: str = "") -> bool:
        """Return whether a note was given (`told`, `stopped`, `after`) or found wrong (`wrong`)."""
        return (word, context, note) in self._lines

    def add(self, word: str, value: str, context: str = "") -> None:
        """Remember it."""
        self._lines.add((word, context, value))

    def add_wrong(self, note: str) -> None:
        """Remember that the disk contradicts a note: it is not shown in this session, and that is counted."""
        self.add("wrong", note)
        self.newly_wrong.append(note)

    def list_files(self, context: str = "") -> set[str] | None:
        """Return the files that the session has read or written; None: unknown."""
        if not self.knows_files:
            return None
        return {value for word, within, value in self._lines if word == "file" and within == context}

    def forget_files(self) -> None:
        """Forget which files were read: after a compaction, agents have to read them again."""
        self._lines = {line for line in self._lines if line[0] != "file"}


class SessionFile(SessionMemory):
    """What is known of a session, in its file. Use it as a context manager: it locks the file against other calls."""

    def __init__(self, home: str, session: str) -> None:
        super().__init__(knows_files=False)
        self.advises = None
        self._path = find_state(home, session)
        self._handle = -1
        self._size = 0

    def __enter__(self) -> Self:
        os.makedirs(os.path.dirname(self._path), 0o700, exist_ok=True)
        self._handle = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        lock(self._handle)
        data = os.read(self._handle, _LARGEST_STATE)
        self._size = len(data)
        for line in data.decode("utf-8", "replace").split("\n")[:-1]:
            self._take(line)
        if self._size >= _LARGEST_STATE:
            self.advises = False
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._handle)  # and with it the lock
        self._handle = -1

    def _take(self, line: str) -> None:
        word, _, rest = line.partition("\t")
        context, _, value = rest.partition("\t")
        if word == "advice":
            self.advises = value == "on"
        elif word == "files":
            self.knows_files = value == "known"
        elif word == "forget":
            super().forget_files()
        else:
            super().add(word, value, context)

    def add(self, word: str, value: str, context: str = "") -> None:
        """Remember it, in the file too."""
        if (word, context, value) not in self._lines and len(value) <= _LONGEST:
            super().add(word, value, context)
            self._append(word, context, value)

    def start(self, *, advises: bool, knows_files: bool) -> None:
        """Record whether the session gets advice, and whether its files are known from the beginning."""
        if self.advises != advises:
            self.advises = advises
            self._append("advice", "", "on" if advises else "off")
        if knows_files and not self.knows_files:
            self.knows_files = True
            self._append("files", "", "known")

    def forget_files(self) -> None:
        super().forget_files()
        self._append("forget", "", "")

    def _append(self, word: str, context: str, value: str) -> None:
        line = "\t".join("".join(c for c in part if ord(c) >= 32) for part in (word, context, value))
        data = line.encode("utf-8", "replace") + b"\n"
        if self._size + len(data) <= _LARGEST_STATE:
            self._size += os.write(self._handle, data)
        else:
            self._size += os.write(self._handle, b"\n" * max(0, _LARGEST_STATE - self._size))


def find_state(home: str, session: str) -> str:
    """Return the path of a session's file."""
    return os.path.join(home, FOLDER, SESSIONS, hash_text(session))


def hash_text(text: str) -> str:
    """Return a short hash of a text (FNV-1a): it names a file, and `hashlib` takes longer to load than the rest."""
    number = 0xCBF29CE484222325
    for byte in text.encode("utf-8", "surrogatepass"):
        number = ((number ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{number:016x}"


def sweep_sessions(home: str, before: float) -> int:
    """Delete the files of sessions without a call since then (seconds since the epoch); return how many."""
    folder = os.path.join(home, FOLDER, SESSIONS)
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    deleted = 0
    for name in names:
        path = os.path.join(folder, name)
        try:
            if os.stat(path).st_mtime < before:
                os.unlink(path)
                deleted += 1
        except OSError:
            continue
    return deleted


def add_showing(home: str, note: str, session: str, how: str, at: float) -> None:
    """Add a line for a showing; nothing while nobody takes them and the file is full."""
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, SHOWINGS)
    line = dump_json({"note": note, "session": session, "at": at, "how": how}).encode() + b"\n"
    for _attempt in range(20):
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            lock(handle)
            known = os.fstat(handle)
            if known.st_nlink and known.st_ino == _inode(path):  # else it has just been taken
                if known.st_size < _LARGEST_SHOWINGS:
                    os.write(handle, line)
                return
        finally:
            os.close(handle)


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return -1


def lock(handle: int) -> None:
    """Wait until no other process holds the lock of an open file. It is held until the file is closed."""
    try:
        import fcntl
    except ImportError:  # Windows: appended lines are whole there, too
        return
    fcntl.flock(handle, fcntl.LOCK_EX)
