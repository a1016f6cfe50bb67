from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.calls.prose import count_meaning, find_topic_words
from warmstart.calls.words import FILLER_WORDS, GENERIC_WORDS, find_words, singular

OPAQUE = re.compile(r"\S+://\S+|\S*[/\\@#]\S*|\{\{[^}]*\}\}|\S*\d\S*")  # slow, but says what is opaque


@given(st.text(alphabet="ab \n{{}}}/@:1é\u00a0", max_size=40))
def test_opaque_words_are_those_that_the_pattern_finds(text):
    words = find_words(OPAQUE.sub(" ", text))
    topics = [singular(word) for word in words if word not in GENERIC_WORDS]
    assert find_topic_words(text) == [word for word in topics if word not in GENERIC_WORDS and 2 < len(word) < 25]
    plain = [word for word in words if word not in FILLER_WORDS and len(word) > 1]
    assert count_meaning(text) == len(OPAQUE.findall(text)) + len(plain)


@pytest.mark.parametrize("unit", ["a", "-", "://", "{{", "}}", "{{}}", "{{a", "a}", "{{} "])
def test_text_without_spaces_takes_linear_time(unit):
    text = unit * (200_000 // len(unit))
    assert find_topic_words(f"rename {text}")[:1] == ["rename"]
    assert count_meaning(text) >= 0
