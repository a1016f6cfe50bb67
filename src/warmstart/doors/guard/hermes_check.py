"""Check that Hermes would run the guard: its plugin is enabled in every profile, and Hermes' own Python can load it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warmstart.doors.guard.check import CheckResult
from warmstart.doors.guard.hermes import PLUGIN
from warmstart.doors.settings_edit.yaml_text import parse
from warmstart.errors import Refused

_SECONDS = 30.0  # a Python on a slow disk
_ASK = "from warmstart.doors.guard.hermes import find_trouble; print(find_trouble())"


def check_hermes(user_home: Path, environ: Mapping[str, str]) -> CheckResult | None:
    """Return whether Hermes is guarded; None if it was never set up here. `user_home`: where its home is by default."""
    home = Path(environ.get("HERMES_HOME") or user_home / ".hermes").expanduser()
    files = list(_list_settings(home))
    if not files:
        return None
    for file in files:
        if trouble := _check_settings(file):
            return CheckResult(str(file), trouble)
    return CheckResult(str(files[0]), _ask_python(environ))


def _list_settings(home: Path) -> Iterator[Path]:
    """Yield the settings of Hermes' default profile and of the others."""
    root = home.parent.parent if home.parent.name == "profiles" else home
    for file in (root / "config.yaml", *sorted(root.glob("profiles/*/config.yaml"))):
        if file.is_file():
            yield file


def _check_settings(file: Path) -> str:
    try:
        plugins = parse(file.read_text("utf-8")).get("plugins")
    except (OSError, UnicodeDecodeError, Refused) as error:
        return f"cannot be read, so that nobody knows whether Hermes is guarded: {error}"
    enabled, disabled = (_list_names(plugins, key) for key in ("enabled", "disabled"))
    if PLUGIN in enabled and PLUGIN not in disabled:
        return ""
    if "warmstart" in enabled and "warmstart" not in disabled:
        return f"guarded only while the whole plugin can be loaded; run: hermes plugins enable {PLUGIN}"
    return f"not guarded; run: hermes plugins enable {PLUGIN}"


def _list_names(plugins: Any, key: str) -> list[Any]:
    names = plugins.get(key) if isinstance(plugins, Mapping) else None
    return names if isinstance(names, list) else []


def _ask_python(environ: Mapping[str, str]) -> str:
    """Return what is wrong in the environment that `hermes` runs in; empty if nothing is, or if it cannot be found."""
    program = shutil.which("hermes", path=environ.get("PATH"))
    python = Path(program).resolve().parent / "python" if program else None
    if python is None or not python.exists():
        return ""
    try:
        done = subprocess.run(
            [str(python), "-P", "-c", _ASK],
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{python} cannot be asked: {error}"
    if done.returncode:
        return f"not guarded: {python} cannot load Warmstart: {(done.stderr.strip().splitlines() or ['no reason'])[-1]}"
    return done.stdout.strip()
