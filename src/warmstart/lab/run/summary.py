"""What a run of the lab shows, for tables, the page and `--json`. Numbers come from the store's own report of its trials."""

from __future__ import annotations

from msgspec import Struct

from warmstart.lab.models.facts import ModelFacts
from warmstart.trials.report import Report


class ArmLine(Struct, frozen=True, kw_only=True):
    """An arm in numbers. None is not known."""

    arm: str
    sessions: int
    solved: int
    errors_per_call: float | None  # over the first turns; an answer without a call counts as one that failed
    turns_to_success: float | None  # mean up to the limit of turns, sessions without one censored
    tokens: float | None  # a session, the seed's included
    tools: float | None  # different tools used with success, a session
    seed_tokens: float | None  # a session
    examples: float  # shown, a session
    seconds: float | None  # a session


class TaskCell(Struct, frozen=True, kw_only=True):
    """One task in one arm."""

    solved: bool
    errors: int
    calls: int
    success_turn: int | None  # of the first call that worked
    turns: int


class TaskLine(Struct, frozen=True, kw_only=True):
    """One task in every arm that has done it."""

    task: str  # id
    family: str
    request: str
    arms: dict[str, TaskCell]


class LabReport(Struct, frozen=True, kw_only=True):
    """A run of the lab, finished or not."""

    command: str  # that does the same again
    at: str  # when it is shown; UTC, ISO
    version: str  # of the Warmstart that began the run
    model: ModelFacts
    random_seed: int
    turns: int  # that a session has
    planned: int  # sessions
    done: int
    grammar: bool
    templates: int  # learned from the training sessions, active
    training_sessions: int
    families: tuple[str, ...]  # tested
    held_out: tuple[str, ...]  # whose templates the control arms may show, and that nothing is tested of
    walls: tuple[str, ...]  # around what the model ran
    arms: tuple[ArmLine, ...]
    tasks: tuple[TaskLine, ...]
    report: Report  # arms against the control, metric by metric
    began: str | None = None  # first and last session, as `at`; None: there is none yet
    ended: str | None = None

    @property
    def finished(self) -> bool:
        return self.done >= self.planned
