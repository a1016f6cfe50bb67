"""Paired experiments, in which the caller names the arm of every task, and the control arms."""

from __future__ import annotations

from pathlib import Path

import pytest

import warmstart
from command_line import run, run_json
from homes import make_roomy
from template_files import example, template, write_bundle
from transcripts import outcome_lines, write_jsonl
from warmstart.errors import Refused
from warmstart.model import Task
from warmstart.pipeline import Warmstart
from warmstart.store import TrialStore

SUBJECTS = ("deploy the shop", "query the ledger", "rotate the logs", "render the invoice", "resize the photos")
PARTS = ("first", "second", "third", "last")
ARMS = "cold,warm,random,mismatched,text"


@pytest.fixture
def ws(tmp_path: Path):
    templates = [
        template(
            f"t{n}", *(example("Bash", f"{subject.replace(' ', '-')} --{part}", f"{subject} {part}") for part in PARTS)
        )
        for n, subject in enumerate(SUBJECTS)
    ]
    with warmstart.open(make_roomy(tmp_path / "home")) as opened:
        opened.templates.import_(write_bundle(tmp_path / "t.json", *templates), approve=True)
        yield opened


def ask(session: str, arm: str | None, text: str = SUBJECTS[0], **more) -> Task:
    return Task(text=text, session=session, arm=arm, agent="claude-code", **more)


def shown(ws: Warmstart, session: str) -> list[str]:
    trial = TrialStore(ws.store).trial(session)
    assert trial is not None
    return [pick.template for pick in TrialStore(ws.store).picks(trial) or ()]


class TestPlaying:
    def test_the_caller_says_the_arm_and_the_trial_keeps_it(self, ws):
        ws.experiments.start("duel", ARMS, design="paired")
        for arm in ARMS.split(","):
            assert ws.provision(ask(f"s-{arm}", arm)).arm == arm
            trial = TrialStore(ws.store).trial(f"s-{arm}")
            assert (trial.arm, trial.assignment, trial.experiment) == (arm, "paired", "duel")

    def test_without_an_arm_or_with_another_it_is_refused(self, ws):
        ws.experiments.start("duel", "cold,warm", design="paired")
        for arm in (None, "text", "nonsense"):
            with pytest.raises(Refused, match="cold, warm"):
                ws.provision(ask("s", arm))

    @pytest.mark.parametrize("running", [True, False])
    def test_nobody_picks_an_arm_where_it_is_drawn(self, ws, running):
        if running:
            ws.experiments.start("drawn", "cold,warm")
        with pytest.raises(Refused, match="paired"):
            ws.provision(ask("s", "warm"))

    def test_shares_cannot_follow_a_verdict(self, ws):
        with pytest.raises(Refused, match="every arm"):
            ws.experiments.start("duel", "cold,warm", design="paired", after="thompson")

    def test_asked_again_a_session_keeps_arm_and_seed(self, ws):
        ws.experiments.start("duel", ARMS, design="paired")
        for arm in ARMS.split(","):
            assert ws.provision(ask(f"s-{arm}", arm)) == ws.provision(ask(f"s-{arm}", arm))


class TestControls:
    @pytest.fixture(autouse=True)
    def _start(self, ws):
        ws.experiments.start("duel", ARMS, design="paired")

    def test_random_shows_as_many_from_anywhere(self, ws):
        seen = set()
        for n in range(12):
            ws.provision(ask(f"s{n}", "random", examples=3))
            found = shown(ws, f"s{n}")
            assert len(found) == 3
            seen |= set(found)
        ws.provision(ask("w", "warm", examples=3))
        assert len(shown(ws, "w")) == 3
        assert len(seen) == len(SUBJECTS), "of all templates, whatever was asked"

    def test_mismatched_shows_one_template_about_something_else(self, ws):
        seen = set()
        for n in range(12):
            ws.provision(ask(f"s{n}", "mismatched"))
            found = set(shown(ws, f"s{n}"))
            assert len(found) == 1
            seen |= found
        assert len(seen) > 2 and "t0" not in seen

    def test_both_keep_to_the_templates_they_are_given(self, ws):
        for n, arm in enumerate(("random", "mismatched") * 3):
            ws.provision(ask(f"s{n}", arm, templates=("t3",)))
            assert set(shown(ws, f"s{n}")) == {"t3"}

    def test_choosing_keeps_to_them_too(self, ws):
        ws.provision(ask("s", "warm", templates=("t3",)))
        assert shown(ws, "s") == [], "nothing of it fits"
        ws.provision(ask("r", "warm", templates=("t0", "t3")))
        assert set(shown(ws, "r")) == {"t0"}

    def test_where_everything_fits_there_is_no_mismatch(self, ws):
        seed = ws.provision(ask("s", "mismatched", templates=("t0",)))
        assert (seed.templates, bool(seed)) == ((), False)
        assert "about something else" in seed.reason


