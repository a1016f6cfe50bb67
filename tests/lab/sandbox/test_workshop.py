"""Tool calls really run, the judge reads their answers correctly, and nothing gets out of the folder."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warmstart.judging.outcome import judge_result
from warmstart.lab.chores.tasks import ChoreCall
from warmstart.lab.sandbox.fence import CommandRefused
from warmstart.lab.sandbox.workshop import TOOLS, Workshop, cut_middle
from warmstart.model import ToolCall

Ask = Callable[..., dict[str, Any]]


def make_database(place: Path) -> bytes:
    file = place / "make.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "create table orders(id integer, total real); insert into orders values (1, 9.5), (2, 20);"
    )
    connection.close()
    content = file.read_bytes()
    file.unlink()
    return content


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder and a home that must not change."""
    place = Path(os.path.realpath(tmp_path)) / "outside"
    place.mkdir()
    (place / "canary.txt").write_text("CANARY-7261")
    before = take_stock(tmp_path)
    yield place
    assert take_stock(tmp_path) == before


def take_stock(place: Path) -> list[tuple[str, int, int, bytes]]:
    return [
        (str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(place.rglob("*"))
    ]


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return make_database(tmp_path_factory.mktemp("database"))


@pytest.fixture
def workshop(orders: bytes, outside: Path) -> Iterator[Workshop]:
    files: dict[str, str | bytes] = {
        "a.txt": "one\ntwo\nthree\n",
        "logs/app.log": "INFO start\nERROR disk full\n",
        "logs/web.log": "ERROR timeout\n",
        "shop.db": orders,
        "pixel.bin": b"\x00\xff\xfe",
        "été.txt": "naïve\n",
    }
    with Workshop(files, seconds=4) as made:
        yield made
        assert [path.name for path in made.folder.parent.iterdir()] == ["folder"]
    assert not made.folder.parent.exists()


@pytest.fixture
def ask(workshop: Workshop) -> Ask:
    def run(tool: str, status: str, **arguments: Any) -> dict[str, Any]:
        """Return the answer to a call, which the real judge must judge as `status`."""
        result = workshop.run(ChoreCall(tool, arguments))
        outcome = judge_result(ToolCall("1", tool, arguments), result)
        assert outcome.status == status, (arguments, result, outcome)
        assert str(workshop.folder) not in result and "CANARY" not in result
        answer: dict[str, Any] = json.loads(result.encode())
        return answer

    return run


def test_the_tools_as_a_model_is_told_of_them() -> None:
    assert [spec.name for spec in TOOLS] == [
        *["terminal", "read_file", "write_file", "search_files", "execute_code", "sqlite_query"]
    ]
    told = TOOLS[3].as_openai()
    assert told["type"] == "function" and told["function"]["name"] == "search_files"
    assert told["function"]["parameters"]["required"] == ["pattern"]
    assert all("\n" not in spec.description and spec.description.endswith(".") for spec in TOOLS)
    json.dumps([spec.as_openai() for spec in TOOLS])


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("cat a.txt", "one\ntwo\nthree\n"),
        ("ls", "a.txt\nlogs\npixel.bin\nshop.db\n\u00e9t\u00e9.txt\n"),
        ("pwd", ".\n"),
        ("cd logs && pwd && ls *.log", "./logs\napp.log\nweb.log\n"),
        ("grep -c ERROR logs/*.log", "logs/app.log:1\nlogs/web.log:1\n"),
        ("grep -r ERROR .", "./logs/app.log:ERROR disk full\n./logs/web.log:ERROR timeout\n"),
        ("grep -rl ERROR", "logs/app.log\nlogs/web.log\n"),
        ("find . -type f -name '*.log' | wc -l", "2\n"),
        ("find logs", "logs\nlogs/app.log\nlogs/web.log\n"),
        ("find . -name '*.log' > found; cat found", "./logs/app.log\n./logs/web.log\n"),
        ("sort -r a.txt | head -n 1", "two\n"),
        ("cat a.txt nope 2>/dev/null | wc -l", "3\n"),
        ("sed -i 's/two/2/' a.txt && sed -n 2p a.txt", "2\n"),
        ("mkdir -p x/y && cp a.txt x/y && mv x/y/a.txt x/b.txt && ls -R x", "x:\nb.txt\ny\n\nx/y:\n"),
        ("echo hello > new.txt; echo again >> new.txt; cat < new.txt", "hello\nagain\n"),
        ("ls nope 2>/dev/null || echo none", "none\n"),
        ("false || true && echo yes", "yes\n"),
        ("printf 'b\\na\\n' | tee t.txt | sort; > empty; wc -c empty", "a\nb\n0 empty\n"),
        ("cut -d' ' -f1 logs/app.log | sort | uniq -c | tr -s ' '", " 1 ERROR\n 1 INFO\n"),
        ("[ -f a.txt ] && echo there", "there\n"),
        ("seq 1 1000000000 | head -2", "1\n2\n"),
        ("stat -c '%s %n' a.txt", "14 a.txt\n"),
        ("echo '$HOME' \"*\" \\$x", "$HOME * $x\n"),
        ("cat été.txt", "naïve\n"),
        ("diff -u a.txt a.txt", ""),
    ],
)  # fmt: skip
def test_commands_do_what_they_do(ask: Ask, command: str, output: str) -> None:
    assert ask("terminal", "ok", command=command) == {"output": output, "exit_code": 0}


