"""The MCP server and the official client: in one process, and as a program over both transports."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

import warmstart
from doors.mcp.client import SCRIPT, call, environment, fail
from transcripts import claude_lines, write_jsonl, write_now
from warmstart import config
from warmstart.doors.cli.main import main as run_cli
from warmstart.doors.mcp.server import McpDoor, build_server
from warmstart.doors.mcp.tools import TOOLS
from warmstart.scopes import EVERYWHERE, Border

SAMPLES = Path(warmstart.__file__).parent / "samples"
TASK = "the order total test fails again, please fix it"
TRANSPORTS = ("stdio", "http")  # and "memory": the server in this process
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home that has something to start from; to be copied."""
    home = tmp_path_factory.mktemp("learned") / "home"
    with warmstart.open(home) as ws:
        ws.ingest(SAMPLES)
        ws.learn()
    return home


@pytest.fixture
def project(learned: Path, tmp_path: Path) -> Path:
    """The folder the server is started in; the home has learned."""
    shutil.copytree(learned, os.environ["WARMSTART_HOME"])
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@contextmanager
def serving(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The server over HTTP: its address and process."""
    process = subprocess.Popen(
        [SCRIPT, "mcp", "--http", "--port", "0", "--project", "*", *words],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "listening on http://127.0.0.1:" in line, line
        yield line.split()[-1], process
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=20)
        assert out == "" and "Traceback" not in err, out + err


@asynccontextmanager
async def connected(transport: str, folder: Path, log: Path) -> AsyncIterator[Client]:
    if transport == "memory":
        async with Client(
            build_server(McpDoor(config.load(), started_in=folder, border=Border("", EVERYWHERE)))
        ) as client:
            yield client
        return
    if transport == "http":
        with serving(folder) as (url, _process):
            async with Client(url) as client:
                yield client
        return
    server = StdioServerParameters(command=str(SCRIPT), args=["mcp", "--project", "*"], env=environment(), cwd=folder)
    with log.open("w") as errors:
        async with Client(stdio_client(server, errlog=errors)) as client:
            yield client
    assert "Traceback" not in log.read_text()


def drive(transport: str, folder: Path, use: Callable[[Client], Awaitable[None]]) -> None:
    """Use a client. An error is raised after the connection is closed: inside, it would be wrapped in exception groups."""

    async def main() -> Exception | None:
        with anyio.fail_after(120):
            async with connected(transport, folder, folder.parent / "stderr.log") as client:
                try:
                    await use(client)
                except Exception as error:  # noqa: BLE001
                    return error
        return None

    failure = anyio.run(main)
    if failure is not None:
        raise failure


def ask_cli(*words: str) -> Any:
    done = CliRunner().invoke(run_cli, [*words, "--json"])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_official_client_uses_every_tool_resource_and_prompt(transport, project):
    async def use(client: Client) -> None:
        listed = (await client.list_tools()).tools
        assert [tool.name for tool in listed] == list(TOOLS) == [
            *("provision", "brief", "advise", "templates_list", "template_show", "capture", "learn", "insights", "record"),
            *("request_confirmation", "warm_session"),
        ]  # fmt: skip
        for tool in listed:
            assert tool.input_schema["type"] == "object" and len(tool.description or "") < 250
        assert len(json.dumps([tool.model_dump(exclude_none=True) for tool in listed])) < 10_500, "a small set of tools"

        preview = await call(client, "provision", task=TASK, budget=None)
        assert preview == ask_cli("provision", TASK, "--dialect", "text") and preview["arm"] is None
        messages = await call(client, "provision", task=TASK, dialect="openai", examples=1)
        assert warmstart.lint(messages["messages"], "openai") == [] and messages["messages"]
        seed = await call(client, "provision", task=TASK, session="mine", tools=["Bash", "Read", "Edit"], type="mixed")
        assert seed["arm"] == "warm" and seed["text"]
        assert seed == await call(client, "provision", task="another task", session="mine"), "chosen once"

        found = await call(client, "templates_list", category="coding")
        listed = ask_cli("templates", "list", "--category", "coding")
        for one in listed:
            del one["sources"]  # the ids of sessions are the machine's owner's
        assert found["templates"] == listed and found["more"] == 0
        name = found["templates"][0]["name"]
        shown = ask_cli("templates", "show", name)
        del shown["sources"]  # the ids of sessions are the machine's owner's
        assert (await call(client, "template_show", name=name)) == shown
        proposed = await call(client, "templates_list", status="proposed")
        assert [one["status"] for one in proposed["templates"]] == ["proposed"]

        known = ask_cli("sessions", "list")
        good = next(one["id"] for one in known if one["verdict"] != "failure" and one["agent"] == "codex")
        captured = await call(client, "capture", session=good, name="captured here", tags=["mcp"], max_examples=2)
        assert (captured["name"], captured["status"]) == ("captured here", "proposed")

        steps: list[float] = []

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            steps.append(progress)

        learned = await client.call_tool("learn", {"source": "codex", "since": 3650}, progress_callback=heard)
        assert json.loads(learned.content[0].text)["considered"] > 0 and steps, "progress was told"
        insights = await call(client, "insights", since="2020-01-01", top=2)
        assert insights["sessions"] == len(known) and len(insights["repeated"]) <= 2
        transcript = write_jsonl(project / "mine.jsonl", claude_lines("mine", calls=3, timestamp=write_now()))
        recorded = await call(client, "record", session="mine", path=str(transcript))
        assert recorded["arm"] == "warm" and recorded["measures"]["judged"] == 3

        listing = await call(client, "warm_session", action="list")
        assert listing["success"] and listing["count"] == 4
        built = await call(client, "warm_session", action="build", name="warm one", min_messages=1)
        assert built["name"] == "warm one" and built["examples"]
        loaded = await call(client, "warm_session", action="load", name="warm one")
        assert warmstart.lint(loaded["messages"], "openai") == [] and loaded["preview"]
        assert (await call(client, "warm_session", action="delete", name="warm one"))["deleted"]

        pages = [page for page in (await client.list_resources()).resources if "templates/" in str(page.uri)]
        active = ask_cli("templates", "list", "--status", "active")
        assert sorted(page.name for page in pages) == sorted(one["name"] for one in active) and pages
        for page in pages:
            (content,) = (await client.read_resource(page.uri)).contents
            assert content.text.startswith(f"# {page.name}@") and content.mime_type == "text/markdown"
        patterns = (await client.list_resource_templates()).resource_templates
        assert [one.uri_template for one in patterns] == ["warmstart://templates/{name}", "warmstart://notes/{project}"]

        (prompt,) = (await client.list_prompts()).prompts
        assert (prompt.name, prompt.title, prompt.arguments[0].name) == ("start_warm", "Start warm", "task")
        (message,) = (await client.get_prompt("start_warm", {"task": TASK})).messages
        assert message.role == "user" and message.content.text.endswith(TASK)
        assert message.content.text.startswith("Recorded in earlier sessions")

    drive(transport, project, use)


HOSTILE: list[tuple[str, dict[str, Any]]] = [
    ("provision", {}),
    ("provision", {"task": 5}),
    ("provision", {"task": ["a"]}),
    ("provision", {"task": "x" * 200_000}),
    ("provision", {"task": "nul \0 inside"}),
    ("provision", {"task": TASK, "session": ""}),
    ("provision", {"task": TASK, "session": "   "}),
    ("provision", {"task": TASK, "session": "a\0b"}),
    ("provision", {"task": TASK, "session": "a\x1b[2J"}),
    ("provision", {"task": TASK, "budget": -1}),
    ("provision", {"task": TASK, "budget": 10**400}),
    ("provision", {"task": TASK, "budget": 1e308}),
    ("provision", {"task": TASK, "budget": True}),
    ("provision", {"task": TASK, "dialect": "klingon"}),
    ("provision", {"task": TASK, "tools": "Bash"}),
    ("provision", {"task": TASK, "tools": ["x"] * 10_000}),
    ("provision", {"task": TASK, "__class__": "x"}),
    ("provision", {"task": TASK, "cold": True}),
    ("templates_list", {"category": {"$ne": None}}),
    ("templates_list", {"tags": ["x" * 101]}),
    ("template_show", {"name": "no such template"}),
    ("template_show", {"name": "../../etc/passwd"}),
    ("template_show", {"name": "x" * 100_000}),
    ("template_show", {"name": "' OR 1=1 --"}),
    ("template_show", {"name": "x@99999999999999999999999999"}),
    ("capture", {"session": "unknown"}),
    ("capture", {"session": "%"}),
    ("capture", {"session": "a", "name": "../x", "max_examples": 0}),
    ("learn", {"since": "yesterday"}),
    ("learn", {"since": 10**30}),
    ("learn", {"since": "9999999999-01-01"}),
    ("learn", {"max_error_rate": "NaN"}),
    ("learn", {"limits": {"min_calls": 0}}),
    ("insights", {"top": 10**9}),
    ("insights", {"agent": "\u202e" * 200}),
    ("record", {"session": "unknown", "path": "/etc/passwd"}),
    ("record", {"session": "never provisioned", "path": "."}),
    ("warm_session", {}),
    ("warm_session", {"action": "explode"}),
    ("warm_session", {"action": ["list"]}),
    ("warm_session", {"action": "load"}),
    ("warm_session", {"action": "load", "name": "no such"}),
    ("warm_session", {"action": "build", "name": "../../x"}),
    ("warm_session", {"action": "build", "name": "x" * 90_000}),
    ("warm_session", {"action": "build", "name": "a", "tags": ["x" * 200_000]}),
    ("warm_session", {"action": "delete", "name": "a\0b"}),
]


@pytest.mark.slow
def test_a_hostile_argument_gets_an_error_and_the_server_goes_on(project):
    async def use(client: Client) -> None:
        before = await call(client, "templates_list")
        for tool, arguments in HOSTILE:
            await fail(client, tool, arguments)
        nested: Any = "deep"
        for _ in range(100):
            nested = [nested]
        assert await fail(client, "provision", {"task": nested})
        for refused in (
            client.call_tool("no such tool", {}),
            client.read_resource("warmstart://templates/no-such"),
            client.read_resource("warmstart://templates/..%2F..%2Fetc%2Fpasswd"),
            client.read_resource("warmstart://templates/%00"),
            client.read_resource("file:///etc/passwd"),
            client.read_resource("warmstart://templates/" + "x" * 5_000),
            client.list_resources(cursor="nonsense"),
            client.get_prompt("no such prompt", {}),
            client.get_prompt("start_warm", {}),
            client.get_prompt("start_warm", {"task": "  "}),
            client.get_prompt("start_warm", {"task": "x" * 50_000}),
            client.get_prompt("start_warm", {"task": TASK, "path": "/etc/passwd"}),
        ):
            with pytest.raises(MCPError) as error:
                await refused
            assert error.value.code == -32602 and len(error.value.message) <= 1_000, error.value
        assert await call(client, "templates_list") == before, "nothing came of it"

    drive("stdio", project, use)


def test_what_waits_for_a_person_is_no_resource(project):
    async def use(client: Client) -> None:
        (waiting,) = (await call(client, "templates_list", status="proposed"))["templates"]
        with pytest.raises(MCPError, match="not active"):
            await client.read_resource(f"warmstart://templates/{waiting['name']}")

    drive("memory", project, use)


@pytest.mark.slow
def test_calls_run_side_by_side_and_learning_blocks_nobody(project):
    """Sessions enough for learning to take a while; meanwhile others are answered, and all get the same seed."""
    for n in range(200):
        write_jsonl(project / "many" / f"{n}.jsonl", claude_lines(f"many-{n}", calls=25, text=f"line {n} of the log"))
    with warmstart.open() as ws:
        ws.ingest(project / "many")

    async def use(client: Client) -> None:
        done: list[str] = []

        async def learn() -> None:
            await call(client, "learn")
            done.append("learn")

        async def provision(n: int) -> None:
            seeds.append(await call(client, "provision", task=f"{TASK} {n}", session="shared"))
            done.append("provision")

        seeds: list[Any] = []
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(learn)
            await anyio.sleep(0.05)
            for n in range(20):
                tasks.start_soon(provision, n)
        assert len(done) == 23 and done[-1] == "learn", done
        assert all(seed == seeds[0] for seed in seeds), "one session, one seed"

    drive("stdio", project, use)


def test_a_cancelled_call_leaves_the_server_working(project):
    async def use(client: Client) -> None:
        with anyio.move_on_after(0.01):
            await client.call_tool("insights", {})
        assert await call(client, "provision", task=TASK)

    drive("memory", project, use)


@pytest.mark.slow
def test_standard_output_carries_the_protocol_and_nothing_else(project):
    call_tool = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "provision", "arguments": {}}}
    deep = '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":' + "[" * 200_000 + "]" * 200_000 + "}"
    lines = [
        json.dumps(INITIALIZE),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        "no json at all",
        "",
        "\x00\x01\x02",
        deep,
        '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"provision","arguments":{"task":"\\ud800"}}}',
        '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"learn","arguments":{"max_error_rate":NaN}}}',
        '{"jsonrpc":"2.0","id":6,"method":"no/such"}',
        '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":7}',
        '{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"provision","arguments":[1]}}',
        json.dumps(call_tool),
        '{"jsonrpc":"2.0","id":9,"method":"ping"}',
    ]
    process = subprocess.Popen(
        [SCRIPT, "mcp"],
        cwd=project,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    process.stdin.write("\n".join(lines) + "\n")
    process.stdin.flush()
    answers: dict[Any, Any] = {}
    while not {1, 2, 4, 5, 6, 7, 8, 9} <= answers.keys():
        said = json.loads(process.stdout.readline())
        assert said["jsonrpc"] == "2.0"
        answers[said.get("id")] = said
    assert answers[None]["error"]["code"] == -32700, "not even an id"
    assert answers[4]["result"]["isError"] is False, "half a character is replaced"
    assert answers[2]["result"]["isError"] is True
    assert answers[9]["result"] == {}, "still there"
    assert all("error" in answers[n] for n in (6, 7, 8)) and answers[5]["result"]["isError"]
    out, err = process.communicate(timeout=20)  # closes its input: it ends
    assert process.returncode == 0 and "Traceback" not in err, err
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in out.splitlines())


def post(url: str, **headers: str) -> int:
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    data = json.dumps(INITIALIZE).encode()
    request = urllib.request.Request(url, data, {**sent, **{k.replace("_", "-"): v for k, v in headers.items()}})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.slow
def test_http_is_for_this_machine_and_its_owner(project, tmp_path):
    token = tmp_path / "token"
    token.write_text("a-token-that-is-long-enough\n")
    with serving(project, "--token-file", str(token)) as (url, _process):
        assert post(url) == 401
        assert post(url, Authorization="Bearer a-token-that-is-long-enougH") == 401
        right = {"Authorization": "Bearer a-token-that-is-long-enough"}
        assert post(url, **right) == 200
        assert post(url, **right, Host="evil.example") == 421, "DNS rebinding"
        assert post(url, **right, Host="localhost:1") == 421
        assert post(url, **right, Origin="https://evil.example") == 403
        port = url.split(":")[2].split("/")[0]
        large = http.client.HTTPConnection("127.0.0.1", int(port), timeout=20)
        large.request("POST", "/mcp", headers=right | {"Content-Length": "2000000"})
        with large.getresponse() as answer:
            assert answer.status == 413
        large.close()
        taken = subprocess.run([SCRIPT, "mcp", "--http", "--port", port], capture_output=True, text=True)
        assert taken.returncode == 1 and "--port" in taken.stderr and len(taken.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--http", "--host", "0.0.0.0"], 1, "not a loopback address"),
        (["--http", "--host", "example.com"], 2, "give an address"),
        (["--http", "--token-file", "/no/such/file"], 2, "cannot be read"),
        (["--http", "--port", "99999"], 2, "99999"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_line(words, code, said):
    done = CliRunner().invoke(run_cli, ["mcp", *words])
    assert done.exit_code == code and said in done.stderr and done.stdout == "" and "Traceback" not in done.stderr


def test_a_store_that_cannot_be_used_is_told_at_the_start(tmp_path):
    (tmp_path / "no.db").write_text("not a database, whatever its name says" * 10)
    done = CliRunner().invoke(run_cli, ["--store", str(tmp_path / "no.db"), "mcp"])
    assert done.exit_code == 1 and "not a SQLite database" in done.stderr


@pytest.mark.slow
def test_control_c_ends_it_quietly(project):
    process = subprocess.Popen(
        [SCRIPT, "mcp"],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(INITIALIZE) + "\n")
    process.stdin.flush()
    assert process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _out, err = process.communicate(timeout=20)
    assert "Traceback" not in err


@pytest.mark.parametrize(("hooked", "asks"), [(False, True), (True, False)])
def test_where_hooks_brief_sessions_agents_are_not_asked_to_fetch_a_seed(tmp_path, hooked: bool, asks: bool):
    async def read_instructions() -> str:
        async with Client(build_server(McpDoor(config.load(), started_in=tmp_path), hooked=hooked)) as client:
            return str(client.instructions)

    assert ("At the start of a task call provision" in anyio.run(read_instructions)) == asks
