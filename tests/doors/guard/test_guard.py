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
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from confirm.signing import SEED, prove
from doors.pages.confirm.daemon import Daemon
from warmstart.confirm.canonical import digest_deed
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens.files import AGENT_TOKEN, save_token
from warmstart.confirm.tokens.identity import pin_token
from warmstart.doors.guard.guard import Guard, describe_call
from warmstart.doors.guard.rules import GuardedCall

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
    """A running hook process."""

    def __init__(self, said: bytes, words: list[object], environ: dict[str, str]) -> None:
        words = [PROGRAM, "confirm", "guard", "claude-code", *words]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            list(map(str, words)), stdin=pipe, stdout=pipe, stderr=pipe, env=os.environ | environ
        )
        assert self.process.stdin
        self.process.stdin.write(said)
        self.process.stdin.close()
        self.process.stdin = None

    def end(self) -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, out, err

    def answer(self) -> dict[str, Any] | None:
        """Return the answer to Claude Code, or None if there is no output."""
        code, out, err = self.end()
        assert (code, err) == (0, b""), (code, out, err)
        if not out:
            return None
        said = json.loads(out)
        assert list(said) == ["hookSpecificOutput"] and said["hookSpecificOutput"]["hookEventName"] == "PreToolUse"
        return dict(said["hookSpecificOutput"])

    def blocked(self) -> str:
        """Return why the call was blocked."""
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

    def start_hook(said: bytes | None = None, within: int = 120, url: str = "", **environ: str) -> Hook:
        words: list[object] = ["--home", home, "--url", url or daemon.server.api_url, "--within", within]
        started.append(Hook(event() if said is None else said, words, environ))
        return started[-1]

    yield start_hook
    for hook in started:
        hook.process.kill()
        hook.process.communicate()


def wait_for_request(daemon: Daemon, known: set[str]) -> dict[str, Any]:
    """Wait for a new request."""
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


class Fake:
    """A fake daemon that knows a token, gives every request the same answer and records what it was sent. With a key it
    proves to be the daemon."""

    def __init__(self, said: bytes, token: str = "", seed: str = SEED) -> None:
        self.sent: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None: ...

            def answer(handler) -> None:  # noqa: N805
                self.sent.append(str(handler.headers))
                handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
                handler.send_response(200)
                for name, value in prove(handler, 200, said, token, seed).items():
                    handler.send_header(name, value)
                handler.send_header("Content-Length", str(len(said)))
                handler.end_headers()
                handler.wfile.write(said)

            do_GET = do_POST = answer  # noqa: N815

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Fake:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


# What a daemon says that approves everything.
_DECIDED = {"status": "approved", "by": "x", "reason": "", "at": "2026-01-01T00:00:00+00:00"}
YES = json.dumps(
    {"id": "ab" * 16, "status": "approved", "decision": _DECIDED, "execution": {"token": "t"}, "timeout_seconds": 300}
).encode()


