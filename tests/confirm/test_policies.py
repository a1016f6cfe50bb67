"""Policies and action names: no policy and no spelling lets a high-risk action through without a decision."""

from __future__ import annotations

import os
import random
from fnmatch import fnmatchcase
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warmstart.confirm.errors import BadRequest
from warmstart.confirm.policy.actions import HIGH_RISK, check_action, is_born_high_risk, key_of
from warmstart.confirm.policy.policy import Policy, PolicyRule, load_policy, parse_policy
from warmstart.confirm.policy.quorum import find_common
from warmstart.errors import ConfigError

FULL = os.environ.get("WARMSTART_FULL") == "1"
SEPARATORS = ("_", "-", " ", ".", ":", "/", "__", "-_", "")


def spell(name: str, dice: random.Random) -> str:
    """Spell a name differently, as an attacker would."""
    words = name.split("_")
    words = [dice.choice((str.lower, str.upper, str.title))(word) for word in words]
    return dice.choice(SEPARATORS).join(words)


def make_policy(dice: random.Random) -> str:
    """Make a policy that tries to allow high-risk actions."""
    lines = []
    if dice.random() < 0.5:
        lines.append(f"high_risk = {[dice.choice(['x_*', 'drop*', '*_prod', 'a?c'])]!r}".replace("'", '"'))
    if dice.random() < 0.5:
        lines.append(f"[defaults]\nrate_limit = {dice.randint(1, 1000)}\ntimeout_seconds = {dice.randint(30, 3600)}")
    for _ in range(dice.randint(1, 5)):
        target = dice.choice(HIGH_RISK)
        glob = dice.choice(
            ["*", "?*", "*_*", target[:3] + "*", "*" + target[-4:], target.replace("e", "?"), spell(target, dice)]
        )
        lines.append(f'[[rule]]\naction = "{glob}"')
        if dice.random() < 0.8:
            lines.append(f'decision = "{dice.choice(["allow", "allow", "allow", "ask", "deny"])}"')
        if dice.random() < 0.2:
            lines.append(f"high_risk = {dice.choice(['true', 'false'])}")
        if dice.random() < 0.3:
            lines.append(f"quorum = {dice.randint(1, 3)}")
        if dice.random() < 0.3:
            lines.append(f"rate_limit = {dice.randint(1, 50)}")
    return "\n".join(lines)


@pytest.mark.slow
def test_of_ten_thousand_policies_none_lets_high_risk_through() -> None:
    """A thousand by default; WARMSTART_FULL=1 tries all of them."""
    count = 10_000 if FULL else 1_000
    dice = random.Random(6)
    refused = allowed = 0
    for _ in range(count):
        try:
            policy = parse_policy(make_policy(dice))
        except ConfigError:
            refused += 1
            continue
        for name in dice.sample(HIGH_RISK, 3):
            ruling = policy.rule_on(spell(name, dice))
            assert ruling.high_risk
            assert ruling.decision in ("ask", "deny")
        allowed += policy.rule_on("harmless_thing").decision == "allow"
    assert refused > count / 10, "policies that name a high-risk action to allow it are refused"
    assert allowed > count / 10, "the others really allow something"


