"""The guard in the real Hermes: a call that a rule names waits for a decision, in every mode.

The hook by itself is tested below, and every way to block a call in tests/doors/guard.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from doors.pages.confirm.daemon import Daemon
from hermes.running import TASK, Hermes, answer_in_turn, variant
from hermes.scripted_server import Answer, Call, ScriptedServer
from warmstart.confirm.model import Status
from warmstart.confirm.tokens.files import AGENT_TOKEN, save_token
from warmstart.doors.guard.hermes import find_trouble, make_hook
from warmstart.doors.guard.hermes_check import check_hermes
from warmstart.doors.guard.rules import find_rules

RULES = """
[[rule]]
tool = "terminal"
arguments = { command = 'touch' }
action = "touch_files"
timeout_seconds = 60
"""
TOUCH = {"command": "touch made-by-hermes.txt"}
TURN = (Answer(calls=[Call("terminal", TOUCH)]), Answer("Done with it."))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    started = Daemon(tmp_path_factory.mktemp("daemon"))
    yield started
    started.stop()


@pytest.fixture
def guarded(hermes: Hermes, server: ScriptedServer, daemon: Daemon) -> Hermes:
    (hermes.warm_home / "guard.toml").write_text(RULES)
    save_token(hermes.warm_home / AGENT_TOKEN, daemon.token("hermes", "agent:submit"))
    hermes.environ["WARMSTART_CONFIRM_URL"] = daemon.server.api_url
    server.script = answer_in_turn(*TURN)
    return hermes


class Person:
    """Acts on the next request as soon as it arrives."""

    def __init__(self, daemon: Daemon, act: Callable[[str], object]) -> None:
        self._desk = daemon.server.desk
        known = self._list_ids()
        self.asked: dict[str, Any] = {}

        def wait() -> None:
            for _ in range(6_000):
                if new := self._list_ids("pending") - known:
                    (id,) = new
                    self.asked = daemon.find(id, "hermes")
                    act(id)
                    return
                time.sleep(0.05)

        threading.Thread(target=wait, daemon=True).start()

    def _list_ids(self, status: Status | None = None) -> set[str]:
        found = self._desk.list_requests(status=status, action=None, subject_key=None, limit=200, before=None)
        return {one.id for one in found}


def is_made(hermes: Hermes) -> bool:
    return (hermes.work / "made-by-hermes.txt").exists()


def tool_result(server: ScriptedServer) -> str:
    """Return the result of its call that the model saw."""
    messages = server.asked()[-1].body["messages"]
    return str(next(m["content"] for m in reversed(messages) if m["role"] == "tool"))


MODES = [("chat", "-q", TASK), ("chat", "--yolo", "-q", TASK), ("-z", TASK)]


@pytest.mark.slow
@pytest.mark.parametrize("words", [pytest.param(MODES[0], id="chat"), pytest.param(MODES[1], id="yolo", marks=variant)])
def test_it_runs_after_a_yes(guarded, server, daemon, words):
    person = Person(daemon, lambda asked: daemon.decide(asked, "approve"))
    guarded.run(*words)
    assert is_made(guarded), tool_result(server)
    assert (person.asked["action"], person.asked["requester"]) == ("touch_files", "hermes")
    assert person.asked["details"]["tool"] == "terminal"
    assert person.asked["details"]["arguments"]["command"] == TOUCH["command"]
    assert daemon.find(person.asked["id"], "hermes")["executed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(MODES[0], id="chat", marks=variant),
        pytest.param(MODES[1], id="yolo"),
        pytest.param(MODES[2], id="oneshot", marks=variant),
    ],
)
def test_it_is_blocked_after_a_no(guarded, server, daemon, words):
    Person(daemon, lambda asked: daemon.decide(asked, "deny", reason="Touch nothing"))
    guarded.run(*words)
    assert not is_made(guarded)
    assert "denied by bob: Touch nothing" in tool_result(server)


@variant
def test_it_is_blocked_when_nobody_decides(guarded, server, daemon):
    Person(daemon, lambda _: setattr(daemon.clock, "ahead", daemon.clock.ahead + 61))
    guarded.run("chat", "--yolo", "-q", TASK)
    assert not is_made(guarded) and "nobody decided in time" in tool_result(server)


@variant
def test_it_is_blocked_without_a_daemon(guarded, server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        guarded.run("chat", "--yolo", "-q", TASK, WARMSTART_CONFIRM_URL=url)
    assert not is_made(guarded) and "cannot be reached" in tool_result(server)


@variant
def test_it_is_blocked_by_rules_that_are_none(guarded, server):
    (guarded.warm_home / "guard.toml").write_text("[[rule]\n")
    guarded.run("chat", "--yolo", "-q", TASK)
    assert not is_made(guarded) and "guard.toml: not valid TOML" in tool_result(server)


@variant
def test_calls_inside_a_program_are_guarded_too(guarded, server, daemon):
    """`execute_code` calls tools from a script: those reach the guard without a session."""
    code = f"from hermes_tools import terminal\nprint(terminal({TOUCH['command']!r}))"
    server.script = answer_in_turn(Answer(calls=[Call("execute_code", {"code": code})]), Answer("Done."))
    Person(daemon, lambda asked: daemon.decide(asked, "deny", reason="Not from a script"))
    guarded.run("chat", "--yolo", "-q", TASK)
    assert not is_made(guarded) and "Not from a script" in tool_result(server)


@variant
def test_without_rules_nothing_is_asked(hermes, server):
    server.script = answer_in_turn(*TURN)
    hermes.run("chat", "--yolo", "-q", TASK)
    assert is_made(hermes)


BROKEN = "raise ImportError('built for another Python', name='msgspec')\n"
ASKING = """
import json
from hermes_cli.plugins import discover_plugins, get_plugin_manager, resolve_pre_tool_block
discover_plugins()
asked = [resolve_pre_tool_block("terminal", {"command": command}) for command in ("touch made-by-hermes.txt", "ls")]
plugins = {one["name"]: one["error"] for one in get_plugin_manager().list_plugins() if "warmstart" in one["name"]}
hooks = [one for one in get_plugin_manager()._hooks.get("pre_tool_call", []) if hasattr(one, "is_warmstart_guard")]
from warmstart.doors.guard.hermes import find_trouble
print(json.dumps({"asked": asked, "plugins": plugins, "hooks": len(hooks), "trouble": find_trouble()}))
"""


@pytest.mark.slow
def test_a_plugin_that_cannot_be_loaded_does_not_switch_the_guard_off(hermes, tmp_path):
    """A rebuilt environment has lost a package: Hermes goes on without the plugin, and must not without the guard."""
    (hermes.warm_home / "guard.toml").write_text(RULES)
    hermes.configure("warmstart", "warmstart-guard")
    script = tmp_path / "asking.py"
    script.write_text(ASKING)
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / "msgspec.py").write_text(BROKEN)
    told = hermes.script(script, PYTHONPATH=str(lost))
    assert "built for another Python" in told["plugins"]["warmstart"] and not told["plugins"]["warmstart-guard"]
    assert all("the guard cannot be loaded (ImportError: msgspec)" in reason for reason in told["asked"])
    assert "Install Warmstart again" in told["asked"][0]
    assert told["trouble"].startswith("it cannot be loaded, so that every call is blocked: ImportError: built for")
    whole = hermes.script(script, WARMSTART_CONFIRM_URL="http://127.0.0.1:1")
    assert (whole["hooks"], whole["asked"][1], whole["trouble"]) == (1, None, "")
    assert "no token in" in whole["asked"][0], "the rule applies, and nobody can be asked"


@variant
def test_a_broken_environment_blocks_a_chat(guarded, server, tmp_path):
    guarded.configure("warmstart", "warmstart-guard")
    (tmp_path / "msgspec.py").write_text(BROKEN)
    guarded.run("chat", "--yolo", "-q", TASK, PYTHONPATH=str(tmp_path))
    assert not is_made(guarded) and "the guard cannot be loaded" in tool_result(server)


class TestCheck:
    """The line about Hermes in `guard check`."""

    @pytest.fixture
    def settings(self, tmp_path) -> Path:
        (tmp_path / ".hermes").mkdir()
        return tmp_path / ".hermes" / "config.yaml"

    def test_without_hermes_there_is_nothing_to_report(self, tmp_path):
        assert check_hermes(tmp_path, {}) is None

    @pytest.mark.parametrize(
        ("plugins", "trouble"),
        [
            ("{enabled: [warmstart, warmstart-guard]}", ""),
            ("{enabled: [warmstart]}", "guarded only while the whole plugin can be loaded"),
            ("{enabled: [warmstart-guard], disabled: [warmstart-guard]}", "not guarded; run: hermes plugins enable"),
            ("{}", "not guarded; run: hermes plugins enable warmstart-guard"),
            ("[", "cannot be read, so that nobody knows"),
        ],
    )
    def test_enabled_or_not(self, tmp_path, settings, plugins, trouble):
        settings.write_text(f"plugins: {plugins}\n")
        result = check_hermes(tmp_path, {"PATH": ""})
        assert result and result.what == str(settings) and result.trouble.startswith(trouble)
        assert bool(result.trouble) == bool(trouble)

    def test_every_profile_counts(self, tmp_path, settings):
        other = settings.parent / "profiles" / "work" / "config.yaml"
        other.parent.mkdir(parents=True)
        settings.write_text("plugins: {enabled: [warmstart-guard]}\n")
        other.write_text("plugins: {enabled: []}\n")
        result = check_hermes(tmp_path, {"PATH": "", "HERMES_HOME": str(other.parent)})
        assert result and result.what == str(other) and "not guarded" in result.trouble

    @pytest.mark.parametrize(
        ("answer", "trouble"),
        [
            ("exit 0", ""),
            ("echo it cannot be loaded, so that every call is blocked", "it cannot be loaded"),
            ("echo No module named warmstart >&2; exit 1", "not guarded: "),
        ],
    )
    def test_the_python_of_hermes_is_asked(self, tmp_path, settings, answer, trouble):
        settings.write_text("plugins: {enabled: [warmstart-guard]}\n")
        for name in ("hermes", "python"):
            program = tmp_path / "bin" / name
            program.parent.mkdir(exist_ok=True)
            program.write_text(f"#!/bin/sh\n{answer}\n")
            program.chmod(0o755)
        result = check_hermes(tmp_path, {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
        assert result and result.trouble.startswith(trouble) and bool(result.trouble) == bool(trouble)

    def test_an_old_warmstart_is_noticed(self, tmp_path):
        """Without the plugin's entry point Hermes would not find it. What this Python has may be older or newer."""
        assert find_trouble() == "" or "too old" in find_trouble()
        assert find_rules(Path("/x")) == Path("/x/guard.toml")


