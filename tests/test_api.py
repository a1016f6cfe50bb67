"""The public names are exactly those promised, typed and documented; the package imports fast."""

from __future__ import annotations

import subprocess
import sys

import pytest

import warmstart
from places import ROOT


def test_all_is_exact():
    assert sorted(warmstart.__all__) == warmstart.__all__ == dir(warmstart)
    for name in warmstart.__all__:
        assert getattr(warmstart, name) is not None
    homes = {name for names in warmstart._HOMES.values() for name in names.split()}
    assert homes == set(warmstart.__all__) - {"open", "__version__"}


def test_everything_public_is_documented():
    for name in set(warmstart.__all__) - {"__version__", "Step"}:
        assert getattr(warmstart, name).__doc__, name


def test_unknown_names_are_refused():
    try:
        _ = warmstart.nonsense  # type: ignore[attr-defined]
    except AttributeError as error:
        assert "nonsense" in str(error)
    else:
        raise AssertionError("no error")


def test_importing_loads_nothing_heavy():
    heavy = ("apsw", "msgspec", "pathlib", "re", "re2", "rich", "typing", "zstandard")
    code = f"import sys; old = set(sys.modules); import warmstart; print([m for m in {heavy} if m in {{*sys.modules}} - old])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.slow
def test_wrong_arguments_are_found_by_a_type_checker(tmp_path):
    from mypy import api

    snippet = tmp_path / "snippet.py"
    snippet.write_text("import warmstart\nwarmstart.open().learn(nonsense=3)\n")
    options = ["--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache"), "--strict"]
    report, _errors, code = api.run([*options, str(snippet)])
    assert code == 1 and 'Unexpected keyword argument "nonsense" for "learn"' in report, report
