"""One splitter, one stemmer and one table of stop words."""

from __future__ import annotations

import pytest

from warmstart.calls.words import AGENT_WORDS, GENERIC_WORDS, STOP_WORDS, find_words, singular, stem


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Fix read_file in HTTPServer", ["fix", "read", "file", "in", "httpserver"]),
        ("Order #W1234567 of user_id_99821", ["order", "of"]),
        ("it's Bob’s, don't and we'll", ["it", "bob", "do", "and", "we"]),
        ("Größe 部署 привет", ["größe", "部署", "привет"]),
        ("", []),
    ],
)
def test_find_words(text, words):
    assert find_words(text) == words


def test_camel_case_names_are_split_on_request():
    assert find_words("readFile HTTPServer READ_FILE", camel=True) == ["read", "file", "http", "server", "read", "file"]


@pytest.mark.parametrize(
    ("plural", "one"),
    [
        *(("orders", "order"), ("entries", "entry"), ("addresses", "address"), ("branches", "branch")),
        *(("messages", "message"), ("status", "status"), ("analysis", "analysis"), ("class", "class"), ("bus", "bus")),
    ],
)
def test_singular(plural, one):
    assert singular(plural) == one


def test_stem_joins_the_forms_of_a_word():
    assert stem("deploy") == stem("deploys") == stem("deployed") == stem("deploying")
    assert stem("reservation") == stem("reservations")


def test_each_set_of_stop_words_holds_the_one_before():
    assert STOP_WORDS < GENERIC_WORDS < AGENT_WORDS
    assert "file" not in STOP_WORDS and "change" not in GENERIC_WORDS
