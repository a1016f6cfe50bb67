"""The git repository of a folder on this machine, read from its files; git itself runs only to find a root commit.

A repository may come from anywhere: its settings are read as text, and nothing that they name is executed.
"""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from warmstart import lazy_regex as re
from warmstart.projects.paths import clean_folder, is_broad, is_plain
from warmstart.projects.remotes import normalise_remote

TIMEOUT = 2.0  # seconds for git
_DEEPEST = 40  # folders above that are looked at
_LARGEST = 200_000  # bytes read of a settings file
_LOCAL_REMOTES = 3  # clones of clones on this machine that are followed
_SECTION = re.compile(r'^\s*\[\s*remote\s+"(?P<name>(?:[^"\\]|\\.)*)"\s*\]', re.I)
_ANY_SECTION = re.compile(r"^\s*\[")
_URL = re.compile(r"^\s*url\s*=\s*(?P<url>.*?)\s*$", re.I)
_COMMIT = re.compile(r"^[0-9a-f]{40,64}$")


class Checkout(Struct, frozen=True):
    """A checkout of a git repository on this machine."""

    root: str  # its top folder
    common: str  # the folder with the repository's settings and commits, shared by its worktrees
    remote: str | None = None  # normalised; None: it has none

    @property
    def name(self) -> str:
        """The name of the main checkout's folder."""
        folder = Path(self.common)
        return (folder.parent if folder.name == ".git" else folder).name.removesuffix(".git") or Path(self.root).name


def find_checkout(folder: str, home: str | None = None) -> Checkout | None:
    """Return the checkout that a folder lies in, or None. The folder itself may be gone; a submodule is its own.

    A home folder, `/` and `/tmp` are no projects even where they are repositories. Never raises.
    """
    return _find_checkout(
        folder, home or os.environ.get("HOME") or os.environ.get("USERPROFILE") or "/", _LOCAL_REMOTES
    )


def find_root_commit(checkout: Checkout, timeout: float = TIMEOUT) -> str | None:
    """Return the first commit of the repository; None if it is unknown here (no git, no commit, a shallow clone)."""
    import subprocess  # costs a hook's start 15 ms, and most repositories have a remote

    common = Path(checkout.common)
    try:
        if (common / "shallow").exists() or not (common / "objects").is_dir():
            return None
        command = ["git", "--no-pager", f"--git-dir={common}", "rev-list", "--max-parents=0", _read_head(checkout)]
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=timeout,
            env=build_environment(),
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    commits = [line for line in done.stdout.decode("ascii", "replace").split() if _COMMIT.match(line)]
    return commits[-1] if done.returncode == 0 and commits else None  # the oldest is listed last


def name_commit(checkout: Checkout, commit: str) -> str:
    """Return the identity of a repository without a remote: `folder@0123456789ab`."""
    return f"{checkout.name}@{commit[:12]}"


def _find_checkout(folder: str, home: str, depth: int) -> Checkout | None:
    if not is_plain(folder) or not Path(folder).is_absolute():
        return None
    here = Path(clean_folder(folder))
    stops = {clean_folder(home), clean_folder(os.path.realpath(home))}
    for place in [here, *here.parents][:_DEEPEST]:
        if is_broad(str(place)) or str(place) in stops:
            return None
        try:
            common = find_common(place / ".git")
            if common is not None:
                return Checkout(str(place), str(common), _find_remote(place, common, home, depth))
        except (OSError, ValueError):
            return None
    return None


def find_common(git: Path) -> Path | None:
    """Return the repository's own folder behind `.git`: a folder, or a file of a worktree or submodule that names one."""
    if git.is_dir():
        return git if (git / "HEAD").is_file() else None
    if not git.is_file():
        return None
    text = _read(git)
    if not text.startswith("gitdir:"):
        return None
    folder = Path(os.path.normpath(git.parent / text.removeprefix("gitdir:").strip()))
    if not (folder / "HEAD").is_file():
        return _guess_common(folder)
    pointer = folder / "commondir"
    return Path(os.path.normpath(folder / _read(pointer).strip())) if pointer.is_file() else folder


def _guess_common(folder: Path) -> Path | None:
    """Return the repository of a worktree whose own record was pruned: `REPOSITORY/.git/worktrees/NAME`."""
    common = folder.parent.parent
    return common if folder.parent.name == "worktrees" and (common / "HEAD").is_file() else None


def _find_remote(root: Path, common: Path, home: str, depth: int) -> str | None:
    addresses = _read_remotes(_read(common / "config")) if (common / "config").is_file() else {}
    address = addresses.get("origin") or next(iter(addresses.values()), None)
    if address is None:
        return None
    remote = normalise_remote(address)
    local = address.removeprefix("file://")
    if remote is None and depth and (local.startswith(("/", "."))) and is_plain(local):
        original = Path(os.path.normpath(root / local))
        if (original / "HEAD").is_file() and (original / "config").is_file():  # bare
            return _find_remote(original, original, home, depth - 1)
        known = _find_checkout(str(original), home, depth - 1) if str(original) != str(root) else None
        return known.remote if known else None
    return remote


def _read_remotes(config: str) -> dict[str, str]:
    """Return the addresses of the remotes, in the order of the file."""
    addresses: dict[str, str] = {}
    name: str | None = None
    for line in config.splitlines():
        if section := _SECTION.match(line):
            name = section["name"]
        elif _ANY_SECTION.match(line):
            name = None
        elif name is not None and (url := _URL.match(line)):
            addresses.setdefault(name, url["url"].strip('"'))
    return addresses


def _read_head(checkout: Checkout) -> str:
    """Return the commit to start from: of the worktree itself, whose HEAD lies elsewhere than the repository's."""
    git = Path(checkout.root) / ".git"
    if git.is_file():
        folder = Path(os.path.normpath(git.parent / _read(git).removeprefix("gitdir:").strip()))
        head = _read(folder / "HEAD").strip() if (folder / "HEAD").is_file() else ""
        target = head.removeprefix("ref: ")
        if _COMMIT.match(target) or re.fullmatch(r"refs/[\w./+@-]+", target):
            return target
    return "HEAD"


def build_environment() -> dict[str, str]:
    """Return the environment of a `git` that asks nobody, fetches nothing and writes no lock."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return kept | {"GIT_TERMINAL_PROMPT": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}


def _read(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(_LARGEST).decode("utf-8", "replace")
