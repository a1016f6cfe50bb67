"""The state of a session that hooks keep between calls, without a database: small append-only files.

One file a session under `notes/sessions`, named by a hash of the session's id: whether the session gets advice, which
notes it was shown, which files it has read or written, which caller answers. `notes/showings.jsonl` has a line for each
showing and each draw, until `learn` or `ingest` takes them into the store.
"""

from __future__ import annotations

import os

from warmstart.notes.compact_json import dump_json, parse_json
from warmstart.notes.index import FOLDER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Self

    Withholding = tuple[str, float, str]  # experiment, share of occurrences that are withheld, salt of the draw
    Recorder = Callable[[dict[str, Any]], None]

SESSIONS = "sessions"
SHOWINGS = "showings.jsonl"
DRAWN = "drawn"  # how: not a showing but a draw
_LARGEST_STATE = 262_144  # bytes; a session that fills it gets no more advice
_LARGEST_SHOWINGS = 4_000_000
_LONGEST = 400  # characters of a path
_SAME_EVENT = 10.0  # seconds within which all hooks of one event have begun: each gives up after 3


class SessionMemory:
    """The state of a session, in this process."""

    def __init__(self, session: str = "", *, advises: bool = True, knows_files: bool = True) -> None:
        self.session = session  # "": unnamed, so that nothing is drawn for it
        self.advises: bool | None = advises  # None: not decided yet
        self.withholding: Withholding | None = None  # how notes are tried; None: every note is shown
        self.ask: Callable[[], tuple[bool, Withholding | None]] | None = None  # whether it gets advice, where unknown
        self.recorder: Recorder | None = None  # takes the draws
        self.knows_files = knows_files  # whether every file that the session has read is on record
        self.newly_wrong: list[str] = []  # notes that the disk has contradicted since they were last recorded
        self._lines: set[tuple[str, str, str]] = set()

    def admits(self) -> bool:
        """Return whether the session gets advice. Call it only where there is some: it may open the store."""
        if self.ask is not None:
            self.advises, withholding = self.ask()
            self.withholding = self.withholding or withholding
        return bool(self.advises)

    def record_draw(self, draw: dict[str, Any]) -> None:
        """Hand over what was drawn, before anything follows from it."""
        if self.recorder is not None:
            self.recorder(draw)

    def has(self, word: str, note: str, context: str = "") -> bool:
        """Return whether a note was given (`told`, `stopped`, `after`), drawn, withheld or found wrong (`wrong`)."""
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
    """The state of a session, in its file. Use it as a context manager: it locks the file against other calls."""

    def __init__(self, home: str, session: str) -> None:
        super().__init__(session, knows_files=False)
        self.advises = None
        self._path = find_state(home, session)
        self._caller = ""  # speaks for the session; "": none yet
        self._claimed = 0.0  # when it last said so
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
        elif word == "withholding":
            self.withholding = _parse_withholding(context, value)
        elif word == "caller":
            self._caller, self._claimed = context, float(value) if value.isdigit() else 0.0
        elif word == "forget":
            super().forget_files()
        elif word == "kept":
            self._forget_kept(context)
            text = _parse_text(value)
            if text:
                super().add(word, text, context)
        elif word == "taken":
            self._forget_kept(context)
        else:
            super().add(word, value, context)

    def add(self, word: str, value: str, context: str = "") -> None:
        """Remember it, in the file too."""
        if (word, context, value) not in self._lines and len(value) <= _LONGEST:
            super().add(word, value, context)
            self._append(word, context, value)

    def start(self, *, advises: bool, knows_files: bool, withholding: Withholding | None = None) -> None:
        """Record whether the session gets advice, how notes are tried, and whether its files are known from the beginning.

        A session keeps the trial that it began with.
        """
        if self.withholding is None and withholding is not None:
            self.withholding = withholding
            experiment, share, salt = withholding
            self._append("withholding", experiment, f"{share!r} {salt}")
        if self.advises != advises:
            self.advises = advises
            self._append("advice", "", "on" if advises else "off")
        if knows_files and not self.knows_files:
            self.knows_files = True
            self._append("files", "", "known")

    def claim(self, caller: str, now: float, *, renew: bool) -> bool:
        """Return whether this caller answers: where a plugin and the settings both call us, only the first one does.

        `renew`: at events that open a turn, the caller claims again. If it no longer does, another one takes its place.
        """
        if self._caller not in ("", caller) and not (renew and now - self._claimed >= _SAME_EVENT):
            return False
        if renew or not self._caller:
            self._caller, self._claimed = caller, now
            self._append("caller", caller, str(int(now)))
        return True

    def forget_files(self) -> None:
        super().forget_files()
        self._append("forget", "", "")

    def keep(self, call: str, text: str) -> None:
        """Keep a text until the result of a call is there. `call`: a key of the call, without spaces."""
        super().add("kept", text, call)
        self._append("kept", call, dump_json(text))

    def keeps(self, call: str) -> bool:
        """Say whether a text is kept for a call."""
        return any((word, within) == ("kept", call) for word, within, _text in self._lines)

    def take_kept(self, call: str) -> str:
        """Return the text that was kept for a call, and forget it; "" if there is none."""
        (text,) = [value for word, within, value in self._lines if (word, within) == ("kept", call)] or [""]
        if text:
            self._forget_kept(call)
            self._append("taken", call, "")
        return text

    def _forget_kept(self, call: str) -> None:
        self._lines = {line for line in self._lines if line[:2] != ("kept", call)}

    def _append(self, word: str, context: str, value: str) -> None:
        line = "\t".join("".join(c for c in part if ord(c) >= 32) for part in (word, context, value))
        data = line.encode("utf-8", "replace") + b"\n"
        if self._size + len(data) <= _LARGEST_STATE:
            self._size += os.write(self._handle, data)
        else:
            self._size += os.write(self._handle, b"\n" * max(0, _LARGEST_STATE - self._size))


def _parse_withholding(experiment: str, value: str) -> Withholding | None:
    share, _, salt = value.partition(" ")
    try:
        number = float(share)
    except ValueError:
        return None
    return (experiment, number, salt) if 0 < number < 1 else None


def _parse_text(value: str) -> str:
    """Return a text that was written as JSON; "" if a killed process left only a part of it."""
    try:
        text = parse_json(value.encode())
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def find_state(home: str, session: str) -> str:
    """Return the path of a session's file."""
    return os.path.join(home, FOLDER, SESSIONS, hash_text(session))


def has_state(home: str, session: str) -> bool:
    """Return whether anything is known of a session."""
    return os.path.exists(find_state(home, session))


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
    """Add a line for a showing, unless the file is full."""
    _add_line(home, {"note": note, "session": session, "at": at, "how": how})


def add_draw(home: str, session: str, at: float, draw: dict[str, Any]) -> None:
    """Add a line for a draw, unless the file is full."""
    _add_line(home, {"session": session, "at": at, "how": DRAWN} | draw)


def _add_line(home: str, entry: dict[str, Any]) -> None:
    folder = os.path.join(home, FOLDER)
    os.makedirs(folder, 0o700, exist_ok=True)
    path = os.path.join(folder, SHOWINGS)
    line = dump_json(entry).encode() + b"\n"
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
