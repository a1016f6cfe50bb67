"""The guard in Claude Code's settings, and what the commands around it say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from warmstart.doors.guard_install import is_ours

PROGRAM = Path(sys.executable).with_name("warmstart")
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


def run(*words: object, code: int = 0, **more: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=False, **more)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def tell(*words: object, **more: Any) -> dict[str, Any]:
    return dict(json.loads(run("confirm", "guard", *words, "--json", **more).stdout))


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


def test_a_project(rules, tmp_path):
    project = tmp_path / "project"
    project.mkdir()
    run("confirm", "guard", "install", "claude-code", "--project", cwd=project)
    assert len(find_ours(project / ".claude" / "settings.json")) == 1
    told = tell("check", cwd=project)
    assert told["installed"] == {"user": None, "project": str(project / ".claude" / "settings.json")}


class TestCommand:
    """What stands in the settings is run by a shell, as Claude Code does."""

    def shell(self, command: str, said: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", command], input=said, capture_output=True, text=True, check=False)

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
        command = tell("install", "claude-code")["hook"]["command"].replace(str(PROGRAM), program)
        done = self.shell(command, self.event("Read"))
        assert done.returncode == 2 and "could not run, so this call was blocked" in done.stderr

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
        assert "1 rules, all understood" in told and "not guarded" in told and "asks for run_command" in told
        assert "left alone" in run("confirm", "guard", "check", "Read").stdout

    @pytest.mark.parametrize("arguments", ["{", "[]"])
    def test_arguments_that_are_none(self, rules, arguments):
        assert "arguments" in run("confirm", "guard", "check", "Bash", arguments, code=2).stderr

    def test_help(self):
        assert "standard input" in run("confirm", "guard", "claude-code", "--help").stdout


GUIDE = (Path(__file__).parents[1] / "docs" / "howto" / "confirm.md").read_text()


class TestGuide:
    def test_its_rules_are_rules(self, rules):
        (block,) = re.findall(r"```toml\n# guard\.toml\n(.*?)```", GUIDE, re.S)
        rules.write_text(block)
        for command, action in (
            ("cd x && git push", "deploy_production"),
            ("rm -rf /", "run_command"),
            ("ls; rm -rf /", "run_command"),
            ("ls -la src", None),
            ("git status", None),
        ):
            found = tell("check", "Bash", json.dumps({"command": command}))["rule"]
            assert (found and found["action"]) == action, command
        assert tell("check", "mcp__mail__send_all")["rule"]["action"] == "send_or_pay"

    def test_its_commands_are_commands(self):
        """All that it names, down to their options."""
        named = set(re.findall(r"warmstart (confirm [^\n`|]*)", GUIDE))
        assert len(named) > 8
        for words in named:
            parts = words.split()
            command = ["confirm"]
            while len(command) < len(parts) and re.fullmatch(r"[a-z-]+", word := parts[len(command)]):
                if word.startswith("--") or (word == "claude-code" and command[-1] in ("install", "uninstall")):
                    break
                command.append(word)
            told = run(*command, "--help").stdout
            assert all(option in told for option in re.findall(r"--[a-z-]+", words)), words
