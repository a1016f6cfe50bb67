"""Reports of the lab: finished, unfinished, hostile, empty."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import structs

from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.summary import ArmLine, LabReport, TaskCell, TaskLine
from warmstart.model import Measures
from warmstart.trials.observation import Observation
from warmstart.trials.paired_report import analyse_paired

FAMILIES = (
    "count_lines sum_column rename_files find_text sort_lines json_value csv_filter sqlite_count replace_text "
    "word_count list_folder make_folder merge_files head_of_file run_script"
).split()

ARMS = {"cold": 0.06, "warm": 0.62, "random": 0.1, "mismatched": 0.05, "text": 0.2}  # share of tasks that each solves

TURN_LIMIT = 4

HOSTILE = (
    "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">",
    "'\"><style>*{display:none}</style></title></style><svg onload=alert(1)>",
    "مرحبا ‮ evil ‬ שלום 你好",
    "\x1b[31mred\x1b]8;;http://evil.example\x07 \x00\x7f\x9b \ud800",
    "x" * 5_000,
)


def play(rng: random.Random, chance: float) -> TaskCell:
    """Return one session of a model that is right with some chance per turn."""
    solved = rng.random() < chance
    works = solved or rng.random() < chance
    turn = rng.choice((1, 1, 1, 2, 3)) if works else None
    turns = rng.choice((turn or 1, TURN_LIMIT)) if solved else rng.choice((TURN_LIMIT, TURN_LIMIT, TURN_LIMIT - 1))
    turns = max(turns, turn or 1)
    errors = (turn - 1 if turn else turns) + (0 if solved else (turns - turn) // 2 if turn else 0)
    return TaskCell(solved=solved, errors=errors, calls=turns, success_turn=turn, turns=turns)


def make_tasks(arms: Mapping[str, float], count: int, families: Sequence[str]) -> list[TaskLine]:
    rng = random.Random(5)
    hard = {family: rng.uniform(0.6, 1.4) for family in families}
    tasks = []
    for number in range(count):
        family = families[number % len(families)]
        cells = {arm: play(rng, chance * hard[family] if 0 < chance < 1 else chance) for arm, chance in arms.items()}
        request = f"Please look at report-{number:02}.txt and tell me the number of lines that hold an error code."
        tasks.append(TaskLine(task=f"{family}-test-same-{number:02}", family=family, request=request, arms=cells))
    return tasks


def observe(task: TaskLine, arm: str, cell: TaskCell, arms: Sequence[str]) -> Observation:
    measures = Measures(
        errors=cell.errors,
        judged=cell.calls,
        calls=cell.calls,
        all_errors=cell.errors,
        all_judged=cell.calls,
        all_calls=cell.calls,
        tools=int(cell.success_turn is not None),
        turns=cell.turns,
        success_turn=cell.success_turn,
        tokens=400 * cell.turns + (0 if arm == "cold" else 380),
        label=cell.solved,
    )
    shares = dict.fromkeys(arms, 1 / len(arms))
    session = f"{task.task}-{arm}"
    return Observation(session=session, arm=arm, shares=shares, measures=measures, project=task.family, task=task.task)


def sum_up(arm: str, tasks: Sequence[TaskLine]) -> ArmLine:
    cells = [task.arms[arm] for task in tasks if arm in task.arms]
    calls, seeded = sum(cell.calls for cell in cells), arm != "cold"
    return ArmLine(
        arm=arm,
        sessions=len(cells),
        solved=sum(cell.solved for cell in cells),
        errors_per_call=sum(cell.errors for cell in cells) / calls if calls else None,
        turns_to_success=sum(cell.success_turn or TURN_LIMIT for cell in cells) / len(cells) if cells else None,
        tokens=sum(400 * cell.turns for cell in cells) / len(cells) + 380 * seeded if cells else None,
        tools=0.7,
        seed_tokens=380.0 if seeded else 0.0,
        examples=4.0 if seeded else 0.0,
        seconds=3.25,
    )


def make_report(
    arms: Mapping[str, float] = ARMS, *, count: int = 75, families: Sequence[str] = FAMILIES, **facts: Any
) -> LabReport:
    tasks = facts["tasks"] if "tasks" in facts else make_tasks(arms, count, families)
    names = tuple(arms)
    observations = [observe(task, arm, cell, names) for task in tasks for arm, cell in task.arms.items()]
    shares = dict.fromkeys(names, 1 / len(names))
    report = analyse_paired(
        "lab", observations, shares=shares, control=names[0], metric="success", horizon=float(TURN_LIMIT)
    )
    known: dict[str, Any] = {
        "command": "warmstart lab run --arms cold,warm,random,mismatched,text --tasks 75 --random-seed 1 --model smollm2",
        "at": "2026-11-16T04:40:00+00:00",
        "version": "0.1.0",
        "model": ModelFacts(name="smollm2", digest="9c1a" * 16, runtime="xllamacpp 2026.10"),
        "random_seed": 1,
        "turns": TURN_LIMIT,
        "planned": count * len(names),
        "done": count * len(names),
        "grammar": False,
        "templates": 15,
        "training_sessions": 60,
        "families": tuple(families),
        "held_out": ("other_work", "draw_chart"),
        "walls": ("a folder of its own", "no network", "10 s a command", "an allowlist of commands"),
        "arms": tuple(sum_up(arm, tasks) for arm in names),
        "report": report,
    }
    return LabReport(**known | facts | {"tasks": tuple(tasks)})


def make_unfinished() -> LabReport:
    """Return a run that was killed: some tasks are done in some arms."""
    tasks = make_tasks(ARMS, 40, FAMILIES)
    tasks[30:] = [structs.replace(task, arms={"cold": task.arms["cold"]}) for task in tasks[30:]]
    return make_report(tasks=tasks, planned=375, done=160)


def make_hostile() -> LabReport:
    tasks = [
        structs.replace(task, request=text, task=f"{text[:200]}{number}", family=text)
        for number, (task, text) in enumerate(zip(make_tasks(ARMS, 75, FAMILIES), HOSTILE * 15, strict=True))
    ]
    tasks[0] = structs.replace(tasks[0], arms=_harmed_cells())
    renamed = [structs.replace(task, arms=dict(zip(NASTY, task.arms.values(), strict=True))) for task in tasks]
    return make_report(
        dict.fromkeys(NASTY, 0.5),
        tasks=renamed,
        command=HOSTILE[0] + HOSTILE[1],
        at=HOSTILE[3],
        version=HOSTILE[0],
        model=ModelFacts(name=HOSTILE[0], digest=HOSTILE[4], runtime=HOSTILE[2]),
        families=HOSTILE,
        held_out=HOSTILE,
        walls=HOSTILE,
    )


NASTY = ("cold", HOSTILE[0], HOSTILE[2], HOSTILE[3], HOSTILE[4])


def _harmed_cells() -> dict[str, TaskCell]:
    right = TaskCell(solved=True, errors=0, calls=1, success_turn=1, turns=1)
    wrong = TaskCell(solved=False, errors=4, calls=4, success_turn=None, turns=4)
    return {arm: right if arm == "cold" else wrong for arm in ARMS}


def make_blocked() -> LabReport:
    report = make_report()
    why = "transcripts are missing more in one arm (cold 0 of 75, warm 30 of 75; p = 1e-10): what is left cannot be compared"
    effects = tuple(
        structs.replace(one, verdict="inconclusive", reason="", blocked=why) for one in report.report.effects
    )
    return structs.replace(report, report=structs.replace(report.report, blocked=why, effects=effects))


REPORTS = {
    "finished": make_report,
    "unfinished": make_unfinished,
    "one arm": lambda: make_report({"cold": 0.3}, model=ModelFacts(name="gpt-x"), grammar=True),
    "no interval": lambda: make_report({"cold": 0.1, "warm": 0.8}, count=8, families=FAMILIES[:3]),
    "nothing solved": lambda: make_report(dict.fromkeys(ARMS, 0.0)),
    "everything solved": lambda: make_report(dict.fromkeys(ARMS, 1.0)),
    "warm harms": lambda: make_report({"cold": 0.6, "warm": 0.1}),
    "hostile": make_hostile,
    "blocked": make_blocked,
    "no arm": lambda: structs.replace(make_report({"cold": 0.3, "warm": 0.5}, count=0), planned=40, arms=()),
    "nothing done": lambda: structs.replace(make_report({"cold": 0.3, "warm": 0.5}, count=0), planned=40),
}
