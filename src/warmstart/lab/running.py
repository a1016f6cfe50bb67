"""A run of the lab: learn from the solver's sessions, then every task in every arm, then what the store reports of it.

The lab keeps to the ways every user has: transcripts are ingested, templates learned, seeds provisioned, trials closed by
what the sessions wrote down. Its folder holds a store of its own; the user's is not touched. Each session is written when it
is over, so a run that was killed goes on where it stopped, with the seeds that were chosen before.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from warmstart import config
from warmstart.assigning import CONTROLS, draw
from warmstart.errors import Refused
from warmstart.lab.agent import AGENT, Agent, Limits, Transcript
from warmstart.lab.families import FAMILIES
from warmstart.lab.making import make_sessions, make_tasks, take
from warmstart.lab.solver import solve
from warmstart.lab.summary import ModelFacts
from warmstart.lab.tasks import LabTask
from warmstart.lab.workshop import TOOLS
from warmstart.llm import LLM
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.whole_files import final_name, sweep_unfinished, write_whole

EXPERIMENT = "lab"
ARMS = ("cold", "warm", "random", "mismatched", "text")
_OWN = ("plan.json", "home", "training", "sessions", "report.json", "report.html")  # all that a run's folder has
_SCHOOL, _APART = 1_767_225_600.0, 3_600.0  # when the first training session is said to have been, and the next ones
_PLENTY = 1_000  # active templates of a kind: the lab's families all count as few kinds


class Plan(Struct, frozen=True, kw_only=True):
    """What a run does. A folder belongs to one plan."""

    arms: tuple[str, ...] = ("cold", "warm")
    tasks: int = 20
    seed: int = 1
    model: ModelFacts
    grammar: bool = False
    limits: Limits = Limits()
    examples: int = 4
    budget: int = 1_000  # tokens of a seed

    def check(self) -> None:
        unknown = [arm for arm in self.arms if arm not in ARMS]
        if unknown or len(self.arms) != len(set(self.arms)):
            raise Refused(f"--arms: choose each once of {', '.join(ARMS)}; not {', '.join(unknown) or 'one twice'}")
        if len(self.arms) < 2:
            raise Refused("--arms: nothing can be compared with a single arm")


class Lab:
    """One run in one folder."""

    def __init__(self, folder: Path, plan: Plan, llm: LLM, clock: Callable[[], float] = time.time) -> None:
        plan.check()
        self.folder = folder
        self.plan = plan
        self._llm = llm
        self._clock = clock
        self._sessions = folder / "sessions"
        self._training = folder / "training"
        self._settle()
        settings = structs.replace(config.load(folder / "home", environ={}), max_active=_PLENTY)
        self.ws = Warmstart(settings, clock)

    def close(self) -> None:
        self.ws.close()

    def _settle(self) -> None:
        """The folder is this plan's, or becomes it."""
        path = self.folder / "plan.json"
        if path.exists():
            if _read_plan(path) != self.plan:
                raise Refused(f"{self.folder} holds another run; give another --out, or --fresh to begin anew")
            return
        keep(path, msgspec.json.encode(self.plan))

    def run(self, progress: Progress | None = None) -> None:
        """All sessions that are not there yet."""
        for folder in (self._training, *(self._sessions / arm for arm in self.plan.arms)):
            sweep_unfinished(folder)
        self._learn()
        held_out = self._held_out()
        agent = Agent(self._llm, self.plan.model.name, self.plan.limits, self._clock)
        steps = list(self.steps())
        for done, (task, arm) in enumerate(steps):
            if progress:
                progress(done, len(steps), f"{arm}: {task.id}")
            path = self._path(task, arm)
            if not path.exists():
                keep(path, msgspec.json.encode(self._play(agent, task, arm, held_out)) + b"\n")
        if progress:
            progress(len(steps), len(steps), "done")

    def tasks(self) -> list[LabTask]:
        per_family = -(-self.plan.tasks // sum(not family.held_out for family in FAMILIES))
        return take(make_tasks(seed=self.plan.seed, split="test", per_family=per_family), self.plan.tasks)

    def steps(self) -> Iterator[tuple[LabTask, str]]:
        """Task by task every arm, the arms in an order of their own each time."""
        for task in self.tasks():
            for arm in sorted(self.plan.arms, key=lambda arm: draw(f"{task.id} {arm}", f"lab {self.plan.seed}")):
                yield task, arm

    def count_done(self) -> int:
        return sum(self._path(task, arm).exists() for task, arm in self.steps())

    def session_id(self, task: LabTask, arm: str) -> str:
        return f"lab-{self.plan.seed}-{task.id}-{arm}"

    def _path(self, task: LabTask, arm: str) -> Path:
        return self._sessions / arm / f"{task.id}.jsonl"

    def _learn(self) -> None:
        """Once: write the solver's sessions down, ingest them, learn, and start the comparison."""
        if self.ws.experiments.list():
            return
        sessions = [one for held_out in (False, True) for one in make_sessions(self.plan.seed, held_out=held_out)]
        for number, session in enumerate(sessions):
            path = self._training / f"{session.id}.jsonl"
            if not path.exists():
                keep(path, msgspec.json.encode(solve(session, _SCHOOL + number * _APART)) + b"\n")
        self.ws.ingest(self._training)
        self.ws.learn()
        self.ws.experiments.start(
            EXPERIMENT, ",".join(self.plan.arms), design="paired", horizon=float(self.plan.limits.turns)
        )

    def _held_out(self) -> tuple[str, ...]:
        """Templates that come from held-out families alone: what the control arms show."""
        apart = {session.id for session in make_sessions(self.plan.seed, held_out=True)}
        keys = {row.key for row in self.ws.sessions(limit=100_000, agent=AGENT) if row.id in apart}
        names = []
        for row, template in self.ws.templates.find(status="active"):
            if set(template.source_sessions) <= keys:
                names.append(row.name)
        return tuple(names)

    def _play(self, agent: Agent, task: LabTask, arm: str, held_out: tuple[str, ...]) -> Transcript:
        session = self.session_id(task, arm)
        seed = self.ws.provision(
            Task(
                text=task.request,
                session=session,
                arm=arm,
                agent=AGENT,
                model=self.plan.model.name,
                project=task.family,
                tools=tuple(tool.name for tool in TOOLS),
                templates=held_out if arm in CONTROLS else None,
                examples=self.plan.examples,
                budget=self.plan.budget,
            )
        )
        return agent.run(task, session, seed.inject)


def _read_plan(path: Path) -> Plan | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def keep(path: Path, data: bytes) -> None:
    """A killed run leaves no half session."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def clear(folder: Path) -> None:
    """Forget a run. Only what is one: where anything else lies in the folder, all of it stays."""
    if not folder.exists():
        return
    if not (folder / "plan.json").is_file():
        raise Refused(f"{folder} is no run of the lab; it is left as it is")
    others = sorted(path.name for path in folder.iterdir() if final_name(path.name) not in _OWN)
    if others:
        raise Refused(f"{folder} holds more than a run of the lab ({others[0]}); it is left as it is")
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
