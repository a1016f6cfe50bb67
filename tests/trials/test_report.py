"""Reports on small numbers checked by hand and on planted effects."""

from __future__ import annotations

import random
from typing import Any

import pytest

from trials.observations import HALVES, measures, one
from warmstart.model import Effect
from warmstart.stats.compare import plain_interval
from warmstart.trials.compare import choose_clusters, compare, compare_pair
from warmstart.trials.expected import expected_rate
from warmstart.trials.metrics import METRICS
from warmstart.trials.observation import Observation
from warmstart.trials.report import Report, analyse
from warmstart.trials.split import check_split
from warmstart.trials.template_effects import weigh_templates


def simulate(rates: dict[str, float], many: int = 200, seed: int = 3, **more: Any) -> list[Observation]:
    """Sessions of 15 calls that fail at their arm's rate."""
    dice = random.Random(seed)
    found = []
    for n in range(many):
        arm = list(rates)[n % len(rates)]
        errors = sum(dice.random() < rates[arm] for _ in range(15))
        found.append(one(f"s{n}", arm, measures(errors, 15), **more))
    return found


class TestCompare:
    def test_the_ratio_is_of_sums_and_not_of_rates(self):
        sessions = [
            one("a", "warm", measures(1, 1)),
            one("b", "warm", measures(0, 9)),
            one("c", "cold", measures(5, 10)),
        ]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["error_rate"])
        assert effect.values == {"warm": 0.1, "cold": 0.5}
        assert effect.difference == pytest.approx(-0.4)
        assert (effect.low, effect.high, effect.verdict) == (None, None, "too_few")

    def test_missing_sessions_are_counted_and_never_zero(self):
        sessions = [
            one("a", "warm", measures(2, 4)),
            one("b", "warm"),
            one("c", "cold", measures(1, 4)),
            one("d", "cold"),
        ]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["error_rate"])
        assert (effect.n, effect.missing) == ({"warm": 1, "cold": 1}, {"warm": 1, "cold": 1})
        assert effect.values == {"warm": 0.5, "cold": 0.25}

    def test_an_unknown_metric_is_not_zero(self):
        sessions = [
            one("a", "warm", measures(tokens=100)),
            one("b", "warm", measures()),
            one("c", "cold", measures(tokens=50)),
        ]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["tokens"])
        assert (effect.n["warm"], effect.values["warm"]) == (1, 100.0)
        cost, _estimate = compare(sessions, "warm", "cold", METRICS["cost"])
        assert (cost.values, cost.difference) == ({"warm": None, "cold": None}, None)

    def test_propensities_weigh(self):
        """Half of the cold sessions were drawn when cold was rare: each of those stands for more."""
        early = [one(f"e{n}", "cold", measures(5, 10)) for n in range(10)]
        late = [one(f"l{n}", "cold", measures(1, 10), shares={"cold": 0.1, "warm": 0.9}) for n in range(10)]
        effect, _estimate = compare(
            [*early, *late, one("w", "warm", measures())], "warm", "cold", METRICS["error_rate"]
        )
        assert effect.values["cold"] == pytest.approx((10 * 2 * 0.5 + 10 * 10 * 0.1) / (10 * 2 + 10 * 10))

    def test_a_session_that_ended_before_its_first_success_is_censored(self):
        sessions = [
            one(f"{arm}{n}", arm, measures(turns=40, success_turn=2 if arm == "warm" or n % 2 else None))
            for arm in HALVES
            for n in range(60)
        ]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["turns_to_success"])
        assert effect.values["warm"] == pytest.approx(2.0)
        assert effect.values["cold"] == pytest.approx((2 + 30) / 2)
        assert effect.verdict == "better"

    def test_many_arms_share_the_chance_to_be_wrong(self):
        arms = {"cold": 0.3, "a": 0.3, "b": 0.3, "c": 0.3}
        sessions = simulate(arms, 400, shares=dict.fromkeys(arms, 0.25))
        report = analyse("x", sessions, shares=dict.fromkeys(arms, 0.25), control="cold")
        alone, _estimate = compare(sessions, "a", "cold", METRICS["error_rate"])
        together = report.effects[0]
        assert together.high - together.low > alone.high - alone.low

    def test_harm_is_counted_at_the_bad_end(self):
        cold = [one(f"c{n}", "cold", measures(n % 10, 10)) for n in range(100)]
        warm = [one(f"w{n}", "warm", measures(9 if n < 30 else 0, 10)) for n in range(100)]
        effect, _estimate = compare([*cold, *warm], "warm", "cold", METRICS["error_rate"])
        assert effect.harmed == 0 and effect.harmed_expected == 0  # no session is worse than the worst cold one
        warm = [one(f"w{n}", "warm", measures(10 if n < 30 else 0, 10)) for n in range(100)]
        effect, _estimate = compare([*cold, *warm], "warm", "cold", METRICS["error_rate"])
        assert effect.harmed == 30


