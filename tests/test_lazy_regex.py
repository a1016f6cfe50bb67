"""Patterns wait until they are used, and then behave as compiled ones."""

from __future__ import annotations

import re as plain
from typing import Any

import pytest

from warmstart import lazy_regex as re

TEXT = "one two, three"


@pytest.mark.parametrize("flags", [re.NOFLAG, re.I, re.X, re.M, re.S])
def test_a_pattern_finds_the_same_as_a_compiled_one(flags):
    waiting, compiled = re.compile(r"T(\w+)", flags), plain.compile(r"T(\w+)", flags)
    assert waiting.findall(TEXT) == compiled.findall(TEXT)
    assert waiting.sub("x", TEXT) == compiled.sub("x", TEXT)
    assert waiting.split(TEXT) == compiled.split(TEXT)
    assert [match.span() for match in waiting.finditer(TEXT)] == [match.span() for match in compiled.finditer(TEXT)]
    assert (waiting.pattern, waiting.flags, waiting.groups) == (compiled.pattern, compiled.flags, compiled.groups)
    for look in ("match", "search", "fullmatch"):
        assert str(getattr(waiting, look)("two")) == str(getattr(compiled, look)("two"))


def test_it_is_compiled_when_it_is_first_used():
    broken: Any = re.compile("(")
    with pytest.raises(plain.error):
        broken.search("x")
    waiting: Any = re.compile("a")
    assert "search" not in vars(waiting)
    assert waiting.search("a")
    assert vars(waiting)["search"].__self__.pattern == "a"  # from now on the compiled pattern's own method


def test_bytes_are_matched_too():
    assert re.compile(rb"\d+").findall(b"1 22") == [b"1", b"22"]
