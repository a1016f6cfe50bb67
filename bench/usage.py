"""Check that token totals agree with what transcripts report, and measure how far estimates are from reports.

    python bench/usage.py [DIR] [--json]

DIR defaults to the shared corpus beside the project. Two questions:

Agreement. The tokens of Claude Code (last usage of each message id), Codex (token_count) and Hermes (its sessions table) are
counted a second time, with only `json.loads` and `sqlite3`, and compared session by session with what Warmstart reads.

Estimates. Transcripts that report tokens are read again without the reports, so that Warmstart has to estimate from the text.
The ratio estimate / report measures the error. It cannot be 1: a transcript's text lacks the system prompt and the tools'
descriptions (sent with every turn) and hidden reasoning (in the output). mini-swe-agent's transcripts hold everything that was
sent, so the number of characters per token is measured on them.

JSON keys: `agreement` {format: {sessions, agree, reported, read}} (total tokens), `estimates` {format: {sessions, prompt,
output}} (ratios, each {p25, median, p75}), `characters_per_token` {p25, median, p75, used} (of the text added between two
answers), `missing` (what estimates lack).
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import warmstart
from warmstart.formats import find_files
from warmstart.formats.source import Source
from warmstart.model import Session, Usage
from warmstart.usage.amounts import CHARACTERS

CORPUS = ROOT.parent / "shared" / "corpus"
MISSING = "the system prompt and the tools' descriptions (input), reasoning that is not shown (output)"
REPORTS = frozenset(("usage", "tokens", "model_stats", "token_count", "total_token_usage", "metrics", "final_metrics"))
FORMATS = ("claude_code", "codex", "gemini_cli", "mini_swe_agent")
SHORT = 1_000  # tokens; ratios of shorter sessions say little
Counts = dict[str, tuple[int, int, int, int]]  # session -> input, output, cache read, cache write


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=CORPUS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.dir.exists():
        sys.exit(f"{options.dir}: no such folder; give one with transcripts")
    report = {
        "agreement": agreement(options.dir),
        "estimates": {name: ratios for name in FORMATS if (ratios := estimates(options.dir / name))},
        "characters_per_token": quartiles(growth(options.dir / "mini_swe_agent")) | {"used": CHARACTERS},
        "missing": MISSING,
    }
    print(json.dumps(report)) if options.json else show(report)


def agreement(folder: Path) -> dict[str, Any]:
    report = {}
    for name, count in (("claude_code", count_claude_code), ("codex", count_codex), ("hermes", count_hermes)):
        counted = count(folder / name)
        read, completed = read_totals(folder / name, whole_files=name == "codex")
        for session in completed & counted.keys():
            figures, reported = read[session], counted[session]
            assert figures[1] > reported[1], f"{session}: an output was completed and is smaller than before"
            read[session] = (figures[0], reported[1], *figures[2:])
        same = sum(read.get(session) == total for session, total in counted.items())
        report[name] = {
            "sessions": len(counted),
            "agree": same,
            "reported": sum(map(sum, counted.values())),
            "read": sum(sum(read[session]) for session in counted if session in read),
        }
    return report


def read_totals(folder: Path, whole_files: bool) -> tuple[Counts, set[str]]:
    """Return the usage that Warmstart reads as reported, by file and session, and those whose output it completed."""
    counts: Counts = {}
    completed: set[str] = set()
    for file, session in read_all(folder):
        if session.usage is not None and session.usage.basis != "estimated":
            name = file if whole_files else f"{file}#{session.id}"
            counts[name] = totals(session.usage)
            if session.usage.basis == "completed":
                completed.add(name)
    return counts, completed


def read_all(folder: Path) -> Iterator[tuple[str, Session]]:
    for file in find_files(folder) if folder.exists() else ():
        for scored in warmstart.scan(Source(file)):
            yield str(file.relative_to(folder)), scored.session


def totals(usage: Usage) -> tuple[int, int, int, int]:
    return (usage.input or 0, usage.output or 0, usage.cache_read or 0, usage.cache_write or 0)


def count_claude_code(folder: Path) -> Counts:
    """Return the sum of the last usage of every message id, by session; each sidechain agent is its own session."""
    last: dict[str, dict[str, dict[str, Any]]] = {}
    for file in sorted(folder.rglob("*.jsonl")):
        for line in values_in(file):
            message = line.get("message")
            if line.get("type") != "assistant" or not isinstance(message, dict) or line.get("isApiErrorMessage"):
                continue
            if isinstance(message.get("usage"), dict) and message.get("model") != "<synthetic>":
                session = f"{file.relative_to(folder)}#{claude_session(file, line)}"
                last.setdefault(session, {})[message.get("id") or line.get("uuid") or ""] = message["usage"]
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return {
        session: tuple(sum(usage.get(name) or 0 for usage in usages.values()) for name in names)  # type: ignore[misc]
        for session, usages in last.items()
    }


def claude_session(file: Path, line: dict[str, Any]) -> str:
    own = str(line.get("sessionId") or "")
    agent = line.get("agentId") or (file.stem.removeprefix("agent-") if file.stem.startswith("agent-") else None)
    if not line.get("isSidechain") or own.startswith("agent-"):
        return own
    return f"{own}/agent-{agent}" if agent else f"{own}/sidechain"


def count_codex(folder: Path) -> Counts:
    """Return the last token_count of each rollout, plus the last one before each restart of the totals."""
    counts: Counts = {}
    for file in sorted(folder.glob("*.jsonl")):
        running, ends = [], []
        for line in values_in(file):
            given = line.get("payload")
            payload: dict[str, Any] = given if isinstance(given, dict) else {}
            info = payload.get("info") if payload.get("type") == "token_count" else None
            if isinstance(info, dict) and isinstance(info.get("total_token_usage"), dict):
                running.append(info["total_token_usage"])
        for number, total in enumerate(running):
            if number + 1 == len(running) or running[number + 1]["input_tokens"] < total["input_tokens"]:
                ends.append(total)
        if ends:
            sums = [
                sum(total.get(name) or 0 for total in ends)
                for name in ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
            ]
            counts[str(file.relative_to(folder))] = (sums[0] - sums[2] - sums[3], *sums[1:])  # type: ignore[assignment]
    return counts


def count_hermes(folder: Path) -> Counts:
    """Return the sessions whose row has any count; the columns start at zero."""
    file = folder / "state.db"
    if not file.exists():
        return {}
    query = "SELECT id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens FROM sessions"
    database = sqlite3.connect(f"{file.absolute().as_uri()}?immutable=1", uri=True)
    rows = database.execute(query).fetchall()
    database.close()
    return {f"{file.name}#{row[0]}": tuple(n or 0 for n in row[1:]) for row in rows if any(row[1:])}  # type: ignore[misc]


def values_in(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file, even two on one line."""
    decoder = json.JSONDecoder()
    for line in file.read_text("utf-8", "replace").split("\n"):
        at = 0
        while at < len(line.rstrip()):
            try:
                value, at = decoder.raw_decode(line, at)
            except json.JSONDecodeError:
                break
            at += len(line[at:]) - len(line[at:].lstrip(" ,"))
            if isinstance(value, dict):
                yield value