class TestEnvironment:
    """A project's settings may set variables for the hook. None of them redirects it."""

    @pytest.mark.slow
    def test_another_daemon(self, start, daemon):
        with Fake(YES) as fake:
            hook = start(within=22, WARMSTART_CONFIRM_URL=fake.url)
            assert "nobody decided in time" in hook.blocked()
        assert not fake.sent, "the token was not sent"

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["WARMSTART_HOME", "HOME"])
    def test_another_home(self, start, tmp_path, name):
        (tmp_path / ".warmstart").mkdir()
        for rules in (tmp_path / "guard.toml", tmp_path / ".warmstart" / "guard.toml"):
            rules.write_text('[[rule]]\ntool = "nothing"\naction = "x"\n')
        assert start(within=22, **{name: str(tmp_path)}).blocked()

    def test_another_token(self, start, daemon):
        known = list_known(daemon)
        hook = start(WARMSTART_CONFIRM_TOKEN=daemon.token("somebody", "agent:submit"))
        asked = wait_for_request(daemon, known)
        assert asked["requester"] == "claude-code"
        daemon.decide(asked["id"], "deny")
        assert hook.blocked()


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

    @pytest.mark.slow
    def test_nobody_decides(self, start, daemon):
        began = time.monotonic()
        assert "nobody decided in time" in start(within=23).blocked()
        assert time.monotonic() - began < 18, "before Claude Code would have ended it"

    def test_no_time_at_all(self, start):
        assert "no time to ask" in start(within=10).blocked()

    def test_the_whitelist_allows_but_does_not_answer_for_claude_code(self, start, daemon):
        from warmstart.confirm.model import Identity
        from warmstart.confirm.tokens.access import NewAllowance

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

    @pytest.mark.slow
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

    @pytest.mark.slow
    def test_no_daemon(self, start):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            why = start(url=f"http://127.0.0.1:{free.getsockname()[1]}").blocked()
        assert "cannot be reached" in why

    @pytest.mark.slow
    def test_a_daemon_that_says_nothing(self, start):
        with socket.create_server(("127.0.0.1", 0)) as deaf:
            url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
            began = time.monotonic()
            assert start(within=22, url=url).blocked()
            assert time.monotonic() - began < 21

    @pytest.mark.parametrize(
        "said",
        [
            pytest.param(b"<html>welcome</html>", marks=pytest.mark.slow),
            b"{}",
            b'{"id": "x", "status": "approved"}',
            b'{"id": "abc", "status": "approved", "decision": {"status": "maybe", "by": "", "reason": "", "at": ""}}',
            b'{"id": "abc", "status": "approved", "decision": {"status": "approved", "by": "x", "reason": "", "at": "2026-01-01"}}',
        ],
    )
    def test_a_daemon_that_talks_nonsense(self, start, daemon, said):
        token = daemon.token("claude-code", "agent:submit")
        with Fake(said, token, daemon.server.desk._keys["identity"]) as fake:
            assert start(url=fake.url).blocked()
            assert any("Bearer" in headers for headers in fake.sent)

    @pytest.mark.slow
    def test_no_token_and_wrong_ones(self, start, home, daemon):
        save_token(home / AGENT_TOKEN, pin_token("wsc_wrong", daemon.server.desk.identity))
        why = start().blocked()
        assert "does not know this token" in why and "token create --scope agent:submit" in why
        save_token(home / AGENT_TOKEN, daemon.token("bob", "approver:decide"))
        assert "agent:submit" in start().blocked()
        (home / AGENT_TOKEN).unlink()
        why = start().blocked()
        assert "no token" in why and "token create --scope agent:submit" in why

    @pytest.mark.slow
    @pytest.mark.parametrize("rules", [None, "", "[[rule]]\ntool = 1", "\0"])
    @pytest.mark.parametrize("tool", ["Bash", "Read"])
    def test_rules_that_are_none_block_every_call(self, start, home, rules, tool):
        (home / "guard.toml").unlink()
        if rules is not None:
            (home / "guard.toml").write_text(rules)
        assert "guard.toml" in start(event(tool)).blocked()

    @pytest.mark.slow
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

    @pytest.mark.slow
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
            words = ["--home", home, "--url", with_limit.server.api_url, "--within", 60]
            why = Hook(event("mcp__mail__send", {}), words, {}).blocked()
            assert "send_mail" in why or "too many" in why.lower()
        finally:
            with_limit.stop()

    @pytest.mark.parametrize("words", [["--nonsense", "1"], ["--within"], ["--within", "60"]])
    def test_options_that_are_none(self, home, words):
        done = subprocess.run(
            [PROGRAM, "confirm", "guard", "claude-code", *words], input=event(), capture_output=True, check=False
        )
        assert done.returncode == 0 and json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"

    def test_nobody_reads_the_answer(self, home):
        """Then the exit code blocks the call."""
        read, write = os.pipe()
        os.close(read)
        environ = os.environ | {"WARMSTART_HOME": str(home)}
        done = subprocess.run(
            [PROGRAM, "confirm", "guard", "claude-code"], input=b"{", stdout=write, stderr=subprocess.PIPE, env=environ, check=False
        )  # fmt: skip
        os.close(write)
        assert done.returncode == 2 and b"Blocked, and not run" in done.stderr

    def test_trouble_is_logged_without_what_was_asked(self, start, home, daemon):
        save_token(home / AGENT_TOKEN, pin_token("wsc_wrong", daemon.server.desk.identity))
        start().blocked()
        log = (home / "hooks.log").read_text()
        assert "guard: Unauthorized" in log and "build" not in log

    def test_whatever_is_raised_blocks(self, tmp_path):
        """Unforeseen errors block as well: here the home is None."""
        verdict = Guard(None, "Test", url="http://127.0.0.1:1").check(GuardedCall("a", "Bash", {}))  # type: ignore[arg-type]
        assert verdict.kind == "blocked" and "the guard failed" in verdict.reason


