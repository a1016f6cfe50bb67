"""Sessions of one task: rare things tie sessions, common ones do not, and never all to all."""

from __future__ import annotations

import pytest

from warmstart.lab.replay.match import RecordedCall
from warmstart.lab.replay.ties import Traces, join, task_in_id, trace_values, trace_wording


def worked(tool: str, **arguments: object) -> RecordedCall:
    return RecordedCall(tool=tool, arguments=arguments, result="", status="ok")


def traces(request: str, *calls: RecordedCall) -> Traces:
    return Traces(values=trace_values(request, calls), shingles=trace_wording(request))


def families(sessions: dict[str, Traces]) -> dict[str, str]:
    """Join sessions among twenty unrelated ones, so that what two of them share is rare."""
    others = {f"other {n}": traces(f"unlike{n} anything{n} else{n}") for n in range(20)}
    return join(sessions | others).families


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (worked("get_user", user_id="mia_li_3668"), worked("cancel", user_id="mia_li_3668", why="ill")),
        (worked("get_order", order_id="#W4817420"), worked("get_order", order_id="#W4817420")),
        (worked("book", people=[{"mail": "mia@example.com"}]), worked("find", mail="mia@example.com")),
        (worked("Read", file_path="/srv/shop/cart.py"), worked("Bash", command="sed -n 1,9p /srv/shop/cart.py")),
        (
            worked("query", sql="select name, town from customers where town = 'Ulm'"),
            worked("query", sql="select name, town from customers  where town = 'Ulm' "),
        ),
    ],
)
def test_what_identifies_something_ties_however_the_task_is_worded(one, other):
    unlike = traces("and another thing", worked("get_user", user_id="omar_rossi_1241"))
    found = families(
        {"a": traces("please help me", one), "b": traces("I have a problem here", other), "unlike": unlike}
    )
    assert found["a"] == found["b"] != found["unlike"]


@pytest.mark.parametrize(
    "call",
    [
        worked("Bash", command="ls"),
        worked("Bash", command="ls -la ."),
        worked("Bash", command="git status"),
        worked("Read", file_path="README.md"),
        worked("search", date="2026-05-20"),
        worked("list_all"),
    ],
)
def test_what_anyone_may_call_ties_nothing_even_if_only_two_do(call):
    found = families({"a": traces("please help me", call), "b": traces("I have a problem here", call)})
    assert found["a"] != found["b"]


def test_only_calls_that_worked_tie():
    call = RecordedCall(tool="get_user", arguments={"user_id": "mia_li_3668"}, result="no such user", status="error")
    found = families({"a": traces("please help me", call), "b": traces("I have a problem here", call)})
    assert found["a"] != found["b"]


def test_what_many_share_ties_nothing():
    shared = worked("Read", file_path="/srv/shop/settings/base.py")
    found = join({f"s{n}": traces(f"unlike{n} anything{n} else{n}", shared) for n in range(40)})
    assert len(set(found.families.values())) == 40


def test_requests_that_say_the_same_in_nearly_the_same_words_tie():
    said = "the invoice page shows the wrong total when a voucher is used twice in one basket, mend it"
    boilerplate = "you are given a repository and an issue, mend it and run all tests before you finish. issue: "
    found = families({"a": traces(said), "b": traces(f"Hi! {said.replace('mend it', 'please fix that')}")})
    assert found["a"] == found["b"]
    found = families({f"{n}": traces(f"{boilerplate} {n} is broken in module{n}") for n in range(12)})
    assert len({found[f"{n}"] for n in range(12)}) == 12, "wording of all requests ties nothing"


def test_a_chain_of_rare_things_does_not_make_one_task_of_all():
    chain = {f"{n:02}": Traces(values=frozenset((f"link {n}", f"link {n + 1}"))) for n in range(40)}
    joined = join(chain)
    sizes = [list(joined.families.values()).count(name) for name in set(joined.families.values())]
    assert max(sizes) <= 8 and len(sizes) >= 5
    assert joined.left_loose >= 4, "ties left out are counted"
    certain = join({key: Traces(("one request",)) for key in chain})
    assert len(set(certain.families.values())) == 1 and certain.left_loose == 0


def test_of_three_sessions_nothing_is_rare():
    same = traces("look at it", worked("get_user", user_id="mia_li_3668"))
    assert len(set(join({"a": same, "b": same}).families.values())) == 2


def test_task_ids_that_session_ids_are_made_from():
    assert task_in_id("tau-bench", "17-3-99bafd4c") == "17"
    assert task_in_id("mini-swe-agent", "django__django-11797-0f498a9e") == "django__django-11797"
    assert task_in_id("claude-code", "17-3-99bafd4c") is None
    assert task_in_id("tau-bench", "b2edae74-ba1e-49d6-a5e4-192fc17c0718") is None
