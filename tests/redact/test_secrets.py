"""Secrets in every field of a transcript: none is found in the bytes that Warmstart stores and prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import warmstart
from places import SRC
from redact.secret_formats import ENCODINGS, make_secrets
from transcripts import write_jsonl
from warmstart.doors.cli.main import main

SECRETS = make_secrets(20261115)
FULL = os.environ.get("WARMSTART_FULL") == "1"
SHOWING = (
    ["sessions", "list", "--json"],
    ["sessions", "show", "session-3"],
    ["sessions", "show", "session-5", "--json"],
)


def session_with(line: str, number: int) -> list[dict[str, object]]:
    """A Claude Code session with `line` in every field that holds text."""
    common = {
        "sessionId": f"session-{number}",
        "cwd": f"/home/dev/{number}",
        "gitBranch": line,
        "version": "2.1.0",
        "timestamp": "2026-10-01T10:00:00.000Z",
    }
    use = {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": "Bash",
        "input": {"command": line, "nested": {"deep": [line]}, "description": line},
    }
    answer = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": f"before\n{line}\nafter"}
    failed = {
        "type": "tool_result",
        "tool_use_id": f"toolu_{number}b",
        "is_error": True,
        "content": [{"type": "text", "text": f"Error: {line}"}],
    }
    return [
        common | {"type": "user", "uuid": "u", "message": {"role": "user", "content": f"please use this: {line}"}},
        common | {"type": "assistant", "uuid": "a", "message": {"id": "m", "role": "assistant", "model": "m", "content": [{"type": "text", "text": line}, use]}},
        common | {"type": "user", "uuid": "r", "message": {"role": "user", "content": [answer]}, "toolUseResult": {"stdout": line}},
        common | {"type": "assistant", "uuid": "b", "message": {"id": "n", "role": "assistant", "model": "m", "content": [use | {"id": f"toolu_{number}b"}]}},
        common | {"type": "user", "uuid": "s", "message": {"role": "user", "content": [failed]}, "toolUseResult": line},
        common | {"type": "user", "uuid": "t", "message": {"role": "user", "content": line}},
    ]  # fmt: skip


def shows(text: str, parts: list[str]) -> bool:
    """Return whether a text holds a secret or two thirds of it, plain or escaped once more."""
    pieces = {q for p in parts if len(p) >= 8 for q in (p, p[: max(8, len(p) * 2 // 3)], p[-max(8, len(p) * 2 // 3) :])}
    return any(q in text or json.dumps(q)[1:-1] in text for q in pieces)


def everything(home: Path) -> bytes:
    return b"".join(p.read_bytes() for p in home.rglob("*") if p.is_file())


def run(home: Path, *words: str) -> str:
    """Return all that a command prints, in its own process."""
    command = [sys.executable, "-m", "warmstart", "--home", str(home), *words]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": SRC})
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["raw", "json", "base64", "url", "ansi"])
def test_no_secret_reaches_the_store_or_the_screen(tmp_path, encoding):
    """Commands that read the transcripts again run on raw secrets, on every encoding with WARMSTART_FULL=1."""
    folder, home = tmp_path / "in", tmp_path / "home"
    searched = {}
    for number, secret in enumerate(SECRETS):
        line, parts = ENCODINGS[encoding](secret)
        searched[secret.name] = parts
        write_jsonl(folder / f"{number}.jsonl", session_with(line, number))
    (folder / "broken.jsonl").write_text(json.dumps(session_with(SECRETS[0].line, 9_999)[0])[:-30])
    with warmstart.open(home) as ws:
        ws.ingest(folder)
        store = everything(home).decode("utf-8", "replace")
        printed = "".join(CliRunner().invoke(main, ["--home", str(home), *words]).output for words in SHOWING)
        if encoding == "raw" or FULL:
            for words in (["inspect"], ["inspect", "--json"], ["ingest"]):
                printed += run(home, *words, str(folder))
            printed += run(home, "doctor")
    assert "session-3" in printed and "session-5" in printed
    missed = [s.name for s in SECRETS if shows(store, searched[s.name]) or shows(printed, searched[s.name])]
    vendor = [s for s in SECRETS if s.kind == "vendor"]
    assert len(SECRETS) >= 75
    assert not [name for name in missed if name in {s.name for s in vendor}], missed
    assert len(missed) <= 0.05 * len(SECRETS), missed


def test_names_and_ids_are_fields_too(tmp_path):
    secret = next(s for s in SECRETS if "github" in s.name)
    lines = session_with("nothing", 1)
    for line in lines:
        line["sessionId"] = secret.value
        line["cwd"] = f"/home/{secret.value}/x"
        for block in line["message"]["content"] if isinstance(line["message"]["content"], list) else []:
            block.update({k: secret.value for k in ("id", "name", "tool_use_id") if k in block})
        if "model" in line["message"]:
            line["message"]["model"] = secret.value
    path = write_jsonl(tmp_path / f"{secret.value}.jsonl", lines)
    with warmstart.open() as ws:
        assert ws.ingest(path).new == 1
        assert secret.value.encode() not in everything(ws.settings.home)
    done = CliRunner().invoke(main, ["inspect", str(path), "--json"])
    assert json.loads(done.stdout)["calls"]
    assert secret.value not in done.output


def test_the_users_own_environment_never_passes(tmp_path, monkeypatch):
    monkeypatch.setenv("ACME_API_KEY", "plain words only")
    path = write_jsonl(tmp_path / "a.jsonl", session_with("echo plain words only", 1))
    with warmstart.open() as ws:
        ws.ingest(path)
        assert b"plain words only" not in everything(ws.settings.home)


def test_deleted_sessions_leave_no_bytes(tmp_path):
    path = write_jsonl(tmp_path / "a.jsonl", session_with("a sentence that is easily found again", 1))
    with warmstart.open() as ws:
        ws.ingest(path)
        assert b"easily found again" in everything(ws.settings.home)
        ws.delete_session(ws.sessions()[0].key)
        assert b"easily found again" not in everything(ws.settings.home)
