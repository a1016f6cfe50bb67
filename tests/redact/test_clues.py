"""The gate lets every text pass in which a search would find something. Both engines use the same clues."""

from __future__ import annotations

import base64
import itertools
import random
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from redact.secret_formats import ENCODINGS, make_secrets
from redact.texts import CLEAN, PIECES
from skips import FULL
from warmstart.redact import opaque
from warmstart.redact.clues import NAME_CLUES
from warmstart.redact.context import find_flagged, find_named
from warmstart.redact.forms import RULES, STRICT, find_cut, find_forms, find_key_blocks
from warmstart.redact.gate import CUTS, FLAGS, FORMS, KEYS, NAMES, SearchGate
from warmstart.redact.matching import Prefilter, as_bytes
from warmstart.redact.views import flatten

GATE = SearchGate(fast=False)
STRIDE = 1 if FULL else 11  # of the many cases, which take half a minute
SEARCHES = (
    (FORMS, find_forms),
    (KEYS, find_key_blocks),
    (CUTS, find_cut),
    (NAMES, find_named),
    (FLAGS, find_flagged),
)


def check(text: str) -> int:
    """Check that the gate names every search that finds something; return how many do."""
    data = flatten(as_bytes(text))
    parts = GATE.find(data).parts
    found = [part for part, search in SEARCHES if next(iter(search(data)), None) is not None]
    assert set(found) <= set(parts), text
    return len(found)


def test_every_secret_passes_the_gate() -> None:
    texts = [encode(secret)[0] for secret in make_secrets(11) for encode in ENCODINGS.values()]
    assert sum(map(check, [*texts[::STRIDE], *CLEAN])) > 50


_SECRETS = st.sampled_from([secret.line for secret in make_secrets(12)])
_TOKENS = st.text(string.ascii_letters + string.digits + "_-./+=~\"'\\ ", min_size=1, max_size=40)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES | _SECRETS | _TOKENS, max_size=8).map("".join))
def test_every_tangle_passes_the_gate(text: str) -> None:
    check(text)


NAME_WORDS = """
    password passwd pwd pass_wd passPhrase pass-phrase pass_word api_key apiKey x-api-key API_KEY secretKey private_key access-token
    authToken auth_token refresh_token bearer authorization Authorization session_id sessionid sid csrf jwt dsn salt
    signature webhook otp pin pat cookie creds credentials credential_s DB_PASSWORD dbPassword db_password_prod token2 token_b64
    secret_key_base connection_string connectionString seed_phrase recovery_code auth_code motdepasse mot-de-passe kennwort
    rootpw requirepass masterauth passkey max_tokens keyword monkey primary_key tokens secrets passwords key user_pass_default
    passcode psk clientSecret hash nonce seed xsrf assertion mnemonic pw token_hash authSession api_key_pin secret_seed key-nonce
    token_sid auth.pat cookie_sig db_pw user_pat user_pin session auth_csrf jwt_assertion
""".split()
SEPARATORS = (
    *(
        "=",
        ": ",
        " = ",
        ":=",
        " => ",
        "==",
        '": "',
        "': '",
        '\\": \\"',
        '", "',
        "', '",
        "`: `",
        '" value="',
        "\n  value: ",
    ),
    *(": str = ", ">", '"] = "', " | ", '": {"x": "', ": Bearer ", '": "Basic '),
)
VALUES = (
    *("tr0ub4dor", "kXq9zPwLmVbT", "hunter2!", "xqzjkvwqpzxvbnmqwrtz", "correct horse battery staple", "plain"),
    *(
        "qwZXvbNMkjHGfdSAqwER",
        "a'b5c",
        'a\\"b5cdef',
        "${TOKEN}",
        "12345",
        "abc",
        "x" * 30,
        "aZ-kQ-zX-vB-qW-jK-xZ",
        "p@ss w0rd",
    ),
)


def test_every_named_value_has_a_clue() -> None:
    clues = Prefilter(NAME_CLUES)
    found = 0
    for name, separator, value in [*itertools.product(NAME_WORDS, SEPARATORS, VALUES)][::STRIDE]:
        for text in (
            f"{name}{separator}{value}\n",
            f'{{"{name}{separator}{value}", 1}}',
            f"<{name}{separator}{value}</{name}>",
        ):
            data = flatten(as_bytes(text))
            if next(find_named(data), None) is not None:
                found += 1
                assert clues.which(data), text
    assert found > 500


def test_rules_that_look_far_or_want_random_values_have_a_stricter_clue() -> None:
    assert {RULES[index].check for index in STRICT} == {"flagged", "secret", "sentence-drawn", "sentence-token", ""}
    assert len(STRICT) >= 12


def make_runs(seed: int) -> list[str]:
    """Return runs of letters: random ones, names, base64 of texts."""
    draw = random.Random(seed)
    words = "get set user name File parse JSON url Id to a X is HTTP server convert zq".split()
    runs = []
    for _ in range(3_000 // STRIDE):
        size = draw.randint(20, 60)
        named = "".join(word.capitalize() for word in draw.choices(words, k=6))
        random_letters = "".join(draw.choices(string.ascii_letters, k=size))
        text = "".join(draw.choices("password=xy é\u20ac\n", k=16)).encode(draw.choice(["utf-8", "utf-16-le"]))
        runs += [named, random_letters, named + random_letters[:12], random_letters.lower(), random_letters.upper()]
        runs += [
            base64.b64encode(text).decode().rstrip("="),
            f"./src/{named}.{random_letters}",
            f"{named}/{random_letters}",
        ]
    return runs


def test_a_run_that_is_not_odd_holds_nothing() -> None:
    kept = 0
    for run in make_runs(5):
        judged = [part for piece in opaque._split_assignments(run) for part in opaque._judge_piece(piece, 0)]
        kept += bool(judged)
        assert bool(opaque._find_parts(run)) == bool(judged), run
    assert kept > 100
