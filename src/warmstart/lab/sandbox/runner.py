"""The script inside the sandbox: limit this process, then become the program, or run the Python code or the SQL.

`processes` starts it with a bare interpreter for every stage of a pipe, so it imports the standard library only, and as
little of that as possible: `signal` with its enums would double the 13 ms of every start.

    runner.py program FOLDER HERE SECONDS N REDIRECT*N PROGRAM ARGUMENT...
    runner.py code FOLDER HERE SECONDS                 (the code on standard input)
    runner.py sql FOLDER HERE SECONDS DATABASE ROWS    (the statements on standard input)
"""

from __future__ import annotations

import io
import os
import resource
import sys

TYPE_CHECKING = False  # as in typing, which takes 5 ms to load
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Any, NoReturn

FILE_BYTES = 16_000_000
MEMORY_BYTES = 1_000_000_000
OPEN_FILES = 64
_GRACE = 5  # seconds after which the process ends itself, should its parent be gone
_CODE_NAME = "<code>"
_signal: Any = __import__("_signal")
_OPEN_FLAGS = {
    "<": os.O_RDONLY,
    ">": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "+": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}

_REFUSED = tuple(  # audit events that code may not cause
    "subprocess. os.system os.exec os.fork os.posix_spawn os.spawn os.kill os.symlink pty. ctypes. socket. urllib.Request "
    "http.client. ftplib. smtplib. webbrowser. signal.pthread_kill resource.".split()
)
_HARMLESS = ("socket.gethostname", "resource.getrlimit")
_CHANGES = {  # audit event -> how many of its first arguments are paths that it changes
    "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.truncate": 1, "os.chmod": 1, "os.chown": 1,
    "os.utime": 1, "shutil.rmtree": 1, "shutil.move": 2, "sqlite3.connect": 1,
}  # fmt: skip
_LOOKS = ("os.listdir", "os.scandir", "os.chdir", "glob.glob")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_PRAGMAS = frozenset(
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check database_list "
    "collation_list function_list compile_options integrity_check quick_check foreign_keys user_version encoding "
    "page_count page_size freelist_count".split()
)
_SETTABLE = frozenset("table_info table_xinfo index_list index_info index_xinfo foreign_key_list foreign_keys".split())


def main(kind: str, folder: str, here: str, seconds: str, *rest: str) -> None:
    """Limit this process and do what `kind` says."""
    os.environ.pop("PWD", None)  # bwrap sets it
    os.umask(0o022)
    _signal.alarm(int(seconds) + _GRACE)
    limit_resources(int(seconds))
    try:
        os.chdir(here)
    except OSError as failure:  # the command before has moved it away
        _fail("cd", failure, 1)
    if kind == "program":
        first, last = 1, 1 + int(rest[0])
        start_program(rest[last:], rest[first:last])
    text = sys.stdin.buffer.read().decode("utf-8", "replace")
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if kind == "code":
        run_code(text, folder)
    else:
        sys.stdout.write(run_sql(rest[0], text, int(rest[1])))


