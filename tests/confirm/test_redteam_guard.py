"""Red team: routes around the rules of the how-to. They are closed without anybody writing another rule."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import warmstart
from places import HOWTO
from warmstart.doors.cli.main import main
from warmstart.doors.guard.agent_hook import read_call
from warmstart.doors.guard.calls import GuardedCall
from warmstart.doors.guard.coverage import find_traps, list_uncovered
from warmstart.doors.guard.guard import Guard
from warmstart.doors.guard.hermes import make_hook
from warmstart.doors.guard.rules import GuardFile, parse_guard_file
from warmstart.doors.guard.tools import load_tools

(BLOCK,) = re.findall(r"```toml\n# guard\.toml\n(.*?)```", (HOWTO / "confirm.md").read_text(), re.S)
PUSH = "git push --force"


@pytest.fixture(scope="module")
def guide() -> GuardFile:
    """The rules of the how-to."""
    return parse_guard_file(BLOCK)


def ask(file: GuardFile, agent: str, tool: str, folder: str = "/srv/project", **arguments: Any) -> str | None:
    rule = file.judge(GuardedCall(agent, tool, arguments, folder=folder))
    return rule.action if rule else None


@pytest.mark.parametrize(
    ("agent", "tool", "arguments"),
    [
        ("claude-code", "Monitor", {"command": PUSH}),
        ("claude-code", "PowerShell", {"command": PUSH}),
        ("claude-code", "powershell", {"command": PUSH}),
        ("hermes", "process", {"action": "submit", "session_id": "p1", "data": PUSH}),
        ("hermes", "process", {"action": "write", "session_id": "p1", "data": PUSH}),
        ("hermes", "execute_code", {"code": f"import os; os.system('{PUSH}')"}),
        ("codex", "exec_command", {"cmd": PUSH}),
        ("codex", "shell", {"command": ["bash", "-lc", PUSH]}),
        ("codex", "write_stdin", {"chars": PUSH}),
    ],
)
def test_redteam_every_tool_that_runs_commands_falls_under_the_rules_of_one(
    guide: GuardFile, agent: str, tool: str, arguments: dict[str, Any]
) -> None:
    assert ask(guide, agent, tool, **arguments) == "deploy_production"
    quiet = {name: value.replace(PUSH, "make test") for name, value in arguments.items() if isinstance(value, str)}
    if len(quiet) == len(arguments):
        assert ask(guide, agent, tool, **quiet) == "run_command", "as any other command"


def test_redteam_looking_stays_free(guide: GuardFile) -> None:
    for agent, tool, arguments in (
        ("claude-code", "Bash", {"command": "git status"}),
        ("claude-code", "PowerShell", {"command": "ls"}),
        ("claude-code", "Read", {"file_path": "/srv/project/.git/config"}),
        ("claude-code", "Write", {"file_path": "/srv/project/src/a.py", "content": "x"}),
        ("claude-code", "Edit", {"file_path": "docs/guard.md", "old_string": "a", "new_string": ".bashrc"}),
        ("hermes", "process", {"action": "poll", "session_id": "p1"}),
        ("hermes", "write_file", {"path": "notes.txt", "content": "~/.bashrc"}),
        ("codex", "apply_patch", {"command": "*** Begin Patch\n*** Update File: src/a.py\n+x\n*** End Patch"}),
        ("codex", "update_plan", {"plan": []}),
    ):
        assert ask(guide, agent, tool, **arguments) is None, (agent, tool, arguments)


HOME = str(Path.home())


@pytest.mark.parametrize(
    "path",
    [
        "~/.warmstart/guard.toml",
        f"{HOME}/.warmstart/guard.toml",
        f"{HOME}/.claude/settings.json",
        ".claude/settings.local.json",
        "./x/../.claude/hooks/a.sh",
        ".CLAUDE/settings.json",
        ".mcp.json",
        "~/.codex/config.toml",
        "~/.codex/hooks.json",
        f"{HOME}/.hermes/.env",
        "~/.bashrc",
        "~/.zshenv",
        "~/.config/fish/config.fish",
        ".git/config",
        ".git/hooks/pre-commit",
        "sub/.git/config",
        "~/.gitconfig",
        ".envrc",
        ".husky/pre-push",
        ".pre-commit-config.yaml",
        "~/.ssh/authorized_keys",
        "/etc/profile.d/x.sh",
        "/etc/cron.d/x",
        "~/.config/systemd/user/x.service",
        ".vscode/tasks.json",
        ".github/workflows/ci.yml",
        "lib/sitecustomize.py",
        "~/.local/bin/git",
        "C:\\Users\\me\\.claude\\settings.json",
    ],
)
def test_redteam_writes_to_what_can_run_code_later_are_asked(guide: GuardFile, path: str) -> None:
    for agent, tool, arguments in (
        ("claude-code", "Write", {"file_path": path, "content": "x"}),
        ("claude-code", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}),
        ("hermes", "write_file", {"path": path, "content": "x"}),
        ("hermes", "patch", {"path": path, "patch": "x"}),
        ("codex", "apply_patch", {"command": f"*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch"}),
    ):
        assert ask(guide, agent, tool, **arguments) == "change_what_runs", (agent, tool)


def test_redteam_a_link_leads_to_the_same_file(guide: GuardFile, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "harmless").symlink_to(tmp_path / ".git")
    assert ask(guide, "claude-code", "Write", str(tmp_path), file_path="harmless/config") == "change_what_runs"
    assert ask(guide, "claude-code", "Write", str(tmp_path / ".git"), file_path="config") == "change_what_runs"


@pytest.mark.parametrize(
    "command",
    [
        "echo x >> ~/.bashrc",
        "cp a $HOME/.claude/settings.json",
        "git config core.fsmonitor ./x",
        "git -c core.pager=./x log",
        "sed -i s/a/b/ .git/config",
        "tee '.git/hooks/pre-commit'",
        "crontab x",
        "LD_PRELOAD=./x.so ls",
        "BASH_ENV=x bash y",
    ],
)
def test_redteam_commands_that_change_what_runs_are_asked_where_shells_are_not(command: str) -> None:
    """The file guards only mail; the shell is left to the agent's own permissions, but not for this."""
    mail = parse_guard_file('[[rule]]\ntool = "mcp__mail__*"\naction = "send_mail"\n')
    assert ask(mail, "claude-code", "Bash", command=command) == "change_what_runs"
    assert ask(mail, "claude-code", "Monitor", command=command) == "change_what_runs"
    for harmless in ("cat ~/.bashrc", "git log -3", "make test > out.txt", "ls .git/hooks"):
        assert ask(mail, "claude-code", "Bash", command=harmless) is None


