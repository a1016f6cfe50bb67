"""A throw-away folder in which a model's tool calls really run.

Results are JSON text in the form of real agents, so that the judge of users' transcripts also judges the lab's: an exit
code for commands and code, `error` for every other failure. Every call gets an answer, never an exception, and the same
call in the same folder gets the same bytes, because runs are compared.

Between the model and the machine stand the fence (`fence`, `programs`) and, where it works, bubblewrap (`processes`). Both
keep mistakes in; neither is a security boundary for hostile code. Do not point a model at it that wants out.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import re2
from msgspec import Struct

from warmstart.calls import tools
from warmstart.lab.chores.tasks import ChoreCall
from warmstart.lab.sandbox.fence import CommandRefused, resolve_inside
from warmstart.lab.sandbox.processes import FOLDER_BYTES, Sandbox, is_overfull, run_python, run_statements
from warmstart.lab.sandbox.runner import FILE_BYTES
from warmstart.lab.sandbox.terminal import report_end, run_command_line

SQLITE = "sqlite_query"
_PYTHON_LIBRARY = str(Path(os.__file__).parent)
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,16}\b")
_LONGEST_LINE = 200  # characters shown of a matching line
_DATED = 1_767_225_600  # 2026-01-01: the time of every file that a task starts with


class ToolSpec(Struct, frozen=True):
    """A tool as it is described to a model."""

    name: str
    description: str
    parameters: dict[str, Any]  # JSON schema

    def as_openai(self) -> dict[str, Any]:
        """Return the tool in the form that OpenAI-compatible endpoints take."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def _takes(optional: tuple[str, ...] = (), **texts: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": text} for name, text in texts.items()},
        "required": [name for name in texts if name not in optional],
        "additionalProperties": False,
    }


TOOLS: tuple[ToolSpec, ...] = (
    ToolSpec(tools.TERMINAL, "Run a command line in the folder.", _takes(command="the command line")),
    ToolSpec(tools.READ, "Read a file.", _takes(path="the file's path")),
    ToolSpec(
        tools.WRITE,
        "Write a file, replacing what was in it.",
        _takes(path="the file's path", content="all that the file is to hold"),
    ),
    ToolSpec(
        tools.SEARCH,
        "Search files for lines that match a regular expression.",
        _takes(("path",), pattern="the regular expression", path="file or folder to search; all if left out"),
    ),
    ToolSpec(tools.CODE, "Run Python code in the folder.", _takes(code="the Python code")),
    ToolSpec(
        SQLITE,
        "Run SQL on a SQLite database file.",
        _takes(database="the database file's path", sql="the SQL statement"),
    ),
)
_SPECS = {spec.name: spec for spec in TOOLS}


