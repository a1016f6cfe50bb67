"""A list at the top of Warmstart's own config.toml: names are added to it, and everything else stays as it is."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from pathlib import Path

from warmstart import lazy_regex as re
from warmstart.atomic_files import write_beside
from warmstart.errors import Refused


def add_names(path: Path, key: str, names: Iterable[str]) -> list[str]:
    """Add names to the list `key` and return the whole list. Raises Refused where the line must be edited by hand."""
    try:
        text = path.read_text("utf-8") if path.exists() else ""
        known = tomllib.loads(text)
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: cannot be read ({error})") from error
    wanted = list(dict.fromkeys([*known.get(key, []), *names]))
    line = f"{key} = {json.dumps(wanted, ensure_ascii=False)}\n"
    if key in known:
        changed = re.compile(rf"^{key}[ \t]*=.*(?:\n|\Z)", re.M).sub(lambda _match: line, text, count=1)
    else:
        changed = line + text  # before the first table
    try:
        is_right = tomllib.loads(changed) == known | {key: wanted}
    except ValueError:
        is_right = False
    if not is_right:
        raise Refused(f"{path}: {key} has a form that is not edited here; write yourself: {line.strip()}")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with write_beside(path, changed.encode(), synced=True) as new_file:
        new_file.chmod(path.stat().st_mode & 0o777 if path.exists() else 0o600)
        new_file.replace(path)
    return wanted