@given(st.permutations(range(4)), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_rules_does_not_matter(order: list[int], dice: random.Random) -> None:
    rules = [
        PolicyRule(
            action=dice.choice(["*", "send_*", "send_mail", "x*"]),
            decision=dice.choice([None, "ask", "allow", "deny"]),
            high_risk=dice.choice([None, True]),
            timeout_seconds=dice.choice([None, 30, 60]),
            rate_limit=dice.choice([None, 1, 5]),
            quorum=dice.choice([None, 2, 3]),
        )
        for _ in range(4)
    ]
    one, other = Policy(rules=tuple(rules)), Policy(rules=tuple(rules[at] for at in order))
    for action in ("send_mail", "xylophone", "read"):
        assert one.rule_on(action) == other.rule_on(action)


def test_the_strictest_rule_counts() -> None:
    policy = parse_policy(
        """
        high_risk = ["drop_*"]
        [defaults]
        rate_limit = 7
        [[rule]]
        action = "deploy_*"
        timeout_seconds = 600
        rate_limit = 50
        deciders = ["ops-*", "alice"]
        [[rule]]
        action = "deploy_staging"
        timeout_seconds = 60
        rate_limit = 20
        deciders = ["alice", "bob", "ops-9"]
        quorum = 2
        """
    )
    staging, test = policy.rule_on("Deploy Staging"), policy.rule_on("deploy-test")
    assert (staging.timeout, staging.longest, staging.rate_limit, staging.quorum) == (60, 60, 20, 2)
    assert (test.timeout, test.longest, test.rate_limit, test.quorum) == (600, 600, 50, 1)
    assert [who for who in ("alice", "ALICE", "bob", "ops-1") if staging.lets_decide(who)] == ["alice", "ALICE"]
    assert test.lets_decide("Ops-1")
    assert not test.lets_decide("bob")
    assert policy.rule_on("dropTable").high_risk
    assert policy.rule_on("other").rate_limit == 7


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("x = 1\n[[rule]]\n", 1, "`x` is not known"),
        ('[[rule]]\naction = "a"\n\n[[rule]]\naction = "b"\nquorum = 0\n', 6, "must be at least 1"),
        ('[[rule]]\naction = "a"\ntimeout_seconds = 29\n', 3, "must be at least 30"),
        ('[[rule]]\naction = "a"\ndecision = "maybe"\n', 3, "maybe"),
        ('[[rule]]\ndecision = "deny"\n', 1, "action"),
        ('[[rule]]\naction = "a"\nquorm = 2\n', 1, "quorm"),
        ('[[rule]]\naction = "de[a-z]*"\n', 2, "wildcards"),
        ('[[rule]]\naction = "lösche"\n', 2, "pattern"),
        ('[[rule]]\naction = "x"\nhigh_risk = false\n', 3, "not shortened"),
        ('[[rule]]\naction = "Delete-Data"\ndecision = "allow"\n', 3, "high-risk"),
        ('[[rule]]\naction = "x"\ndeciders = []\n', 3, "nobody"),
        ('[[rule]]\naction = "x"\ndeciders = ["a", "A"]\nquorum = 2\n', 4, "only 1"),
        ('high_risk = ["ok", "no\\u200b"]\n', 1, "pattern"),
        ("[defaults]\nrate_limit = 0\n", 2, "must be at least 1"),
        ("[defaults]\nrate_limit = 'many'\n", 2, "is a text, not a whole number"),
        ("[defaults\n", 1, "TOML"),
        ('high_risk = "all"\n', 1, "is a text, not a list"),
    ],
)
def test_a_bad_policy_says_where_and_what(text: str, line: int, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_policy(file)
    assert str(file) in str(error.value)
    assert problem in str(error.value)
    if problem != "TOML":
        assert f"policy.toml:{line}:" in str(error.value), error.value


def rules(*said: str) -> str:
    return "".join(f"[[rule]]\n{rule}\n" for rule in said)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (rules('action = "x"\ndeciders = ["a"]', 'action = "*"\nquorum = 2'), 3, "x: 2 must approve, but only 1"),
        (rules('action = "*"\nquorum = 2', 'action = "x"\ndeciders = ["a"]'), 6, "x: 2 must approve, but only 1"),
        (rules('action = "x"\ndeciders = ["a"]', 'action = "x"\ndeciders = ["b"]'), 6, "x: 1 must approve, but only 0"),
        (rules('action = "X"\ndeciders = ["a"]', 'action = "*"\ndeciders = ["b", "c*"]'), 6, "only 0"),
        (rules('action = "my-job"\ndeciders = ["a"]', 'action = "myJob"\nquorum = 2'), 3, "only 1"),
        (
            rules('action = "deploy_*"\ndeciders = ["a", "b"]', 'action = "*_production"\ndeciders = ["c"]'),
            6,
            "deploy_production: 1 must approve, but only 0",
        ),
        (rules('action = "*_data"\ndeciders = ["a"]', 'action = "delete_*"\nquorum = 2'), 3, "delete_data: 2 must"),
        (
            rules('action = "send_*"\ndeciders = ["a"]', 'action = "*_mail"\ndeciders = ["b"]'),
            6,
            "send_mail: 1 must approve, but only 0",
        ),
        (
            rules(
                'action = "a*"\ndeciders = ["p", "q"]',
                'action = "*b"\ndeciders = ["q", "r"]',
                'action = "*"\nquorum = 2',
            ),
            6,
            "only 1 may decide",
        ),
    ],
)
def test_a_quorum_that_cannot_be_reached_over_several_rules_is_told(text: str, line: int, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_policy(text)
    assert str(error.value).startswith(f"policy:{line}: "), error.value
    assert problem in str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        rules('action = "x"\ndeciders = ["a"]', 'action = "y*"\nquorum = 2'),
        rules('action = "x"\ndeciders = ["a"]\ndecision = "deny"', 'action = "*"\nquorum = 2'),
        rules('action = "x"\ndeciders = ["a"]\ndecision = "allow"', 'action = "*"\nquorum = 2'),
        rules('action = "x*"\ndeciders = ["a"]', 'action = "y*"\ndeciders = ["b"]'),
        rules('action = "a?"\ndeciders = ["a"]', 'action = "a??"\ndeciders = ["b"]'),
        rules('action = "x"\ndeciders = ["ops-*"]', 'action = "*"\nquorum = 100'),
        rules('action = "x"\ndeciders = ["A", "b"]', 'action = "*"\ndeciders = ["a", "B", "c"]\nquorum = 2'),
    ],
)
def test_a_quorum_that_may_be_reached_is_fine(text: str) -> None:
    parse_policy(text)


