"""Traps: what must not get into a comparison. Each case gave a false verdict, or none of the figures, in 0.2."""

from __future__ import annotations

import random
from typing import Any

import pytest

from command_line import run
from scripted_model import LESSON, TEXT
from template_files import write_bundle
from transcripts import outcome_lines, write_jsonl
from trials.observations import HALVES, measures, one
from warmstart.arms import assign
from warmstart.model import Effect, Task
from warmstart.trials.observation import Observation
from warmstart.trials.report import Report, analyse
from warmstart.trials.split import check_split
from warmstart.trials.template_effects import TemplateEffect, weigh_templates


def play(many: int = 300, seed: int = 1, **more: Any) -> list[Observation]:
    """Sessions without any effect, in the order of their beginning: 12 calls each, some much worse than others."""
    dice = random.Random(seed)
    sessions = []
    for n in range(many):
        arm = "warm" if dice.random() < 0.5 else "cold"
        rate = dice.betavariate(0.8, 3.2)
        errors = sum(dice.random() < rate for _ in range(12))
        sessions.append(one(f"s{n}", arm, measures(errors, 12), **more))
    return sessions


def lose(sessions: list[Observation], is_lost: Any) -> list[Observation]:
    return [one(s.session, s.arm, None if is_lost(s) else s.measures, templates=s.templates) for s in sessions]


def report(sessions: list[Observation], metric: str = "error_rate") -> Report:
    return analyse("e", sessions, shares=HALVES, control="cold", metric=metric)


def decide(sessions: list[Observation]) -> TemplateEffect:
    (effect,) = weigh_templates(sessions)
    return effect