@pytest.mark.slow
def test_an_interrupted_wait_blocks_and_a_later_yes_is_not_taken_up(home, daemon):
    known = list_known(daemon)

    def pulse() -> str | None:
        return "the user went away" if list_known(daemon) > known else None

    guard = Guard(home, "Test", url=daemon.server.api_url, pulse=pulse)
    verdict = guard.check(GuardedCall("a", "Bash", {"command": "rm"}))
    assert verdict.kind == "blocked" and "the user went away" in verdict.reason
    (asked,) = list_known(daemon) - known
    daemon.decide(asked, "approve")
    wait_for_threads("warmstart-asking")
    assert daemon.find(asked, "claude-code")["executed"] is None, "the audit would say that it was done"


def wait_for_threads(name: str) -> None:
    """Wait until the asking threads have ended by themselves."""
    for _ in range(400):
        if not any(thread.name == name for thread in threading.enumerate()):
            return
        time.sleep(0.05)
    raise AssertionError("a thread still asks")


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "longest", "seconds"), [("", 3_600, 900), ("timeout_seconds = 60", 3_600, 60)])
def test_the_policy_says_how_long_where_the_rule_does_not(home, tmp_path, rule, longest, seconds):
    policy = parse_policy('[[rule]]\naction = "send_mail"\ntimeout_seconds = 900')
    patient = Daemon(tmp_path, policy=policy)
    try:
        save_token(home / AGENT_TOKEN, patient.token("claude-code", "agent:submit"))
        (home / "guard.toml").write_text(f'[[rule]]\ntool = "mail"\naction = "send_mail"\n{rule}\n')
        known = list_known(patient)

        def pulse() -> str | None:
            return "seen" if list_known(patient) > known else None

        Guard(home, "Test", url=patient.server.api_url, longest=longest, pulse=pulse).check(
            GuardedCall("a", "mail", {})
        )
        (asked,) = list_known(patient) - known
        assert patient.find(asked, "claude-code")["timeout_seconds"] == seconds
    finally:
        patient.stop()


@pytest.mark.slow
def test_it_waits_no_longer_than_the_agent_lets_it(home, daemon):
    (home / "guard.toml").write_text('[[rule]]\ntool = "mail"\naction = "send_mail"\n')
    began = time.monotonic()
    verdict = Guard(home, "Test", url=daemon.server.api_url, longest=1.5).check(GuardedCall("a", "mail", {}))
    assert verdict.kind == "blocked" and "nobody decided in time" in verdict.reason
    assert time.monotonic() - began < 8, "the policy would have let it wait for five minutes"


def test_arguments_that_change_meanwhile_are_not_what_was_approved(home, daemon):
    arguments = {"command": "rm a"}
    call = GuardedCall("a", "Bash", arguments)
    known = list_known(daemon)
    verdicts: list[Any] = []
    guard = Guard(home, "Test", url=daemon.server.api_url)
    thread = threading.Thread(target=lambda: verdicts.append(guard.check(call)))
    thread.start()
    asked = wait_for_request(daemon, known)
    arguments["command"] = "rm -rf /"
    daemon.decide(asked["id"], "approve")
    thread.join(20)
    assert verdicts[0].kind == "blocked" and "changed" in verdicts[0].reason
    assert daemon.find(asked["id"], "claude-code")["executed"] is None
    assert describe_call(call)["arguments"] is arguments