def test_commands_that_only_say_no_are_no_errors(ask: Ask) -> None:
    assert ask("terminal", "ok", command="grep zzz a.txt")["exit_code"] == 1
    assert ask("terminal", "ok", command="cat a.txt | grep zzz")["exit_code"] == 1
    assert "differ" in ask("terminal", "ok", command="diff a.txt logs/app.log")["exit_code_meaning"]
    assert ask("terminal", "ok", command="test -f nope") == {"output": "", "exit_code": 1}


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("cat nope.txt", 1, "cat: nope.txt: No such file or directory"),
        ("grep x nope.txt", 2, "No such file"),
        ("diff a.txt nope", 2, "No such file"),
        ("ls a.txt && cat nope", 1, "a.txt\ncat: nope"),
        ("cd nope && ls", 1, "cd: nope: No such file or directory"),
        ("cat < nope", 1, "nope: No such file"),
        ("echo x > logs", 1, "Is a directory"),
        ("mkdir logs", 1, "File exists"),
        ("head -n x a.txt", 1, "invalid number"),
        ("npm install", 127, "not offered"),
        ("frobnicate", 127, "not offered"),
        ("cat 'a.txt", 2, "not closed"),
        ("", 2, "empty"),
        ("seq 1 1000000000", 137, "more than 1000000 bytes"),
    ],
)
def test_commands_that_fail(ask: Ask, command: str, code: int, said: str) -> None:
    answer = ask("terminal", "error", command=command)
    assert answer["exit_code"] == code and said in answer["output"] + answer.get("error", "")


def test_hostile_commands_change_nothing(ask: Ask, workshop: Workshop, outside: Path) -> None:
    canary, target = outside / "canary.txt", outside / "x"
    before = take_stock(workshop.folder)
    for command in (
        "rm -rf .", "rm a.txt", f"cat {canary}", "cat /etc/passwd", "cat ../../x", "ln -s / x", "cp -s a.txt x", f"cp a.txt {target}",
        f"cp {canary} x", f"sed -n 'w {target}' a.txt", f"sed '1e touch {target}' a.txt", f"sed 's/one/touch/e;w {target}' a.txt",
        f"sed -n '1r {canary}' a.txt", f"sed 's/x/y/w {target}' a.txt", f"find . -exec touch {target} \\;", "find . -delete",
        f"find . -fprint {target}", f"sort -o {target} a.txt", f"sort --output={target} a.txt", f"echo x > {target}",
        f"echo x >> {target}", f"cat < {canary}", f"tee {target}", f"ls > ../y | tee {target}", "cat << EOF\nx\nEOF",
        f"echo $(touch {target})", f"echo `touch {target}`", "echo $HOME", "echo ~/x > ~/y", f"touch {target} &", f"(touch {target})",
        "cat a.txt | sh", "xargs rm", "env", "python3 -c 'print(1)'", "cat \0", f"mv a.txt {target}", f"mkdir {target}",
        "cd .. && ls", "cd / ; ls", f"ls 2> {target}", f"ls &> {target}", "ls ../*", f"ls {outside}/*", "cat /proc/self/environ",
        "ls; rm a.txt", "tail -f a.txt", f"grep -f {canary} a.txt", f"grep x a.txt --file={canary}", "echo x > /dev/sda", "mv * ..",
    ):  # fmt: skip
        answer = ask("terminal", "error", command=command)
        assert answer["exit_code"] in (1, 2, 126, 127), command
    assert take_stock(workshop.folder) == before


