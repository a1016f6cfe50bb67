"""The data of a lab report, for tables, the page and `--json`; its numbers come from the store's report of the trials."""

from __future__ import annotations

from msgspec import Struct

from warmstart.lab.models.facts import ModelFacts
from warmstart.trials.report import Report


class ArmLine(Struct, frozen=True, kw_only=True):
    """An arm in numbers, per session where nothing else is said. None is unknown."""

    arm: str
    sessions: int
    solved: int
    errors_per_call: float | None  # over the first turns; an answer without a call counts as a failed call
    turns_to_success: float | None  # mean up to the limit of turns, sessions without success censored
    tokens: float | None  # with the seed's
    tools: float | None  # different tools used with success
    seed_tokens: float | None
    examples: float  # in the seed
    seconds: float | None


class TaskCell(Struct, frozen=True, kw_only=True):
    """One task in one arm."""

    solved: bool
    errors: int
    calls: int
    success_turn: int | None  # of the first call that worked
    turns: int


class TaskLine(Struct, frozen=True, kw_only=True):
    """One task in every arm that has run it."""

    task: str  # id
    family: str
    request: str
    arms: dict[str, TaskCell]


class LabReport(Struct, frozen=True, kw_only=True):
    """A run of the lab, finished or not."""

    command: str  # repeats the run
    at: str  # time of the report; UTC, ISO
    version: str  # of the Warmstart that began the run
    model: ModelFacts
    random_seed: int
    turns: int  # limit per session
    planned: int  # sessions
    done: int  # sessions
    grammar: bool
    templates: int  # learned from the training sessions, active
    training_sessions: int
    families: tuple[str, ...]  # tested
    held_out: tuple[str, ...]  # never tested; the control arms show their templates
    walls: tuple[str, ...]  # around the model's commands
    arms: tuple[ArmLine, ...]
    tasks: tuple[TaskLine, ...]
    report: Report  # each arm against the control, metric by metric
    began: str | None = None  # first session, in the form of `at`; None: no session yet
    ended: str | None = None  # last session

    @property
    def finished(self) -> bool:
        return self.done >= self.planned
