"""The client: ask, wait, act. Silence, errors and invalid answers all mean no."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

import warmstart.confirm as confirm
from confirm.serving import House
from confirm.signing import TOKEN, prove
from loopback import serving
from warmstart.confirm import (
    BadRequest,
    ConfirmationError,
    Conflict,
    Daemon,
    Denied,
    Expired,
    RateLimited,
    Unauthorized,
    Unreachable,
    ask,
    requires_confirmation,
    submit,
)
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens.identity import pin_token, split_token
from warmstart.confirm.tokens.proof import CHALLENGE
from warmstart.errors import ConfigError, WarmstartError


class Person(threading.Thread):
    """Decides the next request after a moment."""

    def __init__(self, house: House, answer: str, before: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.house, self.answer, self.before = house, answer, before
        self.start()

    def run(self) -> None:
        end = time.monotonic() + 10
        while time.monotonic() < end:
            found = self.house.call("GET", "/confirm?status=pending", token=self.house.approver).body["requests"]
            if found:
                if self.before:
                    self.before()
                self.house.call(
                    "POST", f"/confirm/{found[0]['id']}/{self.answer}", {"reason": "as I say"}, self.house.approver
                )
                return
            time.sleep(0.02)


@pytest.fixture
def daemon(house: House) -> Daemon:
    return Daemon(house.api, house.agent)


def test_a_yes_returns_the_decision_and_is_taken_up(house: House, daemon: Daemon) -> None:
    person = Person(house, "approve")
    decision = ask("delete_data", "Drop the orders", {"table": "orders"}, 60, daemon=daemon)
    person.join()
    assert (decision.status, decision.by, decision.reason) == ("approved", "alice", "as I say")
    assert house.get(decision.request)["executed"]
    assert house.events(decision.request) == ["submitted", "approved", "executed"]


def test_a_no_raises(house: House, daemon: Daemon) -> None:
    person = Person(house, "deny")
    with pytest.raises(Denied, match="denied by alice: as I say") as error:
        ask("delete_data", "Drop the orders", timeout=60, daemon=daemon)
    person.join()
    assert error.value.decision is not None
    assert error.value.decision.by == "alice"


@pytest.mark.slow
def test_silence_raises(house: House, daemon: Daemon) -> None:
    began = time.monotonic()
    with pytest.raises(Expired):
        ask("delete_data", "Drop the orders", timeout=0.5, daemon=daemon)
    assert time.monotonic() - began < 20
    ticket = submit("delete_data", "Drop the orders", timeout=60, daemon=daemon)
    house.clock.ahead += 61
    with pytest.raises(Expired):
        ticket.wait()


def test_what_was_allowed_in_advance_returns_at_once(house: House, daemon: Daemon) -> None:
    house.call("POST", "/whitelist", {"action": "send_mail", "session_key": "s"}, house.admin)
    decision = ask("send_mail", "Tell them", {"to": 1}, session_key="s", daemon=daemon)
    assert (decision.status, decision.by) == ("auto_approved", "whitelist")
    assert house.get(decision.request)["executed"]


def test_a_policy_and_a_limit_raise(open_house) -> None:
    house = open_house(policy=parse_policy('[[rule]]\naction = "never"\ndecision = "deny"'), rate_limit=1)
    daemon = Daemon(house.api, house.agent)
    with pytest.raises(Denied, match="policy"):
        ask("never", "x", daemon=daemon)
    submit("often", "x", daemon=daemon)
    with pytest.raises(RateLimited) as error:
        ask("often", "x", daemon=daemon)
    assert (error.value.limit, error.value.retry_after > 3000) == (1, True)


def test_what_is_no_request_raises(daemon: Daemon) -> None:
    for action, details in (("bad\u200baction", {}), ("x", {1: 2}), ("x", float("nan")), ("x", {"o": object()})):
        with pytest.raises(BadRequest):
            ask(action, "d", details, daemon=daemon)
    for timeout in (0, -1, 3601):
        with pytest.raises(BadRequest):
            ask("x", "d", timeout=timeout, daemon=daemon)
    with pytest.raises(BadRequest):
        ask("x", "", daemon=daemon)
    with pytest.raises(Unauthorized):
        ask("x", "d", daemon=daemon._replace(token=pin_token("wsc_wrong", split_token(daemon.token).key)))


def test_a_waiter_lives_through_a_restart(house: House) -> None:
    port = int(house.api.rsplit(":", 1)[1])
    house.restart(port=port)
    daemon = Daemon(house.api, house.agent)

    def restart() -> None:
        house.restart()

    person = Person(house, "approve", before=restart)
    assert ask("delete_data", "Drop", {"a": 1}, 60, daemon=daemon).status == "approved"
    person.join()


# How long


def test_the_policy_says_how_long_where_nobody_else_does(open_house) -> None:
    """A rule may set a longer timeout than the default."""
    house = open_house(policy=parse_policy('[[rule]]\naction = "deploy"\ntimeout_seconds = 900'))
    daemon = Daemon(house.api, house.agent)

    @requires_confirmation("deploy", daemon=daemon)
    def deploy() -> None: ...

    person = Person(house, "deny")
    with pytest.raises(Denied):
        deploy()
    person.join()
    (denied,) = house.call("GET", "/confirm?status=denied", token=house.approver).body["requests"]
    assert denied["timeout_seconds"] == 900
    for action, given, seconds in (("deploy", None, 900), ("other", None, 300), ("other", 60, 60), ("deploy", 60, 60)):
        ticket = submit(action, "d", timeout=given, daemon=daemon)
        assert house.get(ticket.id)["timeout_seconds"] == seconds
        assert seconds - 5 < ticket.deadline - time.monotonic() <= seconds


@pytest.mark.slow
def test_who_cannot_wait_so_long_need_not(daemon: Daemon) -> None:
    began = time.monotonic()
    with pytest.raises(Expired, match="nobody decided in time"):
        ask("delete_data", "d", within=0.5, daemon=daemon)
    assert time.monotonic() - began < 10


# Given up


def test_what_was_given_up_is_not_taken_up(house: House, daemon: Daemon) -> None:
    """An approval after the cancellation is recorded, but not executed."""
    cancelled, raised = threading.Event(), []

    def wait() -> None:
        try:
            ask("delete_data", "Drop", daemon=daemon, cancelled=cancelled)
        except ConfirmationError as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    id = find_pending(house)
    cancelled.set()
    assert house.approve(id).status == 200
    thread.join(15)
    assert [(type(error), error.code) for error in raised] == [(Expired, "cancelled")]
    assert house.events(id) == ["submitted", "approved"]


def find_pending(house: House) -> str:
    for _ in range(500):
        if found := house.call("GET", "/confirm?status=pending", token=house.approver).body["requests"]:
            return str(found[0]["id"])
        time.sleep(0.02)
    raise AssertionError("nobody asked")


@pytest.mark.slow
def test_giving_up_ends_the_wait_for_a_daemon_that_is_gone(house: House, daemon: Daemon) -> None:
    cancelled = threading.Event()
    ticket = submit("delete_data", "Drop", daemon=daemon, cancelled=cancelled)
    house.stop()
    threading.Timer(0.5, cancelled.set).start()
    began = time.monotonic()
    with pytest.raises(ConfirmationError):
        ticket.wait()
    assert time.monotonic() - began < 10, "not until its deadline"
    house.start()


def test_a_cancelled_task_takes_nothing_up(house: House, daemon: Daemon) -> None:
    ran: list[str] = []

    @requires_confirmation("delete_data", daemon=daemon)
    async def drop() -> None:
        ran.append("dropped")

    async def main() -> str:
        task = asyncio.create_task(drop())
        id = await asyncio.to_thread(find_pending, house)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(house.approve, id)
        return id

    id = asyncio.run(main())  # waits for the thread, too
    assert (house.events(id), ran) == (["submitted", "approved"], [])


@pytest.mark.slow
def test_who_presses_control_c_takes_nothing_up(house: House, daemon: Daemon) -> None:
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a shell's background jobs ignore it
        f"from warmstart.confirm import Daemon, ask; ask('drop', 'd', daemon=Daemon({daemon.url!r}, {daemon.token!r}))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE)
    id = find_pending(house)
    process.send_signal(signal.SIGINT)
    house.approve(id)
    _, errors = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    assert house.events(id) == ["submitted", "approved"]


# Nobody there, or nobody sensible


def test_no_daemon_means_no() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    confirm.client.ask._PATIENCE, patience = 0.5, confirm.client.ask._PATIENCE
    try:
        with pytest.raises(Unreachable, match="cannot be reached"):
            ask("x", "d", daemon=Daemon(url, TOKEN))
    finally:
        confirm.client.ask._PATIENCE = patience


def test_a_token_of_another_database_is_told_from_none(daemon: Daemon) -> None:
    with pytest.raises(Unauthorized, match=r"does not know this token.*another database.*--scope agent:submit"):
        ask("x", "d", daemon=daemon._replace(token=pin_token("wsc_wrong", split_token(daemon.token).key)))


def test_no_token_means_no(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unauthorized, match="no token"):
        ask("x", "d")
    monkeypatch.setenv("WARMSTART_CONFIRM_TOKEN", "t")
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", "ftp://nowhere")
    with pytest.raises(ConfigError, match="WARMSTART_CONFIRM_URL"):
        ask("x", "d")


def test_a_token_that_others_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from warmstart.confirm.tokens.files import save_token

    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path))
    file = tmp_path / "confirm-agent.token"
    save_token(file, "wsc_x")
    assert confirm.find_daemon() == Daemon("http://127.0.0.1:6000", "wsc_x")
    file.chmod(0o644)
    with pytest.raises(ConfigError, match="others can read it"):
        confirm.find_daemon()


class Liar(BaseHTTPRequestHandler):
    """A server on the port that is not the daemon."""

    protocol_version = "HTTP/1.1"
    answers: list[tuple[int, bytes]] = []  # noqa: RUF012

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if CHALLENGE in self.headers:  # it proves to be the daemon, as one gone mad would
            status, body = 200, b"{}"
        else:
            status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        self.send_response(status)
        for name, value in prove(self, status, body).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Location", "/elsewhere")
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    monkeypatch.setattr(confirm.client.ask, "_PATIENCE", 0.2)
    with serving(Liar) as address:
        yield Daemon(f"http://{address}", TOKEN)


def reply(number: int, **body: Any) -> tuple[int, bytes]:
    return number, json.dumps(body).encode()


RECEIPT = reply(202, id="ab" * 16, status="pending")
DECIDED = {"status": "approved", "by": "x", "reason": "", "at": "2026-01-01T00:00:00+00:00"}


NONSENSE = (
    [
        [(200, b"yes")],
        [(200, b"[]")],
        [(200, b"{}")],
        [(204, b"")],
        [(500, b"{}")],
        [(302, b"{}")],
        [(404, b"{}")],
        [reply(202, id="../../x")],
        [reply(202, id=5)],
        [RECEIPT, reply(200, status="approved")],
        [RECEIPT, reply(200, id="ab" * 16, status="approved", decision={"status": "approved"})],
        [RECEIPT, reply(200, id="ab" * 16, status="approved", decision=DECIDED | {"status": "sure"})],
        [RECEIPT, reply(200, id="ab" * 16, status="approved", decision=DECIDED | {"at": "soon"})],
        [RECEIPT, reply(200, id="ab" * 16, status="approved", decision=DECIDED)],  # without an execution token
        [RECEIPT, (200, b"\xff\xfe")],
        [RECEIPT, reply(404, error="gone", code="not_found")],
        [RECEIPT, reply(200, id="ab" * 16, status="approved", decision=DECIDED, execution={"token": "t"}), reply(409, error="changed", code="changed")],
    ]
)  # fmt: skip


@pytest.mark.slow
def test_nonsense_means_no(liar: Daemon) -> None:
    for answers in NONSENSE:
        Liar.answers = list(answers)
        with pytest.raises(ConfirmationError):
            ask("x", "d", timeout=0.5, daemon=liar)


@pytest.mark.parametrize("said", [None, "soon", -1, 0, 1e9, float("nan"), [300]])
def test_a_deadline_that_is_none_means_no(liar: Daemon, said: Any) -> None:
    Liar.answers = [reply(202, id="ab" * 16, status="pending", timeout_seconds=said)]
    with pytest.raises(Unreachable, match="not that of a confirmation daemon"):
        submit("x", "d", daemon=liar)


# The decorator


def test_a_decorated_function_runs_after_a_yes_with_what_was_shown(house: House, daemon: Daemon) -> None:
    ran: list[Any] = []

    @requires_confirmation("delete_data", timeout=60, daemon=daemon)
    def drop(table: str, rows: int = 3, *, force: bool = False) -> str:
        """Drop a table."""
        ran.append((table, rows, force))
        return "dropped"

    person = Person(house, "approve")
    assert drop("orders", force=True) == "dropped"
    person.join()
    assert ran == [("orders", 3, True)]
    (listed,) = house.call("GET", "/confirm", token=house.approver).body["requests"]
    shown = house.get(listed["id"], house.approver)
    assert shown["details"] == {"table": "orders", "rows": 3, "force": True}
    assert shown["description"].endswith("drop: Drop a table.")
    person = Person(house, "deny")
    with pytest.raises(Denied):
        drop("customers")
    person.join()
    assert len(ran) == 1
    assert drop.__name__ == "drop"


def test_arguments_that_change_while_waiting_do_not_run(house: House, daemon: Daemon) -> None:
    ran: list[Any] = []

    @requires_confirmation("delete_data", timeout=60, daemon=daemon)
    def drop(tables: list[str]) -> None:
        ran.append(tables)

    tables = ["old"]
    person = Person(house, "approve", before=lambda: tables.append("new"))
    with pytest.raises(Conflict, match="not the action and details"):
        drop(tables)
    person.join()
    assert ran == []
    person = Person(house, "approve", before=lambda: tables.append("newer"))
    with pytest.raises(BadRequest, match="changed during the wait"):
        ask("delete_data", "Drop", {"tables": tables}, 60, daemon=daemon)
    person.join()


def test_methods_coroutines_and_other_arguments(house: House, daemon: Daemon) -> None:
    class Shop:
        @requires_confirmation("delete_data", timeout=60, daemon=daemon)
        def drop(self, table: str) -> str:
            return table

        @requires_confirmation(
            "delete_data", timeout=60, describe=lambda self, path: {"path": str(path)}, daemon=daemon
        )
        async def unlink(self, path: Path) -> Path:
            return path

    person = Person(house, "approve")
    assert Shop().drop("orders") == "orders"
    person.join()
    person = Person(house, "approve")
    assert asyncio.run(Shop().unlink(Path("/x"))) == Path("/x")
    person.join()
    with pytest.raises(BadRequest, match="JSON cannot hold"):
        Shop().drop(Path("/x"))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Shop().drop()  # type: ignore[call-arg]


# The package


def test_the_public_names_are_exact() -> None:
    assert sorted(confirm.__all__) == dir(confirm)
    for name in confirm.__all__:
        assert getattr(confirm, name).__doc__, name
    with pytest.raises(AttributeError):
        _ = confirm.nonsense
    assert issubclass(ConfirmationError, WarmstartError)


def test_asking_loads_nothing_heavy() -> None:
    code = (
        "import sys; from warmstart.confirm import ask, requires_confirmation; "
        "print([m for m in ('apsw', 're2', 'litestar', 'uvicorn', 'apprise', 'asyncio', 'httpx', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
