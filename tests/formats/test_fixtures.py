"""Every fixture is recognised by its content and read as expected. A new format adds two files under tests/data."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formats.describing import describe
from places import CORPUS, DATA, needs_corpus
from warmstart import formats
from warmstart.formats import anthropic, atif, codex, codex_exec, gemini
from warmstart.formats.source import Source
from warmstart.judging.outcome import judge_result

EXPECTED = sorted(DATA.glob("*/*.expected.json"))


def case_of(expected: Path) -> Path:
    name = expected.name.removesuffix(".expected.json")
    (case,) = [
        p
        for p in expected.parent.glob(f"{name}.*")
        if p != expected and p.name.removesuffix("".join(p.suffixes)) == name
    ]
    return case


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda p: f"{p.parent.name}/{p.name.split('.')[0]}")
def test_fixture(expected, tmp_path):
    case = case_of(expected)
    source = Source(case)
    assert expected.parent.name == formats.detect(source).NAME
    sessions = list(formats.read(source, judge_result))
    assert [describe(s) for s in sessions] == json.loads(expected.read_text())
    renamed = tmp_path / "renamed.txt"
    renamed.write_bytes(case.read_bytes())
    assert expected.parent.name == formats.detect(Source(renamed)).NAME, "the name of a file must not matter"


@needs_corpus
def test_formats_claim_only_their_own_files_of_the_corpus():
    claimed: dict[str, set[str]] = {known.NAME: set() for known in (anthropic, atif, codex, codex_exec, gemini)}
    for path in CORPUS.rglob("*"):
        head = Source(path).head if path.is_file() else None
        for known in (anthropic, atif, codex, codex_exec, gemini):
            if head is not None and known.sniff(head):
                claimed[known.NAME].add(path.parent.name)
    assert claimed.pop("anthropic") == set()
    assert claimed == {name: {name} for name in claimed}


@pytest.mark.parametrize("known", [known for known in formats.FORMATS if known.NAME != "hermes"], ids=lambda m: m.NAME)
def test_an_empty_file_has_no_session(tmp_path, known):
    path = tmp_path / "api_conversation_history.json"  # the one name that a reader looks at
    path.write_bytes(b"")
    assert not known.sniff(Source(path).head)
    assert list(known.read(Source(path), judge_result)) == []


def test_every_format_has_a_fixture():
    built_by_tests = {"hermes", "opencode"}  # databases: their tests make them
    assert {p.parent.name for p in EXPECTED} | built_by_tests == {known.NAME for known in formats.FORMATS}


def test_only_one_reader_takes_a_file():
    for expected in EXPECTED:
        head = Source(case_of(expected)).head
        takers = [known.NAME for known in formats.FORMATS if known.sniff(head)]
        assert takers[0] == expected.parent.name
        assert len(takers) == 1 or expected.parent.name in ("anthropic", "hermes_export", "mini_swe_agent", "tau2"), (
            takers
        )
