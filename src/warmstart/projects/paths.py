"""Paths relative to a project's root, and text without the root in it. Pure: nothing is looked up on a disk.

The same repository lies at another place in every clone and worktree. What is learned is stored relative to the root.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from warmstart import lazy_regex as re
from warmstart.projects.worktrees import find_worktree

LONGEST = 1_024  # characters of a path that is kept
_HOSTILE = re.compile(  # control characters, line separators, bidirectional overrides, lone surrogates
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_DRIVE = re.compile(r"^(?:[\\/]{2}\?[\\/])?([A-Za-z]):(?=[\\/]|$)")
_UNC = re.compile(r"^\\\\[^\\?]")
_MOUNTED_DRIVE = re.compile(r"^/(?:mnt/|cygdrive/)?([A-Za-z])(?=/|$)")  # of WSL, Cygwin and Git Bash
_PRIVATE = re.compile(r"^/private(?=/(?:tmp|var|etc)(?:/|$))")  # macOS: /tmp is a link to /private/tmp
_HOME = re.compile(r"^(?:/(?:home|Users)/[^/]+|/root|[A-Za-z]:/Users/[^/]+)(?=/|$)")
_BROAD = re.compile(r"^(?:(?:[A-Za-z]:)?/?|/(?:tmp|var|home|Users|mnt|opt|usr|etc|srv|var/folders|var/tmp))$")
# Roots in containers that texts also name as routes of a web server: `GET /app/users`. Only a leading `cd` is removed.
_ROUTES = frozenset(f"/{name}" for name in "app api web admin docs data public static src site www assets".split())
_INNER_WORKTREE = re.compile(r"^(?:\.(?:claude|codex|cursor|gemini)/)?\.?worktrees/[^/]+(?:/|$)")
_DOTTED_WORKTREE = r"\.(?:(?:claude|codex|cursor|gemini)[\\/])?\.?worktrees"


def relative_path(path: str, root: str | None, others: Collection[str] = ()) -> str | None:
    """Return a path relative to its project's root, with forward slashes; "." is the root itself.

    None: the path is outside of the project, or no text that can be shown. `others` are roots of the same project on
    other machines and in other worktrees. A path that is relative already is taken to be relative to the root.
    """
    if not is_plain(path):
        return None
    if not is_absolute(path):
        windows = (root is not None and is_windows(root)) or ("\\" in path and "/" not in path)
        return _resolve(path.replace("\\", "/") if windows else path)
    for base in _list_roots((root, *others) if root else others):
        below = _cut(_place(path, base), base)
        if below is not None:
            return _INNER_WORKTREE.sub("", below) or "." if below.startswith(".") else below
    return None


def absolute_path(path: str, root: str) -> str:
    """Return a relative path of a project for a session in this root, written as its system writes paths."""
    if is_absolute(path):
        return path
    base = root.rstrip("/\\") or root
    if path in (".", ""):
        return base
    mark = "\\" if is_windows(root) and "/" not in root else "/"
    return base + mark + path.replace("/", mark)


def mask_root(text: str, root: str | None, others: Collection[str] = ()) -> str:
    """Return the text with the project's root removed: `/home/me/repo/src/x.py` becomes `src/x.py`, the root itself `.`.

    A leading `cd ROOT && ` disappears. A root as broad as a home folder is left alone.
    """
    for base in _list_roots((root, *others) if root else others):
        if _find_rarest(base) not in text.lower():
            continue
        leading, anywhere = _compile(base)
        text = leading.sub("", text)
        if base in _ROUTES:
            continue
        text = anywhere.sub(lambda match: "" if match["below"] else ".", text)
    return text


def is_plain(path: str) -> bool:
    """Return whether a path is text that can be stored and shown: not empty, not too long, no control characters."""
    return 0 < len(path) <= LONGEST and path.isprintable() and not _HOSTILE.search(path)


def is_absolute(path: str) -> bool:
    """Return whether a path starts at a root, a drive, a home folder or as a file URI."""
    return path.startswith(("/", "~", "file://")) or is_windows(path)


def is_windows(path: str) -> bool:
    """Return whether a path begins with a drive or a network share."""
    return bool(_DRIVE.match(path) or _UNC.match(path))


def is_broad(folder: str) -> bool:
    """Return whether a folder holds anything at all, so that it is no project: `/`, `/tmp`, a home folder."""
    plain = clean_folder(folder)
    home = _HOME.match(plain)
    return bool(_BROAD.match(plain) or (home and home[0] == plain))


@lru_cache(maxsize=8_192)
def clean_folder(folder: str) -> str:
    """Return a folder with forward slashes, without `..`, trailing slash and macOS' /private; a drive in upper case."""
    if folder.startswith("file://"):
        from urllib.parse import unquote  # agents wait for commands that resolve a plain folder

        folder = unquote(folder.removeprefix("file://"))
    if drive := _DRIVE.match(folder):
        below = _resolve(folder[drive.end() :].replace("\\", "/").lstrip("/") or ".", outside=True)
        return f"{drive[1].upper()}:/" + ("" if below == "." else below or "")
    if _UNC.match(folder):
        return "//" + (_resolve(folder.replace("\\", "/").lstrip("/"), outside=True) or "")
    if not folder.startswith("/"):
        return _resolve(folder, outside=True) or "."
    below = _resolve(folder.lstrip("/") or ".", outside=True)
    return _PRIVATE.sub("", "/" + ("" if below == "." else below or ""))


