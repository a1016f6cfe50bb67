"""Print a digest of everything that is read, judged, scored, stored, learned and seeded, to compare two versions of the code.

    python bench/digest.py PATH... [--source DIR] > before.txt
    python bench/digest.py PATH... [--source DIR] > after.txt
    diff before.txt after.txt

Each line is a kind, a name and a digest: `session` (the session as read, with its outcomes and score), `problem` (of a
file), `stored` (its redacted rows), `fix` (the fixes among its calls), `template`, `note` and `seed` (of the request of
every tenth session). `--source` names another version of the package, such as a worktree's `src`. The clock stands
still and the environment is empty, so the lines depend on the transcripts and the code alone.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_NOW = 1_800_000_000.0
_EVERY = 10  # sessions between two whose request is seeded


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--source", type=Path, default=ROOT / "src")
    options = parser.parse_args()
    sys.path.insert(0, str(options.source.resolve()))
    for line in (*digest_reading(options.paths), *digest_store(options.paths)):
        print(line)


def digest_reading(paths: list[Path]) -> Iterator[str]:
    from warmstart.ingest.read import scan
    from warmstart.ingest.sources import find_sources

    for path in paths:
        for source in find_sources(path):
            for scored in scan(source):
                yield describe("session", f"{source.path} {scored.session.id}", (scored.session, scored.score))
            if source.problems:
                yield describe("problem", str(source.path), source.problems)


def digest_store(paths: list[Path]) -> Iterator[str]:
    from warmstart import config
    from warmstart.calls.fixes import list_fixes
    from warmstart.model import Task
    from warmstart.pipeline import Warmstart
    from warmstart.scopes import KEY_FILE
    from warmstart.store.history import read_history

    with tempfile.TemporaryDirectory(prefix="warmstart-bench-") as scratch:
        home = Path(scratch) / "home"
        home.mkdir(mode=0o700)
        (home / KEY_FILE).write_bytes(bytes(32))  # otherwise random, and part of the names of scopes
        settings = config.load(home, environ={"HOME": scratch})
        with Warmstart(settings, clock=lambda: _NOW) as ws:
            report = ws.ingest(*paths)
            yield describe("report", "ingest", report)
            for key in sorted(stored.key for stored in ws.store.list_sessions(None)):
                yield describe("stored", key, ws.session(key))
            sessions = [session for session in read_history(ws.store) if session is not None]
            for session in sessions:
                yield describe("fix", session.key, list(list_fixes(session.calls)))
            ws.learn()
            for row, template in ws.templates.find():
                yield describe("template", f"{row.name}@{row.version}", (row, template))
            for note in ws.notes.list():
                yield describe("note", note.id, note)
            for session in sorted(sessions, key=lambda session: session.key)[::_EVERY]:
                task = Task(text=session.task, project=session.project, agent=session.agent)
                yield describe("seed", session.key, ws.provision(task))


def describe(kind: str, name: str, value: Any) -> str:
    import msgspec

    text = msgspec.json.Encoder(order="deterministic", enc_hook=vars).encode(value)
    return f"{kind}\t{name}\t{hashlib.blake2b(text, digest_size=12).hexdigest()}"


if __name__ == "__main__":
    main()
