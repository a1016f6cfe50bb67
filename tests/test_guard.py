"""The guard as Claude Code runs it: a process with an event on its standard input, and a real daemon."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from confirm_page.daemon import Daemon
from warmstart.confirm.canonical import digest_deed
from warmstart.confirm.token_files import AGENT_TOKEN, save_token
from warmstart.doors.guard import Guard, describe_call
from warmstart.doors.guard_rules import ToolCall

PROGRAM = Path(sys.executable).with_name("warmstart")
RULES = """
[[rule]]
tool = "Bash"
arguments = { command = 'rm' }
action = "delete_data"
description = "removes files"

[[rule]]
tool = "mcp__mail__*"
action = "send_mail"
"""
INPUT = {"command": "rm -rf build", "description": "Clean up"}


class Hook:
    """A hook that runs."""

    def __init__(self, home: Path, said: bytes, within: int, environ: dict[str, str]) -> None:
        words = [str(PROGRAM), "confirm", "guard", "claude-code", "--within", str(within)]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | {"WARMSTART_HOME": str(home)} | environ
        )
        assert self.process.stdin
        self.process.stdin.write(said)
        self.process.stdin.close()
        self.process.stdin = None

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def answer(self) -> dict[str, Any] | None:
        """What it tells Claude Code; None is nothing."""
        code, out, err = self.end()
        assert (code, err) == (0, b""), (code, out, err)
        if not out:
            return None
        said = json.loads(out)
        assert list(said) == ["hookSpecificOutput"] and said["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
        return dict(said["hookSpecificOutput"])

    def blocked(self) -> str:
        """Why it was blocked."""
        answer = self.answer()
        assert answer and answer["permissionDecision"] == "deny", answer
        return str(answer["permissionDecisionReason"])


def event(tool: str = "Bash", given: Any = INPUT, **more: Any) -> bytes:
    said = {"session_id": "s-1", "transcript_path": "/t", "cwd": "/srv", "hook_event_name": "PreToolUse"}
    return json.dumps(said | {"tool_name": tool, "tool_input": given, "tool_use_id": "toolu_1"} | more).encode()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    started = Daemon(tmp_path_factory.mktemp("daemon"))
    yield started
    started.stop()


@pytest.fixture
def home(tmp_path: Path, daemon: Daemon) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    (made / "guard.toml").write_text(RULES)
    save_token(made / AGENT_TOKEN, daemon.token("claude-code", "agent:submit"))
    return made


@pytest.fixture
def start(home: Path, daemon: Daemon) -> Iterator[Callable[..., Hook]]:
    started: list[Hook] = []

    def start_hook(said: bytes | None = None, within: int = 120, **environ: str) -> Hook:
        environ = {"WARMSTART_CONFIRM_URL": daemon.server.api_url} | environ
        started.append(Hook(home, event() if said is None else said, within, environ))
        return started[-1]

    yield start_hook
    for hook in started:
        hook.process.kill()
        hook.process.communicate()


def wait_for_request(daemon: Daemon, known: set[str]) -> dict[str, Any]:
    """The one that was not there before."""
    for _ in range(300):
        for one in daemon.server.desk.list_requests(
            status="pending", action=None, subject_key=None, limit=50, before=None
        ):
            if one.id not in known:
                return daemon.find(one.id, "claude-code")
        time.sleep(0.05)
    raise AssertionError("nobody asked")


def list_known(daemon: Daemon) -> set[str]:
    desk = daemon.server.desk
    return {one.id for one in desk.list_requests(status=None, action=None, subject_key=None, limit=200, before=None)}


class TestDecisions:
    @pytest.mark.parametrize(("tool", "given"), [("Read", {"file_path": "/x"}), ("Bash", {"command": "ls"})])
    def test_what_no_rule_names_is_left_alone(self, start, daemon, tool, given):
        known = list_known(daemon)
        assert start(event(tool, given)).answer() is None
        assert list_known(daemon) == known

    def test_a_named_call_waits_and_runs_after_a_yes(self, start, daemon):
        known = list_known(daemon)
        hook = start()
        asked = wait_for_request(daemon, known)
        details = {"agent": "claude-code", "tool": "Bash", "arguments": INPUT, "folder": "/srv"}
        assert (asked["action"], asked["high_risk"], asked["session_key"]) == ("delete_data", True, "s-1")
        assert asked["description"] == "Claude Code wants to use Bash: removes files"
        assert asked["details"] == details and asked["digest"] == digest_deed("delete_data", details)
        time.sleep(0.5)
        assert hook.process.poll() is None, "it waits"
        daemon.decide(asked["id"], "approve")
        answer = hook.answer()
        assert answer and (answer["permissionDecision"], answer["permissionDecisionReason"]) == (
            "allow", "approved by bob")  # fmt: skip
        assert daemon.find(asked["id"], "claude-code")["executed"], "the one-use token was taken up"

    def test_no(self, start, daemon):
        known = list_known(daemon)
        hook = start()
        daemon.decide(wait_for_request(daemon, known)["id"], "deny", reason="Not on a Friday")
        why = hook.blocked()
        assert "denied by bob: Not on a Friday" in why and "not run" in why and "by other means" in why

    def test_nobody_decides(self, start, daemon):
        began = time.monotonic()
        assert "nobody decided in time" in start(within=23).blocked()
        assert time.monotonic() - began < 18, "before Claude Code would have ended it"

    def test_no_time_at_all(self, start):
        assert "no time to ask" in start(within=10).blocked()

    def test_the_whitelist_allows_but_does_not_answer_for_claude_code(self, start, daemon):
        from warmstart.confirm.access import NewAllowance
        from warmstart.confirm.model import Identity

        boss = Identity("boss", "boss", frozenset(("admin",)), "x")
        new = NewAllowance("send_mail", "send_mail", "s-white", 600, "", "")
        daemon.server.desk.allow(new, boss).result()
        known = list_known(daemon)
        assert start(event("mcp__mail__send", {"to": "bob"}, session_id="s-white")).answer() is None
        (new_one,) = list_known(daemon) - known
        assert daemon.find(new_one, "claude-code")["status"] == "auto_approved"
        assert daemon.find(new_one, "claude-code")["executed"]

    def test_it_cannot_be_switched_off_by_the_environment(self, start):
        assert start(within=10, WARMSTART_OFF="1").blocked()

    def test_a_daemon_that_restarts_meanwhile(self, start, daemon):
        known = list_known(daemon)
        hook = start()
        asked = wait_for_request(daemon, known)
        daemon.stop()
        time.sleep(1)
        daemon.start()
        daemon.decide(asked["id"], "approve")
        answer = hook.answer()
        assert answer and answer["permissionDecision"] == "allow"


class TestTrouble:
    """Everything that can go wrong blocks the call."""

    def test_no_daemon(self, start):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            why = start(WARMSTART_CONFIRM_URL=f"http://127.0.0.1:{free.getsockname()[1]}").blocked()
        assert "cannot be reached" in why

    def test_a_daemon_that_says_nothing(self, start):
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            began = time.monotonic()
            assert start(within=22, WARMSTART_CONFIRM_URL=url).blocked()
            assert time.monotonic() - began < 21

    @pytest.mark.parametrize(
        "said",
        [
            b"<html>welcome</html>",
            b"{}",
            b'{"id": "x", "status": "approved"}',
            b'{"id": "abc", "status": "approved", "decision": {"status": "maybe", "by": "", "reason": "", "at": ""}}',
            b'{"id": "abc", "status": "approved", "decision": {"status": "approved", "by": "x", "reason": "", "at": "2026-01-01"}}',
        ],
    )
    def test_a_daemon_that_talks_nonsense(self, start, said):
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None: ...

            def answer(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(200)
                self.send_header("Content-Length", str(len(said)))
                self.end_headers()
                self.wfile.write(said)

            do_GET = do_POST = answer  # noqa: N815

        with HTTPServer(("127.0.0.1", 0), Handler) as fake:
            threading.Thread(target=fake.serve_forever, daemon=True).start()
            assert start(WARMSTART_CONFIRM_URL=f"http://127.0.0.1:{fake.server_port}").blocked()
            fake.shutdown()

    def test_no_token_and_wrong_ones(self, start, home, daemon):
        assert "token" in start(WARMSTART_CONFIRM_TOKEN="wsc_wrong").blocked()
        approver = daemon.token("bob", "approver:decide")
        assert "agent:submit" in start(WARMSTART_CONFIRM_TOKEN=approver).blocked()
        (home / AGENT_TOKEN).unlink()
        assert "no token" in start().blocked()

    @pytest.mark.parametrize("rules", [None, "", "[[rule]]\ntool = 1", "\0"])
    @pytest.mark.parametrize("tool", ["Bash", "Read"])
    def test_rules_that_are_none_block_every_call(self, start, home, rules, tool):
        (home / "guard.toml").unlink()
        if rules is not None:
            (home / "guard.toml").write_text(rules)
        assert "guard.toml" in start(event(tool)).blocked()

    @pytest.mark.parametrize(
        "said",
        [
            b"",
            b"{",
            b"[]",
            b"null",
            b"\xff",
            b"{}",
            b'{"tool_name": 1, "tool_input": {}}',
            b'{"tool_name": "Bash", "tool_input": "rm"}',
            b'{"tool_name": "", "tool_input": {}}',
            b"[" * 100_000,
            event(hook_event_name="PostToolUse"),
        ],
        ids=lambda said: said[:30],
    )
    def test_events_that_are_none(self, start, said):
        assert "the guard failed" in start(said).blocked()

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ({"command": "rm \ud800"}, "surrogate"),
            ({"command": "rm", "n": float("nan")}, "not finite"),
            ({"command": "rm " + "x" * 300_000}, "256 KiB"),
            ({"command": "rm", "deep": json.loads("[" * 200 + "]" * 200)}, "deep"),
        ],
    )
    def test_arguments_that_cannot_be_shown_exactly(self, start, given, reason):
        assert reason in start(event(given=given)).blocked()

    def test_too_many_requests(self, home, tmp_path_factory):
        with_limit = Daemon(tmp_path_factory.mktemp("limited"), rate_limit=1)
        try:
            save_token(home / AGENT_TOKEN, with_limit.token("claude-code", "agent:submit"))
            with_limit.submit("send_mail")
            environ = {"WARMSTART_CONFIRM_URL": with_limit.server.api_url}
            why = Hook(home, event("mcp__mail__send", {}), 60, environ).blocked()
            assert "send_mail" in why or "too many" in why.lower()
        finally:
            with_limit.stop()

    @pytest.mark.parametrize("words", [["--nonsense", "1"], ["--within"], ["--within", "soon"]])
    def test_options_that_are_none(self, home, words):
        done = subprocess.run(
            [PROGRAM, "confirm", "guard", "claude-code", *words], input=event(), capture_output=True, check=False
        )
        assert done.returncode == 0 and json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"

    def test_nobody_reads_the_answer(self, home):
        """Then the exit code says it."""
        read, write = os.pipe()
        os.close(read)
        environ = os.environ | {"WARMSTART_HOME": str(home)}
        done = subprocess.run(
            [PROGRAM, "confirm", "guard", "claude-code"], input=b"{", stdout=write, stderr=subprocess.PIPE, env=environ, check=False
        )  # fmt: skip
        os.close(write)
        assert done.returncode == 2 and b"Blocked, and not run" in done.stderr

    def test_trouble_is_logged_without_what_was_asked(self, start, home):
        start(WARMSTART_CONFIRM_TOKEN="wsc_wrong").blocked()
        log = (home / "hooks.log").read_text()
        assert "guard: Unauthorized" in log and "build" not in log

    def test_whatever_is_raised_blocks(self, tmp_path):
        """Not only what was foreseen: here the home is something that no path can be."""
        verdict = Guard(None, "Test").check(ToolCall("a", "Bash", {}))  # type: ignore[arg-type]
        assert verdict.kind == "blocked" and "the guard failed" in verdict.reason


def test_an_interrupted_wait_blocks(home, daemon, monkeypatch):
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", daemon.server.api_url)
    guard = Guard(home, "Test", pulse=lambda: "the user went away")
    verdict = guard.check(ToolCall("a", "Bash", {"command": "rm"}))
    assert verdict.kind == "blocked" and "the user went away" in verdict.reason


def test_arguments_that_change_meanwhile_are_not_what_was_approved(home, daemon, monkeypatch):
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", daemon.server.api_url)
    arguments = {"command": "rm a"}
    call = ToolCall("a", "Bash", arguments)
    known = list_known(daemon)
    verdicts: list[Any] = []
    thread = threading.Thread(target=lambda: verdicts.append(Guard(home, "Test").check(call)))
    thread.start()
    asked = wait_for_request(daemon, known)
    arguments["command"] = "rm -rf /"
    daemon.decide(asked["id"], "approve")
    thread.join(20)
    assert verdicts[0].kind == "blocked" and "changed" in verdicts[0].reason
    assert daemon.find(asked["id"], "claude-code")["executed"] is None
    assert describe_call(call)["arguments"] is arguments