class TestHook:
    """The hook by itself: whatever Hermes hands it, it never raises."""

    @pytest.mark.parametrize("home", [None, 5, "\0", Path("/nowhere")])
    def test_trouble_blocks(self, home):
        answer = make_hook(home)(tool_name="terminal", args={"command": "touch x"}, session_id="s")
        assert answer and answer["action"] == "block" and answer["message"]

    @pytest.mark.parametrize("given", [{"tool_name": 5}, {"tool_name": "terminal", "args": "touch"}, {"args": [1]}])
    def test_calls_that_make_no_sense_block(self, tmp_path, given):
        (tmp_path / "guard.toml").write_text(RULES)
        answer = make_hook(tmp_path)(**given)
        assert answer and answer["action"] == "block" and "no sense" in answer["message"]

    def test_other_calls_are_left_alone(self, tmp_path):
        (tmp_path / "guard.toml").write_text(RULES)
        guard = make_hook(tmp_path)
        assert guard(tool_name="terminal", args={"command": "ls"}, unknown=json) is None
        assert guard(tool_name="read_file", args=None) is None


class TestAsking:
    """The hook by itself, and a real daemon."""

    @pytest.fixture
    def home(self, tmp_path, daemon, monkeypatch) -> Path:
        (tmp_path / "guard.toml").write_text(RULES)
        save_token(tmp_path / AGENT_TOKEN, daemon.token("hermes", "agent:submit"))
        monkeypatch.setenv("WARMSTART_CONFIRM_URL", daemon.server.api_url)
        monkeypatch.delenv("WARMSTART_CONFIRM_TOKEN", raising=False)
        return tmp_path

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("WARMSTART_CONFIRM_URL", "http://127.0.0.1:1"),
            ("WARMSTART_CONFIRM_TOKEN", "wsc_other"),
            ("WARMSTART_HOME", "/x"),
        ],
    )
    def test_where_it_asks_is_settled_at_the_start(self, home, daemon, monkeypatch, name, value):
        hook = make_hook(home)
        monkeypatch.setenv(name, value)
        person = Person(daemon, lambda asked: daemon.decide(asked, "deny", reason="Here I am"))
        answer = hook(tool_name="terminal", args=TOUCH, session_id="s")
        assert answer and "Here I am" in answer["message"], answer
        assert person.asked["requester"] == "hermes"

    @pytest.mark.slow
    def test_an_interrupted_turn_is_not_recorded_as_done(self, home, daemon, monkeypatch):
        """The person says yes a moment later."""
        interrupted: list[str] = []
        module = ModuleType("tools.interrupt")
        module.is_interrupted = lambda: bool(interrupted)  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "tools", ModuleType("tools"))
        monkeypatch.setitem(sys.modules, "tools.interrupt", module)
        Person(daemon, interrupted.append)
        answer = make_hook(home)(tool_name="terminal", args=TOUCH, session_id="s")
        assert answer and "interrupted" in answer["message"]
        daemon.decide(interrupted[0], "approve")
        time.sleep(1)
        asked = daemon.find(interrupted[0], "hermes")
        assert (asked["status"], asked["executed"]) == ("approved", None)
