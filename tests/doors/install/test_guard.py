"""The guard in Claude Code's settings, and what the commands around it say."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import string
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from doors.pages.confirm.daemon import Daemon
from places import HOWTO
from warmstart.confirm.policy.policy import parse_policy
from warmstart.confirm.tokens.files import AGENT_TOKEN, save_token
from warmstart.confirm.tokens.identity import pin_token
from warmstart.doors.cli.main import main
from warmstart.doors.guard.rules import GuardedCall, find_rule, load_rules
from warmstart.doors.hooks.agents import CLAUDE_CODE
from warmstart.doors.install.guard import name_command
from warmstart.doors.install.hook_settings import calls

is_ours = calls(name_command(CLAUDE_CODE))
RULE = '[[rule]]\ntool = "Bash"\naction = "run_command"\ntimeout_seconds = 300\n'
OTHERS = {"type": "command", "command": "~/bin/notify.sh", "timeout": 3}
SETTINGS = [
    "",
    "{}",
    '{\n  "model": "opus"\n}\n',
    json.dumps(
        {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [OTHERS]}], "Stop": [{"hooks": [OTHERS]}]}}, indent=4
    ),
]


def run(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done


def tell(*words: object, code: int = 0) -> dict[str, Any]:
    return dict(json.loads(run("confirm", "guard", *words, "--json", code=code).stdout))


@pytest.fixture(autouse=True)
def nobody_there(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No daemon of this machine is asked."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("WARMSTART_CONFIRM_URL", f"http://127.0.0.1:{free.getsockname()[1]}")
        yield


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    started = Daemon(tmp_path)
    monkeypatch.setenv("WARMSTART_CONFIRM_URL", started.server.api_url)
    yield started
    started.stop()


@pytest.fixture
def rules() -> Path:
    path = Path(os.environ["WARMSTART_HOME"], "guard.toml")
    path.parent.mkdir()
    path.write_text(RULE)
    return path


@pytest.fixture
def file() -> Path:
    path = Path(os.environ["HOME"], ".claude", "settings.json")
    path.parent.mkdir()
    return path


def find_ours(file: Path) -> list[dict[str, Any]]:
    groups = json.loads(file.read_text()).get("hooks", {}).get("PreToolUse", [])
    return [hook for group in groups for hook in group["hooks"] if is_ours(hook)]


@pytest.mark.parametrize("before", SETTINGS)
def test_in_and_out_again(rules, file, before):
    file.write_text(before)
    assert tell("install", "claude-code")["changed"]
    text = file.read_text()
    (hook,) = find_ours(file)
    assert hook["type"] == "command" and hook["onFailure"] == "block"
    assert hook["timeout"] > 300 and f"--within {hook['timeout']} " in hook["command"]
    group = next(g for g in json.loads(text)["hooks"]["PreToolUse"] if hook in g["hooks"])
    assert group["matcher"] == "*", "every tool: the rules decide"
    assert not tell("install", "claude-code")["changed"] and file.read_text() == text
    assert tell("uninstall", "claude-code")["changed"] and file.read_text() == before
    assert not tell("uninstall", "claude-code")["changed"]


def test_beside_our_other_hooks(rules, file):
    file.write_text('{\n  "model": "opus"\n}\n')
    run("hook", "install", "claude-code")
    run("confirm", "guard", "install", "claude-code")
    run("hook", "uninstall", "claude-code")
    assert len(find_ours(file)) == 1 and list(json.loads(file.read_text())["hooks"]) == ["PreToolUse"]
    run("hook", "install", "claude-code")
    run("confirm", "guard", "uninstall", "claude-code")
    assert not find_ours(file) and "SessionStart" in json.loads(file.read_text())["hooks"]


def test_rules_that_wait_longer_want_a_longer_limit(rules, file):
    file.write_text("{}")
    first = tell("install", "claude-code")["hook"]["timeout"]
    rules.write_text(RULE.replace("300", "1800"))
    assert tell("install", "claude-code")["hook"]["timeout"] == first + 1500
    rules.write_text(RULE.replace("300", "3600") + 'agents = ["hermes"]\n' + RULE)
    assert tell("install", "claude-code")["hook"]["timeout"] == first, "Hermes' rules do not matter here"
    assert len(find_ours(file)) == 1


def test_a_rule_that_leaves_it_to_the_policy_may_wait_as_long_as_that_may_say(rules, file):
    rules.write_text(RULE.replace("timeout_seconds = 300\n", ""))
    assert tell("install", "claude-code")["hook"]["timeout"] > 3_600


def test_the_daemons_address_is_written_down(rules, file):
    said = tell("install", "claude-code")["hook"]["command"]
    assert f" --url {os.environ['WARMSTART_CONFIRM_URL']} " in said
    said = tell("install", "claude-code", "--url", "https://box.example.net:7000")["hook"]["command"]
    assert " --url https://box.example.net:7000 " in said
    for wrong in ("box.example.net", "ftp://x", "http://[", "http://"):
        assert (
            "give the daemon's address"
            in run("confirm", "guard", "install", "claude-code", "--url", wrong, code=2).stderr
        )


def test_without_good_rules_nothing_is_installed(file):
    assert "there are no guard rules" in run("confirm", "guard", "install", "claude-code", code=2).stderr
    Path(os.environ["WARMSTART_HOME"]).mkdir()
    Path(os.environ["WARMSTART_HOME"], "guard.toml").write_text("[[rule]]\n")
    assert "guard.toml" in run("confirm", "guard", "install", "claude-code", code=2).stderr
    assert not file.exists()


def test_settings_that_cannot_be_changed_safely_are_left(rules, file):
    file.write_text('{"a": 1, // mine\n}')
    told = run("confirm", "guard", "install", "claude-code", code=1).stderr
    assert "comments" in told and "left as it is" in told and 'to add by hand: {"hooks": {"PreToolUse"' in told
    assert "remove by hand" in run("confirm", "guard", "uninstall", "claude-code", code=1).stderr
    assert file.read_text() == '{"a": 1, // mine\n}'


def test_a_project(rules, tmp_path, monkeypatch):
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    run("confirm", "guard", "install", "claude-code", "--project")
    assert len(find_ours(project / ".claude" / "settings.json")) == 1
    told = tell("check", code=1)
    assert told["installed"] == {"user": None, "project": str(project / ".claude" / "settings.json")}


def test_in_codex(rules):
    path = Path(os.environ["HOME"], ".codex", "hooks.json")
    told = run("confirm", "guard", "install", "codex").stdout
    assert "open /hooks in Codex" in told
    (group,) = json.loads(path.read_text())["hooks"]["PreToolUse"]
    assert "confirm guard codex --home" in group["hooks"][0]["command"]
    assert list(group["hooks"][0]) == ["type", "command", "timeout"]
    assert tell("check", "--agent", "codex", code=1)["installed"] == {"user": str(path), "project": None}
    assert tell("check", code=1)["installed"]["user"] is None
    assert tell("uninstall", "codex")["changed"] and not path.exists()


class TestCommand:
    """What stands in the settings is run by a shell, as Claude Code does."""

    def shell(self, command: str, said: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", "-c", command], input=said, capture_output=True, text=True, check=False, env=os.environ | environ
        )

    def event(self, tool: str) -> str:
        return json.dumps({"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}})

    def test_it_works(self, rules, file):
        command = tell("install", "claude-code")["hook"]["command"]
        done = self.shell(command, self.event("Read"))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        done = self.shell(command, self.event("Bash"))
        assert done.returncode == 0 and '"permissionDecision": "deny"' in done.stdout

    @pytest.mark.parametrize("program", ["/nowhere/warmstart", "false", "sh -c 'kill -9 $$'", "sh -c 'exit 1'"])
    def test_a_program_that_is_gone_or_broken_blocks(self, rules, file, program):
        _, _, rest = tell("install", "claude-code")["hook"]["command"].partition(" ")
        command = f"{program} {rest}"
        done = self.shell(command, self.event("Read"))
        assert done.returncode == 2 and "could not run, so this call was blocked" in done.stderr

    @pytest.mark.slow
    @pytest.mark.parametrize("name", ["WARMSTART_HOME", "HOME", "PYTHONPATH", "PYTHONHOME"])
    def test_no_variable_changes_what_it_does(self, rules, file, tmp_path, name):
        """A project's settings may set them for every hook; this one would find other rules, or another program."""
        command = tell("install", "claude-code")["hook"]["command"]
        for folder in (tmp_path / ".warmstart", tmp_path / "warmstart"):
            folder.mkdir()
        for other in (tmp_path / "guard.toml", tmp_path / ".warmstart" / "guard.toml"):
            other.write_text('[[rule]]\ntool = "nothing"\naction = "x"\n')
        for evil in (tmp_path / "sitecustomize.py", tmp_path / "warmstart" / "__init__.py"):
            evil.write_text("import os\nos._exit(0)\n")
        done = self.shell(command, self.event("Bash"), **{"WARMSTART_HOME": "", name: str(tmp_path)})
        assert '"permissionDecision": "deny"' in done.stdout, done

    @pytest.mark.slow
    def test_no_variable_sends_it_to_another_daemon(self, rules, file, daemon):
        save_token(rules.with_name(AGENT_TOKEN), daemon.token("claude-code", "agent:submit"))
        command = tell("install", "claude-code")["hook"]["command"]
        daemon.stop()
        with socket.create_server(("127.0.0.1", 0)) as other:
            other.settimeout(0.1)
            url = f"http://127.0.0.1:{other.getsockname()[1]}"
            done = self.shell(command, self.event("Bash"), WARMSTART_CONFIRM_URL=url)
            with pytest.raises(TimeoutError):
                other.accept()
        assert "cannot be reached" in done.stdout
        daemon.start()

    def test_another_home(self, tmp_path, file):
        home = tmp_path / "my home"
        home.mkdir()
        (home / "guard.toml").write_text(RULE)
        done = run("--home", home, "confirm", "guard", "install", "claude-code", "--json")
        command = json.loads(done.stdout)["hook"]["command"]
        assert f"--home '{home}' " in command
        assert self.shell(command, self.event("Read")).stdout == ""
        (home / "guard.toml").unlink()
        assert "deny" in self.shell(command, self.event("Read")).stdout


