"""Errors about bodies name the field and what belongs there."""

from __future__ import annotations

from typing import Any

import pytest

from confirm.serving import WORK, House

LEAVE_OUT = object()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("description", "", "description: is empty; say what is to be done and why"),
        ("description", " \n", "description: is empty; say what is to be done and why"),
        ("description", "x" * 4_001, "description: at most 4,000 characters"),
        ("description", 5, "description: must be text, not a whole number"),
        ("description", LEAVE_OUT, "description: is missing"),
        ("action", LEAVE_OUT, "action: is missing"),
        ("action", "", "action: up to 200 letters, digits, spaces and _ - . : /"),
        ("action", "dеlete", "action: up to 200 letters, digits, spaces and _ - . : /"),
        ("action", "x" * 201, "action: at most 200 characters"),
        ("timeout_seconds", "60", "timeout_seconds: must be a whole number or null, not text"),
        ("timeout_seconds", 60.5, "timeout_seconds: must be a whole number or null, not a fraction"),
        ("session_key", None, "session_key: must be text, not null"),
        ("timeout", 60, "timeout: there is no such field"),
    ],
)
def test_a_request_that_is_none(house: House, field: str, value: Any, problem: str) -> None:
    body = {name: given for name, given in (WORK | {field: value}).items() if given is not LEAVE_OUT}
    answer = house.submit(body)
    assert (answer.status, answer.code) == (400, "bad_request")
    assert answer.body["error"].startswith(problem)
    assert "regex" not in answer.body["error"] and "Expected" not in answer.body["error"]


def test_other_bodies(house: House) -> None:
    for method, path, body, problem in (
        ("POST", "/confirm", [], "the body: must be an object, not a list"),
        ("POST", "/whitelist", {"action": "a", "session_key": ""}, "session_key: must not be empty"),
        ("POST", "/whitelist", {"action": "a", "session_key": "s", "seconds": 0}, "seconds: at least 1"),
        ("POST", f"/confirm/{'0' * 32}/approve", {"reason": 5}, "reason: must be text, not a whole number"),
    ):
        answer = house.call(method, path, body, house.admin)
        assert (answer.status, answer.body["error"]) == (400, problem)