class TestEarlyStops:
    """The worst warm sessions end after one good call: fewer errors per call, and no calls that would recover from them."""

    def stop_early(self, sessions: list[Observation]) -> list[Observation]:
        def shorten(s: Observation) -> Observation:
            stops = s.arm == "warm" and s.measures is not None and s.measures.errors >= 5
            return one(s.session, s.arm, measures(0, 1) if stops else s.measures, templates=("short@1",))

        return [shorten(s) for s in sessions]

    def test_they_win_nothing(self):
        found = report(self.stop_early(play(600)))
        (effect,) = found.effects
        assert effect.verdict == "inconclusive" and "more sessions stop early" in effect.reason
        assert decide(self.stop_early(play(600))).decision == "keep"

    def test_sessions_that_only_err_less_still_win(self):
        sessions = [
            one(s.session, s.arm, measures(s.measures.errors // 3, 12) if s.arm == "warm" else s.measures)
            for s in play(600)
            if s.measures
        ]
        (effect,) = report(sessions).effects
        assert effect.verdict == "better"


class TestTemplates:
    def test_promotion_passes_the_guardrails(self):
        """Half the errors per call, because it does a fifth of the work."""
        dice = random.Random(2)
        sessions = []
        for n in range(300):
            arm, calls, rate = ("warm", 4, 0.1) if dice.random() < 0.5 else ("cold", 20, 0.3)
            errors = sum(dice.random() < rate for _ in range(calls))
            sessions.append(one(f"s{n}", arm, measures(errors, calls), templates=("less@1",)))
        found = decide(sessions)
        assert (found.decision, found.effect.verdict) == ("keep", "inconclusive")
        assert "calls that work fall" in found.reason

    def test_lost_sessions_promote_nothing(self):
        """A null template: its warm sessions with errors are lost."""
        sessions = lose(play(templates=("null@1",)), lambda s: s.arm == "warm" and s.measures.errors > 3)
        found = decide(sessions)
        assert found.decision == "keep"
        assert "missing more in one arm" in found.reason
        assert found.shrunk is None, "nothing is chosen by it either"

    def test_a_few_lost_sessions_promote_nothing(self):
        """Too few are lost for an alarm, but enough to make the template look good."""
        found = decide(self.lose_few("warm"))
        assert found.effect.high < 0, "the trap works: the sessions that are left look better"
        assert (found.decision, found.effect.blocked) == ("keep", None)
        assert "15 sessions without a transcript could undo it" in found.reason

    def test_a_few_lost_sessions_retire_nothing(self):
        assert decide(self.lose_few("cold")).decision == "keep"

    def lose_few(self, arm: str) -> list[Observation]:
        """Sessions are alike but for 15 bad ones in each arm; one arm has lost its own."""
        sessions = []
        for n in range(300):
            is_bad, own = n % 20 < 2, "warm" if n % 2 else "cold"
            found = measures(9 if is_bad else 1 + (n // 2) % 2, 12)
            sessions.append(one(f"s{n}", own, None if is_bad and own == arm else found, templates=("null@1",)))
        return sessions

    def test_sides_that_were_not_drawn_decide_nothing(self):
        """The template's sessions are warm in three of four cases, and its project is an easy one."""
        sessions = [
            one(f"s{n}", "warm" if n % 4 else "cold", measures(0 if n % 4 else 3, 12), templates=("easy@1",))
            for n in range(200)
        ]
        found = decide(sessions)
        assert (found.decision, "not what was drawn" in found.reason) == ("keep", True)

    def test_arms_of_one_template_each_are_no_imbalance(self):
        """A template that is an arm of its own is compared with the cold arm; other arms could not have shown it."""
        shares = {"cold": 0.2, "good": 0.4, "other": 0.4}
        dice = random.Random(3)
        sessions = []
        for n in range(600):
            (arm,) = dice.choices([*shares], [*shares.values()])
            errors = sum(dice.random() < (0.1 if arm == "good" else 0.35) for _ in range(12))
            shown = ("good@1", "other@1") if arm == "cold" else (f"{arm}@1",)
            sessions.append(one(f"s{n}", arm, measures(errors, 12), shares=shares, templates=shown))
        found = {effect.name: effect for effect in weigh_templates(sessions)}
        assert (found["good"].decision, found["other"].decision) == ("promote", "keep")
        assert found["other"].effect.blocked is None


class TestMissing:
    def verdict(self, sessions: list[Observation]) -> Effect:
        (effect,) = report(sessions).effects
        return effect

    def test_bad_sessions_that_crash_win_nothing(self):
        """The arms are alike. Warm sessions with many errors are lost: without them warm looks better."""
        false, bounded = 0, 0
        for seed in range(20):
            sessions = lose(play(600, seed), lambda s: s.arm == "warm" and s.measures.errors >= 6)
            kept = [s for s in sessions if s.measures is not None]
            false += self.verdict(kept).verdict == "better"
            effect = self.verdict(sessions)
            assert effect.verdict != "better"
            bounded += effect.worst_high is not None and effect.worst_high > 0
        assert false >= 10, "the trap works: what is left looks better"
        assert bounded == 20

    def test_bad_cold_sessions_that_crash_are_no_harm(self):
        for seed in range(10):
            sessions = lose(play(400, seed), lambda s: s.arm == "cold" and s.measures.errors >= 8)
            assert self.verdict(sessions).verdict != "worse"

    def test_sessions_lost_alike_cost_little(self):
        """A true drop of two thirds, and 2 % of the sessions of both arms are lost."""
        dice = random.Random(4)
        sessions = []
        for n in range(300):
            arm, rate = ("warm", 0.1) if dice.random() < 0.5 else ("cold", 0.3)
            errors = sum(dice.random() < rate for _ in range(12))
            sessions.append(one(f"s{n}", arm, None if n % 50 == 0 else measures(errors, 12)))
        effect = self.verdict(sessions)
        assert effect.verdict == "better"
        assert effect.extreme_low < effect.worst_low <= effect.low
        assert effect.high <= effect.worst_high < effect.extreme_high

    def test_without_losses_there_is_nothing_to_bound(self):
        effect = self.verdict(play())
        assert (effect.worst_low, effect.worst_high, effect.extreme_low, effect.extreme_high) == (None,) * 4


class TestBalance:
    def steer(self, fact: str, **values: Any) -> list[Observation]:
        """Arms that are balanced in total, but 85 to 15 within each value of a fact."""
        dice = random.Random(6)
        sessions = []
        for n in range(200):
            is_easy = n % 2 == 0
            arm = "warm" if dice.random() < (0.85 if is_easy else 0.15) else "cold"
            found = measures(1 if is_easy else 4, 12)
            sessions.append(one(f"s{n}", arm, found, **{fact: values["easy" if is_easy else "hard"]}))
        return sessions

    @pytest.mark.parametrize(
        ("fact", "easy", "hard", "words"),
        [
            ("project", "shop", "bank", "by project"),
            ("agent", "codex", "claude-code", "by agent"),
            ("category", "ops", "coding", "by kind of work"),
            ("expected", 0.05, 0.4, "by expected errors"),
        ],
    )
    def test_steered_arms_get_no_verdict(self, fact, easy, hard, words):
        found = report(self.steer(fact, easy=easy, hard=hard))
        assert words in (found.blocked or "")
        assert {effect.verdict for effect in found.effects} == {"inconclusive"}

    def test_healthy_arms_are_not_suspected(self):
        """1,200 sessions, a look after each: the chi-square test at 0.1 % blocked 1.6 % of such runs."""
        for seed in range(10):
            dice = random.Random(seed)
            sessions = [
                one(
                    f"s{n}",
                    "warm" if dice.random() < 0.9 else "cold",
                    None if dice.random() < 0.03 else measures(),
                    shares={"cold": 0.1, "warm": 0.9},
                    project=f"p{dice.randrange(8)}",
                    category=dice.choice(("ops", "coding", None)),
                    expected=dice.random(),
                )
                for n in range(1_200)
            ]
            split = check_split(sessions, {})
            assert (split.blocked, split.mismatch > 0.01, split.missing_mismatch > 0.01) == (None, True, True)


class TestSeeded:
    def test_arms_that_are_the_same_get_no_verdict(self):
        """No template fits, so that warm sessions got nothing: whatever differs is chance or a fault."""
        dice = random.Random(9)
        sessions = [
            one(f"s{n}", arm, measures(n % 2 if arm == "warm" else 2 + n % 3, 12), treated=False)
            for n in range(200)
            for arm in [dice.choice(("warm", "cold"))]
        ]
        found = report(sessions)
        assert "none of the" in found.blocked and "got a seed or advice" in found.blocked
        assert found.effects[0].verdict == "inconclusive"
        assert (found.arms["warm"].seeded, found.arms["cold"].seeded) == (0, 0)

    def test_the_report_counts_them(self, tmp_path, monkeypatch):
        import warmstart

        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        with warmstart.open() as ws:
            names = [f"run-{n}" for n in range(40)]
            for name in names[:20]:
                ws.provision(Task(text=TEXT, session=name))
            warm = sum(assign(name, HALVES) == "warm" for name in names[:20])
            shown = run("report").stdout
            assert f"Seeded:    0 of {warm} warm got a seed or advice" in shown
            assert "NO VERDICT: none of the" in shown and "sessions needed" not in shown
            ws.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
            for name in names[20:]:
                ws.provision(Task(text=TEXT, session=name))
            later = sum(assign(name, HALVES) == "warm" for name in names[20:])
            assert f"Seeded:    {later} of {warm + later} warm got a seed or advice" in run("report").stdout


class TestBasis:
    def compare(self, estimated: dict[str, float]) -> Effect:
        """Sessions of 100,000 tokens; where they are estimated, a tenth of that. Longer sessions are estimated less often."""
        dice = random.Random(12)
        sessions = []
        for n in range(400):
            arm = dice.choice(("warm", "cold"))
            is_estimated = dice.random() < estimated[arm]
            tokens = (
                dice.randrange(40_000, 60_000) if arm == "warm" and is_estimated else dice.randrange(90_000, 110_000)
            )
            basis = "estimated" if is_estimated else "reported"
            sessions.append(one(f"s{n}", arm, measures(1 + n % 2, 12, tokens=tokens, tokens_basis=basis)))
        (effect,) = report(sessions, metric="tokens").effects
        return effect

    def test_counts_are_shown_by_basis(self):
        effect = self.compare({"warm": 0.5, "cold": 0.5})
        assert {basis for bases in effect.bases.values() for basis in bases} == {"reported", "estimated"}
        assert sum(sum(bases.values()) for bases in effect.bases.values()) == 400
        assert sum(effect.n.values()) + sum(effect.other_basis.values()) == 400

    def test_a_basis_that_depends_on_the_arm_decides_nothing(self):
        """Most warm sessions are estimated and few cold ones: what is left on one basis is a selection."""
        effect = self.compare({"warm": 0.9, "cold": 0.5})
        assert effect.high < 0, "the trap works: warm sessions seem to need fewer tokens"
        assert effect.verdict == "inconclusive"
        assert "differ in how many figures are estimated" in effect.reason


class TestClosing:
    def test_one_more_session_weighs_nothing_again(self, tmp_path):
        """Effects are computed from all trials; that waits until the measured trials have grown by 2 %."""
        import warmstart

        with warmstart.open() as ws:
            for n in range(103):
                ws.provision(Task(text=TEXT, session=f"run-{n}"))
                write_jsonl(tmp_path / f"{n // 100 * (n - 99)}" / f"run-{n}.jsonl", outcome_lines(f"run-{n}", [True]))
            ws.ingest(tmp_path / "0")
            assert ws.store.rows("weighings", ("trial",)) == [(100, 100)]
            for part, counts in ((1, (101, 100)), (2, (102, 100)), (3, (103, 103))):
                assert ws.ingest(tmp_path / f"{part}").trials == 1
                assert ws.store.rows("weighings", ("trial",)) == [counts]


class TestReportInTenLines:
    def test_it_says_what_is_compared(self, tmp_path, monkeypatch):
        import warmstart

        monkeypatch.setenv("WARMSTART_HOLDOUT", "0.5")
        dice = random.Random(3)
        with warmstart.open() as ws:
            ws.templates.import_(write_bundle(tmp_path / "t.json", LESSON), approve=True)
            for n in range(120):
                seed = ws.provision(Task(text=TEXT, session=f"run-{n}", agent="claude-code"))
                if n % 15:
                    rate = 0.2 if seed else 0.6
                    lines = outcome_lines(f"run-{n}", [dice.random() > rate for _ in range(10)])
                    write_jsonl(tmp_path / "in" / f"run-{n}.jsonl", lines)
            ws.provision(Task(text=TEXT, session="mine", cold=True))
            ws.ingest(tmp_path / "in")
        lines = run("report").stdout.splitlines()
        assert [line.split(":")[0] for line in lines[:8]] == [
            "The standing holdout", "Compared", "Sessions", "Seeded", "Left out", "Missing", "Checks", "warm",
        ]  # fmt: skip
        assert "warm against cold, by errors per call, first 30 turns" in lines[0]
        assert "1 cold by choice" in lines[4]
        assert "without transcript; with those too many at either end" in lines[5]
        assert "split as drawn, also by project, agent, kind of work and expected errors" in lines[6]
        assert lines[7].startswith("warm: better - errors per call, first 30 turns: down")
