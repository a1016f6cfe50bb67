"""Secrets are replaced, everything else stays, in linear time."""

from __future__ import annotations

import base64
import json
import os
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redact.secret_formats import ENCODINGS, Draw, leaks, make_secrets
from redact.texts import CLEAN, PIECES
from warmstart.redact import Redactor
from warmstart.redact.gate import GATE

FULL = os.environ.get("WARMSTART_FULL") == "1"
SEEDS = range(3 if FULL else 1)
PLACEHOLDER = re.compile(r"\{\{SECRET:[a-z0-9-]+#[0-9]+\}\}")
GH = "gh" + "p_"


def redact(text: str) -> str:
    return Redactor().scope().text(text)


# --- secrets are replaced ---------------------------------------------------------------------------------------------


def test_there_are_enough_formats() -> None:
    secrets = make_secrets(0)
    assert len(secrets) >= 140
    assert sum(secret.kind == "vendor" for secret in secrets) >= 90
    assert len({secret.name for secret in secrets}) == len(secrets)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_recall_by_encoding(encoding: str) -> None:
    redactor = Redactor()
    missed: dict[str, list[str]] = {"vendor": [], "generic": []}
    total = {"vendor": 0, "generic": 0}
    for seed in SEEDS:
        for secret in make_secrets(seed):
            text, parts = ENCODINGS[encoding](secret)
            total[secret.kind] += 1
            if leaks(redactor.scope().text(text), parts):
                missed[secret.kind].append(secret.name)
    assert len(missed["vendor"]) <= 0.01 * total["vendor"], missed
    assert len(missed["vendor"]) + len(missed["generic"]) <= 0.05 * sum(total.values()), missed


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_redacting_twice_changes_nothing(encoding: str) -> None:
    scope = Redactor().scope()
    for secret in make_secrets(7):
        once = scope.text(ENCODINGS[encoding](secret)[0])
        assert scope.text(once) == once
        assert redact(once) == once


@pytest.mark.slow
def test_placeholders_reveal_nothing_of_the_value() -> None:
    for secret in make_secrets(11):
        for placeholder in PLACEHOLDER.findall(redact(secret.line)):
            kind = placeholder.removeprefix("{{SECRET:")
            fragments = {kind[i : i + 4] for i in range(len(kind) - 3)}
            assert not [part for part in fragments if part in secret.value.lower()], (secret.name, placeholder)


def test_numbers_are_stable_in_a_scope() -> None:
    draw = Draw(1)
    first, second = (GH + draw("abcdefgh0123456789XYZ", 36) for _ in range(2))
    scope = Redactor().scope()
    text = scope.text(f"{first} then {second} then {first}")
    assert text == "{{SECRET:github#1}} then {{SECRET:github#2}} then {{SECRET:github#1}}"
    assert scope.text(f"again \x1b[31m{second}\x1b[0m") == "again \x1b[31m{{SECRET:github#2}}\x1b[0m"
    assert scope.kinds == {"github": 4}
    assert Redactor().scope().text(second) == "{{SECRET:github#1}}"


def test_a_learned_password_is_known_from_then_on() -> None:
    scope = Redactor().scope()
    value = Draw(2).password(16)
    assert value not in scope.text(f"export DB_PASSWORD='{value}'")
    assert value not in scope.text(f"login failed for bob with {value}")


def test_placeholders_are_left_alone() -> None:
    for text in (
        "password={{SECRET:password#1}}",
        "Authorization: Bearer {{SECRET:bearer#3}}",
        '{"api_key": "{{SECRET:token#2}}"}',
        "https://bob:{{SECRET:url-password#1}}@example.com",
    ):
        assert redact(text) == text


@pytest.mark.parametrize(
    "text",
    [
        f"the token is {GH}aB3",
        "key " + "AK" + "IA7QX",
        "Authorization: sk-" + "ant-api03-x9",
        "curl -H 'Authorization: Bearer " + "eyJ" + "hbGciOiJIUzI1",
    ],
)
def test_a_token_cut_off_by_the_end_of_the_text_goes(text: str) -> None:
    assert text.split()[-1] not in redact(text)


