"""A run of the lab: learn from the solver's sessions, then run every task in every arm.

The lab works like any user: it ingests transcripts, learns templates, provisions seeds and closes trials with the recorded
sessions. Its folder has its own store; the user's is not touched. Each session is written when it ends, so a killed run
goes on where it stopped, with the seeds chosen before.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from warmstart import __version__, config
from warmstart.arms import CONTROLS, draw
from warmstart.atomic_files import final_name, sweep_unfinished, write_whole
from warmstart.endpoints.chat import LLM, EndpointError
from warmstart.errors import Refused
from warmstart.lab.chores.families import FAMILIES
from warmstart.lab.chores.make import count_different, make_sessions, make_tasks, take
from warmstart.lab.chores.tasks import LabTask
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.agent import AGENT, AgentLimits, LabAgent, Transcript
from warmstart.lab.run.solver import solve
from warmstart.lab.sandbox.workshop import TOOLS
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress

EXPERIMENT = "lab"
DECIDES = "success"  # the check's result; errors show less: an arm can make fewer of them and solve nothing
ARMS = ("cold", "warm", "random", "mismatched", "text")
_FILES = ("plan.json", "report.json", "report.html")  # at the top of a run's folder
_TAUGHT = ("home", "training")  # folders that a run has before its first session
_SCHOOL, _APART = 1_767_225_600.0, 3_600.0  # the recorded start of the first training session, and the time to the next
_SOLVERS = 4  # training sessions at once
_REFUSED = 5  # refused sessions in a row after which the server is at fault, not the sessions
_PLENTY = 1_000  # active templates per kind: the lab's many families count as few kinds


class Plan(Struct, frozen=True, kw_only=True):
    """The parameters of a run. A folder belongs to one plan."""

    arms: tuple[str, ...] = ("cold", "warm")
    tasks: int = 20
    random_seed: int = 1
    model: ModelFacts
    grammar: bool = False
    limits: AgentLimits = AgentLimits()
    examples: int = 4
    budget: int = 1_000  # tokens of a seed

    def check(self) -> None:
        """Refuse a plan that cannot be run or compared."""
        unknown = [arm for arm in self.arms if arm not in ARMS]
        if unknown or len(self.arms) != len(set(self.arms)):
            raise Refused(f"--arms: choose each once of {', '.join(ARMS)}; not {', '.join(unknown) or 'one twice'}")
        if len(self.arms) < 2:
            raise Refused("--arms: nothing can be compared with a single arm; give two, such as cold,warm")
        different = count_different(self.make_tasks())
        if self.tasks > different:
            raise Refused(
                f"--tasks: {different} at most, then random seed {self.random_seed} makes the same again; for others take"
                " another --random-seed"
            )

    def make_tasks(self) -> list[LabTask]:
        """Return as many tasks of every family as the plan may need."""
        per_family = -(-self.tasks // sum(not family.held_out for family in FAMILIES))
        return make_tasks(random_seed=self.random_seed, split="test", per_family=per_family)


class SavedPlan(Plan, frozen=True, kw_only=True):
    """A plan as its folder keeps it."""

    version: str  # of the Warmstart that began the run


class Lab:
    """One run in one folder."""

    def __init__(self, folder: Path, plan: Plan, llm: LLM, clock: Callable[[], float] = time.time) -> None:
        plan.check()
        self.folder = folder
        self.plan = plan
        self._tasks = take(plan.make_tasks(), plan.tasks)
        self._llm = llm
        self._clock = clock
        self._sessions = folder / "sessions"
        self._training = folder / "training"
        self.version = self._settle()
        settings = structs.replace(config.load(folder / "home", environ={}), max_active=_PLENTY)
        self.ws = Warmstart(settings, clock)

    def close(self) -> None:
        self.ws.close()

    def _settle(self) -> str:
        """Write the plan into a new folder, or check that the folder is this plan's; return the version that began it."""
        path = self.folder / "plan.json"
        own = SavedPlan(**structs.asdict(self.plan), version=__version__)
        if not path.exists():
            _check_free(self.folder)
            keep(path, msgspec.json.encode(own))
            return own.version
        saved = _read_plan(path)
        if saved is None:
            raise Refused(f"{self.folder} is no run of the lab and not empty (plan.json); give another --out")
        if structs.replace(saved, version=__version__) != own:
            raise Refused(f"{self.folder} holds another run; give another --out, or --fresh to begin anew")
        if saved.version != __version__ and self.count_done() < len(list(self.steps())):
            raise Refused(
                f"{self.folder} holds a run that Warmstart {saved.version} began, and this is {__version__}; give another"
                " --out, or --fresh to begin anew"
            )
        return saved.version

    def run(self, progress: Progress | None = None) -> None:
        """Run all sessions that are still missing."""
        for folder in (self._training, *(self._sessions / arm for arm in self.plan.arms)):
            sweep_unfinished(folder)
        self._learn(progress)
        held_out = self._held_out()
        agent = LabAgent(self._llm, self.plan.model.name, self.plan.limits, self._clock)
        steps = list(self.steps())
        waiting: dict[Path, Transcript] = {}  # refused sessions, held back until a later one is answered
        for done, (task, arm) in enumerate(steps):
            if progress:
                progress(done, len(steps), f"{arm}: {task.id}")
            path = self._path(task, arm)
            if path.exists():
                continue
            waiting[path] = self._play(agent, task, arm, held_out)
            if agent.refusal is None:
                _keep_all(waiting)
            elif len(waiting) >= max(_REFUSED, 2 * len(self.plan.arms)):  # one arm that is answered ends every row
                raise EndpointError(f"{agent.refusal} ({len(waiting)} sessions in a row)")
        if waiting and not self.count_done():
            raise EndpointError(f"{agent.refusal} (every session)")
        _keep_all(waiting)
        if progress:
            progress(len(steps), len(steps), "done")

    def tasks(self) -> list[LabTask]:
        return list(self._tasks)

    def steps(self) -> Iterator[tuple[LabTask, str]]:
        """Yield every arm task by task, the arms of each task in a random order."""
        for task in self.tasks():
            for arm in sorted(self.plan.arms, key=lambda arm: draw(f"{task.id} {arm}", f"lab {self.plan.random_seed}")):
                yield task, arm

    def count_done(self) -> int:
        return sum(self._path(task, arm).exists() for task, arm in self.steps())

    def session_id(self, task: LabTask, arm: str) -> str:
        return f"lab-{self.plan.random_seed}-{task.id}-{arm}"

    def _path(self, task: LabTask, arm: str) -> Path:
        return self._sessions / arm / f"{task.id}.jsonl"

    def _learn(self, progress: Progress | None) -> None:
        """Write the solver's sessions, ingest them, learn and start the experiment, unless that is done already."""
        if self.ws.experiments.list():
            return
        self._train(progress)
        self.ws.ingest(self._training)
        self.ws.templates.learn()
        self.ws.experiments.start(
            EXPERIMENT,
            ",".join(self.plan.arms),
            metric=DECIDES,
            design="paired",
            horizon=float(self.plan.limits.turns),
        )

    def _train(self, progress: Progress | None) -> None:
        """Write the solver's sessions that are still missing, several at once: each mostly waits for its commands."""
        random_seed = self.plan.random_seed
        sessions = [*make_sessions(random_seed), *make_sessions(random_seed, held_out=True)]
        times = [_SCHOOL + number * _APART for number in range(len(sessions))]
        paths = [self._training / f"{session.id}.jsonl" for session in sessions]
        missing = [number for number, path in enumerate(paths) if not path.exists()]
        with ThreadPoolExecutor(_SOLVERS) as pool:
            solved = pool.map(lambda number: solve(sessions[number], times[number]), missing)
            for number, transcript in zip(missing, solved, strict=True):
                keep(paths[number], msgspec.json.encode(transcript) + b"\n")
                if progress:
                    progress(number + 1, len(sessions), f"training: {sessions[number].id}")

    def _held_out(self) -> tuple[str, ...]:
        """Return the templates that come from held-out families alone, for the control arms."""
        apart = {session.id for session in make_sessions(self.plan.random_seed, held_out=True)}
        keys = {row.key for row in self.ws.sessions(limit=100_000, agent=AGENT) if row.id in apart}
        active = self.ws.templates.find(status="active")
        return tuple(row.name for row, template in active if set(template.source_sessions) <= keys)

    def _play(self, agent: LabAgent, task: LabTask, arm: str, held_out: tuple[str, ...]) -> Transcript:
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
                brief=0,  # the lab measures examples
            )
        )
        return agent.run(task, session, seed.inject)