def test_files_are_read_and_written(ask: Ask, workshop: Workshop) -> None:
    assert ask("read_file", "ok", path="a.txt") == {"content": "one\ntwo\nthree\n"}
    assert ask("read_file", "ok", path="./logs/../été.txt") == {"content": "naïve\n"}
    assert ask("read_file", "ok", path="pixel.bin") == {"content": "\0\ufffd\ufffd"}
    assert ask("write_file", "ok", path="new/deep/é.txt", content="ü\n") == {
        "bytes_written": 3,
        "path": "new/deep/é.txt",
    }
    assert (workshop.folder / "new/deep/é.txt").read_text() == "ü\n"
    assert ask("write_file", "ok", path="a.txt", content="")["bytes_written"] == 0
    assert ask("write_file", "ok", path="error.txt", content='{"error": "no"}')
    assert ask("read_file", "ok", path="error.txt") == {"content": '{"error": "no"}'}
    big = ask("write_file", "ok", path="big.txt", content="x" * 1_000_000)
    assert big["bytes_written"] == 1_000_000
    assert "999200 characters cut" in ask("read_file", "ok", path="big.txt")["content"]


def test_files_that_cannot_be_read_or_written(ask: Ask, outside: Path) -> None:
    assert ask("read_file", "error", path="x") == {"error": "File not found: x"}
    assert ask("read_file", "error", path="logs") == {"error": "Is a directory: logs"}
    assert ask("read_file", "error", path="a.txt/x")["error"]
    for path in (
        "/etc/passwd",
        "../../x",
        str(outside / "canary.txt"),
        "a\0b",
        "",
        "x" * 5_000,
        "../folder-2/x",
        "x/" * 3_000,
    ):
        assert ask("read_file", "error", path=path)["error"], path
        if path != "x/" * 3_000:
            assert ask("write_file", "error", path=path, content="x")["error"], path
    for path in ("logs", ".", "new/", "a.txt/x"):
        assert ask("write_file", "error", path=path, content="x")["error"]
    assert ask("write_file", "error", path="x", content="x" * 17_000_000)["error"].startswith("content is longer")


def test_links_planted_by_hand_lead_nowhere(ask: Ask, workshop: Workshop, outside: Path) -> None:
    """Code cannot make symbolic links; if there is one all the same, nothing follows it out."""
    (workshop.folder / "e").symlink_to(outside)
    (workshop.folder / "c").symlink_to(outside / "canary.txt")
    (workshop.folder / "dangling").symlink_to(outside / "x")
    assert ask("read_file", "error", path="e/canary.txt")
    assert ask("read_file", "error", path="c")
    assert ask("write_file", "error", path="dangling", content="x")
    assert ask("write_file", "error", path="e/x", content="x")
    assert ask("search_files", "ok", pattern="CANARY") == {"matches": [], "total": 0}
    for command in (
        "cat c",
        "cat e/*",
        "cp -a e/canary.txt y",
        "echo x > dangling",
        "ls e",
        "grep -r CANARY e",
        "tee dangling",
    ):
        assert ask("terminal", "error", command=command)
    assert ask("terminal", "ok", command="grep -r CANARY .")["exit_code"] == 1
    assert ask("terminal", "error", command="cp -a c copied")
    assert ask("terminal", "ok", command="mkdir in") and ask("terminal", "error", command="mv c in/")
    assert ask("execute_code", "error", code="print(open('c').read())")
    assert ask("execute_code", "error", code="open('e/x', 'w')")


def test_search(ask: Ask) -> None:
    assert ask("search_files", "ok", pattern="ERROR") == {
        "matches": [
            {"path": "logs/app.log", "line": 2, "text": "ERROR disk full"},
            {"path": "logs/web.log", "line": 1, "text": "ERROR timeout"},
        ],
        "total": 2,
    }
    assert ask("search_files", "ok", pattern="^t", path="a.txt")["total"] == 2
    assert ask("search_files", "ok", pattern="nothing like it") == {"matches": [], "total": 0}
    assert ask("search_files", "error", pattern="(")["error"].startswith("Invalid pattern: ")
    assert ask("search_files", "error", pattern="x", path="nope") == {"error": "File not found: nope"}
    assert ask("search_files", "error", pattern="x", path="..")
    assert ask("search_files", "error", pattern="(" * 100_000)
    ask("write_file", "ok", path="many.txt", content="needle in hay\n" * 5_000 + "a" * 30_000)
    many = ask("search_files", "ok", pattern="needle")
    assert many["total"] == 5_000 and 5 < len(many["matches"]) < 20
    assert ask("search_files", "ok", pattern="(a+)+$", path="many.txt")["total"] == 1  # linear for every pattern


