"""The public names are exactly those promised, typed and documented; the package imports fast."""

from __future__ import annotations

import subprocess
import sys

import warmstart


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
    code = (
        "import sys, warmstart; print([m for m in ('apsw', 'msgspec', 're2', 'rich', 'zstandard') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
