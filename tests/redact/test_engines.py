"""Hyperscan and RE2 find the same secrets, and a text full of them takes time in proportion."""

from __future__ import annotations

import random
import string
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from places import SRC
from redact.secret_formats import ENCODINGS, make_secrets
from redact.texts import CLEAN, PIECES
from warmstart.redact import Redactor
from warmstart.redact.gate import SearchGate
from warmstart.redact.scanner import PatternScanner, spell_spaces

SAMPLES = Path(SRC) / "warmstart" / "samples"
LETTERS = string.ascii_letters + string.digits


@pytest.fixture(scope="module")
def by_hyperscan() -> Redactor:
    gate = SearchGate()
    if not gate.prepare():
        pytest.skip("the hyperscan wheel is not installed")
    return Redactor(gate=gate)


_FAST = SearchGate()
BY_RE2 = Redactor(gate=SearchGate(fast=False))


def find(redactor: Redactor, text: str) -> list[object]:
    return [redactor.scope().find(text, opaque=opaque) for opaque in (True, False)]


def test_both_find_the_same_in_every_secret_and_clean_text(by_hyperscan: Redactor) -> None:
    texts = [encode(secret)[0] for secret in make_secrets(3) for encode in ENCODINGS.values()]
    for text in [*texts, *CLEAN, "\n".join(texts[:200])]:
        assert find(by_hyperscan, text) == find(BY_RE2, text), text


def test_both_find_the_same_in_transcripts(by_hyperscan: Redactor) -> None:
    lines = [line for path in sorted(SAMPLES.rglob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    assert len(lines) > 50
    for line in lines:
        assert find(by_hyperscan, line) == find(BY_RE2, line), line


_TOKENS = st.text(LETTERS + "_-./+=~", min_size=1, max_size=48)
_SECRETS = st.sampled_from([secret.line for secret in make_secrets(5)])
_SPACES = st.sampled_from([" ", "\n", "\t", "\v", "\f", "\r", "\x00", "\x01", "\x02", "\x1b[31m", "é", "\ud800"])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES | _TOKENS | _SECRETS | _SPACES, max_size=16).map("".join))
def test_both_find_the_same_in_tangles(by_hyperscan: Redactor, text: str) -> None:
    assert find(by_hyperscan, text) == find(BY_RE2, text)


_KNOWN = {"SHOP_TOKEN": "blue-heron-71", "ODD_TOKEN": "w\u00e4r-me\x02start-5"}


@pytest.mark.parametrize("fast", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.lists(PIECES | _TOKENS | _SECRETS | _SPACES | st.sampled_from([*_KNOWN.values()]), max_size=6).map("".join),
        max_size=8,
    ),
    st.booleans(),
    st.sampled_from([{}, {"SHOP_TOKEN": _KNOWN["SHOP_TOKEN"]}, _KNOWN]),
)
def test_many_texts_are_redacted_as_one_after_the_other(
    fast: bool, texts: list[str], share: bool, known: dict[str, str]
) -> None:
    gate = _FAST if fast else SearchGate(fast=False)
    if fast and not gate.prepare():
        pytest.skip("the hyperscan wheel is not installed")
    redactor = Redactor(known, share=share, gate=gate)
    one, many = redactor.scope(), redactor.scope()
    assert many.texts(texts) == [one.text(text) for text in texts]
    assert many.kinds == one.kinds
    screened, plain = redactor.scope(), redactor.scope()
    screened.screen(texts)
    assert [screened.identifier(text) for text in texts] == [plain.identifier(text) for text in texts]


def test_texts_do_not_change_their_neighbours() -> None:
    """A pattern that needs the start or the end of a text finds it between two others."""
    cut = "the token is gh" + "p_ab12cd"
    texts = ["--password", "tr0ub4dor&3x", cut, "plain words", "\\", "n", "pass", "word: kXq9zPwLmVbT", "--token=", cut]
    for gate in (_FAST, SearchGate(fast=False)):
        redactor = Redactor(gate=gate)
        one, many = redactor.scope(), redactor.scope()
        redacted = many.texts(texts * 3)
        assert redacted == [one.text(text) for text in texts * 3]
        assert redacted[2] == redacted[9] != cut and redacted[:2] == texts[:2]


def test_spaces_mean_the_same_to_both_engines() -> None:
    assert spell_spaces(r"a\s[^\s\]x]\S\\s") == r"a[\t\n\f\r ][^\t\n\f\r \]x]\S\\s"


def make_dense(kind: str, size: int) -> str:
    """Return a text that is full of secrets of one kind."""
    draw = random.Random(7)
    pieces: list[str] = []
    while sum(map(len, pieces)) < size:
        token = "".join(draw.choices(LETTERS, k=36))
        secret = draw.choice(make_secrets(len(pieces) % 40)).line if kind == "mixed" else ""
        pieces += [
            {"github": "gh" + "p_" + token, "opaque": token, "api key": f"api key {draw.getrandbits(128):032x}"}.get(
                kind, secret
            )
        ]
    return "\n".join(pieces)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("kind", ["github", "opaque", "api key", "mixed"])
def test_a_text_full_of_secrets_takes_time_in_proportion(kind: str, fast: bool) -> None:
    """Each token took 4 ms: 50 KB of them 5 seconds. The bound leaves room for a slow and busy machine."""
    gate = SearchGate(fast=fast)
    if fast and not gate.prepare():
        pytest.skip("the hyperscan wheel is not installed")
    text = make_dense(kind, 50_000)
    redactor = Redactor(gate=gate)
    redactor.scope().text(text[:5_000])  # compiles the rules
    start = time.process_time()
    redactor.scope().text(text)
    assert time.process_time() - start < 1.5


def test_patterns_are_compiled_once_and_then_loaded(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    first = PatternScanner([r"ab{3,}c\s"], once=True)
    first.keep_in(folder)
    if not first.prepare():
        pytest.skip("the hyperscan wheel is not installed")
    (kept,) = folder.iterdir()
    again = PatternScanner([r"ab{3,}c\s"], once=True)
    again.keep_in(folder)
    assert again.is_ready(1)  # the first text: nothing is compiled for it
    assert again.scan(b"xabbbc abbbbc ") == [(0, 7)]
    other = PatternScanner(["other"], once=True)
    other.keep_in(folder)
    assert not other.is_ready(1)
    kept.write_bytes(kept.read_bytes()[:-5])
    torn = PatternScanner([r"ab{3,}c\s"], once=True)
    torn.keep_in(folder)
    assert not torn.is_ready(1)


def test_threads_share_the_patterns(by_hyperscan: Redactor) -> None:
    texts = [secret.line for secret in make_secrets(9)]
    expected = [find(BY_RE2, text) for text in texts]
    wrong: list[str] = []

    def search() -> None:
        wrong.extend(text for text, hits in zip(texts, expected, strict=True) if find(by_hyperscan, text) != hits)

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_the_wheel_re2_searches() -> None:
    code = (
        "import sys; sys.modules['hyperscan'] = None\n"
        "from warmstart.redact import Redactor\n"
        "from warmstart.redact.gate import GATE\n"
        "assert not GATE.prepare()\n"
        "print(Redactor().scope().text('password: ' + 'tr0ub4dor&3'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": SRC})
    assert done.stdout == "password: {{SECRET:password#1}}\n", done.stderr