def _list_roots(roots: Iterable[str]) -> list[str]:
    """Return the clean roots, the longest first; with a worktree also its main checkout and the reverse."""
    bases: dict[str, None] = {}
    for root in roots:
        if not is_plain(root) or not is_absolute(root) or root.startswith("~"):
            continue
        base = clean_folder(root)
        worktree = find_worktree(base)
        for known in (base, worktree.main if worktree and worktree.is_certain else ""):
            if known and not is_broad(known):
                bases[known] = None
    return sorted(bases, key=lambda base: (-len(base), base))


def _place(path: str, base: str) -> str:
    """Return an absolute path as the machine of `base` would write it: `~` is that user's home."""
    if path.startswith("~"):
        user, mark, below = path[1:].partition("/")
        home = _HOME.match(base)
        if home and (not user or home[0].rpartition("/")[2] == user):
            return clean_folder(home[0] + mark + below)
        return path
    placed = clean_folder(path)
    if is_windows(base) and (mounted := _MOUNTED_DRIVE.match(placed)):
        return f"{mounted[1].upper()}:{placed[mounted.end() :] or '/'}"
    return placed


def _cut(path: str, base: str) -> str | None:
    """Return the part of a clean path below a clean base, or None."""
    here, there = (path.lower(), base.lower()) if is_windows(base) else (path, base)
    if here == there:
        return "."
    start = there if there.endswith("/") else there + "/"
    return path[len(start) :] if here.startswith(start) else None


def _resolve(path: str, *, outside: bool = False) -> str | None:
    """Return a relative path without `.` and `..`; None if it leaves the folder (with `outside` it stays at its top)."""
    parts: list[str] = []
    for part in path.split("/"):
        if part in ("", "."):
            continue
        if part != "..":
            parts.append(part)
        elif parts:
            parts.pop()
        elif not outside:
            return None
    return "/".join(parts) or "."


def _find_rarest(base: str) -> str:
    """Return a part of a root that every spelling of it contains, in lower case."""
    return base.rpartition("/")[2].partition(" ")[0].lower()


@lru_cache(maxsize=256)
def _compile(base: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns of a leading `cd BASE && ` and of BASE anywhere, in the spellings that texts use."""
    root = "|".join(_spell(base))
    windows = is_windows(base)
    flags = re.IGNORECASE if windows else re.NOFLAG
    worktree = rf"(?:[\\/]+{_DOTTED_WORKTREE}[\\/]+[\w.@+-]+)?"
    place = rf"(?:file://(?:/(?=[A-Za-z]:))?)?(?:{root}){worktree}"
    leading = re.compile(
        rf"^\s*(?:cd|pushd|Set-Location)\s+(?:/d\s+)?(?P<quote>['\"]?){place}[\\/]*(?P=quote)\s*(?:&&|;|\n)\s*", flags
    )
    ends = r"(?P<below>[\\/]+(?=[^\s\\/'\"`;:,)&|<>]))|[\\/]*(?:\.(?=\s|$)|(?![\w@+~-]|\.\w))"
    return leading, re.compile(rf"(?<![\w.~/\\@+-])(?:{place})(?:{ends})", flags)


def _spell(base: str) -> list[str]:
    """Return patterns of the spellings of a root: spaces escaped or encoded, `~`, /private, Windows separators."""

    def spell(text: str) -> str:
        parts = [re.sub(r"\\? ", lambda _space: r"(?:\\?\x20|%20)", re.escape(part)) for part in text.split("/")]
        return (r"[\\/]+" if is_windows(base) else "/+").join(parts)

    spellings = [spell(base)]
    if re.match(r"/(?:tmp|var|etc)/", base):
        spellings.insert(0, spell("/private" + base))
    if drive := _DRIVE.match(base):
        letter = drive[1]
        spellings += [rf"/(?:mnt/|cygdrive/)?{letter}{spell(base[2:])}", rf"\\\\\?\\{spell(base)}"]
    if home := _HOME.match(base):
        below = spell(base[home.end() :])
        spellings += [rf"~{below}", rf"\$(?:HOME|\{{HOME\}}){below}"]
    return spellings