class TestCheck:
    def test_it_says_which_rule_fits(self, rules):
        assert tell("check", "Bash", '{"command": "ls"}')["rule"] == {"number": 1, "action": "run_command"}
        assert tell("check", "Read")["rule"] is None
        told = run("confirm", "guard", "check", "Bash").stdout
        assert "1 rules, all valid" in told and "not guarded" in told and "asks for run_command" in told
        assert "no rule matches" in run("confirm", "guard", "check", "Read").stdout

    def test_it_tries_the_daemon_and_the_token(self, rules, daemon):
        """Nobody is asked. The exit code is 1: no agent is guarded."""
        file, url = rules.with_name(AGENT_TOKEN), daemon.server.api_url
        told = tell("check", code=1)
        assert told["daemon"]["url"] == url and "no key says which daemon" in told["daemon"]["trouble"]
        assert "token create --scope agent:submit" in told["token"]["trouble"]
        for secret, trouble in (
            (daemon.token("claude-code", "agent:submit"), None),
            (daemon.token("bob", "approver:decide"), "agent:submit"),
            (pin_token("wsc_of_another_database", daemon.server.desk.identity), "does not know this token"),
        ):
            save_token(file, secret)
            said = tell("check", code=1)["token"]["trouble"]
            assert said is None if trouble is None else trouble in said
        save_token(file, daemon.token("claude-code", "agent:submit"))
        told_people = run("confirm", "guard", "check", code=1).stdout
        assert (
            f"daemon {url}: answers" in told_people and f"token {file}: known, and may submit requests" in told_people
        )
        desk = daemon.server.desk
        assert not desk.list_requests(status=None, action=None, subject_key=None, limit=9, before=None)
        daemon.stop()
        told = tell("check", code=1)
        assert "cannot be reached" in told["daemon"]["trouble"] and told["token"]["trouble"] == "not tried"
        daemon.start()

    def test_a_disarmed_hook_is_not_shown_as_a_guard(self, rules, file, daemon):
        save_token(rules.with_name(AGENT_TOKEN), daemon.token("claude-code", "agent:submit"))
        assert not tell("check", code=1)["guarded"]
        run("confirm", "guard", "install", "claude-code")
        assert tell("check")["guarded"]
        whole = file.read_text()
        settings = json.loads(whole)
        (group,) = settings["hooks"]["PreToolUse"]
        (handler,) = group["hooks"]
        for place, change, named in (
            (group, {"matcher": "Nothing"}, "its matcher"),
            (handler, {"timeout": 1}, "its timeout"),
            (handler, {"command": handler["command"].replace("exit 2", "exit 0")}, "its command"),
            (handler, {"command": f"true || {handler['command']}"}, "its command"),
            (handler, {"async": True}, "its async"),
        ):
            before = dict(place)
            place.update(change)
            file.write_text(json.dumps(settings))
            told = tell("check", code=1)
            assert not told["guarded"] and named in told["changes"]["user"][0], change
            assert f"WARNING {file}: {named}" in run("confirm", "guard", "check", code=1).stdout
            place.clear()
            place.update(before)
        file.write_text(json.dumps(settings | {"disableAllHooks": True}))
        assert not tell("check", code=1)["guarded"]
        file.write_text(whole)
        rules.write_text(RULE.replace("300", "200"))
        assert tell("check")["guarded"], "a longer limit than needed is no harm"
        daemon.stop()
        tell("check", code=1)
        daemon.start()

    def test_it_asks_where_the_installed_guard_does(self, rules, file, daemon, monkeypatch):
        save_token(rules.with_name(AGENT_TOKEN), daemon.token("claude-code", "agent:submit"))
        run("confirm", "guard", "install", "claude-code")
        monkeypatch.setenv("WARMSTART_CONFIRM_URL", "http://127.0.0.1:1")
        assert tell("check")["daemon"] == {"url": daemon.server.api_url, "trouble": None}

    @pytest.mark.parametrize("arguments", ["{", "[]"])
    def test_arguments_that_are_none(self, rules, arguments):
        assert "arguments" in run("confirm", "guard", "check", "Bash", arguments, code=2).stderr

    def test_help(self):
        assert "standard input" in run("confirm", "guard", "claude-code", "--help").stdout