class TestSplit:
    def test_a_fair_split_passes_and_an_odd_one_does_not(self):
        fair = [one(f"s{n}", "warm" if n % 2 else "cold", measures()) for n in range(200)]
        assert check_split(fair, HALVES).blocked is None
        odd = [one(f"s{n}", "warm" if n % 4 else "cold", measures()) for n in range(200)]
        assert "not what was drawn" in (check_split(odd, HALVES).blocked or "")

    def test_an_arm_that_never_came_is_seen(self):
        gone = [one(f"s{n}", "warm", measures()) for n in range(30)]
        assert "cold 0 instead of 15" in (check_split(gone, {}).blocked or "")

    def test_shares_that_changed_on_the_way_are_no_mismatch(self):
        first = [one(f"a{n}", "warm" if n % 2 else "cold", measures()) for n in range(100)]
        then = {"cold": 0.1, "warm": 0.9}
        later = [one(f"b{n}", "cold" if n % 10 == 0 else "warm", measures(), shares=then) for n in range(300)]
        assert check_split([*first, *later], HALVES).blocked is None

    def test_nothing_yet_is_nothing_wrong(self):
        split = check_split([], HALVES)
        assert (split.blocked, split.mismatch, split.missing_mismatch) == (None, None, None)


class TestClusters:
    def sides(self, **facts: Any) -> tuple[list[Observation], list[Observation]]:
        sessions = [
            one(f"s{n}", "warm" if n % 2 else "cold", measures(), **{k: f(n) for k, f in facts.items()})
            for n in range(200)
        ]
        return [s for s in sessions if s.arm == "warm"], [s for s in sessions if s.arm == "cold"]

    def test_the_widest_that_leaves_enough(self):
        assert choose_clusters(*self.sides(project=lambda n: f"p{n // 4}"))[0] == "project"
        assert choose_clusters(*self.sides(project=lambda n: "one", task=lambda n: f"t{n // 4}"))[0] == "task"
        assert choose_clusters(*self.sides(project=lambda n: "one", task=lambda n: f"t{n // 50}"))[0] == "session"
        assert choose_clusters(*self.sides())[0] == "session"

    def test_clustered_sessions_widen_the_interval(self):
        dice = random.Random(5)
        sessions = []
        for n in range(800):
            if n % 8 == 0:
                bad = dice.random() < 0.3
            sessions.append(
                one(f"s{n}", "warm" if n // 8 % 2 else "cold", measures(6 if bad else 1, 10), project=f"p{n // 8}")
            )
        sides = [[s for s in sessions if s.arm == arm] for arm in ("warm", "cold")]
        together, _e = compare_pair(*sides, METRICS["error_rate"], names=("warm", "cold"))
        apart, _e = compare_pair(
            *(
                [Observation(session=s.session, arm=s.arm, shares=HALVES, measures=s.measures) for s in side]
                for side in sides
            ),
            METRICS["error_rate"],
            names=("warm", "cold"),
        )
        assert together.clustered_by == "project"
        assert together.high - together.low > 1.5 * (apart.high - apart.low)


class TestGuardrails:
    def report(self, sessions: list[Observation], metric: str = "error_rate") -> Report:
        in_turn = sorted(sessions, key=lambda obs: int(obs.session[1:]))  # arms that come by turns, as if drawn
        return analyse("e", in_turn, shares=HALVES, control="cold", metric=metric)

    def guard(self, report: Report, name: str = "working_calls") -> Effect:
        (effect,) = [effect for effect in report.secondary if effect.metric == name]
        assert effect.role == "guardrail"
        return effect

    def test_doing_less_is_no_gain(self):
        dice = random.Random(5)
        sessions = [one(f"c{n}", "cold", measures(dice.choice((3, 4)), 12)) for n in range(60)]
        sessions += [one(f"w{n}", "warm", measures(dice.choice((0, 1)), 4)) for n in range(60)]
        report = self.report(sessions)
        assert report.guardrails == ("warm: calls that work fall by 59%",)
        assert report.effects[0].verdict == "inconclusive"
        assert self.guard(report).reason == "blocks: calls that work fall by 59%"

    def test_failing_tasks_more_is_no_gain(self):
        sessions = [one(f"c{n}", "cold", measures(3 + n % 2, 12, label=n % 10 != 0)) for n in range(80)]
        sessions += [one(f"w{n}", "warm", measures(n % 2, 12, label=n % 2 == 0)) for n in range(80)]
        report = self.report(sessions)
        (reason,) = report.guardrails
        assert "tasks done" in reason

    def test_better_without_harm_passes(self):
        report = self.report(simulate({"cold": 0.3, "warm": 0.1}))
        assert (report.guardrails, report.effects[0].verdict) == ((), "better")
        assert report.effects[0].role == "decides"
        assert self.guard(report).reason == "does not block: it rises"

    def test_a_recovery_that_is_not_needed_is_no_harm(self):
        """A cold session fails, looks around and does it right; a warm one does it right: 33 % errors against none."""
        dice = random.Random(7)
        sessions = [one(f"c{n}", "cold", measures(1, 3 + dice.randrange(2), label=None)) for n in range(90)]
        sessions += [one(f"w{n}", "warm", measures(0, 1 + dice.randrange(2), label=None)) for n in range(90)]
        report = self.report(sessions)
        assert self.guard(report).high < 0, "fewer calls work, beyond doubt"
        assert (report.guardrails, report.effects[0].verdict) == ((), "better")
        assert "need no calls to recover" in self.guard(report).reason

    def test_giving_up_after_an_error_is_no_gain(self):
        """One warm session in three gives up at its first call; the others do it right."""
        dice = random.Random(8)
        sessions = [one(f"c{n}", "cold", measures(1 + (n % 2), 6 + dice.randrange(3))) for n in range(120)]
        sessions += [one(f"w{n}", "warm", measures(int(n % 3 == 0), 1 if n % 3 == 0 else 3)) for n in range(120)]
        report = self.report(sessions)
        assert "calls that work fall" in self.guard(report).reason
        assert report.effects[0].verdict != "better"

    def test_an_interval_with_zero_blocks_nothing(self):
        """The ordinary interval excludes zero at this look; the one that the report shows includes it."""
        sessions = [one(f"c{n}", "cold", measures(1, 11 + 8 * n % 21)) for n in range(84)]
        sessions += [one(f"w{n}", "warm", measures(0, 8 + 7 * n % 20)) for n in range(84)]
        _effect, estimate = compare(sessions, "warm", "cold", METRICS["working_calls"])
        _low, high = plain_interval(estimate) or (0.0, 0.0)
        assert high < 0 and estimate.relative < -0.1
        report = self.report(sessions)
        assert self.guard(report).high > 0
        assert self.guard(report).reason == "does not block: the interval includes zero"
        assert (report.guardrails, report.effects[0].verdict) == ((), "better")

    def test_every_metric_says_whether_it_counts(self):
        report = self.report(simulate({"cold": 0.3, "warm": 0.1}))
        roles = {effect.metric: effect.role for effect in (*report.effects, *report.secondary)}
        assert roles == dict.fromkeys(METRICS, "context") | {
            "error_rate": "decides",
            "working_calls": "guardrail",
            "success": "guardrail",
        }
        assert all(effect.reason for effect in (*report.effects, *report.secondary))


class TestBasis:
    """Tokens that a provider counted and tokens estimated from the text are never compared with each other."""

    def mixed(self) -> list[Observation]:
        """Warm sessions need half the tokens. Most of them are estimated, and estimates see a tenth of the prompt."""
        sessions = []
        for n in range(120):
            arm, real = ("warm", 50_000) if n % 2 else ("cold", 100_000)
            is_estimated = n % 3 == 0 if arm == "cold" else n % 3 != 0
            tokens = (real // 10 if is_estimated else real) + 100 * (n % 7)
            basis = "estimated" if is_estimated else "reported"
            sessions.append(one(f"s{n}", arm, measures(tokens=tokens, tokens_basis=basis)))
        return sessions

    def test_sessions_on_another_basis_are_left_out_and_counted(self):
        effect, _estimate = compare(self.mixed(), "warm", "cold", METRICS["tokens"])
        assert effect.values["warm"] / effect.values["cold"] == pytest.approx(0.5, abs=0.05)
        assert sum(effect.other_basis.values()) + sum(effect.n.values()) == 120
        assert min(effect.other_basis.values()) > 0

    def test_arms_without_a_common_basis_are_not_compared(self):
        sessions = [one(f"w{n}", "warm", measures(tokens=10, tokens_basis="estimated")) for n in range(30)]
        sessions += [one(f"c{n}", "cold", measures(tokens=100)) for n in range(30)]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["tokens"])
        assert effect.difference is None
        assert sum(effect.other_basis.values()) == 30

    def test_a_completed_count_is_compared_and_marked(self):
        sessions = [one(f"w{n}", "warm", measures(tokens=90 + n % 3, tokens_basis="completed")) for n in range(30)]
        sessions += [one(f"c{n}", "cold", measures(tokens=100 + n % 3)) for n in range(30)]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["tokens"])
        assert (effect.difference, effect.basis, effect.other_basis) == (-10, "completed", {})

    def test_costs_are_kept_apart_too(self):
        sessions = [one(f"w{n}", "warm", measures(cost=1.0, cost_basis="priced")) for n in range(30)]
        sessions += [one(f"c{n}", "cold", measures(cost=2.0, cost_basis="priced")) for n in range(20)]
        sessions += [one(f"r{n}", "cold", measures(cost=0.1)) for n in range(5)]
        effect, _estimate = compare(sessions, "warm", "cold", METRICS["cost"])
        assert (effect.difference, effect.basis, effect.other_basis) == (-1.0, "priced", {"warm": 0, "cold": 5})


