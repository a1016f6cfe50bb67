"""A scripted model in a real loop: provisioned, run, written down and ingested."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from template_files import example, template
from transcripts import outcome_lines, write_jsonl
from warmstart.model import Task
from warmstart.pipeline import Warmstart

TEXT = "deploy the shop to the cluster"
LESSON = template("lesson", example("Bash", "helm upgrade shop", TEXT), category="ops")
USUAL = 0.30  # errors per call of the scripted model, cold


class ScriptedModel:
    """Fails its calls at a rate that depends on whether it was shown the lesson."""

    def __init__(self, *, shown: float, cold: float = USUAL, seed: int = 1) -> None:
        self._rates = {True: shown, False: cold}
        self._random = random.Random(seed)

    def run(self, messages: list[dict[str, Any]], calls: int) -> list[bool]:
        knows = any("helm upgrade shop" in str(message) for message in messages)
        return [self._random.random() >= self._rates[knows] for _ in range(calls)]


class Host:
    """An agent's program: asks for a seed, lets the model work, leaves a transcript."""

    def __init__(self, ws: Warmstart, model: ScriptedModel, folder: Path) -> None:
        self._ws = ws
        self._model = model
        self._folder = folder
        self._random = random.Random(7)

    def run_session(self, name: str, *, calls: int | None = None) -> str:
        seed = self._ws.provision(Task(text=TEXT, session=name, agent="claude-code", project="/home/dev/shop"))
        messages = seed.inject([{"role": "system", "content": "work"}, {"role": "user", "content": TEXT}])
        outcomes = self._model.run(messages, calls or self._random.randint(8, 30))
        write_jsonl(self._folder / f"{name}.jsonl", outcome_lines(name, outcomes))
        return seed.arm


def run_sessions(ws: Warmstart, folder: Path, sessions: int = 200, **model: float) -> Host:
    """Run sessions through a scripted model, ingest their transcripts and return the host."""
    host = Host(ws, ScriptedModel(**model), folder)
    for n in range(sessions):
        host.run_session(f"run-{n}")
    report = ws.ingest(folder)
    assert (report.sessions, report.trials, report.problems) == (sessions, sessions, [])
    return host