class Workshop:
    """One task's folder: filled with the task's files, and deleted at the end."""

    folder: Path

    def __init__(
        self, files: Mapping[str, str | bytes], *, seconds: float = 5.0, characters: int = 800, use_bwrap: bool = True
    ) -> None:
        self.seconds, self.characters = seconds, characters
        self._around = Path(os.path.realpath(tempfile.mkdtemp(prefix="warmstart-lab-")))
        self.folder = self._around / "folder"  # nested, so that `..` looks the same in every run
        self.folder.mkdir()
        self._sandbox = Sandbox(self.folder, use_bwrap)
        self._carry_out: dict[str, Callable[..., dict[str, Any]]] = {
            tools.TERMINAL: self._terminal,
            tools.READ: self._read_file,
            tools.WRITE: self._write_file,
            tools.SEARCH: self._search_files,
            tools.CODE: self._execute_code,
            SQLITE: self._sqlite_query,
        }
        try:
            self._fill(files)
        except (CommandRefused, OSError):
            self.close()
            raise

    def _fill(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in sorted(files.items()):
            place = resolve_inside(self.folder, self.folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)
        for place in sorted(self.folder.rglob("*")):
            os.utime(place, (_DATED, _DATED))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Delete the folder, even where code has locked or deeply nested it."""
        waiting, numbers = [self.folder], count()
        while waiting:
            place = waiting.pop()
            with suppress(OSError):
                place.chmod(0o700)  # code may have locked it
                for entry in list(os.scandir(place)):
                    if entry.is_dir(follow_symlinks=False):  # move it up: nested deep enough, no path would reach it
                        inner = Path(entry.path)
                        inner.chmod(0o700)
                        waiting.append(inner.rename(self._around / str(next(numbers))))
                    else:
                        Path(entry.path).unlink()
                place.rmdir()
        shutil.rmtree(self._around, ignore_errors=True)

    def run(self, call: ChoreCall) -> str:
        """Run a call and return its result as JSON text, whatever the model asked for."""
        fault = _find_fault(call)
        if fault:
            return self._write({"error": fault})
        try:
            answer = self._carry_out[call.tool](**call.arguments)
        except CommandRefused as refused:
            answer = {"error": str(refused)}
        except OSError as failure:
            answer = {"error": f"{failure.strerror or 'failed'}: {_shorten(call.arguments.get('path', call.tool))}"}
        return self._write(answer)

    def _write(self, answer: Mapping[str, Any]) -> str:
        """Return an answer as JSON, without the folder's path and with long texts cut."""
        cleaned = {key: self._clean(value) if isinstance(value, str) else value for key, value in answer.items()}
        return json.dumps(cleaned, ensure_ascii=False).encode("utf-8", "replace").decode()

    def _clean(self, text: str) -> str:
        text = text.replace(str(self.folder), ".").replace(_PYTHON_LIBRARY, "python")
        return cut_middle(_ADDRESS.sub("at 0x0", text), self.characters)

    def _find(self, path: str) -> Path:
        place = resolve_inside(self.folder, self.folder, path)
        if not place.exists():
            raise CommandRefused(f"File not found: {_shorten(path)}")
        return place

    def _read_file(self, path: str) -> dict[str, Any]:
        place = self._find(path)
        if not place.is_file():
            raise CommandRefused(
                f"Is a directory: {_shorten(path)}" if place.is_dir() else f"Not a file: {_shorten(path)}"
            )
        with place.open("rb") as file:
            return {"content": file.read(FILE_BYTES).decode("utf-8", "replace")}

    def _write_file(self, path: str, content: str) -> dict[str, Any]:
        place = resolve_inside(self.folder, self.folder, path)
        raw = content.encode()
        if place.is_dir() or path.endswith("/"):
            raise CommandRefused(f"Is a directory: {_shorten(path)}")
        if place.exists() and not place.is_file():
            raise CommandRefused(f"Not a file: {_shorten(path)}")
        if len(raw) > FILE_BYTES:
            raise CommandRefused(f"content is longer than {FILE_BYTES} bytes")
        if is_overfull(self.folder):
            raise CommandRefused(f"more than {FOLDER_BYTES} bytes in the folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(raw)
        return {"bytes_written": len(raw), "path": path}

    def _search_files(self, pattern: str, path: str = ".") -> dict[str, Any]:
        place = self._find(path)
        options = re2.Options()
        options.log_errors = False
        try:
            expression = re2.compile(pattern, options=options)
        except re2.error as failure:
            reason = failure.args[0] if failure.args else failure
            text = reason.decode() if isinstance(reason, bytes) else reason
            raise CommandRefused(f"Invalid pattern: {text}") from None
        matches: list[dict[str, Any]] = []
        total, room = 0, self.characters
        deadline = time.monotonic() + self.seconds
        for number, line, name in self._read_lines(place):
            if time.monotonic() > deadline:
                raise CommandRefused(f"Timed out after {self.seconds:g} seconds")
            if not expression.search(line):
                continue
            total += 1
            match = {"path": name, "line": number, "text": self._clean(line[:_LONGEST_LINE])}
            room -= len(json.dumps(match, ensure_ascii=False))
            if room >= 0:
                matches.append(match)
        return {"matches": matches, "total": total}

    def _read_lines(self, place: Path) -> Iterator[tuple[int, str, str]]:
        """Yield number, text and file of every line below a place, by file name; skip binary files."""
        for file in [place] if place.is_file() else sorted(_list_files(place)):
            if self.folder not in Path(os.path.realpath(file)).parents:
                continue
            raw = file.read_bytes()[:FILE_BYTES]
            if b"\0" in raw[:8_192]:
                continue
            name = str(file.relative_to(self.folder))
            for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
                yield number, line, name

    def _execute_code(self, code: str) -> dict[str, Any]:
        ended = self._sandbox.run([run_python(code)], seconds=self.seconds)
        answer = report_end(ended, self.seconds)
        last = ended.errors.rstrip().rpartition("\n")[2]
        if ended.exit_code == 1 and last and "error" not in answer:
            answer["error"] = last
        return answer

    def _sqlite_query(self, database: str, sql: str) -> dict[str, Any]:
        place = self._find(database)
        if "\0" in sql:
            raise CommandRefused("sql holds a NUL character")
        if not place.is_file():
            raise CommandRefused(f"Not a database file: {_shorten(database)}")
        ended = self._sandbox.run([run_statements(place, sql)], seconds=self.seconds)
        if ended.exit_code:
            return {"error": report_end(ended, self.seconds).get("error", "the query could not be run")}
        answer: dict[str, Any] = json.loads(ended.output)
        rows = [
            [self._clean(cell) if isinstance(cell, str) else cell for cell in row] for row in answer.get("rows", ())
        ]
        whole = len(rows)
        while len(rows) > 1 and len(json.dumps(rows, ensure_ascii=False)) > self.characters:
            del rows[-max(1, len(rows) // 8) :]
        if "rows" in answer:
            answer["rows"] = rows
        if len(rows) < whole:
            answer["rows_cut"] = f"only the first {len(rows)} rows are shown"
        return answer

    def _terminal(self, command: str) -> dict[str, Any]:
        return run_command_line(command, self._sandbox, self.seconds)


def _list_files(place: Path) -> Iterator[Path]:
    """Yield all files below a folder, without recursion: code can nest folders deeper than that goes."""
    waiting = [place]
    while waiting:
        with suppress(PermissionError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                elif entry.is_file():
                    yield Path(entry.path)


def cut_middle(text: str, most: int) -> str:
    """Return at most `most` characters: the head, how much was cut, and the tail."""
    if len(text) <= most:
        return text
    note = f"\n[... {len(text) - most} characters cut ...]\n"
    tail = most // 3
    return text[: most - tail] + note + (text[-tail:] if tail else "")


def _find_fault(call: ChoreCall) -> str | None:
    """Return why a call cannot be run at all."""
    tool: Any = call.tool  # nobody has checked the model's words yet
    arguments: Any = call.arguments
    spec = _SPECS.get(tool) if isinstance(tool, str) else None
    if spec is None:
        return f"Unknown tool: {_shorten(str(tool))}. Tools: {', '.join(_SPECS)}"
    names, required = spec.parameters["properties"], spec.parameters["required"]
    takes = f"{spec.name} takes {', '.join(name + ('' if name in required else '?') for name in names)} (text)"
    if not isinstance(arguments, dict):
        return f"Invalid arguments: not an object. {takes}"
    if unknown := [_shorten(str(name)) for name in arguments if name not in names]:
        return f"Unknown argument: {', '.join(unknown[:3])}. {takes}"
    if missing := [name for name in required if name not in arguments]:
        return f"Missing argument: {', '.join(missing)}. {takes}"
    for name, value in arguments.items():
        if not isinstance(value, str):
            return f"Invalid argument: {name} must be text. {takes}"
        try:
            value.encode()
        except UnicodeEncodeError:
            return f"Invalid argument: {name} holds half a character. {takes}"
    return None


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


__all__ = ["SQLITE", "TOOLS", "ToolSpec", "Workshop", "cut_middle"]
