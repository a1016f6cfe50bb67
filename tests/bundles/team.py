"""A team for tests: members with homes of their own, a project with a remote, and a bare repository."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import warmstart
from notes.stored import RIGHT, WRONG, sessions
from transcripts import teach
from warmstart.pipeline import Warmstart

PROJECT = "github.com/acme/shop"


def git(*words: object, folder: Path | None = None, check: bool = True) -> str:
    """Run git with an identity that is nobody's."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "protocol.file.allow=always"]
    command = ["git", *identity, *map(str, words)]
    return subprocess.run(command, cwd=folder, check=check, capture_output=True, text=True).stdout


def make_repository(folder: Path) -> Path:
    """Make an empty bare repository."""
    git("init", "--quiet", "--bare", "--initial-branch=main", folder)
    return folder


class Member:
    """One person with a home, a checkout of the project, and sessions in it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.home = folder / name / "warmstart"
        self.checkout = folder / name / "shop"
        git("init", "--quiet", self.checkout)
        git("remote", "add", "origin", "git@github.com:acme/shop.git", folder=self.checkout)
        with self.open() as ws:
            self.key = ws.bundles.key(name).public

    def open(self) -> Warmstart:
        return warmstart.open(self.home)

    def work(self, *calls: Any, count: int = 2, first: int = 0) -> None:
        """Have some sessions in the project and learn from them."""
        with self.open() as ws:
            teach(ws, *sessions(count, *calls, cwd=str(self.checkout), name=self.name, first=first))
            ws.learn()

    def trust(self, *others: Member) -> None:
        with self.open() as ws:
            for other in others:
                ws.bundles.trusted.add(other.key, other.name)

    def push(self, address: object, **more: Any) -> Any:
        with self.open() as ws:
            return ws.bundles.push(str(address), [PROJECT], **more)

    def pull(self, address: object, **more: Any) -> Any:
        with self.open() as ws:
            return ws.bundles.pull(str(address), **more)


def make_team(folder: Path, place: Path | None = None) -> tuple[Member, Member, Path]:
    """Return a member with a note and a template to share, one without, who trusts them, and a repository at a place."""
    anna, ben = Member(folder, "anna"), Member(folder, "ben")
    anna.work(WRONG, RIGHT)
    ben.trust(anna)
    return anna, ben, make_repository((place or folder) / "team.git")


def list_changes(result: Any) -> list[str]:
    return sorted(f"{item.type} {item.change}" for item in result.items)


def list_files(repository: Path, branch: str = "main") -> list[str]:
    return git("ls-tree", "-r", "--name-only", branch, folder=repository).split()


def rewrite(repository: Path, change: Any) -> None:
    """Change files of the repository as somebody with write access would: `change` gets a checkout."""
    checkout = repository.with_suffix(".checkout")
    git("clone", "--quiet", repository, checkout)
    change(checkout)
    git("add", "--all", folder=checkout)
    git("commit", "--quiet", "-m", "change", folder=checkout)
    git("push", "--quiet", folder=checkout)
    subprocess.run(["rm", "-rf", checkout], check=True)