def test_code(ask: Ask, workshop: Workshop) -> None:
    code = "lines = open('a.txt').read().split()\nopen('n.txt', 'w').write(str(len(lines)))\nprint(len(lines))"
    assert ask("execute_code", "ok", code=code) == {"output": "3\n", "exit_code": 0}
    assert (workshop.folder / "n.txt").read_text() == "3"
    assert ask("execute_code", "ok", code="import os; print(os.getcwd(), os.path.expanduser('~'))")["output"] == ". .\n"
    assert ask("execute_code", "ok", code="print(object(), '\\ud800')")["output"] == "<object object at 0x0> \\ud800\n"
    failed = ask("execute_code", "error", code="print('so far')\n1/0")
    assert failed["output"].startswith("so far\nTraceback") and failed["exit_code"] == 1
    assert failed["error"] == "ZeroDivisionError: division by zero"
    assert ask("execute_code", "error", code="x = (")["error"] == "SyntaxError: '(' was never closed"
    assert (
        ask("execute_code", "error", code="import pandas")["error"] == "ModuleNotFoundError: No module named 'pandas'"
    )
    assert ask("execute_code", "error", code="input()")["error"].startswith("EOFError")
    assert ask("execute_code", "error", code="import sys; sys.exit(3)")["exit_code"] == 3
    assert ask("execute_code", "error", code="print(open('nope').read())")["error"].startswith("FileNotFoundError")


def test_hostile_code(ask: Ask, workshop: Workshop, outside: Path) -> None:
    """One by one through the tool; the long list is in test_processes."""
    before = take_stock(workshop.folder)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        port = server.getsockname()[1]
        for code in (
            f"import socket; socket.create_connection(('127.0.0.1', {port}))", f"import os; os._exit(os.system('touch {outside}/x') or 1)",
            f"import subprocess; subprocess.run(['touch', '{outside}/x'])", "import ctypes; ctypes.CDLL(None)",
            f"open('{outside}/x', 'w')", f"print(open('{outside}/canary.txt').read())", "import os; os.symlink('/etc', 'e')",
        ):  # fmt: skip
            assert ask("execute_code", "error", code=code)["exit_code"] == 1, code
        with pytest.raises(BlockingIOError):
            server.accept()
    assert ask("read_file", "error", path="e/passwd") == {"error": "File not found: e/passwd"}
    assert take_stock(workshop.folder) == before


@pytest.mark.slow
def test_code_that_does_not_end(outside: Path) -> None:
    with Workshop({}, seconds=0.4) as workshop:
        start = time.monotonic()
        for code in (
            "while True: pass",
            "import time; time.sleep(600)",
            "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
            "import signal, time\nfor n in range(1, 30):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\ntime.sleep(600)",
        ):
            answer = json.loads(workshop.run(ChoreCall("execute_code", {"code": code})))
            assert answer == {"output": "", "exit_code": 124, "error": "Timed out after 0.4 seconds"}
        query = "with recursive r(n) as (select 1 union all select n + 1 from r) select count(*) from r"
        workshop.run(ChoreCall("write_file", {"path": "d.db", "content": ""}))
        result = workshop.run(ChoreCall("sqlite_query", {"database": "d.db", "sql": query}))
        assert json.loads(result) == {"error": "Timed out after 0.4 seconds"}
        assert time.monotonic() - start < 300
        assert find_processes_in(workshop.folder) == []


def find_processes_in(folder: Path) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").readlink().is_relative_to(folder):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return found