def _read_plan(path: Path) -> SavedPlan | None:
    """Return the plan, or None if the file is no plan of a run."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=SavedPlan)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def keep(path: Path, data: bytes) -> None:
    """Write a file atomically: a killed run leaves no half session."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, data)


def _keep_all(sessions: dict[Path, Transcript]) -> None:
    """Write sessions that were held back. A run that a server stops by refusing one after another does not write them:
    they say nothing about the model, and are asked again when the run goes on."""
    for path, session in sessions.items():
        keep(path, msgspec.json.encode(session) + b"\n")
    sessions.clear()


def clear(folder: Path) -> None:
    """Delete a run. A folder with any other file in it is left as it is."""
    if not folder.exists():
        return
    plan = folder / "plan.json"
    if not plan.is_file() or _read_plan(plan) is None:
        raise Refused(f"{folder} is no run of the lab; it is left as it is")
    if other := _find_other(folder):
        raise Refused(f"{folder} holds more than a run of the lab ({other}); it is left as it is")
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _check_free(folder: Path) -> None:
    """Refuse a folder with other files in it: later they could not be distinguished from the run's."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise Refused(f"{folder} is a file; --out wants a folder")
    early = (*_TAUGHT, "plan.json")  # plan.json half written, as a killed run leaves it
    names = (path.name for path in folder.iterdir())
    other = _find_other(folder) or next((name for name in names if final_name(name) not in early), None)
    if other:
        raise Refused(f"{folder} is no run of the lab and not empty ({other}); give another --out")


def _find_other(folder: Path) -> str | None:
    """Return the path of a file that no run of the lab writes, if the folder has one."""
    for place, folders, files in os.walk(folder):
        for name in sorted((*folders, *files)):
            path = Path(place, name)
            parts = (path.parent / final_name(name)).relative_to(folder).parts
            is_own = _is_own_folder(parts) if name in folders else _is_own_file(parts)
            if not is_own or path.is_symlink():
                return str(path.relative_to(folder))
    return None


def _is_own_folder(parts: tuple[str, ...]) -> bool:
    match parts:
        case (name,):
            return name in (*_TAUGHT, "sessions")
        case ("sessions", arm):
            return arm in ARMS
    return False


def _is_own_file(parts: tuple[str, ...]) -> bool:
    match parts:
        case (name,):
            return name in _FILES
        case ("home", name):
            return name.startswith("warmstart.db")
        case ("training", name):
            return name.endswith(".jsonl")
        case ("sessions", arm, name):
            return arm in ARMS and name.endswith(".jsonl")
    return False
