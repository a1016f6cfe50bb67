"""Measure the speed of reading transcripts, relative to `json.loads` over the same bytes, and its peak memory.

    python bench/ingest.py [DIR] [--json] [--rounds N] [--big MB]

Without DIR, the Claude Code, Codex and OpenAI-style folders of the shared corpus are read, each by itself, then whole
projects of Codex (mise) and OpenCode (gatomia) and the samples of Copilot CLI; if there is no corpus, generated Claude
Code transcripts. json.loads, then inspect (parse, judge, score), then ingest (redact and store
too) take turns on one core. CPU time counts, not time on the clock, and the best round of each: other programs on the
machine can only add to it. Caches are emptied before each turn, as in a new process. Then `inspect` and `ingest` read
one generated transcript of --big MB (default 1000; 0 skips it) in processes of their own, whose peak memory is measured;
a tenth of it shows how time grows. Last, a tree of 1,000 files is read twice: the second time none of them may be opened.

JSON keys: `formats` {name: {bytes, json_loads_mb_s, inspect_ratio, ingest_ratio}} (1.0 = json.loads), `big_mb`,
`inspect_peak_mb`, `ingest_peak_mb`, `ten_times_ratio` (time of the whole / time of a tenth), `unchanged` {files, opened,
us_per_file}, `made_up`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

import warmstart
from corpus_projects import find_transcripts
from warmstart.formats.source import Source
from warmstart.ingest.sources import find_sources

CORPUS = ROOT.parent / "shared" / "corpus"
UNCHANGED = 1_000  # files that are ingested twice
FORMATS = ("claude_code", "codex", "openai_chat")
PACKED = {"codex, long": ("mise", ""), "opencode": ("gatomia", ""), "copilot_cli": ("formats", "copilot")}
WORDS = (
    (ROOT / "docs" / "how-it-works.md").read_text().split()
    if (ROOT / "docs" / "how-it-works.md").exists()
    else ["word"]
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("dir", nargs="?", type=Path)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--big", type=int, default=1000, help="MB of the big transcript; 0 skips it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch:
        folders = choose_folders(options.dir, Path(scratch))
        report: dict[str, Any] = {
            "formats": {name: measure_speed(folder, Path(scratch), options.rounds) for name, folder in folders.items()},
            "made_up": "made up" in folders,
            "unchanged": measure_unchanged(Path(scratch)),
        }
        if options.big:
            report |= memory(Path(scratch), options.big)
    print(json.dumps(report)) if options.json else show(report)


def choose_folders(folder: Path | None, scratch: Path) -> dict[str, Path]:
    if folder is not None:
        if not folder.is_dir():
            sys.exit(f"{folder}: no such folder; give one with transcripts")
        return {folder.name: folder}
    if CORPUS.exists():
        packed = {
            name: find_transcripts(CORPUS / "projects", archive, scratch) / inner
            for name, (archive, inner) in PACKED.items()
        }
        return {name: CORPUS / name for name in FORMATS} | packed
    made_up = scratch / "claude_code"
    made_up.mkdir()
    for number in range(20):
        write_transcript(made_up / f"{number}.jsonl", 1, seed=number)
    return {"made up": made_up}


def measure_speed(folder: Path, scratch: Path, rounds: int) -> dict[str, Any]:
    files, documents = list_documents(folder)
    size = sum(map(len, documents))
    best = dict.fromkeys(("json", "inspect", "ingest"), float("inf"))
    for number in range(rounds):
        best["json"] = min(best["json"], time_cpu(lambda: load_all(documents)))
        clear_caches()
        best["inspect"] = min(best["inspect"], time_cpu(lambda: inspect_all(files)))
        clear_caches()
        with warmstart.open(scratch / f"home-{folder.parent.name}-{folder.name}-{number}") as ws:
            ws.sessions(limit=1)  # create the store before the clock starts
            best["ingest"] = min(best["ingest"], time_ingest(ws, files))
    return {
        "bytes": size,
        "json_loads_mb_s": round(size / 1e6 / best["json"], 1),
        "inspect_ratio": round(best["json"] / best["inspect"], 2),
        "ingest_ratio": round(best["json"] / best["ingest"], 2),
    }


def list_documents(folder: Path) -> tuple[list[Path], list[bytes]]:
    """Return the transcripts of a folder, and the JSON texts in them: a line or a whole file each."""
    files = [source.path for source in find_sources(folder) if source.path.suffix in (".jsonl", ".json")]
    documents: list[bytes] = []
    for file in files:
        data = file.read_bytes()
        documents += (line for line in data.split(b"\n") if line.strip()) if file.suffix == ".jsonl" else (data,)
    return files, documents


def clear_caches() -> None:
    """Empty the caches of functions, so that a turn gains nothing from the one before."""
    for name, module in list(sys.modules.items()):
        if name.startswith("warmstart."):
            for value in list(vars(module).values()):
                if not isinstance(value, type) and callable(clear := getattr(value, "cache_clear", None)):
                    clear()


def time_cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def time_ingest(ws: warmstart.Warmstart, files: list[Path]) -> float:
    return time_cpu(lambda: ws.ingest(*files))


def load_all(documents: list[bytes]) -> None:
    for document in documents:
        try:
            json.loads(document)
        except json.JSONDecodeError:
            continue


def inspect_all(files: list[Path]) -> None:
    for file in files:
        for _scored in warmstart.scan(Source(file), causes=False):  # as the command does
            pass


def measure_unchanged(scratch: Path) -> dict[str, Any]:
    """Ingest a tree of small files twice; return how many were opened the second time, and the CPU time of each file."""
    tree = scratch / "tree"
    for number in range(UNCHANGED):
        file = tree / f"project-{number % 20}" / f"00000000-0000-4000-8000-{number:012d}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = session_lines(random.Random(number), file.stem)
        file.write_text("".join(json.dumps(next(lines)) + "\n" for _ in range(6)))
    opened: list[str] = []
    with warmstart.open(scratch / "home-unchanged") as ws:
        ws.ingest(tree)
        sys.addaudithook(lambda event, values: opened.append(str(values[0])) if event == "open" else None)
        seconds = min(time_cpu(lambda: ws.ingest(tree)) for _ in range(3))
    return {
        "files": UNCHANGED,
        "opened": len({path for path in opened if path.startswith(str(tree))}),
        "us_per_file": round(seconds * 1e6 / UNCHANGED, 1),
    }


def memory(scratch: Path, size: int) -> dict[str, Any]:
    whole, tenth = scratch / "whole.jsonl", scratch / "tenth.jsonl"
    write_transcript(whole, size)
    write_transcript(tenth, max(1, size // 10))
    inspect_seconds, inspect_peak = run("inspect", whole, scratch / "big")
    _seconds, ingest_peak = run("ingest", whole, scratch / "big")
    tenth_seconds, _peak = run("inspect", tenth, scratch / "big")
    start_up, _peak = run("--version", None, scratch / "big")
    return {
        "big_mb": size,
        "inspect_peak_mb": round(inspect_peak),
        "ingest_peak_mb": round(ingest_peak),
        "ten_times_ratio": round((inspect_seconds - start_up) / (tenth_seconds - start_up), 2),
    }


def run(command: str, path: Path | None, home: Path) -> tuple[float, float]:
    """Return CPU seconds and peak MB of a command. A small process starts it, because a child's peak includes its parent's."""
    words = [sys.executable, "-m", "warmstart", "--home", str(home), command, *([str(path), "--json"] if path else [])]
    done = subprocess.run(
        [sys.executable, "-c", STARTER, *words], env=os.environ | {"PYTHONPATH": str(ROOT / "src")}, capture_output=True
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)} failed: {done.stderr.decode()}")
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak) / 1024


STARTER = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_pid, status, usage = os.wait4(child.pid, 0)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(status != 0)
"""