class TestWaits:
    def sessions(self, warm: int, cold: int, project: str | None = None) -> list[Observation]:
        dice = random.Random(4)
        return [
            one(f"{arm}{n}", arm, measures(success_turn=turn + dice.randrange(4)), project=project and f"{project}{n}")
            for n in range(80)
            for arm, turn in (("warm", warm), ("cold", cold))
        ]

    def test_the_first_success_can_decide(self):
        report = analyse("e", self.sessions(1, 6), shares=HALVES, control="cold", metric="turns_to_success")
        (effect,) = report.effects
        assert (effect.metric, effect.verdict) == ("turns_to_success", "better")
        assert report.guardrails == ()

    def test_waits_of_one_project_are_not_independent(self):
        effect, estimate = compare(self.sessions(1, 6, "p"), "warm", "cold", METRICS["turns_to_success"])
        assert (effect.clustered_by, estimate.clusters) == ("project", 80)

    @pytest.mark.slow
    def test_no_difference_is_rarely_called_one(self):
        """A/A: the same waits in both arms, with censoring, over 300 experiments; 5 % may be wrong at all looks together."""
        wrong = 0
        for seed in range(300):
            dice = random.Random(seed)
            sessions = [
                one(
                    f"s{n}",
                    "warm" if n % 2 else "cold",
                    measures(
                        turns=n, success_turn=min(30, 1 + int(dice.expovariate(0.2))) if dice.random() < 0.9 else None
                    ),
                )
                for n in range(200)
            ]
            effect, _estimate = compare(sessions, "warm", "cold", METRICS["turns_to_success"])
            wrong += effect.verdict in ("better", "worse")
        assert wrong <= 15


