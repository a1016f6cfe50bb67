"""Our hooks in agents' settings: merged, found, taken out to the byte; what cannot be kept is left as it is."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from places import HOWTO
from warmstart import config
from warmstart.doors.cli.main import main
from warmstart.doors.hooks.agents import AGENTS, CLAUDE_CODE, CODEX, COPILOT_CLI
from warmstart.doors.install.hook_settings import HookSettings, add_groups, calls, remove_handlers
from warmstart.doors.install.hooks import make_groups, make_line, make_words
from warmstart.doors.settings_edit import json_text

PROGRAM = Path(sys.executable).with_name("warmstart")
EVENTS = list(CLAUDE_CODE.timeouts)
OLD_EVENTS = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]  # of version 0.2
is_ours = calls("hook run claude-code")
GROUPS = make_groups(CLAUDE_CODE, "warmstart hook run claude-code")
OTHERS = {"type": "command", "command": "~/bin/notify.sh", "timeout": 3}


def run(*words: object, code: int = 0) -> Result:
    done = CliRunner().invoke(main, list(map(str, words)))
    assert done.exit_code == code, done.output
    return done


def tell(*words: object) -> dict[str, Any]:
    return dict(json.loads(run("hook", *words, "--json").stdout))


@pytest.fixture
def file() -> Path:
    path = Path(os.environ["HOME"], ".claude", "settings.json")
    path.parent.mkdir()
    return path


def ours(value: Any) -> list[str]:
    return [str(path[1]) for path in json_text.find(value, is_ours)]


SETTINGS = {
    "usual": '{\n  "model": "opus",\n  "env": {"A": "1"},\n  "permissions": {\n    "allow": ["Bash(ls:*)", "Read"]\n  }\n}\n',
    "empty object": "{}",
    "empty object, lines": "{\n}\n",
    "nothing": "",
    "white": " \n",
    "one line": '{"model": "opus", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}}',
    "tabs": '{\n\t"hooks": {\n\t\t"Stop": []\n\t},\n\t"model": "opus"\n}',
    "windows": '{\r\n    "model": "opus",\r\n    "hooks": {}\r\n}\r\n',
    "theirs": json.dumps(
        {"hooks": {"Stop": [{"hooks": [OTHERS]}], "PreToolUse": [{"matcher": "Bash", "hooks": [OTHERS]}]}}, indent=4
    ),
    "odd": '{ "a" :[ 1,2 , 3 ],"ünïcode": "\\u00e9 \\" } ] \\\\", "deep": {"hooks": {"Stop": [1]}} , "big": 123456789012345678901234567890 }',
}


class TestMerging:
    @pytest.mark.parametrize("before", SETTINGS.values(), ids=SETTINGS.keys())
    def test_in_and_out_again(self, file, before):
        file.write_bytes(before.encode())
        assert tell("install", "claude-code") == {
            "agent": "claude-code", "path": str(file), "changed": True, "events": EVENTS, "notes": []}  # fmt: skip
        text = file.read_bytes().decode()
        value, was = json.loads(text), json.loads(before or "{}") if before.strip() else {}
        assert {k: v for k, v in value.items() if k != "hooks"} == {k: v for k, v in was.items() if k != "hooks"}
        for event, groups in was.get("hooks", {}).items():
            assert value["hooks"][event][: len(groups)] == groups
        assert sorted(ours(value)) == sorted(EVENTS)
        assert ("\r\n" in text) == ("\r\n" in before) and text.endswith("\n") == (before.endswith("\n") or not before)
        assert not tell("install", "claude-code")["changed"], "twice changes nothing"
        assert file.read_bytes().decode() == text
        assert tell("uninstall", "claude-code")["changed"]
        assert file.read_bytes() == before.encode()
        assert not tell("uninstall", "claude-code")["changed"]

    @pytest.mark.parametrize("before", SETTINGS.values(), ids=SETTINGS.keys())
    def test_what_changed_meanwhile_stays(self, file, before):
        file.write_bytes(before.encode())
        run("hook", "install", "claude-code")
        value = json.loads(file.read_text())
        value["theme"] = "dark"
        value["hooks"]["Stop"].append({"hooks": [OTHERS]})
        value["hooks"]["Stop"][0]["hooks"].append(OTHERS)
        file.write_text(json.dumps(value, indent=2))
        run("hook", "uninstall", "claude-code")
        left = json.loads(file.read_text())
        assert left["theme"] == "dark" and not ours(left)
        assert left["hooks"]["Stop"][-1] == {"hooks": [OTHERS]}
        assert set(left["hooks"]) == {"Stop"} | set((json.loads(before) if before.strip() else {}).get("hooks", {}))

    def test_the_rest_of_the_text_stays_as_it_is(self, file):
        before = SETTINGS["usual"]
        file.write_text(before)
        run("hook", "install", "claude-code")
        assert file.read_text().startswith(before.rstrip().removesuffix("}").rstrip() + ",\n")

    def test_a_file_that_was_not_there_is_removed_again(self):
        path = Path(os.environ["HOME"], ".claude", "settings.json")
        assert tell("install", "claude-code")["changed"]
        assert list(json.loads(path.read_text())) == ["hooks"]
        tell("uninstall", "claude-code")
        assert not path.exists() and not path.parent.exists()

    def test_a_folder_that_others_use_meanwhile_stays(self):
        path = Path(os.environ["HOME"], ".claude", "settings.json")
        tell("install", "claude-code")
        (path.parent / "CLAUDE.md").write_text("x")
        tell("uninstall", "claude-code")
        assert [p.name for p in path.parent.iterdir()] == ["CLAUDE.md"]

    def test_an_older_command_is_replaced(self, file):
        old = {"type": "command", "command": "/old/venv/bin/warmstart hook run claude-code", "timeout": 9}
        like = {"type": "command", "command": "echo warmstart hook run-down", "timeout": 9}
        file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [old, like]}], "PreCompact": [{"hooks": [old]}]}}))
        assert tell("install", "claude-code")["changed"]
        value = json.loads(file.read_text())
        assert value["hooks"]["Stop"][0] == {"hooks": [like]}
        assert sorted(ours(value)) == sorted(EVENTS) and "/old/venv" not in file.read_text()

    def test_hooks_of_an_older_version_are_upgraded(self, file):
        before = SETTINGS["theirs"]
        file.write_text(before)
        groups = {
            event: group
            for event, group in make_groups(CLAUDE_CODE, make_line(make_words(CLAUDE_CODE, config.load()))).items()
            if event in OLD_EVENTS
        }
        assert HookSettings(CLAUDE_CODE, config.load(), None, "hook run claude-code").install(groups)
        (place, *_others) = tell("status")["hooks"]
        assert place["events"] == OLD_EVENTS
        assert place["missing"] == ["PreToolUse", "PostToolUse", "PostToolUseFailure"]
        (line,) = json.loads(run("doctor", "--json").stdout)["hooks"]
        assert "PostToolUseFailure" in line and "warmstart hook install claude-code" in line
        assert "older version" in run("doctor").stdout and "older version" in run("hook", "status").stdout
        assert tell("install", "claude-code")["events"] == EVENTS
        assert json.loads(run("doctor", "--json").stdout)["hooks"] == []
        tell("uninstall", "claude-code")
        assert file.read_text() == before

    def test_the_command_is_whole_quoted_and_never_fails(self, file, tmp_path):
        (tmp_path / "my home").mkdir()
        run("--home", tmp_path / "my home", "hook", "install", "claude-code")
        command = json.loads(file.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
        assert command.startswith(f"{PROGRAM} hook run claude-code --home '{tmp_path}/my home'")
        done = subprocess.run(["sh", "-c", command], input="{", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert (tmp_path / "my home" / "hooks.log").exists()
        broken = command.replace(str(PROGRAM), "/nowhere/warmstart")
        assert subprocess.run(["sh", "-c", broken], capture_output=True, check=False).returncode == 0

    @pytest.mark.parametrize("store", ["team.db", "sqlite:///team.db"])
    def test_a_store_is_named_by_its_whole_path(self, file, tmp_path, monkeypatch, store):
        monkeypatch.chdir(tmp_path)
        run("--store", store, "hook", "install", "claude-code")
        command = json.loads(file.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
        assert f"--store {tmp_path}/team.db " in command, "agents run hooks in any folder"

    def test_a_project(self, tmp_path, monkeypatch):
        project = tmp_path / "project"
        project.mkdir()
        monkeypatch.chdir(project)
        assert tell("install", "claude-code", "--project")["path"] == str(project / ".claude/settings.json")
        assert not Path(os.environ["HOME"], ".claude").exists()
        hooks = tell("status")["hooks"]
        assert {(h["agent"], h["scope"]): h["events"] for h in hooks if h["events"]} == {
            ("claude-code", "project"): EVENTS
        }
        tell("uninstall", "claude-code", "--project")
        assert list(project.iterdir()) == []

    def test_a_shared_file_names_the_program_where_everyone_finds_it(self, monkeypatch):
        monkeypatch.setenv("PATH", f"{PROGRAM.parent}:{os.environ['PATH']}")
        words = ["warmstart", "hook", "run", "claude-code", "--caller", "project"]
        assert make_words(CLAUDE_CODE, config.load(), shared=True) == words
        monkeypatch.setenv("PATH", "/nowhere")
        assert make_words(CLAUDE_CODE, config.load(), shared=True)[0] == str(PROGRAM)

    def test_all_agents_of_this_machine(self, file, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        (installed,) = run("hook", "install", "--all", "--json").stdout.splitlines()
        assert json.loads(installed)["agent"] == "claude-code"
        (tmp_path / "codex").write_text("#!/bin/sh\n")
        (tmp_path / "codex").chmod(0o755)
        lines = [json.loads(line) for line in run("hook", "install", "--all", "--json").stdout.splitlines()]
        assert [(line["agent"], line["changed"]) for line in lines] == [("claude-code", False), ("codex", True)]
        removed = [json.loads(line) for line in run("hook", "uninstall", "--all", "--json").stdout.splitlines()]
        assert [line["agent"] for line in removed] == ["claude-code", "codex"]
        assert not any(place["events"] for place in tell("status")["hooks"])

    def test_a_refusal_of_one_agent_does_not_keep_the_others(self, file, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        file.write_text("not JSON")
        Path(os.environ["HOME"], ".codex").mkdir()
        done = run("hook", "install", "--all", "--json", code=1)
        assert json.loads(done.stdout)["agent"] == "codex"
        assert str(file) in done.stderr and file.read_text() == "not JSON"

    def test_one_agent_or_all_must_be_named(self, monkeypatch, tmp_path):
        monkeypatch.setenv("PATH", str(tmp_path))
        assert "--all" in run("hook", "install", code=2).stderr
        assert "--all" in run("hook", "install", "codex", "--all", code=2).stderr
        assert "none of these agents" in run("hook", "install", "--all", code=1).stderr

    def test_the_agents_own_variable_counts(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
        assert tell("install", "claude-code")["path"] == str(tmp_path / "elsewhere" / "settings.json")

    def test_it_is_told_when_all_hooks_are_off(self, file):
        file.write_text('{"disableAllHooks": true}')
        assert "disableAllHooks" in tell("install", "claude-code")["notes"][0]

    def test_people_are_told(self, file):
        assert "hooks installed" in run("hook", "install", "claude-code").stdout
        assert "hooks already installed" in run("hook", "install", "claude-code").stdout
        assert "SessionStart, UserPromptSubmit" in run("hook", "status").stdout
        assert "hooks removed" in run("hook", "uninstall", "claude-code").stdout
        assert "hooks not installed" in run("hook", "uninstall", "claude-code").stdout


class TestCodex:
    def test_its_hooks_have_a_file_of_their_own(self):
        told = tell("install", "codex")
        path = Path(os.environ["HOME"], ".codex", "hooks.json")
        assert (told["path"], told["events"]) == (str(path), list(CODEX.timeouts))
        assert "PostToolUseFailure" not in told["events"], "Codex has no such event"
        assert "/hooks" in told["notes"][0]
        value = json.loads(path.read_text())
        assert list(value) == ["hooks"], "older versions refuse other keys"
        assert value["hooks"]["SessionEnd"][0]["hooks"][0]["timeout"] == 3
        assert "hook run codex" in value["hooks"]["Stop"][0]["hooks"][0]["command"]
        assert "open /hooks" in run("hook", "install", "codex").stdout
        tell("uninstall", "codex")
        assert not path.exists()

    def test_keys_for_which_codex_ignores_the_file_are_named(self):
        path = Path(os.environ["HOME"], ".codex", "hooks.json")
        path.parent.mkdir()
        path.write_text('{"version": 1, "description": "mine", "hooks": {}}')
        (note,) = (note for note in tell("install", "codex")["notes"] if "ignores" in note)
        assert str(path) in note and "may only have hooks and description: remove `version`" in note
        (place,) = (place for place in tell("status")["hooks"] if place["path"] == str(path))
        assert (place["problem"], place["events"]) == (note, list(CODEX.timeouts))
        path.write_text(path.read_text().replace('"version": 1, ', ""))
        assert all(place["problem"] is None for place in tell("status")["hooks"])
        assert len(tell("install", "codex")["notes"]) == 1

    @pytest.mark.parametrize("key", ["hooks", "codex_hooks"])
    def test_it_is_told_when_hooks_are_off(self, monkeypatch, tmp_path, key):
        monkeypatch.setenv("CODEX_HOME", str(tmp_path))
        (tmp_path / "config.toml").write_text(f"# mine\n[features]\n{key} = false\n")
        assert "Hooks are off" in tell("install", "codex")["notes"][1]
        assert (tmp_path / "config.toml").read_text() == f"# mine\n[features]\n{key} = false\n"

    def test_a_damaged_config_is_not_our_concern(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CODEX_HOME", str(tmp_path))
        (tmp_path / "config.toml").write_bytes(b"\xff[")
        assert len(tell("install", "codex")["notes"]) == 1


class TestRefusing:
    @pytest.mark.parametrize(
        ("before", "reason"),
        [
            (b'{"a": 1', "not valid JSON"),
            (b'{\n  // mine\n  "a": 1\n}', "comments (line 2, column 3)"),
            (b'{"a": 1 /* x */}', "comments"),
            (b'{"a": 1,}', "not valid JSON"),
            (b'{"a": NaN}', "not valid JSON"),
            (b"[]", "not a JSON object"),
            (b'"x"', "not a JSON object"),
            (b'{"hooks": []}', "hooks are not of the expected kind"),
            (b'{"hooks": null}', "hooks are not of the expected kind"),
            (b'{"hooks": {"Stop": {}}}', "hooks for Stop"),
            (b'{"hooks": {"Other": "x"}}', "hooks for Other"),
            (b'{"hooks": {}, "hooks": {}}', "two keys"),
            (b"\xef\xbb\xbf{}", "byte order mark"),
            (b"\xff{}", "not UTF-8"),
            (b"[" * 100_000, "nested too deeply"),
            (b" " * 11_000_000, "too large"),
        ],
    )
    def test_it_is_left_as_it_is(self, file, before, reason):
        file.write_bytes(before)
        told = run("hook", "install", "claude-code", code=1).stderr
        assert reason in told and "left as it is" in told
        assert 'to add by hand: {"hooks": {"SessionStart"' in told
        assert len(told.splitlines()) == 1 and "Traceback" not in told
        assert file.read_bytes() == before
        run("hook", "status")
        assert file.read_bytes() == before
        assert [p.name for p in file.parent.iterdir()] == ["settings.json"]

    @pytest.mark.parametrize("before", [b'{"a": 1', b'{"a": 1 /* x */}', b"\xff{}"])
    def test_nothing_is_taken_out_of_it_either(self, file, before):
        file.write_bytes(before)
        assert "remove by hand" in run("hook", "uninstall", "claude-code", code=1).stderr
        assert file.read_bytes() == before

    def test_a_folder_in_its_place(self, file):
        file.mkdir()
        assert "not a file" in run("hook", "install", "claude-code", code=1).stderr

    def test_an_unknown_agent(self):
        assert "claude-code" in run("hook", "install", "nonsense", code=2).stderr


def test_what_the_guide_says_works(tmp_path):
    page = (HOWTO / "claude-code.md").read_text()
    lines = [line for block in re.findall(r"```sh\n(.*?)```", page, re.S) for line in block.splitlines()]
    for agent in ("claude-code", "codex"):
        assert {f"warmstart hook install {agent}", f"warmstart hook uninstall {agent}"} <= set(lines)
    for line in lines:
        run(*line.split()[1:], code=1 if line == "warmstart ingest" else 0)  # there is nothing to read here
    assert all(f"`{event}`" in page for event in EVENTS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=12,
)
groups = st.lists(st.fixed_dictionaries({"hooks": st.lists(st.just(OTHERS), max_size=2)}), max_size=2)
documents = st.fixed_dictionaries(
    {"a": values},
    optional={"hooks": st.dictionaries(st.sampled_from([*EVENTS, "PreToolUse"]), groups, max_size=4), "z": values},
)


class TestText:
    @settings(deadline=None)  # a busy machine
    @given(documents, st.sampled_from([None, 0, 1, 2, 4, "\t"]), st.booleans())
    def test_any_settings_come_back(self, value, indent, escaped):
        text = json.dumps(value, indent=indent, ensure_ascii=escaped)
        changed = text
        made = list(add_groups(text, GROUPS))
        for one in made:
            changed = one.apply(changed)
        after = json.loads(changed)
        assert sorted(ours(after)) == sorted(EVENTS)
        for event in EVENTS:
            del after["hooks"][event][-1]
        wanted = {**value, "hooks": {e: [] for e in EVENTS} | value.get("hooks", {})}
        assert after == wanted
        for one in reversed(made):
            changed = changed[: one.at] + changed[one.at + len(one.text) :]
        assert changed == text

    @pytest.mark.slow
    @settings(deadline=None)  # a busy machine
    @given(documents, st.sampled_from([None, 2]))
    def test_ours_can_be_found_and_taken_out_without_memory(self, value, indent):
        text = json.dumps(value, indent=indent)
        for one in add_groups(text, GROUPS):
            text = one.apply(text)
        left = json.loads(remove_handlers(text, is_ours))
        theirs = {e: g for e, g in value.get("hooks", {}).items() if g or e not in EVENTS}
        assert {k: v for k, v in left.items() if k != "hooks"} == {k: v for k, v in value.items() if k != "hooks"}
        assert left.get("hooks", {}) == theirs


class TestGeminiCliAndQwenCode:
    @pytest.mark.parametrize(("agent", "folder", "unit"), [("gemini-cli", ".gemini", 1000), ("qwen-code", ".qwen", 1)])
    @pytest.mark.parametrize(
        "before", ["", '{ "ui":{"theme" : "Dark"},\n\t"hooks": {"enabled": true, "disabled": []} }\n']
    )
    def test_in_and_out_again(self, agent: str, folder: str, unit: int, before: str):
        file = Path(os.environ["HOME"], folder, "settings.json")
        if before:
            file.parent.mkdir()
            file.write_text(before)
        done = tell("install", agent)
        assert (done["path"], done["events"]) == (str(file), list(AGENTS[agent].timeouts))
        hooks = json.loads(file.read_text())["hooks"]
        assert hooks["SessionStart"][0]["hooks"][0]["timeout"] == 10 * unit
        assert not tell("install", agent)["changed"]
        assert tell("uninstall", agent)["changed"]
        assert (file.read_text() if file.exists() else "") == before

    def test_gemini_cli_needs_trust_and_its_switches(self):
        assert "trust" in tell("install", "gemini-cli")["notes"][0]
        file = Path(os.environ["HOME"], ".gemini", "settings.json")
        settings = json.loads(file.read_text())
        command = settings["hooks"]["AfterTool"][0]["hooks"][0]["command"]
        for switch, word in (({"enabled": False}, "enabled"), ({"disabled": [command, 5]}, "disabled")):
            file.write_text(json.dumps(settings | {"hooksConfig": switch}))
            (place,) = (p for p in tell("status")["hooks"] if p["path"] == str(file))
            assert f"`{word}`" in place["problem"] and "hooksConfig" in place["problem"]
        file.write_text(json.dumps(settings | {"hooksConfig": {"enabled": True, "disabled": ["other"]}}))
        (place,) = (p for p in tell("status")["hooks"] if p["path"] == str(file))
        assert place["problem"] is None

    def test_a_folder_that_a_variable_names_is_used(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "g"))
        monkeypatch.setenv("QWEN_HOME", str(tmp_path / "q"))
        assert tell("install", "gemini-cli")["path"] == str(tmp_path / "g" / ".gemini" / "settings.json")
        assert tell("install", "qwen-code")["path"] == str(tmp_path / "q" / "settings.json")

    def test_all_installs_for_those_that_are_here(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
        monkeypatch.setenv("PATH", str(tmp_path))
        for folder in (".gemini", ".qwen"):
            Path(os.environ["HOME"], folder).mkdir()
        lines = run("hook", "install", "--all", "--json").stdout.splitlines()
        assert [json.loads(line)["agent"] for line in lines] == ["gemini-cli", "qwen-code"]

    @pytest.mark.skipif(os.name == "nt", reason="a line for POSIX shells")
    def test_the_line_ends_our_program_with_the_shell_and_never_fails(self, tmp_path: Path):
        program = tmp_path / "warmstart"
        program.write_text('#!/bin/sh\ncat\necho "$@"\nexit 2\n')
        program.chmod(0o755)
        line = make_line([str(program), "hook", "run", "gemini-cli"], AGENTS["gemini-cli"])
        done = subprocess.run(["bash", "-c", line], input="event ", capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "event hook run gemini-cli\n")
        program.write_text("#!/bin/sh\nexec sleep 60\n")
        shell = subprocess.Popen(["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            shell.communicate(timeout=1)
        shell.terminate()
        shell.communicate(timeout=5)  # the pipe is closed: nobody holds it any more


@pytest.mark.parametrize("known", [".", ".github", ".github/hooks"])
def test_copilot_cli_gets_a_file_of_its_own_and_loses_it_with_the_folders_made_for_it(tmp_path, monkeypatch, known):
    (tmp_path / known).mkdir(parents=True, exist_ok=True)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    run("hook", "install", "copilot-cli", "--project")
    handlers = json.loads((tmp_path / ".github" / "hooks" / "warmstart.json").read_text())["hooks"]
    assert list(handlers) == list(COPILOT_CLI.timeouts)
    assert all(
        "|| true" in group["hooks"][0]["command"] for (group,) in handlers.values()
    )  # a failure would deny calls
    run("hook", "uninstall", "copilot-cli", "--project")
    assert [path for path in sorted(tmp_path.rglob("*")) if ".warmstart" not in path.parts] == before