def write_transcript(path: Path, size: int, seed: int = 0) -> None:
    """Write a generated Claude Code session of `size` MB: requests, thinking, calls, results of every length."""
    chance = random.Random(seed)
    written = 0
    with path.open("w", encoding="utf-8", buffering=1 << 20) as out:
        for number, line in enumerate(session_lines(chance, f"00000000-0000-4000-8000-{seed:012d}")):
            text = json.dumps(line, separators=(",", ":")) + "\n"
            written += len(text)
            out.write(text)
            if number % 100 == 0 and written > size * 1_000_000:
                return


def session_lines(chance: random.Random, session: str) -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        number += 1
        common = {
            "parentUuid": f"u{number - 1}",
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/dev/project",
            "sessionId": session,
            "version": "2.1.0",
            "gitBranch": "main",
            "uuid": f"u{number}",
            "timestamp": datetime.fromtimestamp(1_790_000_000 + number, UTC).isoformat(),
        }
        if number % 40 == 1:
            yield common | {"type": "user", "message": {"role": "user", "content": prose(chance, 40)}}
        usage = {
            "input_tokens": 4,
            "cache_creation_input_tokens": 300,
            "cache_read_input_tokens": 20_000,
            "output_tokens": 90,
        }
        message = {
            "id": f"msg_{number}",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "type": "message",
            "usage": usage,
        }
        thought = {"type": "thinking", "thinking": prose(chance, 60), "signature": "c2lnbmF0dXJl" * 20}
        yield common | {"type": "assistant", "message": message | {"content": [thought]}}
        tool = chance.choice(("Bash", "Read", "Edit", "Grep"))
        use = {"type": "tool_use", "id": f"toolu_{number:024d}", "name": tool, "input": {"command": prose(chance, 8)}}
        yield common | {"type": "assistant", "message": message | {"content": [use]}}
        failed = chance.random() < 0.07
        text = ("Exit code 1\n" if failed else "") + prose(chance, int(chance.paretovariate(0.9) * 60) % 4_000)
        answer = {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": text,
            **({"is_error": True} if failed else {}),
        }
        result = f"Error: {text}" if failed else {"stdout": text, "stderr": "", "interrupted": False, "isImage": False}
        yield common | {"type": "user", "message": {"role": "user", "content": [answer]}, "toolUseResult": result}


def prose(chance: random.Random, words: int) -> str:
    start = chance.randrange(max(1, len(WORDS)))
    return " ".join((WORDS * (1 + (start + words) // len(WORDS)))[start : start + words])


def show(report: dict[str, Any]) -> None:
    if report["made_up"]:
        print("There is no corpus beside the project; these transcripts are generated.")
    for name, speed in report["formats"].items():
        print(
            f"{name}: {speed['bytes'] / 1e6:.1f} MB, json.loads {speed['json_loads_mb_s']} MB/s = 1.0x;"
            f" inspect {speed['inspect_ratio']:.2f}x, ingest {speed['ingest_ratio']:.2f}x"
        )
    unchanged = report["unchanged"]
    print(
        f"{unchanged['files']} unchanged files: {unchanged['opened']} opened, {unchanged['us_per_file']} microseconds each"
    )
    if "big_mb" in report:
        print(
            f"peak memory on {report['big_mb']} MB: inspect {report['inspect_peak_mb']} MB, ingest {report['ingest_peak_mb']} MB"
        )
        print(f"ten times the input takes {report['ten_times_ratio']:.1f} times as long")


if __name__ == "__main__":
    main()