GUIDE = (HOWTO / "confirm.md").read_text()


class TestGuide:
    @pytest.fixture
    def guides_rules(self, rules) -> None:
        (block,) = re.findall(r"```toml\n# guard\.toml\n(.*?)```", GUIDE, re.S)
        rules.write_text(block)

    def test_its_rules_are_rules(self, guides_rules):
        for command, action in (("cd x && git push", "deploy_production"), ("rm -rf /", "run_command"), ("ls", None)):
            found = tell("check", "Bash", json.dumps({"command": command}))["rule"]
            assert (found and found["action"]) == action, command
        assert tell("check", "mcp__mail__send_all")["rule"]["action"] == "send_or_pay"

    @pytest.mark.parametrize(
        ("command", "is_asked"),
        [
            ("ls -la src", False),
            ("ls -lR ../other.d", False),
            ("pwd", False),
            ("git status", False),
            ("git status -sb", False),
            ("git diff --stat main..dev src/a.py", False),
            ("git diff --cached", False),
            ("git log --oneline -20 -p", False),
            ("ls; rm -rf /", True),
            ("ls\nrm x", True),
            ("ls > .env", True),
            ("ls $(rm x)", True),
            ("git diff --output .env", True),
            ("git diff --output=.env", True),
            ("git diff --outpu .env", True),
            ("git diff --out=.env", True),
            ("git diff --o .env", True),
            ("git log -p --output .env", True),
            ("git diff --stat --output=x", True),
            ("git diff --cached=x", True),
            ("git -c core.pager=x diff", True),
            ("git -C /srv diff", True),
            ("git diff --ext-diff", True),
            ("git diff --textconv", True),
            ("git log --exec=x", True),
            ("git status --porcelain=x", True),
            ("git  diff", True),
            ("git diffx", True),
            ("lsof", True),
        ],
    )
    def test_its_exception_is_what_only_looks(self, guides_rules, rules, command, is_asked):
        call = GuardedCall("claude-code", "Bash", {"command": command})
        assert (find_rule(load_rules(rules.parent), call) is not None) == is_asked

    @pytest.mark.slow
    def test_what_its_exception_lets_through_writes_nothing(self, guides_rules, rules, tmp_path):
        """Every short option of every command in it, tried in earnest, before a name that could be written to."""
        work = tmp_path / "work"
        work.mkdir()
        for words in (["init", "-q"], ["config", "user.email", "a@b"], ["config", "user.name", "a"]):
            subprocess.run(["git", *words], cwd=work, check=True)
        (work / "victim").write_text("precious\n")
        subprocess.run(["git", "add", "."], cwd=work, check=True)
        subprocess.run(["git", "commit", "-qm", "first"], cwd=work, check=True)
        (work / "victim").write_text("precious, and changed\n")
        loaded = load_rules(rules.parent)
        tried = 0
        for program in ("ls", "pwd", "git status", "git diff", "git log"):
            for letter in string.ascii_letters + string.digits:
                for command in (f"{program} -{letter} victim", f"{program} -{letter}victim"):
                    assert find_rule(loaded, GuardedCall("claude-code", "Bash", {"command": command})) is None
                    subprocess.run(shlex.split(command), cwd=work, capture_output=True, check=False, timeout=20)
                    tried += 1
        found = {path.name: path.read_text() for path in work.iterdir() if path.is_file()}
        assert tried == 620 and found == {"victim": "precious, and changed\n"}

    def test_its_policy_is_one(self):
        (block,) = re.findall(r"```toml\n# policy\.toml\n(.*?)```", GUIDE, re.S)
        ruling = parse_policy(block).rule_on("run_command")
        assert ruling.rate_limit >= 100 and ruling.decision == "ask"

    def test_its_commands_are_commands(self):
        """All that it names, down to their options."""
        named = set(re.findall(r"warmstart (confirm [^\n`|]*)", GUIDE))
        assert len(named) > 8
        for words in named:
            parts = words.split()
            command = ["confirm"]
            while len(command) < len(parts) and re.fullmatch(r"[a-z-]+", word := parts[len(command)]):
                if word.startswith("--") or command[-1] in ("install", "uninstall"):
                    break
                command.append(word)
            told = run(*command, "--help").stdout
            assert all(option in told for option in re.findall(r"--[a-z-]+", words)), words