def test_a_token_cut_off_by_an_excerpt_goes() -> None:
    text = f"cloning with {GH}aB3x\n[... 900 characters left out ...]\ndone"
    assert redact(text) == "cloning with {{SECRET:cut-token#1}}\n[... 900 characters left out ...]\ndone"


def test_a_bare_prefix_is_no_token() -> None:
    assert redact(f"GitHub tokens start with {GH}") == f"GitHub tokens start with {GH}"


def test_key_blocks_without_their_ends_go() -> None:
    draw = Draw(3)
    dashes, label = "-" * 5, "RSA PRIVATE " + "KEY"
    lines = draw.lines(640).split("\n")
    headless = "\n".join([*lines[3:], f"{dashes}END {label}{dashes}", "all done"])
    tailless = "\n".join(["cat id_rsa", f"{dashes}BEGIN {label}{dashes}", *lines[:6], lines[6][:20]])
    numbered = "\n".join(f"{i:6}\t{line}" for i, line in enumerate(tailless.split("\n"), 1))
    quoted = json.dumps(tailless)
    for text in (headless, tailless, numbered, quoted):
        out = redact(text)
        assert not [line for line in lines if line in out], out
    assert redact(headless).endswith("all done")
    assert redact(tailless).startswith("cat id_rsa")


def test_wrapped_base64_is_read_as_one() -> None:
    value = Draw(4).password(20)
    plain = "# settings of the shop\n" * 3 + f"DB_PASSWORD={value}\n" + "# end of the settings\n" * 2
    wrapped = base64.encodebytes(plain.encode()).decode()
    assert "{{SECRET:" in redact(wrapped)
    assert base64.b64encode(plain.encode()).decode()[90:130] not in redact(wrapped).replace("\n", "")


# --- known values -----------------------------------------------------------------------------------------------------


def test_known_values_go_in_every_spelling() -> None:
    value = 'blue "horse"/ä=7'
    scope = Redactor({"SHOP_SECRET": value}).scope()
    for spelling in (
        value,
        json.dumps(value)[1:-1],
        json.dumps(value, ensure_ascii=False)[1:-1],
        "blue%20%22horse%22%2F%C3%A4%3D7",
        base64.b64encode(value.encode()).decode(),
        base64.b64encode(f"x{value}yz".encode()).decode(),
        base64.urlsafe_b64encode(f"xy{value}".encode()).decode(),
    ):
        assert spelling not in scope.text(f"see {spelling} there"), spelling


def test_common_values_of_the_environment_stay() -> None:
    known = {
        "A": "true",
        "ENV": "production",
        "HOST": "localhost",
        "SHORT": "abc12",
        "USER": "somebody",
        "PWD": "/home/somebody",
    }
    text = "true: production on localhost as somebody in /home/somebody with abc12"
    assert Redactor(known).scope().text(text) == text


# --- values and identifiers -------------------------------------------------------------------------------------------


def test_any_value_under_a_name_of_a_secret_is_replaced() -> None:
    data = {
        "password": "tulip",
        "apiKey": "short",
        "headers": {"Authorization": "Bearer some-thing", "Accept": "text/html"},
        "env": [{"name": "DB_PASSWORD", "value": "rose"}, {"name": "REGION", "value": "eu"}],
        "argv": ["login", "--token", "lily", "--verbose"],
        "pin_password": 12345678,
        "api_keys": ["iris", "aster"],
    }
    out = json.dumps(Redactor().scope().value(data))
    for secret in ("tulip", "short", "some-thing", "rose", "lily", "12345678", "iris", "aster"):
        assert secret not in out
    for kept in ("text/html", "REGION", '"eu"', "--verbose", "Bearer ", "login"):
        assert kept in out


@pytest.mark.parametrize(
    "data",
    [
        {
            "password": "",
            "token": None,
            "api_key": True,
            "secret": "${SECRET}",
            "passwd": "****",
            "pwd": "{{SECRET:password#1}}",
        },
        {"max_tokens": 4096, "token_count": "12", "tokens": ["a", "b"], "public_key": "abc", "key": "name"},
        {"a": [1, 2.5, None, True, {"b": []}], "c": {}},
    ],
)
def test_values_that_are_no_secrets_stay(data: object) -> None:
    assert Redactor().scope().value(data) == data


