"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_WHO = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "Test"), ("EMAIL", "test@example.invalid"))
}


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, with no settings of the machine."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= _WHO | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *words]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def make_repository(folder: Path, remote: str | None = None) -> Path:
    """Make a repository with one commit."""
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "main.py").write_text(f"print({folder.name!r})\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", f"Begin {folder.name}")
    if remote is not None:
        git(folder, "remote", "add", "origin", remote)
    return folder
