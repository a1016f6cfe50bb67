"""How many words a push would replace as names of people, in the notes and templates of the corpus' projects.

The most replaced words are listed, for a reader to judge: whatever is no name or account of a person is a mistake.

    python bench/names.py [PROJECT ...]
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench"))

import msgspec

from corpus_projects import NAMES, PROJECTS, find_transcripts
from warmstart import config
from warmstart.bundles.outgoing import collect_people
from warmstart.pipeline import Warmstart
from warmstart.redact import Redactor
from warmstart.store.history import read_history
from warmstart.templates.export import to_record


class Counting:
    """Stands for a redactor's scope, and counts what is replaced."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()

    def placeholder(self, value: str, _kind: str) -> str:
        self.words[value] += 1
        return "{{SECRET:person#1}}"


def measure(name: str) -> None:
    with TemporaryDirectory() as scratch:
        transcripts = find_transcripts(PROJECTS, name, Path(scratch))
        settings = config.load(Path(scratch) / "home", environ={"HOME": scratch})
        with Warmstart(settings) as ws:
            ws.ingest(transcripts)
            ws.learn()
            people = collect_people(settings, [read_history(ws.store)])
            notes = [note.text for note in ws.notes.list()]
            for text in notes:
                people.learn_prose(text)
            templates = [msgspec.json.encode(to_record(template)).decode() for _row, template in ws.templates.find()]
    redactor = Redactor({}, share=True)
    for kind, texts in (("notes", notes), ("templates", templates)):
        counting: Any = Counting()
        size = 0
        for text in texts:
            safe = str(redactor.scope().value(text))
            size += len(safe.split())
            people.hide(safe, counting)
        most = ", ".join(f"{word} {count}" for word, count in counting.words.most_common(20))
        total = sum(counting.words.values())
        print(f"{name:18} {kind:9} {len(texts):4} texts {size:8,} words {total:6,} replaced: {most}", flush=True)


if __name__ == "__main__":
    for project in sys.argv[1:] or NAMES:
        measure(project)
