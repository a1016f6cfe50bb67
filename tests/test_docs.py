"""Documentation is tested: references are current, commands and links exist, README and tutorial run as printed."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import click
import pytest

import warmstart
from command_line import run
from doors.hooks.events import wait_for_quiet
from loopback import serving
from page_blocks import PROGRAMS, read_blocks, run_sh
from places import DATA, DOCS, ROOT, SAMPLES, SRC
from warmstart import config
from warmstart.doors.cli.main import COMMANDS, main

README = (ROOT / "README.md").read_text()
TUTORIAL = (DOCS / "tutorial.md").read_text()
PAGES = [*ROOT.glob("*.md"), *DOCS.glob("**/*.md")]


def test_generated_pages_are_current():
    for name, write in runpy.run_path(str(DOCS / "reference" / "generate.py"))["PAGES"].items():
        assert (DOCS / name).read_text() == write(), f"run: python docs/reference/generate.py ({name})"


def test_every_command_and_setting_is_documented():
    commands, settings = ((DOCS / "reference" / f"{page}.md").read_text() for page in ("cli", "settings"))
    assert all(f"`warmstart {name}`" in commands for name in COMMANDS)
    assert all(f"`{name}`" in settings for name in config.FileSettings.__struct_fields__)
    variables = re.findall(r"\b(?:WARMSTART|CONFIRMATION)_[A-Z_]+\b", Path(config.__file__).read_text())
    assert all(f"`{name}`" in settings for name in variables)


def slug(heading: str) -> str:
    """Return the anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def test_links_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^):]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            goal = page.parent / path if path else page
            assert goal.exists(), f"{page.name}: {target}"
            if anchor:
                headings = re.findall(r"^#+ (.*)$", goal.read_text(), re.M)
                assert anchor in map(slug, headings), f"{page.name}: {target}"


def test_no_page_claims_an_index_entry():
    claims = [page.name for page in PAGES if re.search(r"pipx? install (-U )?['\"]?warmstart", page.read_text())]
    assert not claims, "install from a clone: pip install ."


def find_commands(text: str) -> Iterator[str]:
    """Yield the commands that a page shows in its blocks and inline."""
    for block in (block for language in ("", "sh", "bash") for block in read_blocks(text, language)):
        yield from re.findall(r"^(?:hermes )?warmstart ([^#\n]*)", block, re.M)
    yield from re.findall(r"`(?:hermes )?warmstart ([^`]*)`", re.sub(r"```.*?```", "", text, flags=re.S))


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=lambda page: page.name)
def test_commands_and_options_exist(page):
    for shown in find_commands(page.read_text()):
        check_command(shown)


def test_commands_that_the_pages_name_exist():
    named = {
        shown.strip()
        for path in (SRC / "warmstart" / "doors" / "ui").rglob("*.py")
        for shown in re.findall(r"\bwarmstart (?!import )([a-z][^\"`,.;\n]*)", path.read_text())
    }
    assert {"hook uninstall --all", "confirm login"} <= named
    for shown in named:
        check_command(shown)


