"""Other readers of Claude Code transcripts and ours, on the same files in the same run: speed, and what each found.

    python bench/peers.py [DIR] [--json] [--projects A,B] [--install FOLDER]

DIR holds the corpus' projects (default: ../shared/corpus/projects); their Claude Code transcripts are copied into one
folder per project, named by their session, as Claude Code names them. Each peer is installed in its pinned version into a
folder of its own, kept for the next run (`--install`, default: a folder of the user's cache), and runs as its own
process. A peer that cannot be installed or fails is listed with the reason. claude-code-log is called as a library,
without its rendering; ccusage reads only usage.

JSON keys: `files`, `megabytes`, `readers` [{name, version, seconds, cpu_seconds, mb_per_s (by processor time), sessions,
calls, errors, tokens (null: the reader does not say), problem}].
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corpus_projects import PROJECTS, ROOT, find_transcripts

NAMES = ("chkit", "cipher-box", "context-evaluator")
PINNED = {"inspect_scout": "0.6.1", "claude-code-log": "1.7.0", "ccusage": "17.2.1"}
COUNTS = ("sessions", "calls", "errors", "tokens")
PATIENCE = 1_800  # seconds for one process

SCOUT = """
import asyncio, json, sys
from inspect_scout.sources import claude_code

async def count():
    found = dict.fromkeys(("sessions", "calls", "errors", "tokens"), 0)
    for folder in sys.argv[1:]:
        async for transcript in claude_code(path=folder):
            found["sessions"] += 1
            found["tokens"] += transcript.total_tokens or 0
            for message in transcript.messages:
                found["calls"] += len(getattr(message, "tool_calls", None) or ())
                found["errors"] += getattr(message, "error", None) is not None
    print(json.dumps(found))

asyncio.run(count())
"""
LOG = """
import json, sys
from pathlib import Path
from claude_code_log.converter import load_directory_transcripts

found = dict.fromkeys(("sessions", "calls", "errors", "tokens"), 0)
sessions, answers = set(), {}
for folder in sys.argv[1:]:
    entries, _tree = load_directory_transcripts(Path(folder), silent=True)
    for entry in entries:
        sessions.add(getattr(entry, "sessionId", None))
        message = getattr(entry, "message", None)
        usage = getattr(message, "usage", None)
        if usage is not None:
            answers[getattr(message, "id", None)] = usage
        content = getattr(message, "content", None)
        for block in content if isinstance(content, list) else ():
            found["calls"] += getattr(block, "type", "") == "tool_use"
            found["errors"] += bool(getattr(block, "is_error", False))
names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
found["sessions"] = len(sessions - {None})
found["tokens"] = sum(getattr(usage, name, 0) or 0 for usage in answers.values() for name in names)
print(json.dumps(found))
"""


class PeerProblem(Exception):
    """A reader that could not be installed or run."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path, default=PROJECTS)
    parser.add_argument("--json", action="store_true")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser.add_argument("--install", type=Path, default=cache / "warmstart-peers")
    parser.add_argument("--projects", default=",".join(NAMES), help="which of them, separated by commas")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as folder:
        report = measure(options.dir, options.projects.split(","), Path(folder), options.install)
    print(json.dumps(report)) if options.json else show(report)


def measure(corpus: Path, names: list[str], home: Path, install: Path) -> dict[str, Any]:
    projects = home / ".claude" / "projects"
    for name in names:
        (projects / name).mkdir(parents=True)
        for path in sorted(find_transcripts(corpus, name, home / "unpacked").glob("*__claude__*.jsonl")):
            shutil.copyfile(path, projects / name / f"{path.stem.rpartition('__')[2]}.jsonl")
    files = sorted(projects.rglob("*.jsonl"))
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    folders = [str(projects / name) for name in names]
    readers = [
        time_reader("warmstart", "this", lambda: run_ours(home, projects)),
        time_reader(
            "inspect_scout", PINNED["inspect_scout"], lambda: run_python("inspect_scout", SCOUT, folders, home, install)
        ),
        time_reader(
            "claude-code-log",
            PINNED["claude-code-log"],
            lambda: run_python("claude-code-log", LOG, folders, home, install),
        ),
        time_reader("ccusage", PINNED["ccusage"], lambda: run_ccusage(home, install)),
    ]
    for row in readers:
        row["mb_per_s"] = round(megabytes / row["cpu_seconds"], 1) if row["cpu_seconds"] else None
    return {"files": len(files), "megabytes": round(megabytes, 1), "readers": readers}