def estimates(folder: Path) -> dict[str, Any]:
    """Return the ratios of estimate to report, over sessions."""
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch:
        bare = Path(scratch)
        for file in find_files(folder) if folder.exists() else ():
            copy = bare / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(strip_file(file), "utf-8")
        estimated, reported = by_place(bare, "estimated"), by_place(folder, "reported")
    pairs = [
        (estimated[place], usage) for place, usage in reported.items() if place in estimated and prompt(usage) > SHORT
    ]
    if not pairs:
        return {}
    return {
        "sessions": len(pairs),
        "prompt": quartiles(prompt(estimate) / prompt(usage) for estimate, usage in pairs),
        "output": quartiles((estimate.output or 0) / usage.output for estimate, usage in pairs if usage.output),
    }


def by_place(folder: Path, basis: str) -> dict[tuple[str, str], Usage]:
    """Return usage by file and session; a file's only session goes by the file, because its id may depend on the report."""
    sessions = list(read_all(folder))
    several = Counter(file for file, _session in sessions)
    return {
        (file, session.id if several[file] > 1 else ""): session.usage
        for file, session in sessions
        if session.usage is not None and (session.usage.basis == "estimated") == (basis == "estimated")
    }


def prompt(usage: Usage) -> int:
    return (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)


def strip_file(file: Path) -> str:
    """Return a transcript without its token reports."""
    text = file.read_text("utf-8", "replace")
    try:
        return json.dumps(strip(json.loads(text)))
    except json.JSONDecodeError:
        return "".join(json.dumps(strip(value)) + "\n" for value in values_in(file))


def strip(value: Any) -> Any:
    if isinstance(value, list):
        return [strip(inner) for inner in value]
    if isinstance(value, dict):
        return {key: strip(inner) for key, inner in value.items() if key not in REPORTS}
    return value


def growth(folder: Path) -> list[float]:
    """Return characters per token for each growth of the prompt between two answers."""
    ratios: list[float] = []
    for file in sorted(folder.glob("*.json")):
        transcript = json.loads(file.read_text("utf-8"))
        before, added = None, 0
        for message in transcript["messages"] if isinstance(transcript, dict) else ():
            response = (message.get("extra") or {}).get("response") or {}
            sent = (response.get("usage") or {}).get("prompt_tokens") if message.get("role") == "assistant" else None
            if sent is not None:
                if before is not None and sent > before and added > 400:
                    ratios.append(added / (sent - before))
                before, added = sent, 0
            calls = message.get("tool_calls") or ()
            content = message.get("content")
            added += len(content if isinstance(content, str) else json.dumps(content))
            added += sum(len(call["function"]["arguments"]) for call in calls)
    return ratios


def quartiles(values: Iterable[float]) -> dict[str, float | None]:
    ordered = sorted(values)
    return {
        name: round(ordered[int(len(ordered) * share)], 2) if ordered else None
        for name, share in (("p25", 0.25), ("median", 0.5), ("p75", 0.75))
    }


def show(report: dict[str, Any]) -> None:
    for name, row in report["agreement"].items():
        counted = f"{row['reported']:,} tokens reported, {row['read']:,} read"
        print(f"{name}: {row['agree']} of {row['sessions']} sessions agree; {counted}")
    print("estimate / report, with the reports removed:")
    for name, row in report["estimates"].items():
        ratios = f"prompt {spread(row['prompt'])}, output {spread(row['output'])}"
        print(f"    {name}: {row['sessions']} sessions, {ratios}")
    print(f"characters per token: {spread(report['characters_per_token'])}; used: {CHARACTERS}")
    print(f"estimates lack: {report['missing']}")


def spread(row: dict[str, Any]) -> str:
    return f"{row['median']} [{row['p25']}, {row['p75']}]"


if __name__ == "__main__":
    main()
