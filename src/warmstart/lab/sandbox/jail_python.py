"""Python code and SQL inside the jail, with the interpreter's own wall: an audit hook.

The hook asks at every file, socket and process that code reaches for. On Linux it stands in front of Landlock and
seccomp and gives the better message; on macOS, where those are missing, it is the only wall. It is no security boundary:
whoever wants to get around an audit hook can. Runs under a bare interpreter: standard library only.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # as in typing, which takes 5 ms to load, for every command
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

CODE_NAME = "<code>"
_NEVER = tuple(
    "subprocess. os.system os.exec os.fork os.posix_spawn os.spawn os.startfile os.kill pty. ctypes. socket. ftplib. "
    "smtplib. urllib.Request http.client. webbrowser. syslog. os.symlink os.setxattr os.removexattr os.lchflags os.chflags "
    "signal.pthread_kill resource. sqlite3.enable_load_extension sqlite3.load_extension os.unshare os.setns "
    "fcntl.ioctl".split()
)
_HARMLESS = ("socket.gethostname", "resource.getrlimit")
_CHANGES = {  # event -> how many of its first arguments are paths that it changes
    "os.remove": 1, "os.rmdir": 1, "os.mkdir": 1, "os.rename": 2, "os.link": 2, "os.truncate": 1, "os.chmod": 1,
    "os.chown": 1, "os.lchown": 1, "os.lchmod": 1, "os.utime": 1, "os.mkfifo": 1, "os.mknod": 1, "sqlite3.connect": 1,
    "shutil.rmtree": 1, "shutil.move": 2, "dbm.open": 1,
}  # fmt: skip
_METADATA = ("os.chmod", "os.chown", "os.utime")  # Landlock does not look at it: by its path or not at all
_LOOKS = ("os.listdir", "os.scandir", "os.chdir", "os.listxattr", "os.getxattr", "glob.glob")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_UNLISTED = ("ctypes", "_ctypes", "_testcapi", "_xxsubinterpreters", "_interpreters")
_PRAGMAS = frozenset(
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list foreign_key_check database_list "
    "collation_list function_list compile_options integrity_check quick_check foreign_keys user_version encoding "
    "page_count page_size freelist_count".split()
)
_SETTABLE = frozenset("table_info table_xinfo index_list index_info index_xinfo foreign_key_list foreign_keys".split())


def run_code(code: str, folder: str) -> None:
    """Run code as `__main__`. What it raises goes to the interpreter's top, which reports it without our frames."""
    sys.argv = [""]
    sys.path.insert(0, folder)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the present ones think they are the launcher's
    sys.stdout = open(1, "w", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.excepthook = lambda kind, error, trace: _report(code, kind, error, trace)
    for name in [name for name in sys.modules if name.split(".")[0] in ("ctypes", "_ctypes", "warmstart")]:
        del sys.modules[name]
    main = type(sys)("__main__")
    sys.modules["__main__"] = main
    compiled = compile(code, CODE_NAME, "exec", dont_inherit=True)
    install_hook(folder)
    exec(compiled, main.__dict__)  # noqa: S102 - the purpose of the place


def _report(code: str, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Tell what went wrong where in the code itself; the frames of libraries and of the hook say nothing to a model."""
    import linecache
    import traceback

    linecache.cache[CODE_NAME] = (
        len(code),
        None,
        code.splitlines(keepends=True),
        CODE_NAME,
    )  # so that it can be quoted
    told: traceback.TracebackException | None = traceback.TracebackException(kind, error, trace)
    whole = told
    while told is not None:
        told.stack = traceback.StackSummary.from_list([frame for frame in told.stack if frame.filename == CODE_NAME])
        told = told.__cause__ or told.__context__
    if whole is not None:
        sys.stderr.write("".join(whole.format()))


def install_hook(folder: str) -> None:
    """From here on every event of this interpreter is asked about, until it ends."""
    inside = (folder,)
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib takes 10 ms to load
    readable = (folder, library, f"{sys.base_prefix}/lib", f"{sys.base_exec_prefix}/lib", "/usr/share/zoneinfo")
    devices = ("/dev/null", "/dev/urandom", "/dev/random", "/dev/zero")
    realpath, join, decode = os.path.realpath, "{}/".format, os.fsdecode

    def lies_in(path: Any, folders: tuple[str, ...]) -> bool:
        if path is None or isinstance(path, int):
            return True  # the present folder, or what is open already
        real = realpath(decode(path))
        return any(real == place or real.startswith(join(place)) for place in folders)

    def refuse(what: str) -> None:
        raise PermissionError(1, f"not offered here: {what}")

    def ask(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool((flags or 0) & _WRITES)
            if not lies_in(path, inside if writes else readable) and path not in devices:
                refuse(f"{'writing' if writes else 'reading'} outside the folder")
        elif event in _CHANGES:
            if event == "sqlite3.connect" and decode(arguments[0]) in (":memory:", ""):
                return
            if event == "sqlite3.connect" and decode(arguments[0]).startswith("file:"):
                refuse("sqlite3 with a URI")
            if event in _METADATA and (isinstance(arguments[0], int) or arguments[-1] not in (-1, None)):
                refuse(f"{event} by a descriptor")
            if not all(lies_in(path, inside) for path in arguments[: _CHANGES[event]]):
                refuse(f"{event} outside the folder")
        elif event in _LOOKS:
            if not lies_in(arguments[0], readable):
                refuse(f"{event} outside the folder")
        elif event == "socket.__new__":
            if arguments[1] != 1:  # AF_UNIX, of which asyncio makes a pair
                refuse("the network")
        elif event == "import":
            if arguments[0] in _UNLISTED:
                refuse(f"the module {arguments[0]}")
        elif event.startswith(_NEVER) and event not in _HARMLESS:
            refuse(event)

    sys.addaudithook(ask)


def run_sql(database: str, sql: str, most_rows: int) -> str:
    """Run statements on a database that exists, and answer with JSON: the last rows asked for, or how many changed."""
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
            answer = {"columns": [column[0] for column in cursor.description], "rows": _tell_rows(rows[:most_rows])}
            if len(rows) > most_rows:
                answer["rows_cut"] = f"only the first {most_rows} rows are shown"
        connection.close()
    except (sqlite3.Error, sqlite3.Warning, OverflowError) as failure:
        return json.dumps({"error": str(failure)})
    return json.dumps(answer or {"error": "sql holds no statement"})


def split_statements(sql: str) -> list[str]:
    """One SQL statement after the other; semicolons in strings, comments and triggers do not end one."""
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
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in (
        "load_extension",
        "fts3_tokenizer",
        "randomblob",
    ):
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _quote(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def _tell_rows(rows: list[tuple[Any, ...]]) -> list[list[Any]]:
    return [[_tell(value) for value in row] for row in rows]


def _tell(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return str(value) if isinstance(value, float) and value - value != 0 else value
