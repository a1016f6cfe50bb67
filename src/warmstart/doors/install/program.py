"""How other programs start Warmstart."""

from __future__ import annotations

import os
import shlex
import shutil
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from warmstart.addresses import drop_passwords, find_passwords
from warmstart.errors import ConfigError
from warmstart.store import locate_store


def find_program(*, shared: bool = False) -> list[str]:
    """Return the words that start this installation: its console script, or else its interpreter.

    `shared`: for settings that go to other machines, where only the bare name can work; used if it works here.
    """
    if shared and shutil.which("warmstart"):
        return ["warmstart"]
    script = Path(sys.executable).with_name("warmstart.exe" if os.name == "nt" else "warmstart")
    return [str(script)] if script.is_file() else [sys.executable, "-P", "-m", "warmstart"]


def find_isolated_program() -> list[str]:
    """Return the words that start this installation whatever the environment says: the interpreter ignores PYTHONPATH
    and the like, and the user's own packages unless Warmstart is one of them."""
    is_users = Path(__file__).is_relative_to(site.getusersitepackages())
    return [sys.executable, "-EP" if is_users else "-I", "-m", "warmstart"]


def name_store(address: str) -> str:
    """Return the address of a store, or its file's absolute path, as other programs' files shall name it: they start us in
    any folder. Raises ConfigError for a password in it."""
    if find_passwords(address):
        raise ConfigError(
            "the address of the store holds a password, which is never written into other programs' files. Keep it in "
            "~/.pgpass (or a service file, PGPASSFILE or PGPASSWORD, if the agent has them), and leave it out here: "
            f"--store {drop_passwords(address)}"
        )
    path = locate_store(address)
    return address if path is None else str(path)


def join_words(words: Sequence[str]) -> str:
    """Return the words as a line for the system's shell."""
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
