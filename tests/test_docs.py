"""Documentation is tested: the reference is current, every command and setting is in it, the README's code runs."""

from __future__ import annotations

import json
import os
import re
import runpy
import subprocess
import sys
from http.server import BaseHTTPRequestHandler

import pytest

import warmstart
from loopback import serving
from places import ROOT, SRC
from warmstart import config
from warmstart.doors.cli.main import COMMANDS

README = (ROOT / "README.md").read_text()
SAMPLES = SRC / "warmstart" / "samples"


def test_the_reference_is_current():
    pages = runpy.run_path(str(ROOT / "docs" / "reference" / "generate.py"))["PAGES"]
    for name, make in pages.items():
        assert (ROOT / "docs" / "reference" / name).read_text() == make(), (
            f"run: python docs/reference/generate.py ({name})"
        )


def test_every_command_and_setting_is_documented():
    commands, settings = ((ROOT / "docs" / "reference" / f"{page}.md").read_text() for page in ("cli", "settings"))
    assert all(f"`warmstart {name}`" in commands for name in COMMANDS)
    assert all(f"`{name}`" in settings for name in config._File.__struct_fields__)


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_commands_of_the_readme_exist():
    named = set(re.findall(r"warmstart ([a-z]+)", README)) - {"is"}
    assert named <= set(COMMANDS), named - set(COMMANDS)


def test_the_demo_prints_what_the_readme_shows():
    done = subprocess.run(
        [sys.executable, "-m", "warmstart", "demo"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(SRC)},
    )
    assert done.returncode == 0, done.stderr
    printed = {" ".join(line.split()) for line in done.stdout.splitlines()}
    block = README.split("```\n2. Learned")[1].split("```")[0]
    shown = [" ".join(line.split()) for line in ("2. Learned" + block).splitlines()]
    missing = [line for line in shown if line and not line.startswith("─") and line != "..." and line not in printed]
    assert not missing


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


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
@pytest.mark.filterwarnings("default")
def test_the_readmes_code_runs_with_the_real_sdk(sdk, provider, tmp_path):
    pytest.importorskip(sdk)
    with warmstart.open() as ws:
        ws.ingest(SAMPLES)
        ws.learn()
    (code,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.S) if f"import {sdk}" in block]
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