def test_sqlite(ask: Ask, workshop: Workshop, outside: Path) -> None:
    def query(status: str, sql: str, database: str = "shop.db") -> dict[str, Any]:
        return ask("sqlite_query", status, database=database, sql=sql)

    assert query("ok", "select * from orders") == {"columns": ["id", "total"], "rows": [[1, 9.5], [2, 20.0]]}
    assert query("ok", "update orders set total = 1 where id = 1") == {"rows_changed": 1}
    assert query("ok", "select total from orders where id = 9") == {"columns": ["total"], "rows": []}
    assert query("ok", "pragma table_info(orders)")["rows"][0][1] == "id"
    assert query("error", "select * from nope") == {"error": "no such table: nope"}
    assert "syntax error" in query("error", "selec 1")["error"]
    assert query("error", "select 1", "nope.db") == {"error": "File not found: nope.db"}
    assert (
        query("error", "select 1", ":memory:") and query("error", "select 1", "logs") and query("error", "select 1\0")
    )
    assert query("error", "select * from t", "a.txt") == {"error": "file is not a database"}
    for sql in (
        f"attach '{outside}/x' as x", f"vacuum into '{outside}/x'", "pragma writable_schema=1", "select load_extension('x')",
        "pragma temp_store_directory='/tmp'", "detach main", "create virtual table v using fts5(a)", "pragma journal_mode=wal",
        "select zeroblob(100000000)", "",
    ):  # fmt: skip
        assert query("error", sql), sql
    for database in (f"{outside}/canary.txt", "../x.db", f"file:{outside}/x.db", "file:x?mode=rwc", "shop.db?mode=rwc"):
        assert query("error", "create table t(a)", database), database
    long = query("ok", "with recursive r(n) as (select 1 union all select n + 1 from r) select n, 'abc' from r")
    assert long["rows"][0] == [1, "abc"] and "rows are shown" in long["rows_cut"]
    assert sorted(path.name for path in workshop.folder.iterdir()) == [
        "a.txt",
        "logs",
        "pixel.bin",
        "shop.db",
        "été.txt",
    ]


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("bash", {"command": "ls"}, "Unknown tool: bash. Tools: terminal, read_file"),
        ("", {}, "Unknown tool"),
        (None, {}, "Unknown tool"),
        (["terminal"], {}, "Unknown tool"),
        ("terminal", {}, "Missing argument: command. terminal takes command (text)"),
        ("terminal", {"cmd": "ls"}, "Unknown argument: cmd. terminal takes command (text)"),
        ("terminal", {"command": "ls", "timeout": 3}, "Unknown argument: timeout"),
        ("terminal", {"command": ["ls"]}, "command must be text"),
        ("terminal", {"command": None}, "command must be text"),
        ("terminal", {"command": "echo \ud800"}, "half a character"),
        ("terminal", {7: "x"}, "Unknown argument: 7"),
        ("terminal", "ls", "not an object"),
        ("terminal", None, "not an object"),
        ("write_file", {"path": "x"}, "Missing argument: content. write_file takes path, content (text)"),
        ("write_file", {"path": "x", "content": {"a": 1}}, "content must be text"),
        ("search_files", {"path": "."}, "Missing argument: pattern. search_files takes pattern, path? (text)"),
        ("terminal", {"command": "x" * 1_000_000}, "longer"),
        ("terminal", {"command": "cat " + "a" * 90_000}, "cat: "),
        ("terminal", {"self": "x"}, "Unknown argument"),
    ],
)
def test_calls_that_are_no_calls(outside: Path, tool: Any, arguments: Any, said: str) -> None:
    with Workshop({}) as workshop:
        result = workshop.run(ChoreCall(tool, arguments))
    assert said in result and len(result) < 2_000
    result.encode()
    known = ToolCall("1", tool, arguments) if isinstance(tool, str) and isinstance(arguments, dict) else None
    assert judge_result(known, result).status == "error"


_names = st.sampled_from(
    ["a.txt", "..", "/etc/passwd", "logs", "", "x", "*", "\0", "é", "\ud800", "-n", "~", "$HOME", "|", ">", "'"]
)
_values = st.one_of(_names, st.text(max_size=20), st.none(), st.integers(), st.lists(_names, max_size=2))


