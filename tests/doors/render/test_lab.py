"""The lab's report on a terminal: what is told, what is kept back, and that no text from outside does harm."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from warmstart.doors.render.lab import show_lab
from warmstart.doors.render.lab_findings import SOLVED, TURNS, count_families, list_harmed, tell_finding
from warmstart.lab.models.facts import ModelFacts
from warmstart.lab.run.summary import ArmLine, LabReport, TaskCell, TaskLine
from warmstart.model import Measures
from warmstart.trials.paired_report import analyse_paired
from warmstart.trials.report import Observation

FAMILIES = (
    "count_lines sum_column rename_files find_text sort_lines json_value csv_filter sqlite_count replace_text "
    "word_count list_folder make_folder merge_files head_of_file run_script"
).split()
ARMS = {"cold": 0.06, "warm": 0.62, "random": 0.1, "mismatched": 0.05, "text": 0.2}  # how many tasks each solves
TURN_LIMIT = 4
HOSTILE = (
    "<script>document.title='hacked'</script><img src=x onerror=\"document.title='hacked'\">",
    "'\"><style>*{display:none}</style></title></style><svg onload=alert(1)>",
    "مرحبا ‮ evil ‬ שלום 你好",
    "\x1b[31mred\x1b]8;;http://evil.example\x07 \x00\x7f\x9b \ud800",
    "x" * 5_000,
)


def play(rng: random.Random, chance: float) -> TaskCell:
    """One session of a model that makes things right with some chance a turn."""
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
    metric = facts.pop("metric", "success")
    report = analyse_paired(
        "lab", observations, shares=shares, control=names[0], metric=metric, horizon=float(TURN_LIMIT)
    )
    known: dict[str, Any] = {
        "command": "warmstart lab run --arms cold,warm,random,mismatched,text --tasks 75 --seed 1 --model smollm2",
        "at": "2026-11-16T04:40:00+00:00",
        "version": "0.1.0",
        "model": ModelFacts(name="smollm2", digest="9c1a" * 16, runtime="xllamacpp 2026.10"),
        "seed": 1,
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
    """Killed on its way: some tasks were done in some arms."""
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
    "errors decide": lambda: make_report(metric="error_rate"),
    "warm harms": lambda: make_report({"cold": 0.6, "warm": 0.1}),
    "hostile": make_hostile,
    "blocked": make_blocked,
    "no arm": lambda: structs.replace(make_report({"cold": 0.3, "warm": 0.5}, count=0), planned=40, arms=()),
    "nothing done": lambda: structs.replace(make_report({"cold": 0.3, "warm": 0.5}, count=0), planned=40),
}


@pytest.fixture(scope="module")
def reports() -> dict[str, LabReport]:
    return {name: make() for name, make in REPORTS.items()}


def printed(report: LabReport, capsys: pytest.CaptureFixture[str]) -> str:
    show_lab(report)
    return capsys.readouterr().out


def test_a_finished_run_tells_everything(reports, capsys):
    report = reports["finished"]
    out = printed(report, capsys)
    assert "smollm2 (sha256 9c1a9c1a9c1a, xllamacpp 2026.10)" in out
    assert "seed 1; 375 of 375 sessions" in out
    assert "walls: a folder of its own; no network" in out
    cold, warm = report.arms[0].solved, report.arms[1].solved
    assert f"warm beats cold: {warm} of 75 tasks solved instead of {cold}" in out
    crossing = report.report.crossings["warm"]
    row = next(line for line in out.splitlines() if line.startswith(" warm") and "0.001" in line)
    assert row.split()[:3] == ["warm", str(crossing.helped), str(crossing.harmed)] and row.split()[-1] == "better"
    assert "no difference shown" in out, "the other arms stand beside it"
    assert "censored" in out and "not your agent" in out and "lab's authors" in out and "15 families" in out
    assert "widened so that all 4 hold together" in out


@pytest.mark.parametrize("name", REPORTS)
def test_every_report_can_be_shown(name, reports, capsys):
    out = printed(reports[name], capsys)
    assert tell_finding(reports[name]).headline in out
    assert not any(code in out for code in "\x1b\x00\x07\x9b\u202e\ud800")
    assert max(map(len, out.splitlines())) < 700


def test_a_terminal_of_eighty_columns_keeps_whiskers_whole(reports, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes this for a terminal
    monkeypatch.setenv("COLUMNS", "80")
    out = printed(reports["finished"], capsys)
    assert "--o-" in out and "less    0    more" in out
    plain = re.sub(r"\x1b\[[\d;]*m", "", out)
    assert re.search(r"arm +solved +errors +turns +tokens +tools +seed +shown +sec", plain), "no heading is folded"
    assert re.search(r"mismatched .*no difference shown", plain)


@pytest.mark.parametrize("name", ["unfinished", "blocked", "nothing done", "no arm"])
def test_nothing_is_concluded_too_early(name, reports, capsys):
    """The paired interval is for one look: before it, neither interval nor verdict nor p is told."""
    finding = tell_finding(reports[name])
    out = printed(reports[name], capsys)
    assert finding.tone == "open"
    assert "better" not in out and "worse" not in out and "beats" not in out
    assert " to +" not in out and "-o" not in out, "no interval"
    assert "p =" not in out.replace("p = 1e-10", "") and "p <" not in out
    if name != "blocked":
        assert f"no verdict before all {reports[name].planned} sessions are done" in out


@pytest.mark.parametrize(
    ("name", "tone", "told"),
    [
        ("one arm", "open", "Nothing to compare: cold ran alone"),
        ("no interval", "open", "No verdict on warm, too few tasks to tell"),
        ("nothing solved", "open", "No difference shown between warm and cold: 0 of 75 tasks solved against 0"),
        ("everything solved", "open", "No difference shown between warm and cold: 75 of 75 tasks solved against 75"),
        (
            "errors decide",
            "better",
            "warm beats cold: errors per call 39% instead of 94%, 46 of 75 tasks solved instead of 4",
        ),
        ("warm harms", "worse", "warm does worse than cold: "),
        ("blocked", "open", "No verdict: the arms cannot be compared"),
    ],
)
def test_the_headline(name, tone, told, reports):
    finding = tell_finding(reports[name])
    assert finding.tone == tone
    assert finding.headline.startswith(told)


def test_floor_and_ceiling_are_told(reports):
    assert "too hard" in tell_finding(reports["nothing solved"]).details[-1]
    assert "too easy" in tell_finding(reports["everything solved"]).details[-1]


def test_what_a_guardrail_says_stands_in_the_headline(reports, capsys):
    report = reports["errors decide"]
    first, *rest = report.report.effects
    effect = structs.replace(first, verdict="inconclusive", reason="errors: down 50%, but calls that work fall by 30%")
    changed = structs.replace(report.report, effects=(effect, *rest), guardrails=("warm: calls that work fall by 30%",))
    out = printed(structs.replace(report, report=changed), capsys)
    assert "No verdict on warm: errors: down 50%, but calls that work fall by 30%" in out
    assert "beats" not in out


def test_families_are_sorted_by_gain_and_add_up(reports):
    report = reports["finished"]
    families = count_families(report)
    gains = [family.arms["warm"][0] / family.arms["warm"][1] - family.arms["cold"][0] / 5 for family in families]
    assert gains == sorted(gains, reverse=True)
    for line in report.arms:
        assert sum(family.arms[line.arm][0] for family in families) == line.solved


def test_harmed_tasks_are_those_of_the_crossing(reports):
    report = reports["finished"]
    for arm, crossing in report.report.crossings.items():
        assert len(list_harmed(report, arm)) == crossing.harmed


@pytest.mark.parametrize(
    ("shown", "value", "told", "signed"),
    [
        (SOLVED, 0.613, "61%", "+61"),
        (SOLVED, 0.0, "0%", "0"),
        (SOLVED, 0.054, "5.4%", "+5.4"),
        (TURNS, -1.812, "-1.81", "-1.81"),
        (TURNS, None, "-", "-"),
    ],
)
def test_numbers(shown, value, told, signed):
    assert shown.write(value) == told
    assert shown.sign(value) == signed
