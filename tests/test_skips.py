"""A test that is skipped unnoticed proves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from places import NO_AGENTS, NO_CORPUS, TESTS
from skips import find_unexpected, is_strict, list_allowed

SUITE = """
import pytest

def test_long():
    pytest.skip("ten seconds each: WARMSTART_FULL=1")

def test_quiet():
    pytest.skip("no browser here")
"""


@pytest.mark.parametrize(
    "reason",
    ["ten seconds each: WARMSTART_FULL=1", "needs the real local model: make lab-test", f"{NO_AGENTS}: make agents"],
)
def test_what_is_long_or_needs_other_programs_may_be_skipped(reason):
    assert find_unexpected([("a", reason), ("b", "no browser here")]) == ["b: no browser here"]


def test_the_corpus_is_missed_only_where_it_is_not(tmp_path, monkeypatch):
    for there in (True, False):
        monkeypatch.setattr("skips.CORPUS", tmp_path if there else tmp_path / "none")
        assert (NO_CORPUS in list_allowed()) is not there


def test_strictness_comes_from_the_environment():
    assert [is_strict(named) for named in ({}, {"CI": "true"}, {"WARMSTART_NO_SKIPS": "1"})] == [False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize(("strict", "workers", "code"), [("0", "0", 0), ("1", "1", 1)])
def test_a_strict_run_fails_and_names_the_test(tmp_path: Path, strict: str, workers: str, code: int):
    (tmp_path / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (tmp_path / "test_it.py").write_text(SUITE)
    options = ["-q", "-c", os.devnull, "-p", "xdist.plugin", "-n", workers, "--rootdir", str(tmp_path)]
    variables = {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(TESTS),
        "CI": "",
        "WARMSTART_NO_SKIPS": strict,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        capture_output=True,
        text=True,
        env=os.environ | variables,
    )
    assert done.returncode == code, done.stdout + done.stderr
    assert ("test_it.py::test_quiet: no browser here" in done.stdout) == bool(code)
    assert "test_it.py::test_long:" not in done.stdout