def check_command(shown: str) -> None:
    words = [word.strip("[]") for word in shown.split("&&")[0].split("|")[0].split()]
    command: click.Command = main
    known = {option for parameter in main.params for option in parameter.opts}
    while (
        isinstance(command, click.Group) and words and (child := command.get_command(click.Context(command), words[0]))
    ):
        command = child
        words.pop(0)
        known |= {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    only_holds = isinstance(command, click.Group) and not command.invoke_without_command
    assert not only_holds or not words or not re.fullmatch("[a-z-]+", words[0]), f"no command: {shown}"
    unknown = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    assert not unknown, shown


def test_quoted_messages_exist():
    """The table of troubles quotes messages of the daemon and its page; a number at their start is an example."""
    quoted = re.findall(r'^\| "(?:\d+ )?([^"]+)"', (DOCS / "howto" / "confirm.md").read_text(), re.M)
    source = "".join(path.read_text() for path in SRC.rglob("*") if path.suffix in (".py", ".js"))
    assert len(quoted) > 3
    assert [message for message in quoted if message not in source] == []


def test_the_picture_is_small():
    assert 10_000 < (DOCS / "images" / "insights.png").stat().st_size < 200_000


def squash(text: str) -> list[str]:
    """Return the lines of a text with every run of spaces as one."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def test_the_demo_prints_what_the_readme_shows(tmp_path):
    (block,) = [block for block in read_blocks(README, "") if "5 passed in" in block]
    assert set(squash(block)) <= set(squash(run_sh("warmstart demo", tmp_path)))


def copy_samples(home: Path) -> None:
    """Put the samples where Claude Code and Codex leave their transcripts, in a project under this home."""
    for agent, place in (("claude_code", ".claude/projects/-orders-api"), ("codex", ".codex/sessions/2026/10/05")):
        folder = home / place
        folder.mkdir(parents=True)
        for sample in (SAMPLES / agent).glob("*.jsonl"):
            (folder / sample.name).write_text(sample.read_text().replace("/home/mira", str(home)))


@pytest.mark.slow
def test_the_readmes_first_commands_work(tmp_path):
    """`make` only installs, which CI proves; the other commands run as printed."""
    copy_samples(Path.home())
    clone = tmp_path / "warmstart"
    (clone / ".venv").mkdir(parents=True)
    (clone / ".venv" / "bin").symlink_to(PROGRAMS)
    (clone / "Makefile").write_text("demo:\n\t@true\n")
    first, second = read_blocks(README, "sh")
    run_sh(first, tmp_path, PATH=os.environ["PATH"])
    assert "most repeated errors" in (clone / "insights.html").read_text()
    assert "hooks installed" in run_sh(second, clone)


FAKE_CLAUDE = DATA / "docs" / "claude.py"


def test_the_tutorials_samples_give_the_numbers_that_it_prints():
    (words,) = re.findall(r"`warmstart (ingest src/[^`]+)`", TUTORIAL)
    command, *folders = words.split()
    printed = run(command, *(ROOT / folder for folder in folders)).stdout.splitlines()[0]
    assert printed.split(" tool calls")[0] in TUTORIAL
    assert len(warmstart.inspect(ROOT / "src" / "warmstart" / "samples").sessions) == 10
    assert "`src/warmstart/samples` holds ten)" in TUTORIAL


@pytest.mark.slow
def test_the_tutorial_runs_as_printed(tmp_path, monkeypatch):
    """A stand-in for Claude Code runs the installed hooks and leaves a transcript."""
    monkeypatch.delenv("WARMSTART_HOLDOUT")
    home = Path.home()
    copy_samples(home)
    (home / "orders-api").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE_CLAUDE} "$@"\n')
    (programs / "claude").chmod(0o755)
    path = f"{programs}{os.pathsep}{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    steps = re.findall(r"```sh\n(.*?)```\n(?:\n```\n(.*?)```)?", TUTORIAL, re.S)
    assert len(steps) > 8
    for script, shown in steps:
        printed = run_sh(script, tmp_path, PATH=path)
        missing = [line for line in squash(shown) if line not in squash(printed)]
        assert not missing, f"{script}\n{printed}"
        wait_for_quiet()
    given = (home / "given.json").read_text()
    assert "Call that worked" in given, "the hooks gave the session its seed"
    assert shutil.which("claude", path=path) == str(programs / "claude")


class Provider(BaseHTTPRequestHandler):
    """A scripted model on loopback that speaks both protocols and remembers what it was asked."""

    asked: list[dict[str, object]] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append(body)
        if self.path.endswith("/chat/completions"):
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}
            answer = {"id": "c", "object": "chat.completion", "created": 1, "model": body["model"], "choices": [choice]}
        else:
            answer = {"id": "m", "type": "message", "role": "assistant", "model": body["model"], "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def provider(monkeypatch):
    Provider.asked = []
    with serving(Provider) as address:
        for name, value in {
            "OPENAI_BASE_URL": f"http://{address}/v1",
            "OPENAI_API_KEY": "x",
            "ANTHROPIC_BASE_URL": f"http://{address}",
            "ANTHROPIC_API_KEY": "x",
        }.items():
            monkeypatch.setenv(name, value)
        yield Provider


@pytest.mark.slow
@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.filterwarnings("default")
def test_the_readmes_code_runs_with_the_real_sdk(sdk, provider, tmp_path):
    with warmstart.open() as ws:
        ws.ingest(SAMPLES)
        ws.learn()
    (code,) = [block for block in read_blocks(README, "python") if f"import {sdk}" in block]
    script = tmp_path / "example.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SRC)},
    )
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
    (asked,) = provider.asked
    dialect = "openai" if sdk == "openai" else "anthropic"
    assert warmstart.lint(asked["messages"], dialect) == []
    assert len(asked["messages"]) > 2, "the seed arrived"
    assert asked["messages"][-1]["content"] == "the order total test fails again, please fix it"
