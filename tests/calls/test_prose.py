from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.calls.prose import count_meaning, find_topic_words, gist
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "Implement the following plan:\n\n# Plan: Pass the original error on\n\n## Context\n\nThe hook loses it.",
            "Implement the following plan: Pass the original error on. The hook loses it.",
        ),
        ("# Fix login\nIt fails for guests.\n## Next steps", "Fix login. It fails for guests."),
        ("## Fix", "Fix."),
        (
            "Why does it fail?\n### Does the login page load?\nIt hangs.",
            "Why does it fail? Does the login page load? It hangs.",
        ),
        ("Rename issue # 12 and the rest of it", "Rename issue # 12 and the rest of it"),
    ],
)
def test_headings_are_sentences_and_mere_labels_are_left_out(text, said):
    assert gist(text, 200) == said
