"""One value has one canonical form; and what people see of it."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skips import FULL
from warmstart.confirm.canonical import (
    MAX_DEPTH,
    check_value,
    digest_deed,
    digest_value,
    parse_json,
    show_hidden,
    write_canonical,
    write_readable,
)
from warmstart.confirm.errors import BadRequest
from warmstart.confirm.masking.masker import Masker, strip_hidden

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=15,
)


@pytest.mark.slow
@given(VALUES)
@settings(max_examples=300 if FULL else 100, deadline=None)
def test_a_value_keeps_its_digest_however_it_is_sent(value: Any) -> None:
    for sent in (json.dumps(value), json.dumps(value, indent=3, ensure_ascii=False), write_canonical(value)):
        parsed = parse_json(sent.encode())
        assert digest_value(parsed) == digest_value(value)
        assert write_canonical(parsed) == write_canonical(value)


@pytest.mark.slow
@given(VALUES, VALUES)
@settings(max_examples=300 if FULL else 100, deadline=None)
def test_other_values_have_other_digests(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest_value(one) == digest_value(other)) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (0, False),
        (1, True),
        ("1", 1),
        (None, "null"),
        ([], {}),
        ("é", "e\u0301"),
        ([1, 2], [2, 1]),
        ("a", "a "),
    ],
)
def test_what_looks_alike_is_not_the_same(one: Any, other: Any) -> None:
    assert digest_value(one) != digest_value(other)


def test_the_action_is_bound_too() -> None:
    assert digest_deed("a", {"x": 1}) != digest_deed("b", {"x": 1})
    plain = '{"action":"a","details":{"x":1}}'
    assert digest_deed("a", {"x": 1}) == hashlib.sha256(plain.encode()).hexdigest()


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, "\ud800", {"\udfff": 1}, {1: 2}, {(1,): 2}, {1, 2}, b"x", object()]
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    for nested in (value, [value], {"x": [value]}):
        with pytest.raises(BadRequest):
            check_value(nested)


def test_depth_is_bounded() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    check_value(value)
    with pytest.raises(BadRequest, match="deep"):
        check_value([value])


def test_people_see_what_is_hidden() -> None:
    shown = write_readable({"b": "rm -rf /\u202etxt.eteled", "a": "x\u200by\x00\x1b[31m", "n": [1, 2.5]})
    assert shown.index('"a"') < shown.index('"b"')
    assert "\\u202e" in shown
    assert "\\u200b" in shown
    assert not [c for c in shown if c != "\n" and not c.isprintable()]
    assert show_hidden("zwei\nZeilen, ä 😀") == "zwei\nZeilen, ä 😀"
    assert strip_hidden("a\u202eb\u200bc\x07d\ne") == "abc d\ne"


def test_secrets_are_masked_and_names_stay_apart() -> None:
    masker = Masker({"SHOP_TOKEN": "correct-horse-battery"})
    text, found = masker.mask_details({"password": "hunter2!", "note": "use correct-horse-battery", "n": 1})
    assert found == 2
    assert "hunter2" not in text
    assert "correct-horse" not in text
    assert "correct-horse" not in masker.mask_text("it is correct-horse-battery")
    assert masker.mask_name("session-1") == "session-1"
    one, other = masker.mask_name("ghp_" + "a1B2" * 9), masker.mask_name("ghp_" + "c3D4" * 9)
    assert one != other
    assert "ghp_" not in one
