"""Lessons that a review finds without a model: repeated errors, counted as insights counts them."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from insight_sessions import call, session
from warmstart.insights import gather_insights
from warmstart.model import Outcome, PastSession
from warmstart.review.lessons import CallPlace, find_corrections, find_repeated

WRONG = call("order", {"order_id": "W1234567"}, "order not found")
RIGHT = call("order", {"order_id": "#W1234567"})


def places(past: PastSession) -> list[CallPlace]:
    return [CallPlace(2 * at + 1, 2 * at + 2) for at in range(len(past.calls))]


def claims(past: PastSession, *earlier: PastSession) -> list[str]:
    return [draft.claim for draft in find_repeated(past, places(past), 0, earlier)]


def test_forks_and_subagents_count_as_the_session_they_came_from() -> None:
    here, other = session(WRONG, RIGHT, key="here"), session(WRONG, RIGHT, key="other")
    fork = structs.replace(here, key="fork", id="fork")
    subagents = [session(WRONG, RIGHT, key=f"child{number}", parent="other") for number in range(3)]
    (claim,) = claims(here, other, fork, *subagents)
    (error,) = gather_insights([here, other, fork, *subagents]).repeated
    assert (error.count, error.sessions) == (6, 2)
    assert "(6 times in 2 sessions); it was fixed by: order_id: id -> #id" in claim


def test_one_session_is_named_in_the_singular() -> None:
    (claim,) = claims(session(WRONG, WRONG))
    assert "(2 times in 1 session); no fix was seen yet" in claim


def test_a_failing_check_is_no_mistake_of_the_call() -> None:
    failed: dict[str, Any] = call("Bash", {"command": "make test"}, "1 failed")
    failed |= {"outcome": Outcome("error", "flag", "other")}
    edit = call("Edit", {"file_path": "/a.py", "old_string": "a", "new_string": "b"})
    past = session(failed, edit, failed, edit, call("Bash", {"command": "make test"}))
    (claim,) = claims(past)
    assert claim.endswith("a failing check, which passed after changes")
    assert find_corrections(past, places(past), 0) == []


def test_a_correction_cites_the_failed_call_and_the_one_that_worked() -> None:
    past = session(call("Grep", {"pattern": "x"}, "it timed out"), WRONG, call("Grep", {"pattern": "y"}), RIGHT)
    (draft,) = find_corrections(past, places(past), 0)
    assert draft.cites == (3, 4, 7, 8)