def time_reader(name: str, version: str, read: Callable[[], tuple[dict[str, int], float, float]]) -> dict[str, Any]:
    """Return the row of a reader. `read` returns what it found and its seconds, without its installation."""
    row: dict[str, Any] = {"name": name, "version": version, "seconds": None, "cpu_seconds": None, "problem": None}
    row |= dict.fromkeys(COUNTS)
    try:
        found, seconds, cpu_seconds = read()
    except (PeerProblem, OSError, ValueError, subprocess.SubprocessError) as error:
        return row | {"problem": " ".join(str(error).split())[-300:]}
    return row | found | {"seconds": round(seconds, 2), "cpu_seconds": round(cpu_seconds, 2)}


def run(words: list[str], home: Path) -> tuple[bytes, float, float]:
    """Return the output of a process, its seconds and its processor seconds."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("WARMSTART_", "CLAUDE_", "PYTHON"))}
    env |= {"HOME": str(home), "CLAUDE_CONFIG_DIR": str(home / ".claude")}
    started, used = time.perf_counter(), cpu_seconds()
    done = subprocess.run(words, env=env, capture_output=True, timeout=PATIENCE)
    if done.returncode:
        raise PeerProblem(f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace')[-250:]}")
    return done.stdout, time.perf_counter() - started, cpu_seconds() - used


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_ours(home: Path, projects: Path) -> tuple[dict[str, int], float, float]:
    code = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); from warmstart.__main__ import main; main()"
    ours = [sys.executable, "-c", code]
    output, seconds, used = run([*ours, "ingest", str(projects), "--json"], home)
    found = json.loads(output)
    rows = json.loads(run([*ours, "usage", "--by", "agent", "--json"], home)[0])["rows"]
    tokens = sum(row["total"] or 0 for row in rows)
    return {name: found[name] for name in COUNTS[:3]} | {"tokens": tokens}, seconds, used


def run_python(
    name: str, code: str, folders: list[str], home: Path, install: Path
) -> tuple[dict[str, int], float, float]:
    folder = install / f"{name}-{PINNED[name]}"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        done = subprocess.run(
            [str(python), "-m", "pip", "install", "-q", f"{name}=={PINNED[name]}"], capture_output=True
        )
        if done.returncode:
            shutil.rmtree(folder)
            raise PeerProblem(f"cannot be installed: {done.stderr.decode('utf-8', 'replace')[-250:]}")
    output, seconds, used = run([str(python), "-c", code, *folders], home)
    return json.loads(output.splitlines()[-1]), seconds, used


def run_ccusage(home: Path, install: Path) -> tuple[dict[str, int], float, float]:
    folder = install / f"ccusage-{PINNED['ccusage']}"
    program = folder / "node_modules" / ".bin" / "ccusage"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None:
            raise PeerProblem("cannot be installed: npm is missing")
        words = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"ccusage@{PINNED['ccusage']}"]
        done = subprocess.run(words, capture_output=True)
        if done.returncode or not program.exists():
            raise PeerProblem(f"cannot be installed: {done.stderr.decode('utf-8', 'replace')[-250:]}")
    output, seconds, used = run([str(program), "session", "--json", "--offline"], home)
    found = json.loads(output)
    return {"sessions": len(found["sessions"]), "tokens": found["totals"]["totalTokens"]}, seconds, used


def show(report: dict[str, Any]) -> None:
    print(
        f"{report['files']} Claude Code transcripts, {report['megabytes']} MB; whole processes, MB/s by processor time\n"
    )
    print("| reader | MB/s | sessions | calls | errors | tokens |")
    print("|---|---|---|---|---|---|")
    for row in report["readers"]:
        title = row["name"] if row["version"] == "this" else f"{row['name']} {row['version']}"
        cells = [format_count(row[name]) for name in COUNTS]
        print(f"| {title} | {row['problem'] or row['mb_per_s']} | " + " | ".join(cells) + " |")


def format_count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


if __name__ == "__main__":
    main()