def test_keys_and_nested_json_are_redacted_too() -> None:
    token = GH + Draw(5)("abcdefgh0123456789XYZ", 36)
    out = Redactor().scope().value({token: {"x": json.dumps({"password": "hunter2222"})}})
    assert token not in json.dumps(out)
    assert "hunter2222" not in json.dumps(out)


def test_redacting_a_value_twice_changes_nothing() -> None:
    scope = Redactor().scope()
    once = scope.value(
        {"password": "rose", "headers": {"Authorization": "Basic Ym9iOnJvc2VzMTI="}, "x": ["--token", "lily"]}
    )
    assert scope.value(once) == once


@pytest.mark.slow
def test_deep_nesting_is_no_problem() -> None:
    deep: object = "x"
    for _ in range(100_000):
        deep = [deep]
    Redactor().scope().value(deep)


def test_identifiers_keep_their_opaque_parts() -> None:
    scope = Redactor().scope()
    opaque = Draw(6)("abcdefghijKLMNOP0123456789", 32)
    assert scope.identifier(f"/data/{opaque}/x") == f"/data/{opaque}/x"
    assert scope.text(f"the value {opaque} came back") == "the value {{SECRET:opaque#1}} came back"
    token = GH + opaque
    assert token not in scope.identifier(f"/data/{token}/x")


def test_sharing_hides_people_and_machines() -> None:
    text = (
        r"bob.smith@acme.example wrote /home/bob/a.py, /Users/alice/b and C:\Users\Carol\c from 93.184.216.34; "
        "call +49 30 1234567; see https://wiki.acme-corp.net/x and db7.prod.internal, not https://github.com/a/b or 127.0.0.1"
    )
    out = Redactor(share=True).scope().text(text)
    for gone in ("bob.smith", "/home/bob", "/Users/alice", "Carol", "93.184", "1234567", "acme-corp", "db7.prod"):
        assert gone not in out
    for kept in ("github.com/a/b", "127.0.0.1", "/a.py"):
        assert kept in out
    assert redact(text) == text


# --- other text stays -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", CLEAN)
def test_clean_text_stays(text: str) -> None:
    assert redact(text) == text


def test_there_is_enough_clean_text() -> None:
    assert len(CLEAN) >= 60


# --- any input --------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(codec=None)))
def test_any_text_is_redacted_without_complaint(text: str) -> None:
    scope = Redactor({"KNOWN": "tangerine-dream"}, share=True).scope()
    once = scope.text(text)
    assert scope.text(once) == once
    scope.identifier(text)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=24).map("".join))
def test_redaction_is_idempotent_on_tangles(text: str) -> None:
    scope = Redactor().scope()
    once = scope.text(text)
    assert scope.text(once) == once


@settings(max_examples=60, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats(allow_nan=False) | st.integers() | PIECES | st.text(max_size=20),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8) | PIECES, inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_value_keeps_its_shape(value: object) -> None:
    out = Redactor().scope().value(value)
    if isinstance(value, list | dict):
        assert type(out) is type(value)
    if isinstance(value, list) and isinstance(out, list):
        assert len(out) == len(value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *(
            "a",
            "=",
            "password=",
            'password="',
            "\\u0041",
            "%41",
            "\\",
            "\x1b[31m",
            "{{SECRET:",
            "<password>",
            "curl ",
            "mnemonic ",
        ),
        *(
            "://a:",
            "a://b:c@",
            "-----BEGIN RSA PRIVATE " + "KEY-----\n",
            "-----END RSA PRIVATE " + "KEY-----\n",
            "key: '",
            "cookie=a=",
        ),
        *(
            "QUJD",
            "a1",
            "/a1b2",
            "\x00",
            "é",
            "\ud800",
            "&amp;",
            "password is ",
            GH,
            "eyJ",
            "mysql -p ",
            '"password", ',
        ),
    ],
)
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    def seconds(size: int) -> float:
        """Return processor time, which other processes on the machine do not lengthen."""
        text = (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        Redactor().scope().text(text)
        return time.process_time() - start

    size = 100_000 if FULL else 20_000
    GATE.prepare()  # or it is compiled while the clock runs
    seconds(1_000)
    small = min(seconds(size) for _ in range(2))
    assert seconds(10 * size) < 40 * small + 0.1  # ten times the text; the rest is noise
