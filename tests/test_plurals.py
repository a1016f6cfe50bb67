from __future__ import annotations

import pytest

from warmstart.plurals import format_count


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 people"), (1, "1 person"), (2, "2 people"), (1_200, "1,200 people")]
)
def test_the_noun_follows_the_number(number, text):
    assert format_count(number, "person", "people") == text


def test_a_regular_noun_gets_an_s():
    assert [format_count(number, "note") for number in (1, 3)] == ["1 note", "3 notes"]
