"""Skills on disk, in the agentskills layout: one folder per skill, named like it, with a SKILL.md that describes it.

A skill is created atomically: in a hidden folder that is then renamed. Nothing is written outside the folder that the user
has set, whatever name a model gives a skill and wherever a link leads.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from warmstart.atomic_files import sync_folder, write_whole
from warmstart.errors import BadName, Refused
from warmstart.names import check_name

FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_LONGEST_NAME, _LONGEST_DESCRIPTION, _LARGEST = 64, 1_024, 100_000
_HEAD = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.S)
_UNFINISHED = ".warmstart-"
_STALE = 3_600.0  # seconds after which an unfinished folder counts as left by a killed process


class Skill(Struct, frozen=True):
    """A parsed SKILL.md."""

    name: str
    description: str
    further: tuple[str, ...]  # other lines of the frontmatter
    text: str  # the whole file


def check_skill_name(name: str) -> str:
    """Return the name if a skill and its folder can have it on any system. Raises BadName otherwise."""
    if not _NAME.match(name) or len(name) > _LONGEST_NAME:
        raise BadName("a skill's name is made of small letters, digits and single hyphens, 64 at most")
    return check_name(name)


def read_skill(text: str, name: str) -> Skill:
    """Parse a SKILL.md. Raises Refused if it is not valid for this name."""
    head = _HEAD.match(text)
    if len(text.encode("utf-8", "replace")) > _LARGEST:
        raise Refused(f"a skill of more than {_LARGEST:,} bytes")
    if head is None:
        raise Refused("a SKILL.md begins with a frontmatter: ---, name, description, ---")
    facts: dict[str, str] = {}
    further: list[str] = []
    for line in head[1].splitlines():
        key, mark, value = line.partition(":")
        if mark and key in ("name", "description") and key not in facts:
            facts[key] = _unquote(value.strip())
        elif line.strip():
            further.append(line)
    if facts.get("name") != name:
        raise Refused(f"the frontmatter must say name: {name}")
    description = facts.get("description", "")
    if not 1 <= len(description) <= _LONGEST_DESCRIPTION or description in (">", "|", ">-", "|-"):
        raise Refused("the frontmatter needs a description of one line, 1,024 characters at most")
    if not text[head.end() :].strip():
        raise Refused("the skill says nothing below its frontmatter")
    return Skill(name, description, tuple(further), text)


def _unquote(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] == '"':
        with suppress(ValueError):
            return str(json.loads(value))
    return value[1:-1].replace("''", "'") if len(value) > 1 and value[0] == value[-1] == "'" else value


class SkillFolder:
    """The folder that holds the skills."""

    def __init__(self, root: Path, removed: Path) -> None:
        self.root = root
        self._removed = removed  # deleted skills are moved here

    def find(self, name: str) -> Path | None:
        """Return the SKILL.md of a skill; it may be in a category's folder. None if there is none."""
        check_skill_name(name)
        return next((path for path in self._files() if path.parent.name == name), None)

    def read(self, name: str) -> str:
        path = self.find(name)
        if path is None:
            raise Refused(f"there is no skill {name}")
        try:
            return self._inside(path).read_text("utf-8", "replace")
        except FileNotFoundError:
            raise Refused(f"there is no skill {name}") from None

    def create(self, name: str, text: str) -> None:
        check_skill_name(name)
        if self.find(name) is not None or (self.root / name).exists():
            raise Refused(f"there is a skill {name} already")
        self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._clean_up()
        place = self.root / f"{_UNFINISHED}{name}-{secrets.token_hex(8)}"
        place.mkdir(mode=0o700)
        try:
            write_safely(place / FILE, text)
            place.rename(self.root / name)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        sync_folder(self.root)

    def change(self, name: str, text: str) -> None:
        path = self.find(name)
        if path is None:
            raise Refused(f"there is no skill {name}")
        write_safely(self._inside(path), text)

    def delete(self, name: str) -> None:
        """Move a skill away instead of destroying it: it may hold more than its SKILL.md."""
        path = self.find(name)
        if path is None:
            raise Refused(f"there is no skill {name}")
        self._removed.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.move(
            self._inside(path).parent, self._removed / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        )

    def _files(self) -> list[Path]:
        """Return every SKILL.md, directly below the root or in a category's folder.

        Another process may move a folder away meanwhile; pathlib's glob would raise then.
        """
        folders = _list_folders(self.root)
        inner = [place for folder in folders for place in _list_folders(folder)]
        return [folder / FILE for folder in (*folders, *inner) if os.path.isfile(folder / FILE)]  # noqa: PTH113 - Path.is_file raises where it may not look

    def _inside(self, path: Path) -> Path:
        """Return a path. Raises Refused if a link leads out of the folder."""
        if not path.resolve().is_relative_to(self.root.resolve()):
            raise Refused(f"{path.parent.name} lies outside the folder of skills")
        return path

    def _clean_up(self) -> None:
        """Delete unfinished folders left by killed processes."""
        for place in self.root.glob(f"{_UNFINISHED}*"):
            with suppress(OSError):
                if time.time() - place.stat().st_mtime > _STALE:
                    shutil.rmtree(place, ignore_errors=True)


def _list_folders(folder: Path) -> list[Path]:
    """Return the visible folders in a folder; none if it is gone or unreadable."""
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry) for entry in entries if not entry.name.startswith(".") and entry.is_dir())
    except OSError:
        return []


def change_text(old: str, change: Callable[[str], str], name: str) -> str:
    """Return a changed SKILL.md after checking it. Other lines of its frontmatter, like allowed tools, must not change."""
    new = change(old)
    if read_skill(new, name).further != read_skill(old, name).further:
        raise Refused("a review changes only name and description in a skill's frontmatter")
    if new == old:
        raise Refused("it changes nothing")
    return new


def write_safely(path: Path, text: str) -> None:
    """Write a file atomically, synced to disk, with the permissions it had."""
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
    write_whole(path, text.encode("utf-8", "replace"), mode=mode, synced=True)