@pytest.mark.parametrize(
    "command",
    [
        "echo x >> ~/.bashrc;ls",
        "(echo x >> ~/.bashrc)",
        "echo x>~/.bashrc&&ls",
        "echo x|tee ~/.bashrc|cat",
        "cd .git/hooks && echo x > pre-commit",
        "cd ~/.claude; echo {} > settings.json",
        "bash -c 'cd .git/hooks && cp /tmp/x pre-push'",
        "tar -C ~/.ssh -xf keys.tar",
        "rm -rf ~/.claude",
        "mv ~/.warmstart /tmp/old",
        "rm -rf ~",
        "rm -rf .github",
        "echo x > ~/.bash\\\nrc",
        "bash <<EOF\necho x > ~/.bashrc\nEOF",
        'echo x > "a b/../.git/config"',
        "warmstart confirm guard uninstall claude-code",
        "python -m warmstart confirm 'guard' uninstall codex",
        "warmstart --home x confirm trust --yes",
        "warmstart confirm token create --subject x",
        "warmstart confirm passkey remove abc",
        "warmstart hook uninstall claude-code",
        "pip uninstall -y warmstart",
        "echo x > .venv/bin/warmstart",
        f"echo x >> {Path(warmstart.__file__).parent}/cli.py",
    ],
)
def test_redteam_what_follows_a_path_hides_nothing(command: str) -> None:
    mail = parse_guard_file('[[rule]]\ntool = "mcp__mail__*"\naction = "send_mail"\n')
    assert ask(mail, "claude-code", "Bash", command=command) == "change_what_runs"
    assert ask(mail, "codex", "shell", command=["bash", "-c", command]) == "change_what_runs"


def test_redteam_ordinary_commands_stay_free() -> None:
    mail = parse_guard_file('[[rule]]\ntool = "mcp__mail__*"\naction = "send_mail"\n')
    for command in (
        "cd src && make > out.txt",
        "rm -rf build dist",
        "mv a.py b.py; ls",
        "warmstart confirm guard check",
        "warmstart brief > brief.md",
        "python -m pytest tests | tail",
        "(cd docs && cp a.md b.md)",
    ):
        assert ask(mail, "claude-code", "Bash", "/srv/project", command=command) is None, command


def test_redteam_words_of_a_command_are_read_in_order(guide: GuardFile) -> None:
    for tool in ("Bash", "shell"):
        assert ask(guide, "codex", tool, command=PUSH.split()) == "deploy_production"