def play(ws: Warmstart, folder: Path, tasks: int, rates: dict[str, tuple[int, int]]) -> None:
    """Every task in every arm: `(working, failing)` calls. Harder tasks fail more in all of them."""
    for n in range(tasks):
        for arm, (ok, failed) in rates.items():
            name = f"s{n}-{arm}"
            ws.provision(ask(name, arm, text=f"{SUBJECTS[n % 5]} number {'abcdefghij'[n // 10]}{'abcdefghij'[n % 10]}"))
            write_jsonl(folder / f"{name}.jsonl", outcome_lines(name, [True] * ok + [False] * (failed + n % 3)))
    ws.ingest(folder)


class TestReport:
    def test_arms_are_compared_task_by_task(self, ws, tmp_path):
        ws.experiments.start("duel", "cold,warm,random", design="paired")
        play(ws, tmp_path / "out", 24, {"cold": (3, 6), "warm": (8, 1), "random": (3, 6)})
        report = ws.report()
        assert (report.design, report.blocked, report.left_out) == ("paired", None, {})
        effects = {effect.arm: effect for effect in report.effects}
        assert (effects["warm"].verdict, effects["random"].verdict) == ("better", "inconclusive")
        assert effects["warm"].high < -0.3
        assert (effects["warm"].n, effects["warm"].clustered_by) == ({"warm": 24, "cold": 24}, "task")
        assert report.crossings["warm"].p == 1.0, "nobody labelled these sessions"
        assert ws.experiments.outlook(report) is None

    def test_templates_are_not_judged_by_it(self, ws, tmp_path):
        ws.experiments.start("duel", "cold,warm", design="paired")
        play(ws, tmp_path / "out", 40, {"cold": (8, 0), "warm": (1, 8)})
        assert ws.report().effects[0].verdict == "worse"
        assert ws.experiments.weigh() == []

    def test_control_arms_do_not_blame_templates(self, ws, tmp_path, monkeypatch):
        """Shown where they do not fit, they look bad: that is the arm's doing."""
        ws.experiments.start("drawn", "cold,random")
        for n in range(60):
            ws.provision(ask(f"s{n}", None))
            write_jsonl(tmp_path / "out" / f"s{n}.jsonl", outcome_lines(f"s{n}", [True, False]))
        ws.ingest(tmp_path / "out")
        assert ws.experiments.weigh() == []

    def test_tasks_that_one_arm_has_not_done_yet_wait(self, ws, tmp_path):
        ws.experiments.start("duel", "cold,warm", design="paired")
        play(ws, tmp_path / "out", 15, {"cold": (3, 6), "warm": (8, 1)})
        ws.provision(ask("more", "cold", text="deploy the shop number zz"))
        write_jsonl(tmp_path / "out" / "more.jsonl", outcome_lines("more", [False] * 50))
        ws.ingest(tmp_path / "out")
        (effect,) = ws.report().effects
        assert effect.n == {"warm": 15, "cold": 15}
        assert effect.values["cold"] < 0.8

    def test_the_horizon_is_the_experiments_own(self, ws, tmp_path):
        ws.experiments.start("duel", "cold,warm", design="paired", horizon=3.0)
        play(ws, tmp_path / "out", 15, {"cold": (0, 3), "warm": (3, 0)})
        waits = next(e for e in ws.report().secondary if e.metric == "turns_to_success")
        assert (waits.values["cold"], waits.values["warm"]) == (3.0, 1.0)


def test_from_the_command_line(tmp_path):
    started = run_json("experiment", "start", "duel", "--arms", "cold,warm", "--paired")
    assert started["design"] == "paired"
    assert run_json("provision", SUBJECTS[0], "--session", "s", "--arm", "warm")["arm"] == "warm"
    assert "say which arm" in run("provision", SUBJECTS[0], "--session", "t", code=1).stderr
    with warmstart.open() as ws:
        play(ws, tmp_path / "out", 12, {"cold": (3, 6), "warm": (8, 1)})
    printed = run("report").stdout
    for part in ("for one look", "errors per call, first 30 turns", "done only with it"):
        assert part in printed