@given(
    st.sampled_from(["read_file", "write_file", "search_files", "terminal"]),
    st.dictionaries(st.sampled_from(["path", "content", "pattern", "command", "x"]), _values, max_size=3),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_asked_gets_an_answer(outside: Path, tool: str, arguments: dict[str, Any]) -> None:
    if tool == "terminal" and isinstance(arguments.get("command"), str):
        arguments["command"] = "rm " + arguments["command"]  # programs that run are tested above, and take time
    with Workshop({"a.txt": "x\n"}) as workshop:
        assert isinstance(json.loads(workshop.run(ChoreCall(tool, arguments)).encode()), dict)
        assert [path.name for path in workshop.folder.parent.iterdir()] == ["folder"]


@pytest.mark.slow
def test_the_same_calls_give_the_same_bytes(orders: bytes) -> None:
    """With and without bubblewrap."""
    files = {f"{name}.txt": f"{name}\n" for name in "hgfedcba"} | {
        "s/x.txt": "x\n",
        "s/y.txt": "x\n",
        "d.db": orders,
    }
    calls = [
        *(ChoreCall("terminal", {"command": command}) for command in (
            "ls -l", "find .", "grep -rn x .", "cat nope a.txt | sort", "pwd", "diff -u a.txt b.txt", "cat nope | cat nope2 | ls nope3",
            "seq 1 100000", "yes", "rm -rf .", "du", "ls -lR; wc *",
        )),
        ChoreCall("execute_code", {"code": "print({'a', 'b', 'c', 'd'}, object(), open)\nraise ValueError({'x', 'y', 'z'})"}),
        ChoreCall("execute_code", {"code": "import os; print(os.getcwd(), sorted(os.environ.items()))\nprint('x' * 5000)"}),
        ChoreCall("sqlite_query", {"database": "d.db", "sql": "select * from orders"}),
        ChoreCall("search_files", {"pattern": "x"}),
    ]  # fmt: skip
    runs = []
    for use_bwrap in (True, False):
        with Workshop(files, seconds=20, use_bwrap=use_bwrap) as workshop:
            runs.append([workshop.run(call) for call in calls])
    assert runs[0] == runs[1]


def test_long_output_is_cut_in_the_middle(ask: Ask) -> None:
    output = ask("terminal", "ok", command="seq 1 1000")["output"]
    assert output.startswith("1\n2\n") and output.endswith("999\n1000\n")
    assert "\n[... 3093 characters cut ...]\n" in output and len(output) < 840
    assert cut_middle("abcdef", 6) == "abcdef" and cut_middle("abcdefg", 6) == "abcd\n[... 1 characters cut ...]\nfg"


def test_a_workshop_cannot_be_filled_outside_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(CommandRefused, match="outside the folder"):
        Workshop({"../x": "y"})
    assert [path.name for path in tmp_path.iterdir()] == ["user-home"]  # nothing is left behind


def test_a_folder_that_was_moved_away(ask: Ask) -> None:
    answer = ask("terminal", "error", command="cd logs && mv ../logs ../old && ls")
    assert answer == {"output": "cd: No such file or directory\n", "exit_code": 1}


@pytest.mark.slow
def test_folders_nested_deeper_than_recursion_goes() -> None:
    """Deeper even than the longest path."""
    with Workshop({"a.txt": "seven"}) as workshop:
        place = os.open(workshop.folder, os.O_RDONLY)
        for _ in range(2_200):
            os.mkdir("d", dir_fd=place)
            inner = os.open("d", os.O_RDONLY, dir_fd=place)
            os.close(place)
            place = inner
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=place))
        os.close(place)
        answer = json.loads(workshop.run(ChoreCall("search_files", {"pattern": "seven"})))
        assert answer
    assert not workshop.folder.parent.exists()


def test_locked_folders_are_removed_too():
    lock = "import os\nos.makedirs('s/t')\nopen('s/t/f', 'w').close()\nos.chmod('s/t', 0)\nos.chmod('s', 0)\nos.chmod('.', 0)"
    with Workshop({"a.txt": ""}) as workshop:
        workshop.run(ChoreCall("execute_code", {"code": lock}))
    assert not workshop.folder.parent.exists()


def test_a_full_folder_is_told_and_takes_no_more() -> None:
    fill = "for n in range(5):\n    open(f'f{n}', 'wb').write(b'x' * 15_000_000)"
    with Workshop({"a.txt": ""}) as workshop:
        said = json.loads(workshop.run(ChoreCall("execute_code", {"code": fill})))
        assert said["error"] == "Stopped: more than 64000000 bytes in the folder"
        assert judge_result(ToolCall("1", "execute_code", {"code": fill}), json.dumps(said)).status == "error"
        said = json.loads(workshop.run(ChoreCall("write_file", {"path": "g", "content": "x"})))
        assert "more than 64000000 bytes in the folder" in said["error"]
        assert "more than" in json.loads(workshop.run(ChoreCall("terminal", {"command": "ls; ls"})))["error"]


@pytest.mark.parametrize("command", ["echo" + " *" * 3_000, "echo" + " *" * 90, "cd" + " *" * 3_000])
def test_stars_cost_no_more_than_a_moment(command: str) -> None:
    with Workshop({f"f{n}": "" for n in range(300)}) as workshop:
        began = time.monotonic()
        said = json.loads(workshop.run(ChoreCall("terminal", {"command": command})))
        assert time.monotonic() - began < 3
        assert said["error"].startswith("more than ") and said["exit_code"]
        assert json.loads(workshop.run(ChoreCall("terminal", {"command": "echo * *"})))["exit_code"] == 0
