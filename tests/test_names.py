"""Names: which are refused, which are stored, and that no two stored names can be confused."""

from __future__ import annotations

import ntpath
import posixpath
import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.errors import BadName
from warmstart.names import MAX_BYTES, check_name, name_key

HOSTILE = (
    "", " ", "\t", ".", "..", "../x", "a/../b", "a/b", "/etc/passwd", "\\\\server\\share", "C:\\x", "C:x", "a\\b",
    "a..b", "x\0y", "x\0", "a\nb", "a\rb", "a\x1b[31mb", "a\x7fb", "a\u202eb", "a\u2066b", "a\u200bb", "a\u200db",
    "\ufeffa", "a\u00adb", "a\u2028b", "a\ud800b", "a\ue000b", "a\U000e0041b", "a\u034fb", "a\u3164b", "a\ufe0fb",
    "CON", "con", "Con.txt", "con.tar.gz", "con .txt", "PRN", "AUX", "NUL", "nul.json", "COM1", "com9.log", "LPT1",
    "COM¹", "ＣＯＮ", "conin$", ".hidden", "-rf", "--help", "~root", "a.", "a ", " a", "a\u00a0b", "a\u3000b",
    "．．／x", "a／b", "a＼b", "a：b", "‥", "a⁄b", "a∕b", "℀", "x" * 201, "x" * 300, "é" * 101, "x" * 10_000_000,
    "\u0301a", "．hidden", "－rf", "a．",
)  # fmt: skip
FINE = (
    "deploy", "Deploy 2", "fix-tests_3", "a.b", "v1.2", "déjà vu", "日本語", "ремонт", "a" * 200, "é" * 100, "console",
    "com10", "contract.md", "aux-tools", "50% off", "what?", "a@b", "it's", "[x]", "🚀 launch", "x~", "a-",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: ascii(name)[:30])
def test_refused(name: str) -> None:
    with pytest.raises(BadName) as caught:
        check_name(name)
    assert len(str(caught.value)) < 120
    assert str(caught.value).isprintable(), "a reason must not carry the hostile characters on"


@pytest.mark.parametrize("name", FINE)
def test_stored(name: str) -> None:
    assert check_name(name) == name


def test_stored_composed() -> None:
    assert check_name("cafe\u0301") == "caf\u00e9" == check_name("caf\u00e9")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Deploy", "dEPLOY"), ("caf\u00e9", "cafe\u0301"), ("CAF\u00c9", "cafe\u0301"), ("straße", "STRASSE"), ("ﬁx", "fix"),
        ("ΣΑΣ", "σας"), ("x²", "x2"), ("Ａ", "a"), ("K", "k"), ("ı", "I"), ("a  b", "a b"), ("ſ", "S"),
    ],
)  # fmt: skip
def test_alike(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_not_alike() -> None:
    assert len({name_key(name) for name in FINE}) == len(FINE)


@given(st.text(max_size=30))
def test_key_is_settled(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)
    for form in ("NFC", "NFD", "NFKC", "NFKD"):
        assert name_key(unicodedata.normalize(form, name)) == name_key(name)


@given(st.text(max_size=30))
def test_only_bad_name_is_raised(name: str) -> None:
    try:
        stored = check_name(name)
    except BadName:
        return
    assert check_name(stored) == stored
    assert_harmless(stored)


def assert_harmless(name: str) -> None:
    for system, root in ((posixpath, "/store"), (ntpath, "D:\\store")):
        assert system.dirname(system.normpath(system.join(root, name))) == root
        assert system.basename(system.join(root, name)) == name
    assert name.isprintable()
    assert len(name.encode()) <= MAX_BYTES
    assert not name.startswith(("-", ".", "~"))


def hostile_names(count: int) -> list[str]:
    rng = random.Random(7)
    bits = [bit for bit in (*HOSTILE, *FINE) if len(bit) < 40]
    bits += [
        "../",
        "..\\",
        "%2e%2e%2f",
        "/",
        "\\",
        ":",
        "\0",
        "\u202e",
        "\u0301",
        "é",
        "e\u0301",
        "E\u0301",
        "İ",
        "i",
        "I",
        "ı",
    ]
    bits += [
        "ﬁ",
        "ß",
        "ss",
        "SS",
        "ſ",
        "µ",
        "μ",
        "Å",
        "Å",
        "Ω",
        "Ω",
        "한",
        "\u1112\u1161\u11ab",
        "A",
        "a",
        "Ａ",
        "0",
        "²",
        " ",
        "  ",
    ]
    names = list(HOSTILE) + list(FINE)
    while len(names) < count:
        name = "".join(rng.choice(bits) for _ in range(rng.randint(1, 4)))
        names.append(rng.choice((str, str.upper, str.lower, str.title, str.swapcase))(name))
        names.append(unicodedata.normalize(rng.choice(("NFC", "NFD", "NFKC")), name))
    return names[:count]


def test_5000_hostile_names_neither_escape_nor_collide(tmp_path: Path) -> None:
    root = tmp_path / "store"
    root.mkdir()
    kept: dict[str, str] = {}
    for name in hostile_names(5_000):
        try:
            stored = check_name(name)
        except BadName:
            continue
        assert_harmless(stored)
        kept.setdefault(name_key(stored), stored)
        (root / stored).write_bytes(b"")
    assert len(kept) > 300
    assert [path.name for path in tmp_path.iterdir() if path.name != "user-home"] == ["store"]
    assert all(path.parent == root and path.is_file() for path in root.rglob("*"))
    folds = {
        "as it stands": lambda name: name,
        "APFS": lambda name: unicodedata.normalize("NFD", name).casefold(),
        "HFS+": lambda name: unicodedata.normalize("NFD", name).lower(),
        "NTFS": lambda name: name.upper().rstrip(". "),
        "compatibility": lambda name: unicodedata.normalize("NFKC", name).casefold(),
    }
    for system, fold in folds.items():
        assert len({fold(name) for name in kept.values()}) == len(kept), system
