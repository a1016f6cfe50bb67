"""Red team: a name that looks like another decides as somebody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from confirm.serving import House
from confirm.tampering import run_sql
from warmstart.confirm.lookalikes import find_mixed_word, is_lookalike, look_key
from warmstart.confirm.policy.policy import parse_policy
from warmstart.errors import BadName

CYRILLIC = "\u0430gent-1"  # аgent-1
TWINS = [
    ("agent", "\u0430gent"),  # a Cyrillic a
    ("copy", "\u0441\u043e\u0440\u0443"),  # Cyrillic altogether
    ("ops", "\u03bfp\u0455"),  # a Greek o, a Cyrillic s
    ("boss", "\u0185oss".upper()),
    ("agent-1", "agent-l"),
    ("agent-1", "agent-I"),
    ("bob", "b0b"),
    ("alice", "\u0251lice"),  # a Latin alpha
    ("hugo", "\u0570\u057d\u0581\u0585"),  # Armenian
]


@pytest.mark.parametrize(("one", "other"), TWINS)
def test_redteam_names_that_look_alike_are_one(one: str, other: str) -> None:
    assert is_lookalike(one, other)
    assert one != other


@pytest.mark.parametrize(
    "pair", [("alice", "alina"), ("Анна", "Иван"), ("agent-1", "agent-2"), ("ali", "all"), ("josé", "jose")]
)
def test_names_that_differ_stay_different(pair: tuple[str, str]) -> None:
    assert not is_lookalike(*pair)


def test_only_words_of_several_alphabets_are_mixed() -> None:
    assert find_mixed_word("a \u0430gent") == "\u0430gent"
    assert [find_mixed_word(name) for name in ("Дима-bot", "Анна", "Ελένη", "agent", "李 ops", "Zoë")] == [""] * 6
    assert look_key("АGЕNТ") == "agent"


def test_redteam_no_token_or_login_is_made_for_a_name_that_looks_like_another(house: House) -> None:
    house.make_token("Роса", "approver:decide")  # Cyrillic altogether: somebody's real name
    for name in (CYRILLIC, "agent-l", "\u0430lice", "Poca", "d\u0430emon", "\u0441l\u043eck"):
        with pytest.raises(BadName):
            house.make_token(name, "approver:decide")
        with pytest.raises(BadName):
            house.log_in(name)
    house.make_token("Alice", "audit:read")  # the same name
    house.make_token("Анна", "approver:decide")


@contextmanager
def renamed(house: House, subject: str, name: str) -> Iterator[None]:
    """Let a token have a name that only an earlier version would have given it."""

    def rename(old: str, new: str) -> None:
        run_sql(house.database, f"UPDATE tokens SET subject = '{new}', subject_key = '{new}' WHERE subject = '{old}'")

    rename(subject, name)
    yield
    rename(name, subject)  # the audit knows it so


def test_redteam_who_looks_like_the_requester_does_not_decide(house: House) -> None:
    id = house.submit().body["id"]
    with renamed(house, "bob", CYRILLIC):
        for answer in (house.approve(id, house.second), house.deny(id, house.second)):
            assert (answer.status, answer.code) == (403, "own_request")
    assert house.approve(id).status == 200


def test_redteam_one_person_with_two_spellings_is_no_quorum(open_house: Callable[..., House]) -> None:
    policy = parse_policy('[[rule]]\naction = "send_mail"\nquorum = 2')
    house = open_house(policy=policy)
    id = house.submit().body["id"]
    assert house.approve(id).body["status"] == "pending"
    with renamed(house, "bob", "\u0430lice"):
        again = house.approve(id, house.second)
    assert (again.status, again.code) == (409, "already_voted")
    assert house.get(id)["status"] == "pending"
