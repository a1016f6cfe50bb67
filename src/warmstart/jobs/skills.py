"""The skills that a job names: the text of each SKILL.md, found by the name of its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from warmstart.excerpt import cut

MOST_SKILL = 20_000  # characters of one skill
_FILE = "SKILL.md"
_DEEPEST = 4  # folders below a folder of skills: Hermes sorts its skills into categories


def read_skill(name: str, folders: Sequence[Path]) -> str | None:
    """Return the text of a skill without its front matter; None if no folder has it."""
    own = name.strip().strip("/").rpartition("/")[2].rpartition(":")[2]
    if not own or own in (".", "..") or "\\" in own:
        return None
    for folder in folders:
        for pattern in ("/".join(["*"] * depth + [own, _FILE]) for depth in range(_DEEPEST)):
            for path in sorted(folder.glob(pattern)):
                try:
                    return cut(_drop_front_matter(path.read_text(encoding="utf-8", errors="replace")), MOST_SKILL)
                except OSError:
                    continue
    return None


def _drop_front_matter(text: str) -> str:
    """Return the text below the lines between the first two `---`."""
    if not text.startswith("---"):
        return text.strip()
    _start, _, rest = text.partition("\n")
    _matter, mark, body = rest.partition("\n---")
    return body.partition("\n")[2].strip() if mark else text.strip()
