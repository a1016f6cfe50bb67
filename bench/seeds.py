"""Check that providers would accept seeds: capture every session with a successful call, provision it in five dialects.

    python bench/seeds.py [DIR] [--json]

DIR (default: the shared corpus beside the project) is ingested into a temporary store. Each session with a successful call is
captured as a template, approved, and provisioned by name in every dialect; the seed is linted and, if the official SDKs are
installed, checked against their types. A naive seed is linted for comparison: the first 30 messages of the same session.

JSON keys: `sessions`, `captured`, `refused` {reason: n}, `dialects` {name: {seeds, empty, valid, share, findings}},
`sdk_types` {name: {checked, valid}} (only SDKs that are installed), `naive` {sessions, valid, share}.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from msgspec import structs

import warmstart
from warmstart import config
from warmstart.dialects.compose import Seed
from warmstart.dialects.lint import lint
from warmstart.errors import Refused, SourceError
from warmstart.formats import find_files
from warmstart.formats.source import Source
from warmstart.model import DIALECTS, Message, Session, Task, ToolCall
from warmstart.pipeline import Warmstart

CORPUS = ROOT.parent / "shared" / "corpus"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; give one with transcripts")
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as home:
        settings = structs.replace(config.load(home), max_active=1_000_000)
        with Warmstart(settings) as ws:
            ws.ingest(options.dir)
            report = measure(ws)
    report["naive"] = naive(options.dir)
    print(json.dumps(report)) if options.json else show(report)


def measure(ws: Warmstart) -> dict[str, Any]:
    refused: Counter[str] = Counter()
    dialects: dict[str, Counter[str]] = {name: Counter() for name in DIALECTS}
    findings: Counter[str] = Counter()
    checks = sdk_checks()
    sdks: dict[str, Counter[str]] = {name: Counter() for name in checks}
    sessions = ws.sessions(limit=None)
    captured = 0
    for number, row in enumerate(sessions):
        if row.results == row.errors or not any(c.status == "ok" for c in ws.session(row.key).calls):
            refused["no successful call"] += 1
            continue
        try:
            template = ws.capture(row.key, name=f"captured {number}")
        except Refused as error:
            refused[str(error).partition(": ")[2]] += 1
            continue
        captured += 1
        ws.templates.approve(template.name)
        for dialect in DIALECTS:
            seed = ws.provision(Task(text=template.name, project="*", dialect=dialect))
            faults = lint([seed.text or ""] if dialect == "text" else seed.messages, dialect)  # type: ignore[list-item]
            dialects[dialect]["seeds"] += 1
            dialects[dialect]["empty"] += not seed
            dialects[dialect]["valid"] += bool(seed) and not faults and seed.tokens <= seed.budget
            findings.update(f"{dialect}: {fault.rule}" for fault in faults)
            if dialect in checks and seed:
                sdks[dialect]["checked"] += 1
                sdks[dialect]["valid"] += checks[dialect](seed)
    return {
        "sessions": len(sessions),
        "captured": captured,
        "refused": dict(refused),
        "dialects": {
            name: dict(c) | {"share": round(c["valid"] / max(1, c["seeds"]), 4)} for name, c in dialects.items()
        },
        "findings": dict(findings),
        "sdk_types": {name: dict(count) for name, count in sdks.items()},
    }


def sdk_checks() -> dict[str, Callable[[Seed], bool]]:
    """Return for each installed SDK a check whether its types accept a seed."""
    checks: dict[str, Callable[[Seed], bool]] = {}
    try:
        from openai.types.chat import ChatCompletionMessageParam
        from openai.types.responses import ResponseInputParam
        from pydantic import TypeAdapter

        chat, responses = TypeAdapter(list[ChatCompletionMessageParam]), TypeAdapter(ResponseInputParam)
        checks["openai"] = lambda seed: takes(lambda: chat.validate_python(list(seed.messages)))
        checks["responses"] = lambda seed: takes(lambda: responses.validate_python(list(seed.messages)))
    except ImportError:
        pass
    try:
        from anthropic.types import MessageParam
        from pydantic import TypeAdapter

        anthropic = TypeAdapter(list[MessageParam])
        checks["anthropic"] = lambda seed: takes(lambda: anthropic.validate_python(list(seed.messages)))
    except ImportError:
        pass
    try:
        from google.genai import types

        checks["gemini"] = lambda seed: takes(lambda: [types.Content.model_validate(m) for m in seed.messages])
    except ImportError:
        pass
    return checks


def takes(check: Callable[[], object]) -> bool:
    try:
        check()
    except ValueError:  # pydantic's ValidationError is one
        return False
    return True


def naive(folder: Path) -> dict[str, Any]:
    """Lint the first 30 messages of each session with a call, as an OpenAI conversation."""
    sessions = valid = 0
    for file in find_files(folder):
        try:
            for scored in warmstart.scan(Source(file)):
                messages = as_messages(scored.session)[:30]
                if any("tool_calls" in message for message in messages):
                    sessions += 1
                    valid += not lint(messages, "openai")
        except SourceError:
            continue
    return {"sessions": sessions, "valid": valid, "share": round(valid / max(1, sessions), 4)}


def as_messages(session: Session) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for step in session.steps:
        if isinstance(step, Message):
            messages.append({"role": step.role, "content": step.text})
        elif isinstance(step, ToolCall):
            call = {"name": step.tool, "arguments": json.dumps(step.arguments)}
            entry = {"id": step.call_id, "type": "function", "function": call}
            if messages and messages[-1]["role"] == "assistant":
                messages[-1].setdefault("tool_calls", []).append(entry)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [entry]})
        else:
            messages.append({"role": "tool", "tool_call_id": step.call_id, "content": step.text})
    return messages


def show(report: dict[str, Any]) -> None:
    print(f"{report['sessions']} sessions, {report['captured']} captured; refused: {report['refused']}")
    for name, row in report["dialects"].items():
        types = report["sdk_types"].get(name)
        sdk = f", SDK types {types['valid']}/{types['checked']}" if types else ""
        print(f"{name:10} {row['valid']}/{row['seeds']} valid ({row['share']:.1%}){sdk}")
    if report["findings"]:
        print(report["findings"])
    print(f"naive seed {report['naive']['valid']}/{report['naive']['sessions']} valid ({report['naive']['share']:.1%})")


if __name__ == "__main__":
    main()
