"""Replay recorded sessions of one's own agent to a model, cold and warm, and compare its calls with the record.

Sessions are split into two halves that share no task, as far as tasks can be distinguished. Each half is replayed with
templates learned from the other, in a store of their own. So every session is replayed, and none with templates learned
from itself or its task. A seed may still contain a call of the session's own record; the report counts those. The rest is
the product itself: `learn`, a paired experiment, `provision`.

A run's folder contains plan.json, recordings.jsonl (the redacted sessions to replay), half-1.db and half-2.db (each half's
templates and the trials of the other half), answers.jsonl (every answer in order) and report.json.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field, structs

from warmstart import __version__
from warmstart.arms import COLD, MISMATCHED, WARM, draw
from warmstart.atomic_files import sweep_unfinished, write_whole
from warmstart.config import Settings
from warmstart.dialects.compose import Seed
from warmstart.endpoints.chat import LLM, EndpointError
from warmstart.errors import Refused
from warmstart.excerpt import first
from warmstart.ingest.records import Recorder
from warmstart.lab.replay.match import NormalForm, normal_form
from warmstart.lab.replay.player import Played, Replayer, ReplayJournal, calls_in
from warmstart.lab.replay.recordings import Gatherer, Recording, RecordingSet, Toolbox
from warmstart.lab.replay.report import (
    Half,
    ReplayReport,
    SessionLine,
    add_up,
    compare,
    compare_mismatched,
    count,
    with_missing,
)
from warmstart.model import Problem, Task
from warmstart.pipeline import Warmstart
from warmstart.ports import Progress
from warmstart.redact import Redactor

EXPERIMENT = "replay"
ARMS = (COLD, WARM, MISMATCHED)
_RULES = 3  # version of how sessions are split, asked and counted; a run cannot go on by other rules
_PATIENCE = 3  # sessions in a row without an answer, after which the endpoint counts as dead
_SHOWN = 120  # characters of a request in the report
_PROBLEMS = 3  # listed in an error message
_MARK = ".warmstart-replay"  # marks a folder as a replay's
_OWN_FILES = ("recordings.jsonl", "answers.jsonl", "report.json", *(f"half-{half}.db" for half in (1, 2)))


class ReplayPlan(Struct, frozen=True, kw_only=True):
    """The parameters of a replay. A folder belongs to one plan; only its limit may change."""

    paths: tuple[str, ...]  # transcripts: files or folders
    model: str  # the endpoint's name for it
    endpoint: str = ""  # its address for the report, without the key
    arms: tuple[str, ...] = (COLD, WARM)
    random_seed: int = 1  # for the split and the order
    turns: int = 4  # the model's answers per replay, at most
    limit: int | None = None  # sessions to replay, drawn by the random seed; None: all
    examples: int = 8  # in a seed, at most: the default of `provision`
    budget: int = 1_500  # tokens of a seed
    request: dict[str, Any] = field(default_factory=lambda: {"temperature": 0})  # further fields of each request

    def check(self) -> None:
        """Refuse a plan that cannot be run or compared."""
        for name, value, least in (
            ("--turns", self.turns, 1),
            ("--examples", self.examples, 1),
            ("--limit", self.limit, 1),
        ):
            if value is not None and value < least:
                raise Refused(f"{name} must be at least {least}, not {value}")
        if len(set(self.arms)) != len(self.arms) or not {COLD, WARM} <= set(self.arms) <= set(ARMS):
            raise Refused(f"--arms: cold,warm or cold,warm,mismatched; not {','.join(self.arms)}")
        if not self.paths:
            raise Refused("name the transcripts to replay: files or folders")


class ReplayStopped(EndpointError):
    """The endpoint stopped answering. Earlier answers are kept and are in `report`."""

    def __init__(self, message: str, report: ReplayReport) -> None:
        super().__init__(message)
        self.report = report


class _Frozen(Struct, frozen=True, kw_only=True):
    """The content of plan.json, written after reading and learning, so that later runs work on the same sessions."""

    plan: ReplayPlan
    recorded: int
    left_out: dict[str, int]
    problems: tuple[Problem, ...]
    halves: tuple[Half, ...]
    tasks: int
    left_loose: int
    rules: int


def replay(
    plan: ReplayPlan,
    llm: LLM,
    out: Path,
    *,
    settings: Settings,
    clock: Callable[[], float] = time.time,
    progress: Progress | None = None,
) -> ReplayReport:
    """Replay recorded sessions cold and warm; a stopped run goes on where it was.

    Raise ReplayStopped (an EndpointError) if the endpoint is dead, Refused if there is nothing to replay or the folder
    belongs to another plan.
    """
    plan.check()
    recorder = Recorder(settings.secrets)
    named = structs.replace(plan, paths=tuple(recorder.name(str(Path(path).absolute())) for path in plan.paths))
    run = _Run(named, llm, out, settings, clock)
    if not run.is_prepared():
        run.prepare(Gatherer(settings, clock).gather(plan.paths, plan.random_seed, progress))
    return run.play(progress)


class _Tally:
    """The answered sessions, and how many in a row were not."""

    def __init__(self, patience: int) -> None:
        self._patience = patience
        self._silence = 0  # sessions in a row
        self.done: list[SessionLine] = []
        self.unanswered: Counter[str] = Counter()  # by arm
        self.trouble: EndpointError | None = None

    @property
    def is_dead(self) -> bool:
        return self._silence >= self._patience

    def take(self, line: SessionLine) -> None:
        self._silence = 0
        self.done.append(line)

    def miss(self, error: EndpointError, arms: Sequence[str]) -> None:
        self._silence += 1
        self.trouble = error
        self.unanswered.update(arms)


class _Run:
    """One run in one folder."""

    def __init__(self, plan: ReplayPlan, llm: LLM, out: Path, settings: Settings, clock: Callable[[], float]) -> None:
        self._plan = plan
        self._llm = llm
        self._out = out
        self._settings = settings
        self._clock = clock

    # Before the first request

    def is_prepared(self) -> bool:
        try:
            frozen = msgspec.json.decode((self._out / "plan.json").read_bytes(), type=_Frozen)
        except FileNotFoundError:
            return False
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Refused(f"{self._out}/plan.json cannot be read ({error}); give another folder") from error
        except OSError as error:
            raise Refused(f"{self._out} cannot be used as a folder: {error.strerror}; give another one") from error
        if frozen.rules != _RULES:
            raise Refused(
                f"{self._out} holds a replay of another version of Warmstart, which split and counted differently;"
                " give another folder"
            )
        saved = frozen.plan
        if structs.replace(saved, limit=self._plan.limit) != self._plan:
            changed = [name for name in saved.__struct_fields__ if getattr(saved, name) != getattr(self._plan, name)]
            raise Refused(f"{self._out} holds a replay with other {', '.join(changed)}; give another folder")
        return True

    def prepare(self, gathered: RecordingSet) -> None:
        """Learn from each half, then write the sessions to replay; start over from what a killed run left half done."""
        if not gathered.recordings:
            reasons = _explain_none(gathered) or "no transcript was found"
            raise Refused(f"there is no session to replay: {reasons}; check the paths")
        try:
            self._out.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise Refused(f"{self._out} cannot be made: {error.strerror}; give another folder") from error
        if not (self._out / _MARK).exists() and any(self._out.iterdir()):
            raise Refused(f"{self._out} holds other files; give a folder that is new or empty")
        (self._out / _MARK).touch()
        for name in _OWN_FILES:
            for path in self._out.glob(f"{name}*"):
                path.unlink()
        sweep_unfinished(self._out)
        halves = []
        for half, records in gathered.records.items():
            with self._open(half) as ws:
                with ws.store.writing():
                    for record in records:
                        ws.store.put_session(record.session, record.calls, record.spent)
                learned = ws.templates.learn()
                ws.experiments.start(
                    EXPERIMENT, ",".join(self._plan.arms), design="paired", horizon=float(self._plan.turns)
                )
            active = sum(one.status == "active" for one in learned.templates)
            halves.append(Half(half=half, sessions=len(records), templates=active, refused=learned.refused))
        frozen = _Frozen(
            plan=self._plan,
            recorded=sum(half.sessions for half in halves),
            left_out=gathered.left_out,
            problems=gathered.problems,
            halves=tuple(halves),
            tasks=len({one.family for one in gathered.recordings}),
            left_loose=gathered.left_loose,
            rules=_RULES,
        )
        self._put("recordings.jsonl", b"".join(msgspec.json.encode(one) + b"\n" for one in gathered.recordings))
        self._put("plan.json", msgspec.json.format(msgspec.json.encode(frozen)) + b"\n")

    def _open(self, half: int) -> Warmstart:
        """Open the store with the templates of a half; the user's own store is never opened."""
        own = structs.replace(self._settings, home=self._out, store=str(self._out / f"half-{half}.db"))
        return Warmstart(own, self._clock)

    def _put(self, name: str, content: bytes) -> None:
        write_whole(self._out / name, content)

    # Playing

    def play(self, progress: Progress | None) -> ReplayReport:
        """Replay all sessions in all arms and write the report."""
        lines = (self._out / "recordings.jsonl").read_bytes().splitlines()
        recordings = [msgspec.json.decode(line, type=Recording) for line in lines]
        queue = sorted(recordings, key=lambda one: draw(one.name, f"order {self._plan.random_seed}"))[
            : self._plan.limit
        ]
        places = {one.name: place for place, one in enumerate(queue)}
        journal = ReplayJournal(self._out / "answers.jsonl", self._llm, Redactor(self._settings.secrets))
        queue.sort(key=lambda one: one.name in journal.failed)  # last, so that a request nobody answers blocks no other
        request = {"model": self._plan.model} | self._plan.request
        toolbox = Toolbox(recordings)
        replayer = Replayer(journal, toolbox, request, self._plan.turns)
        tally = _Tally(patience=min(_PATIENCE, len(queue)))
        with ExitStack() as stores:
            taught = {half: stores.enter_context(self._open(half)) for half in (1, 2)}
            for place, recording in enumerate(queue):
                if progress:
                    progress(place, len(queue), first(recording.task, 40))
                ws = taught[3 - recording.half]
                tools = toolbox.names(recording)
                seeds = {arm: ws.provision(self._task(recording, tools, arm)) for arm in self._plan.arms}
                played: dict[str, Played] = {}
                try:
                    self._play_arms(replayer, recording, seeds, played)
                except EndpointError as error:  # it may be a single request that is too long for the model
                    tally.miss(error, [arm for arm in self._plan.arms if arm not in played])
                    if tally.is_dead:
                        break
                else:
                    tally.take(_line(recording, played, seeds[WARM]))
        tally.done.sort(key=lambda line: places[line.name])
        report = self._report(tally, len(queue), journal.asked)
        self._put("report.json", msgspec.json.encode(report))
        if tally.is_dead:
            kept = f"{report.replayed} of {report.planned} sessions are answered and kept in {self._out}"
            raise ReplayStopped(f"{tally.trouble}; {kept}: the same command goes on there", report) from tally.trouble
        return report

    def _task(self, recording: Recording, tools: tuple[str, ...], arm: str) -> Task:
        return Task(
            text=recording.task,
            agent=recording.agent,
            model=self._plan.model,
            project=recording.project,
            tools=tools,
            budget=self._plan.budget,
            examples=self._plan.examples,
            brief=0,  # the replay measures examples
            session=f"{recording.name}-{arm}",
            arm=arm,
        )

    def _play_arms(
        self, replayer: Replayer, recording: Recording, seeds: dict[str, Seed], played: dict[str, Played]
    ) -> None:
        """Play the arms in a random order. An arm without a seed is the cold one, which is asked once."""
        shown = frozenset[NormalForm]().union(*map(calls_in, seeds.values()))
        for arm in sorted(seeds, key=lambda arm: draw(f"{recording.name} {arm}", f"arms {self._plan.random_seed}")):
            if arm == COLD or seeds[arm]:
                played[arm] = replayer.play(recording, arm, seeds[arm], shown)
        played |= {arm: played[COLD] for arm in seeds if arm not in played}

    def _report(self, tally: _Tally, planned: int, asked: int) -> ReplayReport:
        done = tally.done
        frozen = msgspec.json.decode((self._out / "plan.json").read_bytes(), type=_Frozen)
        missing = {arm: tally.unanswered[arm] for arm in self._plan.arms}
        seeded = [line for line in done if line.seeded]
        return ReplayReport(
            model=self._plan.model,
            endpoint=self._plan.endpoint,
            at=self._clock(),
            version=__version__,
            random_seed=self._plan.random_seed,
            turns=self._plan.turns,
            recorded=frozen.recorded,
            planned=planned,
            replayed=len(done),
            seeded=len(seeded),
            given_away=sum(line.given_away for line in seeded),
            tasks=frozen.tasks,
            left_loose=frozen.left_loose,
            unanswered=missing,
            left_out=frozen.left_out,
            problems=frozen.problems,
            halves=frozen.halves,
            arms={arm: add_up([line.arms[arm] for line in done]) for arm in self._plan.arms},
            compared=with_missing(compare(done), missing),
            compared_seeded=with_missing(compare(seeded), missing),
            compared_mismatched=with_missing(compare_mismatched(done), missing),
            sessions=tuple(done),
            asked=asked,
            trouble=str(tally.trouble or ""),
        )


def _explain_none(gathered: RecordingSet) -> str:
    reasons = [f"{number} ({reason})" for reason, number in gathered.left_out.items()]
    reasons += [f"{problem.path}: {problem.reason}" for problem in gathered.problems[:_PROBLEMS]]
    if len(gathered.problems) > _PROBLEMS:
        reasons.append(f"{len(gathered.problems) - _PROBLEMS} more that cannot be read")
    return "; ".join(reasons)


def _line(recording: Recording, played: dict[str, Played], seed: Seed) -> SessionLine:
    worked = {normal_form(call.tool, call.arguments) for call in recording.calls if call.status == "ok"}
    return SessionLine(
        name=recording.name,
        task=first(recording.task, _SHOWN),
        half=recording.half,
        project=recording.project,
        family=recording.family,
        seeded=bool(seed),
        given_away=not worked.isdisjoint(calls_in(seed)),
        arms={arm: count(played[arm]) for arm in played},
    )