class TestExpectedRate:
    HISTORY = (
        (10.0, "shop", "m1", "coding", 30, 100),
        (20.0, "bar", "m1", "coding", 0, 100),
        (30.0, "shop", "m2", "ops", 100, 100),
    )

    def test_only_what_had_ended_before_counts(self):
        before, between, after = expected_rate(
            self.HISTORY, [(5.0, ("shop", None, None)), (15.0, ("shop", None, None)), (99.0, ("shop", None, None))]
        )
        assert before is None
        assert between == pytest.approx(0.3)
        assert after == pytest.approx((130 + 50 * 130 / 300) / 250)

    def test_order_of_asking_does_not_matter(self):
        wanted = [(25.0, ("bar", "m1", "coding")), (5.0, ("bar", "m1", "coding")), (35.0, (None, None, None))]
        assert expected_rate(self.HISTORY, wanted) == expected_rate(self.HISTORY, wanted[::-1])[::-1]

    def test_an_unseen_kind_has_the_overall_rate(self):
        assert expected_rate(self.HISTORY, [(99.0, (None, None, None))]) == [pytest.approx(130 / 300)]


class TestTemplates:
    def shown(self, rates: dict[str, tuple[float, float]], many: int) -> list[Observation]:
        """Templates, each with its rate when shown and when held back."""
        dice = random.Random(11)
        found = []
        for name, (warm, cold) in rates.items():
            for n in range(many):
                arm, rate = ("warm", warm) if n % 2 else ("cold", cold)
                errors = sum(dice.random() < rate for _ in range(15))
                found.append(one(f"{name}-{n}", arm, measures(errors, 15), templates=(f"{name}@1",)))
        return found

    def test_good_bad_and_indifferent(self):
        found = {
            t.name: t
            for t in weigh_templates(self.shown({"good": (0.1, 0.3), "bad": (0.5, 0.3), "none": (0.3, 0.3)}, 200))
        }
        assert {name: t.decision for name, t in found.items()} == {"good": "promote", "bad": "retire", "none": "keep"}
        assert "more errors" in found["bad"].reason and "fewer errors" in found["good"].reason
        assert found["good"].shrunk < 0 < found["bad"].shrunk

    @pytest.mark.slow
    def test_a_template_without_effect_is_retired_in_the_end(self):
        (few,) = weigh_templates(self.shown({"none": (0.3, 0.3)}, 300))
        assert few.decision == "keep"
        (many,) = weigh_templates(self.shown({"none": (0.31, 0.3)}, 12_000))
        assert (many.decision, "no useful effect" in many.reason or "more errors" in many.reason) == ("retire", True)

    def test_only_cold_sessions_that_would_have_been_shown_it_are_compared(self):
        """Sessions for which no template was chosen fail more; they must not make the template look good."""
        others = [one(f"o{n}", "cold", measures(12, 15)) for n in range(200)]
        (found,) = weigh_templates([*self.shown({"none": (0.3, 0.3)}, 200), *others])
        assert (found.decision, found.effect.n["cold"]) == ("keep", 100)

    def test_one_sided_is_not_measured(self):
        assert weigh_templates([one("a", "warm", measures(), templates=("x@1",))]) == []

    def test_luck_is_not_promoted_among_many(self):
        found = weigh_templates(self.shown({f"t{n}": (0.3, 0.3) for n in range(40)}, 60))
        assert {t.decision for t in found} == {"keep"}
        largest = max(abs(t.effect.relative) for t in found)
        assert max(abs(t.shrunk) for t in found) < 0.7 * largest