def limit_resources(seconds: int) -> None:
    """Set the limits that this system has; macOS has none on address space."""
    for name, most in (
        ("RLIMIT_CPU", seconds + 1),
        ("RLIMIT_FSIZE", FILE_BYTES),
        ("RLIMIT_NOFILE", OPEN_FILES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_AS", MEMORY_BYTES),
    ):
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            continue


def start_program(argv: Sequence[str], redirects: Sequence[str]) -> NoReturn:
    """Open the redirects (`1>path`, `1+path` to append, `0<path`, `2&1`) and become the program."""
    for redirect in redirects:
        stream, sign, target = int(redirect[0]), redirect[1], redirect[2:]
        try:
            opened = int(target) if sign == "&" else os.open(target, _OPEN_FLAGS[sign], 0o644)
        except OSError as failure:
            _fail(target, failure, 1)
        os.dup2(opened, stream, inheritable=True)
    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, and what is ignored stays so
        _signal.signal(number, _signal.SIG_DFL)
    name = argv[0].rpartition("/")[2]
    try:
        os.execv(argv[0], [name, *argv[1:]])
    except OSError as failure:
        _fail(name, failure, 126)


def _fail(name: str, failure: OSError, code: int) -> NoReturn:
    os.write(2, f"{name}: {failure.strerror}\n".encode())
    os._exit(code)


def run_code(code: str, folder: str) -> None:
    """Run code as `__main__`. An error is reported by the interpreter's top, without the frames of this file."""
    sys.argv = [""]
    sys.path.insert(0, folder)
    sys.excepthook = lambda kind, error, trace: _report_error(code, kind, error, trace)
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    compiled = compile(code, _CODE_NAME, "exec", dont_inherit=True)
    guard_paths(folder)
    exec(compiled, main.__dict__)  # noqa: S102 - the purpose of the place


def _report_error(code: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print the traceback with the frames of the code alone; those of libraries say nothing to a model."""
    import linecache
    import traceback

    linecache.cache[_CODE_NAME] = (len(code), None, code.splitlines(keepends=True), _CODE_NAME)  # so that it is quoted
    report = traceback.TracebackException(kind, error, trace)
    link: traceback.TracebackException | None = report
    while link is not None:
        link.stack = traceback.StackSummary.from_list([frame for frame in link.stack if frame.filename == _CODE_NAME])
        link = link.__cause__ or link.__context__
    sys.stderr.write("".join(report.format()))


def guard_paths(folder: str) -> None:
    """Refuse files outside the folder, processes and the network from here on.

    This is the path check of Python code, as the fence is that of command lines. It stops mistakes; code that wants to
    can get around it, and then only bubblewrap stands.
    """
    readable = (folder, sys.base_prefix, sys.base_exec_prefix, "/usr/lib", "/usr/share/zoneinfo")
    devices = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")
    realpath, decode = os.path.realpath, os.fsdecode

    def lies_in(path: Any, folders: tuple[str, ...]) -> bool:
        if path is None or isinstance(path, int):
            return True  # the current folder, or an open file
        real = realpath(decode(path))
        return any(real == place or real.startswith(f"{place}/") for place in folders)

    def refuse(what: str) -> None:
        raise PermissionError(1, f"not offered here: {what}")

    def check(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool((flags or 0) & _WRITES)
            if path not in devices and not lies_in(path, (folder,) if writes else readable):
                refuse(f"{'writing' if writes else 'reading'} outside the folder")
        elif event in _CHANGES:
            if event == "sqlite3.connect" and decode(arguments[0]) in (":memory:", ""):
                return
            if event == "sqlite3.connect" and decode(arguments[0]).startswith("file:"):
                refuse("sqlite3 with a URI")
            if not all(lies_in(path, (folder,)) for path in arguments[: _CHANGES[event]]):
                refuse(f"{event} outside the folder")
        elif event in _LOOKS:
            if not lies_in(arguments[0], readable):
                refuse(f"{event} outside the folder")
        elif event == "socket.__new__":
            if arguments[1] != 1:  # AF_UNIX: asyncio makes a pair of them
                refuse("the network")
        elif event.startswith(_REFUSED) and event not in _HARMLESS:
            refuse(event)

    sys.addaudithook(check)


def run_sql(database: str, sql: str, most_rows: int) -> str:
    """Run statements on a database that exists; return the last rows or the number of changed rows as JSON."""
    import json
    import sqlite3

    try:
        connection = sqlite3.connect(f"file:{_quote(database)}?mode=rw", uri=True, isolation_level=None)
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1_000_000)
        connection.set_authorizer(_authorize)
        answer: dict[str, Any] = {}
        for statement in split_statements(sql):
            before = connection.total_changes
            cursor = connection.execute(statement)
            if cursor.description is None:
                answer = {"rows_changed": connection.total_changes - before}
                continue
            rows = cursor.fetchmany(most_rows + 1)
            columns = [column[0] for column in cursor.description]
            answer = {"columns": columns, "rows": [[_as_json(value) for value in row] for row in rows[:most_rows]]}
            if len(rows) > most_rows:
                answer["rows_cut"] = f"only the first {most_rows} rows are shown"
        connection.close()
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as failure:
        return json.dumps({"error": str(failure)})
    return json.dumps(answer or {"error": "sql holds no statement"})


def split_statements(sql: str) -> list[str]:
    """Split SQL into statements; semicolons in strings, comments and triggers do not end one."""
    from sqlite3 import complete_statement

    statements, pending = [], ""
    for piece in sql.split(";"):
        pending += piece + ";"
        if complete_statement(pending):
            statements.append(pending)
            pending = ""
    statements.append(pending)
    return [statement for statement in statements if statement.strip("; \t\r\n")]


def _authorize(action: int, first: str | None, second: str | None, database: str | None, trigger: str | None) -> int:
    import sqlite3

    if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_CREATE_VTABLE):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA:
        name = (first or "").lower()
        allowed = name in _PRAGMAS and (second is None or name in _SETTABLE)
        return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY
    functions = ("load_extension", "fts3_tokenizer", "randomblob")
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in functions:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _quote(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, float) and value - value != 0 else value


if __name__ == "__main__":
    main(*sys.argv[1:])
