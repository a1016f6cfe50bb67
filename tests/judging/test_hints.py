"""Gates never stay closed where the search behind them finds something."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmstart.judging import checks, text
from warmstart.judging.hints import HintGate, PatternGate, translate

_PATTERNS = (
    text._MARK,
    text._MARK_INSIDE,
    text._EDGE,
    text._PROGRAM,
    text._SHELL,
    text._SCRIPT,
    checks._SUMMARY,
    checks._FINDINGS,
    *(pattern for _kind, pattern in text._KINDS),
)
_PIECES = st.sampled_from(
    [
        *("error: ", "fatal: ", "FAIL", "Failed", "✖ 3 problems (1 error", "Tests: 2 failed", "bash: x: ", "cat: a: "),
        *("No such file or directory", "\n", " ", "\x1f", "\t", "é", "K", "ſ", "?", "İ", "0", "3", "×", "ERROR x.py"),
        *("KeyError: 'a'", "exit code 1", "not found", "src/a.go:1:2: ", "make: *** [a] Error 2", "\u2003", "٣"),
    ]
)


def _warm(gate: PatternGate | HintGate) -> None:
    for _ in range(50):  # the first texts pass without an automaton
        gate.opens("nothing")


@settings(deadline=None, max_examples=200)
@given(st.lists(_PIECES, max_size=8).map("".join))
def test_an_open_gate_wherever_a_pattern_matches(shown: str) -> None:
    expected = {place for place, pattern in enumerate(_PATTERNS) if pattern.search(shown)}
    assert expected <= set(_GATE.which(shown))


_GATE = PatternGate(*_PATTERNS)
_warm(_GATE)


def test_a_gate_stays_closed_for_text_without_a_sign() -> None:
    assert not _GATE.opens("all is well\nnothing to see here")
    assert not _GATE.opens("tout va très bien\nrien à voir — 日本")


@pytest.mark.parametrize("shown", ["It FAILED", "İt failed", "no sign", "KILLED", "✘ three"])
def test_words_are_found_with_and_without_the_automaton(shown: str) -> None:
    cold, warm = (HintGate(("fail", "killed", "✘"), folded=True) for _ in range(2))
    _warm(warm)
    assert cold.opens(shown) == warm.opens(shown) == any(word in shown.lower() for word in ("fail", "killed", "✘"))


def test_a_pattern_that_cannot_be_translated_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be translated"):
        translate(re.compile(r"(a)\1"))


@pytest.mark.parametrize(
    "command",
    [
        "cargo test",
        "npm run my_test",
        "cd a && pytest -q",
        "./node_modules/.bin/tsc --noEmit",
        "make",
        "go vet ./... | tail",
    ],
)
def test_a_check_passes_the_gate_of_commands(command: str) -> None:
    for _ in range(50):
        checks.may_run_check("ls")
    assert checks.may_run_check(command)
    assert not checks.may_run_check("cat README.md")
