"""Search: words, lookup, ranking, similarity and diversity."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.model import Example, ExampleCall, Template
from warmstart.templates.search import (
    ENOUGH,
    Match,
    Option,
    complement,
    diversify,
    index_weights,
    is_similar,
    rank,
    rarest,
    search_words,
    weigh_by_neighbours,
)

BARE = Template(name="t")


def example(tool: str = "terminal", **more: object) -> Example:
    return Example(tool=tool, arguments=more.pop("arguments", {}), result="", **more)  # type: ignore[arg-type]


class TestWords:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("Fix the failing tests", ["fix", "fail", "test"]),
            ("read_file readFile ReadFile READ_FILE", ["read", "file"] * 4),
            ("reservations reservation", ["reserv", "reserv"]),
            ("entries entry", ["entry", "entry"]),
            ("process the class", ["process", "class"]),
            ("order #W1234567 and user_id_99821", ["order"]),
            ("please could you help me", []),
            ("", []),
            ("123 !!! ...", []),
            ("größe Straße", ["größe", "straße"]),
        ],
    )
    def test_examples(self, text, found):
        terms = search_words(text)
        if text.isascii():
            assert terms == found
        else:
            assert terms, "letters of other scripts are words too"

    def test_other_scripts(self):
        assert search_words("部署 集群") == ["部署", "集群"]
        assert search_words("привет мир") == search_words("ПРИВЕТ МИР")

    def test_plurals_and_forms_meet(self):
        for one, other in (("test", "tests"), ("deploy", "deployed"), ("print", "printing"), ("flight", "flights")):
            assert search_words(one) == search_words(other)

    def test_linear(self):
        for text in ("a" * 500_000, "aA" * 250_000, "a1-" * 160_000, "_" * 500_000, "x " * 250_000):
            began = time.perf_counter()
            search_words(text[:4_000])
            assert time.perf_counter() - began < 10

    @given(st.text(max_size=200))
    def test_never_breaks(self, text):
        for word in search_words(text):
            assert len(word) > 1


class TestRarest:
    def test_the_rarest_first(self):
        assert rarest(["b", "a", "c", "unknown"], {"a": 5, "b": 1, "c": 5}) == ["b", "a", "c"]

    def test_at_least_one_however_common(self):
        assert rarest(["the"], {"the": 10 * ENOUGH}) == ["the"]
        assert rarest(["the", "of"], {"the": 10 * ENOUGH, "of": 11 * ENOUGH}) == ["the"]

    def test_nothing_known(self):
        assert rarest(["x"], {}) == []
        assert rarest(["x"], {"x": 0}) == []

    @given(st.dictionaries(st.text("abc", min_size=1, max_size=3), st.integers(0, 1_000), max_size=30))
    def test_bounds(self, frequency):
        taken = rarest(frequency, frequency)
        assert len(set(taken)) == len(taken)
        assert taken[:1] or not any(frequency.values())
        assert sum(frequency[word] for word in taken[1:]) <= ENOUGH
        assert [frequency[word] for word in taken] == sorted(frequency[word] for word in taken)


class TestRank:
    def test_rare_words_weigh_more(self):
        found = rank(["rare", "common"], {"rare": [(1, 1.0)], "common": [(2, 1.0)]}, {"rare": 1, "common": 90}, 100)
        assert [match.id for match in found] == [1, 2]
        assert found[0].score > found[1].score

    def test_words_add_up_and_are_counted(self):
        postings = {"a": [(1, 1.0), (2, 1.0)], "b": [(2, 0.5)]}
        found = rank(["a", "b"], postings, {"a": 2, "b": 1}, 10)
        assert [(match.id, match.words) for match in found] == [(2, 2), (1, 1)]

    def test_equal_ones_by_id(self):
        assert [match.id for match in rank(["a"], {"a": [(9, 1.0), (3, 1.0)]}, {"a": 2}, 5)] == [3, 9]

    def test_a_word_that_stands_everywhere_still_counts(self):
        (match,) = rank(["a"], {"a": [(1, 1.0)]}, {"a": 100}, 100)
        assert match.score > 0

    def test_nothing(self):
        assert rank(["a"], {}, {}, 0) == []


class TestSimilar:
    def test_one_word_of_many_is_chance(self):
        assert not is_similar(Match(1, 9.0, 1), known=5, asked=5)
        assert is_similar(Match(1, 9.0, 2), known=5, asked=5)

    def test_also_where_it_is_the_only_one_known(self):
        assert not is_similar(Match(1, 9.0, 1), known=1, asked=6)

    def test_of_a_short_request_one_will_do(self):
        assert is_similar(Match(1, 9.0, 1), known=1, asked=1)
        assert is_similar(Match(1, 9.0, 1), known=2, asked=2)

    def test_a_share_of_a_longer_one(self):
        assert not is_similar(Match(1, 9.0, 2), known=10, asked=15)
        assert is_similar(Match(1, 9.0, 3), known=10, asked=15)

    def test_not_more_of_a_very_long_one(self):
        assert not is_similar(Match(1, 9.0, 2), known=200, asked=400)
        assert is_similar(Match(1, 9.0, 3), known=200, asked=400)


class TestDiversify:
    def options(self, *kinds: str, **more: float) -> list[Option]:
        return [Option(example(kind), kind, **more) for kind in kinds]

    def test_each_kind_once_before_any_twice(self):
        options = [Option(example("a"), "a", 10.0, 10.0), Option(example("a"), "a", 9.9, 10.0), Option(example("b"), "b", 3.0, 10.0)]  # fmt: skip
        assert set(diversify(options, 2)) == {0, 2}
        assert set(diversify(options, 3)) == {0, 1, 2}

    def test_the_nearest_work_again_beats_other_work(self):
        """Once the nearest template has shown all its kinds; before that, its other kinds come first."""
        near = [Option(example("a"), "a", 10.0 - n, 10.0) for n in range(4)]
        other = [Option(example(kind), kind, 6.0, 6.0) for kind in "bcd"]
        assert set(diversify(near + other, 3)) == {0, 1, 2}
        both = [*near, Option(example("e"), "e", 5.0, 10.0), *other]
        assert {0, 4} < set(diversify(both, 3))

    def test_the_nearest_first(self):
        options = [Option(example("a"), "a", 1.0), Option(example("b"), "b", 5.0), Option(example("c"), "c", 3.0)]
        assert diversify(options, 3) == [1, 2, 0]

    def test_a_correction_is_preferred(self):
        plain = Option(example("a"), "a", 1.0)
        mended = Option(example("a", correction="the flag is -q"), "a", 1.0)
        assert diversify([plain, mended], 1) == [1]

    def test_what_is_usual_is_preferred(self):
        assert diversify([Option(example("a"), "a", usual=0.1), Option(example("b"), "b", usual=1.0)], 1) == [1]

    def test_the_nearer_template_is_preferred(self):
        assert diversify([Option(example("a"), "a", template=1.0), Option(example("b"), "b", template=9.0)], 1) == [1]

    def test_ties_go_to_the_first(self):
        assert diversify(self.options("a", "b", "c"), 2) == [0, 1]

    def test_bounds(self):
        assert diversify([], 3) == []
        assert diversify(self.options("a"), 0) == []
        assert diversify(self.options("a"), -1) == []
        assert sorted(diversify(self.options("a", "a", "b"), 10)) == [0, 1, 2]

    @given(
        st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 50), st.floats(0, 50), st.floats(0, 1)), max_size=12),
        st.integers(0, 12),
    )
    def test_always(self, facts, most):
        options = [Option(example(kind), kind, match, near, usual) for kind, match, near, usual in facts]
        taken = diversify(options, most)
        assert len(taken) == len(set(taken)) == min(most, len(options))
        assert taken == diversify(options, most)


class TestIndex:
    def test_every_field_is_found(self):
        weights = index_weights(
            example("search_flights", intent="find a cheap seat", task="book holiday", arguments={"origin": ["Lisbon", {"x": "Porto"}]}),
            Template(name="t", description="airline desk", tags=("travel",)),
        )  # fmt: skip
        assert {"search", "flight", "find", "cheap", "seat", "book", "holiday", "origin", "lisbon", "porto", "airline", "travel"} <= set(weights)  # fmt: skip
        assert weights["flight"] > weights["seat"] > weights["airline"], "tool, intent, the template's own words"

    def test_results_are_not_searched(self):
        assert "secret" not in index_weights(Example(tool="t", arguments={}, result="secret sauce"), BARE)

    def test_an_exchange_is_found_by_its_request_and_not_by_its_results(self):
        call = ExampleCall(tool="convert", arguments={}, result="secret sauce")
        weights = index_weights(example("convert", intent="liters in gallons", calls=(call,)), BARE)
        assert "secret" not in weights
        assert weights["gallon"] > weights["convert"] > 0

    def test_a_long_exchange_must_contain_more_of_the_words(self):
        call = ExampleCall(tool="t", arguments={}, result="")
        short = index_weights(example("t", intent="count the lines", calls=(call,)), BARE)
        long = index_weights(example("t", intent="count the lines of each file in the folder", calls=(call,)), BARE)
        assert 1.1 * long["line"] < short["line"]

    def test_arguments_that_are_text(self):
        assert "lisbon" in index_weights(example(arguments="fly to Lisbon"), BARE)

    def test_no_words(self):
        assert index_weights(example("t_12345"), BARE) == {}

    def test_a_long_example_says_less_about_each_word(self):
        short = index_weights(example(intent="refund"), BARE)
        long = index_weights(example(intent="refund", task=" ".join(f"w{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(200))), BARE)  # fmt: skip
        assert short["refund"] > long["refund"] > 0

    def test_bounded(self):
        huge = index_weights(example(arguments={"x": "word " * 500_000}), BARE)
        assert len(huge) < 1_000
        assert all(weight <= 2.2 for weight in huge.values())


class TestComplement:
    def option(self, match: float, *kinds: str, **more: Any) -> Option:
        return Option(example(kinds[0]), match=match, kinds=kinds, **more)

    def test_the_nearest_comes_first_then_what_adds_kinds_of_calls(self) -> None:
        options = [self.option(10.0, "a"), self.option(9.0, "a"), self.option(6.0, "b", "c"), self.option(5.5, "b")]
        assert complement(options, 3) == [0, 2, 1]

    def test_what_similar_requests_need_comes_before_what_one_of_them_needed(self) -> None:
        rare = [self.option(5.2, name) for name in ("a", "b", "c")]
        common = [self.option(5.0, "look-up") for _ in range(3)]
        assert complement([*rare, *common], 1) == [3]

    def test_a_clear_match_beats_what_others_usually_need(self) -> None:
        assert complement([self.option(12.0, "a"), *(self.option(5.0, "look-up") for _ in range(3))], 1) == [0]

    def test_the_nearest_request_is_the_third_at_the_latest(self) -> None:
        longer = [self.option(6.3, "a", "b", "c"), self.option(6.2, "d", "e"), self.option(6.1, "f", "g")]
        assert complement([*longer, self.option(6.8, "a")], 4).index(3) == 2

    def test_being_usual_only_breaks_ties(self) -> None:
        assert complement([self.option(5.0, "a", usual=1.0), self.option(5.0, "b", usual=9.0)], 1) == [1]
        assert complement([self.option(5.1, "a", usual=1.0), self.option(5.0, "b", usual=9.0)], 1) == [0]

    def test_the_same_calls_are_shown_once_and_far_ones_never(self) -> None:
        same = (("tool", "{}"),)
        options = [self.option(9.0, "a", call=same), self.option(8.0, "a", call=same), self.option(1.0, "b")]
        assert complement(options, 5) == [0]

    def exchange(self, match: float, *kinds: str) -> Option:
        calls = tuple(ExampleCall(tool=name, arguments={}, result="") for name in kinds)
        return Option(example(kinds[0], calls=calls), match=match, kinds=kinds)

    def test_a_clear_request_gets_few_exchanges_and_a_vague_one_many(self) -> None:
        clear = [self.exchange(10, "a"), self.exchange(6, "a"), self.exchange(5, "a", "b"), self.exchange(4, "b")]
        assert complement(clear, 8) == [0, 2]
        vague = [self.exchange(10 - place / 2, name) for place, name in enumerate("aabbc")]
        assert sorted(complement(vague, 8)) == [0, 1, 2, 3, 4]

    def test_a_farther_exchange_is_not_shown_for_a_call_that_hardly_any_similar_request_needed(self) -> None:
        usual = [self.exchange(10, "a"), *(self.exchange(6, "a") for _ in range(9))]
        assert complement([*usual, self.exchange(5, "odd")], 8) == [0]

    def test_a_farther_single_call_is_shown_if_there_is_room(self) -> None:
        calls = [self.option(match, "a") for match in (10.0, 5.0, 4.0)]
        assert sorted(complement(calls, 8)) == [0, 1, 2]

    def test_nothing_to_choose_from(self) -> None:
        assert complement([], 3) == []
        assert weigh_by_neighbours([]) == []

    def test_a_request_alike_by_chance_comes_behind_those_that_agree(self) -> None:
        options = [self.exchange(10, "odd"), self.exchange(9.5, "a", "b"), self.exchange(9, "a", "b")]
        weighed = weigh_by_neighbours(options)
        assert weighed[0].match < weighed[2].match < weighed[1].match
        assert complement(weighed, 1) == [1]

    def test_a_clear_match_needs_nobody_to_agree(self) -> None:
        options = [self.exchange(20, "odd"), self.exchange(9, "a"), self.exchange(9, "a")]
        assert max(weigh_by_neighbours(options), key=lambda option: option.match).kinds == ("odd",)

    def test_single_calls_are_parts_of_a_request_and_keep_their_rank(self) -> None:
        calls = [self.option(10.0, "a"), self.option(9.0, "b"), self.option(8.0, "b")]
        assert weigh_by_neighbours(calls) == calls
        among = weigh_by_neighbours([*calls, self.exchange(9.5, "c"), self.exchange(9.4, "d")])
        assert [option.match / call.match for option, call in zip(among, calls, strict=False)] == [0.75] * 3
