"""Values that do not fit are explained in the words of the person who wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec
import pytest
from msgspec import Meta, Struct

from command_line import run
from transcripts import claude_lines, write_jsonl
from warmstart import config
from warmstart.doors.guard.rules import parse_rules
from warmstart.errors import ConfigError
from warmstart.mismatch import describe_mismatch, find_line


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("holdout = 2", "line 1: holdout = 2: must be a number from 0 to 0.9"),
        ('\nholdout = "x"', 'line 2: holdout = "x": must be a number from 0 to 0.9'),
        ("budget = 1.5", "line 1: budget = 1.5: must be a whole number of at least 0"),
        ("stor = 1", "line 1: stor is no setting; did you mean store?"),
        ("[review]\nsteps = true", "line 2: review.steps = true: must be a whole number from 1 to 16"),
        ("[review]\nzzz = 1", "line 2: review.zzz is no setting; known are: apply, budget,"),
        ('[review]\napply = ["all"]', 'line 2: review.apply 1 = "all": must be one of "memory", "skill", "template"'),
        ('[prices.good]\ninput = 1.0\noutput = 1.0\n[prices."m-1"]\ninput = -1.0\noutput = 1.0',
         "line 5: prices.m-1.input = -1.0: must be a number from 0 to 1e+06"),
        ("review = 3", "line 1: review = 3: must be a table"),
        ("budget = ", "not valid TOML"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_line_value_and_what_is_allowed(tmp_path, text, sentence):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        config.load(tmp_path, environ={})
    assert str(error.value).startswith(f"{path}: ") and sentence in str(error.value), str(error.value)
    assert "Expected" not in str(error.value) and "`" not in str(error.value)


def test_a_missing_setting_is_named_with_the_line_of_its_table():
    with pytest.raises(ConfigError, match=r"^rules: line 2: rule 1\.action is missing$"):
        parse_rules('# mine\n[[rule]]\ntool = "x"\n', "rules")


def test_a_wrong_variable_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^WARMSTART_HOLDOUT=2: must be a number from 0 to 0\.9$"):
        config.load(tmp_path, environ={"WARMSTART_HOLDOUT": "2"})


class Inner(Struct, forbid_unknown_fields=True):
    count: Annotated[int, Meta(gt=0)] = 1


class Outer(Struct, forbid_unknown_fields=True):
    inner: Inner
    names: list[str] = []
    size: int | None = None


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"inner": 3}, "`inner` is a whole number, not a table"),
        ({"inner": {"count": "x"}}, "`inner.count` is a text, not a whole number"),
        ({"inner": {"count": 0}}, "`inner.count` must be at least 1"),
        ({"inner": {"x": 0}}, "`inner.x` is not known"),
        ({}, "`inner` is missing"),
        ({"inner": {}, "size": "x"}, "`size` is a text, not a whole number or nothing"),
        ([], "the record is a list, not a table"),
    ],
)
def test_messages_of_msgspec_become_sentences(value, sentence):
    with pytest.raises(msgspec.ValidationError) as error:
        msgspec.convert(value, Outer)
    assert describe_mismatch(str(error.value), "the record") == sentence


def test_a_bad_line_is_explained_with_its_file_and_line(tmp_path: Path):
    lines = claude_lines(calls=2)
    lines[1]["message"]["usage"] = {"output_tokens": {"a": 1}}
    path = write_jsonl(tmp_path / "a.jsonl", lines)
    problem = run("inspect", path).stderr
    assert f"{path}:2" in problem or "line 2" in problem, problem
    assert "`message.usage.output_tokens` is a table, not" in problem
    assert "Expected" not in problem


@pytest.mark.parametrize(
    ("keys", "line"),
    [(("a",), 1), (("t", "a"), 4), (("t", "u.v", "b"), 6), (("t", "c"), None), ((), None), (("t",), 3)],
)
def test_the_line_of_a_key(keys, line):
    assert find_line('a = 1  # first\n\n[t]\na = 2\n[t."u.v"]\nb = 3\n', keys) == line