@pytest.mark.parametrize("path", ["src/a.py\n.git/config", ".git/con\rfig", "a\x00b", "a\x1b[2Kb", "a\x85b"])
def test_redteam_paths_with_control_characters_are_asked(guide: GuardFile, path: str) -> None:
    assert ask(guide, "claude-code", "Write", file_path=path, content="a\nb") == "change_what_runs"
    assert ask(guide, "hermes", "write_file", path=path, content="x") == "change_what_runs"


def test_redteam_unknown_tools_are_asked_until_somebody_knows_them(guide: GuardFile) -> None:
    assert ask(guide, "claude-code", "mcp__box__exec", command=PUSH) == "use_unknown_tool"
    assert ask(guide, "claude-code", "NewTool") == "use_unknown_tool"
    assert ask(guide, "another-agent", "anything") == "use_unknown_tool"
    assert ask(guide, "claude-code", "CronCreate", prompt="x") == "schedule_code"
    assert ask(guide, "hermes", "cronjob", action="create") == "schedule_code"
    more = parse_guard_file(
        BLOCK + '\n[tools]\nharmless = ["mcp__docs__*"]\nshell = ["mcp__box__exec"]\nwrite = ["mcp__fs__*"]\n'
    )
    assert ask(more, "claude-code", "mcp__docs__search") is None
    assert ask(more, "claude-code", "mcp__box__exec", anything=PUSH) == "deploy_production"
    assert ask(more, "claude-code", "mcp__fs__put", target="/x/.git/config") == "change_what_runs"
    assert ask(more, "claude-code", "mcp__fs__put", target="/x/a.py") is None
    lax = parse_guard_file(BLOCK + '\n[defaults]\nunknown = "leave"\ncode_later = "leave"\n')
    assert (
        ask(lax, "claude-code", "NewTool") is None and ask(lax, "claude-code", "Write", file_path=".git/config") is None
    )


@pytest.mark.parametrize("tool", ["", " ", "\n"])
def test_redteam_a_call_without_a_tool_name_is_blocked_everywhere(tmp_path: Path, tool: str) -> None:
    (tmp_path / "guard.toml").write_text('[[rule]]\ntool = "nothing"\naction = "x"\n')
    assert Guard(tmp_path, "x", url="http://127.0.0.1:1").check(GuardedCall("a", tool, {})).kind == "blocked"
    hook = make_hook(tmp_path)
    for arguments in ({"tool_name": tool, "args": {"command": "x"}}, {"args": {}}, {"tool_name": None, "args": {}}):
        answer = hook(**arguments)
        assert answer is not None and answer["action"] == "block"
    event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {}}
    for agent in ("claude-code", "codex"):
        try:
            call = read_call(json.dumps(event).encode(), agent)
        except ValueError:
            continue
        assert Guard(tmp_path, "x", url="http://127.0.0.1:1").check(call).kind == "blocked"


def test_redteam_check_lists_what_no_rule_names(guide: GuardFile) -> None:
    found = {one.kind: one for one in list_uncovered(guide, "claude-code")}
    assert "shell" not in found, "one rule for Bash covers all"
    assert {"Write", "Edit", "NotebookEdit"} <= set(found["write"].tools) and "code later" in found["write"].fate
    assert "Read" in found["harmless"].tools and "CronCreate" in found["later"].tools
    mail = parse_guard_file('[[rule]]\ntool = "mcp__mail__*"\naction = "send_mail"\n')
    for agent in ("claude-code", "codex", "hermes"):
        listed = {name for one in list_uncovered(mail, agent) for name in one.tools}
        assert listed == set(load_tools(agent).list_names())


def test_redteam_check_names_traps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"disableAllHooks": True, "env": {"BASH_ENV": "x", "path": "/evil", "LANG": "C"}}))
    found = find_traps([settings, tmp_path / "none.json"], {"LD_PRELOAD": "/x.so", "PATH": "/usr/bin"})
    assert len(found) == 4
    for word in ("disableAllHooks", "sets BASH_ENV", "sets path", "the environment sets LD_PRELOAD"):
        assert any(word in line for line in found), word
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WARMSTART_HOME", str(tmp_path))
    (tmp_path / "guard.toml").write_text(BLOCK)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.local.json").write_text(settings.read_text())
    monkeypatch.setenv("BASH_ENV", "/x")
    done = CliRunner().invoke(main, ["confirm", "guard", "check", "--json"])
    facts = json.loads(done.stdout)
    assert "Write" in facts["uncovered"]["write"]
    assert sum("settings.local.json" in trap for trap in facts["traps"]) == 3
    shown = CliRunner().invoke(main, ["confirm", "guard", "check", "Write", '{"file_path": ".git/config"}']).stdout
    assert "no rule matches, but it is asked" in shown and "WARNING" in shown and "disableAllHooks" in shown