@pytest.mark.slow
@given(st.text("ab*?", min_size=1, max_size=6), st.text("ab*?", min_size=1, max_size=6))
@settings(max_examples=500, deadline=None)
def test_patterns_meet_where_a_name_fits_both(one: str, other: str) -> None:
    found = find_common(one, other)
    names = ("".join(letters) for length in range(1, 7) for letters in product("abx", repeat=length))
    if found is not None:
        assert fnmatchcase(found, one)
        assert fnmatchcase(found, other)
    else:
        assert not any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in names)


def test_a_daemon_with_a_bad_policy_does_not_start(tmp_path: Path) -> None:
    from warmstart.doors.web import ConfirmationServer

    file = tmp_path / "policy.toml"
    file.write_text('[[rule]]\naction = "x"\nhigh_risk = false\n')
    with pytest.raises(ConfigError, match=r"policy\.toml:3"):
        ConfirmationServer(database=tmp_path / "confirm.db", policy=file)
    assert not (tmp_path / "confirm.db").exists()
    with pytest.raises(ConfigError, match="cannot be read"):
        ConfirmationServer(database=tmp_path / "confirm.db", policy=tmp_path / "none.toml")


# Names


@pytest.mark.parametrize("name", HIGH_RISK)
def test_no_spelling_dodges_the_high_risk_list(name: str) -> None:
    dice = random.Random(name)
    wide = "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in name)
    tricks = [
        *(spell(name, dice) for _ in range(50)),
        "_".join(name.replace("_", "")),
        wide,
        name.replace("e", "е", 1),  # Cyrillic
        name[:3] + "\u200b" + name[3:],
        name[:3] + "\u00ad" + name[3:],
        name + " ",
        " " + name,
        name + "\t",
        name + "\n",
        name + "\0",
        "\u202e" + name,
        name.replace("_", "\u2010"),
        name.replace("a", "а"),
        name.replace("i", "ı").replace("o", "ο"),
        name + "_",
    ]
    for trick in tricks:
        try:
            kept = check_action(trick)
        except BadRequest:
            continue
        assert is_born_high_risk(kept), repr(trick)
        assert key_of(kept) == name
        assert Policy().rule_on(kept).decision == "ask"


@given(st.text(max_size=30))
@settings(max_examples=300, deadline=None)
def test_what_is_taken_for_a_name_is_plain(text: str) -> None:
    try:
        kept = check_action(text)
    except BadRequest:
        return
    assert kept == text
    assert kept.isascii()
    assert kept.isprintable()
    assert kept == kept.strip()
    assert key_of(kept) == key_of(kept.upper()) == key_of(key_of(kept))
