"""Every start records its policy in the audit; two daemons on one database with different policies report it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import warmstart
from confirm.houses import on_both_databases
from confirm.serving import House, send
from warmstart.confirm.policy.policy import Policy, parse_policy
from warmstart.doors.web import ConfirmationServer

pytestmark = pytest.mark.slow

STRICT = parse_policy('[[rule]]\naction = "*"\nquorum = 2')


def starts(house: House) -> list[dict[str, Any]]:
    return [entry for entry in house.audit() if entry["event"] in ("started", "stopped", "policy_differs")]


def wait_for(what: Callable[[], Any], wanted: Any) -> None:
    end = time.monotonic() + 10
    while what() != wanted:
        assert time.monotonic() < end, what()
        time.sleep(0.05)


@pytest.fixture
def others() -> Iterator[ExitStack]:
    with ExitStack() as running:
        yield running


def test_a_start_says_which_policy_is_in_force(house: House) -> None:
    house.restart(policy=STRICT)
    first, stopped, second = starts(house)
    assert [entry["event"] for entry in (first, stopped, second)] == ["started", "stopped", "started"]
    assert first["details"]["policy"] == stopped["details"]["policy"] != second["details"]["policy"]
    assert second["details"]["policy"] == house.server.settings.policy.digest
    assert first["details"]["version"] == warmstart.__version__
    assert house.call("GET", "/health").body["trouble"] == "", "what has stopped does not differ"


@on_both_databases
def test_daemons_that_differ_say_so_until_they_do_not(
    house: House, others: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "warmstart.confirm")
    other = ConfirmationServer(database=house.database, port=0, ui_port=0, policy=STRICT)
    others.enter_context(other)

    def problems() -> list[bool]:
        return [bool(send(url, "GET", "/health").body["trouble"]) for url in (house.api, other.api_url)]

    wait_for(problems, [True, True])
    assert "a different policy" in house.desk.trouble
    logged = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(logged) == 2, "each once"
    assert any(other.api_url in text for text in logged)
    time.sleep(1.5)
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 2
    other.stop()
    wait_for(lambda: house.desk.trouble, "")
    assert "over" in caplog.records[-1].getMessage()
    assert [entry["event"] for entry in starts(house)] == ["started", "started", "policy_differs", "stopped"]


def test_daemons_that_agree_say_nothing(house: House, others: ExitStack) -> None:
    """The spelling of the policy and the notification addresses do not matter."""
    text = 'high_risk = ["b", "a"]\n[[rule]]\naction = "x"\nquorum = 2\n[[rule]]\naction = "y"'
    again = (
        '# the same\nnotify = []\nhigh_risk = ["a", "b"]\n[[rule]]\naction = "y"\n[[rule]]\nquorum = 2\naction = "x"'
    )
    limits: Any = {"rate_limit": 7, "pending_limit": 8, "cool_down": 9}
    house.restart(policy=parse_policy(text), **limits)
    others.enter_context(
        ConfirmationServer(database=house.database, port=0, ui_port=0, policy=parse_policy(again), **limits)
    )
    time.sleep(1.5)
    assert house.desk.trouble == ""


def test_who_was_killed_is_not_waited_for(house: House) -> None:
    """Its start is in the audit, its stop is not."""
    house.desk.change(
        lambda tx: tx.log("started", "daemon", policy="x", instance="dead", address="box http://127.0.0.1:1")
    ).result()
    house.stop()
    house.start()
    time.sleep(1.5)
    assert house.desk.trouble == ""


def test_what_is_in_force_is_what_counts(house: House) -> None:
    """Options change the policy as well."""
    assert house.server.settings.policy.digest != Policy().digest
    assert Policy(notify=("json://secret",)).digest == Policy().digest
