"""Reports on small numbers checked by hand and on planted effects."""

from __future__ import annotations

import random
from typing import Any

import pytest

from warmstart.model import Measures
from warmstart.trials.metrics import METRICS
from warmstart.trials.report import (
    Observation,
    analyse,
    check_split,
    choose_clusters,
    compare,
    compare_pair,
    expected_rate,
    find_harm,
)
from warmstart.trials.template_effects import weigh_templates

HALVES = {"cold": 0.5, "warm": 0.5}


def measures(errors: int = 1, judged: int = 10, **more: Any) -> Measures:
    facts = {"calls": judged, "all_errors": errors, "all_judged": judged, "all_calls": judged, "tools": 1, "turns": 10}
    return Measures(errors=errors, judged=judged, **(facts | more))


def one(name: str, arm: str, found: Measures | None = None, **more: Any) -> Observation:
    return Observation(session=name, arm=arm, shares=more.pop("shares", HALVES), measures=found, **more)


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
    def test_doing_less_is_no_gain(self):
        sessions = [one(f"c{n}", "cold", measures(3 + n % 2, 12)) for n in range(60)]
        sessions += [one(f"w{n}", "warm", measures(n % 2, 6)) for n in range(60)]
        assert find_harm(sessions, "warm", "cold") == ["calls that work fall by 35%"]

    def test_failing_tasks_more_is_no_gain(self):
        sessions = [one(f"c{n}", "cold", measures(3, 12, label=n % 10 != 0)) for n in range(80)]
        sessions += [one(f"w{n}", "warm", measures(1, 12, label=n % 2 == 0)) for n in range(80)]
        (reason,) = find_harm(sessions, "warm", "cold")
        assert "tasks done" in reason

    def test_better_without_harm_passes(self):
        assert find_harm(simulate({"cold": 0.3, "warm": 0.1}), "warm", "cold") == []


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
