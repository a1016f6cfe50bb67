"""Whether one path is the right form of another: the same file elsewhere, or another spelling in the same folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

_ALIKE = 0.72  # similarity of two names that are spellings of each other
_MARKS = frozenset(
    "test tests spec d min bak orig old new example sample template local".split()
)  # parts of a name that make another file of it
_COMMON = frozenset(  # stems of files that every folder may have
    "index main mod lib __init__ readme package config types type utils helpers test tests page layout route app setup "
    "makefile dockerfile cargo tsconfig schema models model constants styles style go changelog license node_modules src "
    "dist build out target docs bin scripts public assets components services hooks pages routes api commands".split()
)
_MADE = frozenset(
    "node_modules target dist build .git __pycache__ .venv venv .cache .next coverage".split()
)  # by programs
_DIGITS = re.compile(r"\d+")
_WORDS = re.compile(r"[A-Za-z][a-z]+|[A-Z]+|\d+")


def is_near(wrong: str, right: str, *, searched: bool = False) -> bool:
    """Return whether `right` is what `wrong` should have been. `searched`: the session searched for the name between."""
    old, new = split_path(wrong), split_path(right)
    if not old or not new or old == new or is_inside(old, new) or is_inside(new, old) or old[: len(new)] == new:
        return False
    if _MADE & {*old, *new}:
        return False
    if old[-1].casefold() == new[-1].casefold():
        return _is_moved(old, new, searched=searched)
    if _is_unfolded(old, new) or _is_unfolded(new, old):
        return True
    if not _is_respelled(old[-1], new[-1]):
        return False
    before, after = strip_common(old[:-1], new[:-1])
    return not before and not after if not searched else len(before) + len(after) <= 2


def is_same_place(wrong: str, right: str) -> bool:
    """Return whether two different ways to write a path end alike: a relative path, and the same one from the root."""
    old, new = split_path(wrong), split_path(right)
    return old != new and bool(old) and is_inside(old, new)


def shorten_pair(wrong: str, right: str) -> tuple[str, str]:
    """Return two paths without the folders above the last that they share; relative paths stay whole."""
    if wrong[:1] not in ("/", "~") and right[:1] not in ("/", "~"):
        return wrong, right
    old, new = split_path(wrong), split_path(right)
    shared = 0
    while shared < min(len(old), len(new)) - 1 and old[shared] == new[shared]:
        shared += 1
    start = max(0, shared - 1)
    return "/".join(old[start:]), "/".join(new[start:])


def split_path(path: str) -> list[str]:
    """Return the parts of a path, without `.` and the parts that `..` takes back."""
    parts: list[str] = []
    for part in re.split(r"[/\\]+", path.strip()):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return parts


def is_inside(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether a path is the end of another."""
    return len(part) <= len(whole) and list(whole[len(whole) - len(part) :]) == list(part)


def strip_common(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return both paths without the folders that they share at the start and at the end."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    first, second = list(old[start:]), list(new[start:])
    while first and second and first[-1] == second[-1]:
        first.pop()
        second.pop()
    return first, second


def _is_unfolded(file: list[str], inside: list[str]) -> bool:
    """Return whether a file became the main file of a folder of its name: `env.rs` and `env/mod.rs`."""
    stem = file[-1].rpartition(".")[0]
    return bool(stem) and inside[:-1] == [*file[:-1], stem] and is_common(inside[-1])


def _is_moved(old: list[str], new: list[str], *, searched: bool) -> bool:
    """Return whether a file of the same name lies in a folder that differs in few places."""
    before, after = strip_common(old[:-1], new[:-1])
    if is_common(old[-1]):
        return False
    one_inserted = not before or not after  # src/cart.py and packages/shop/src/cart.py
    return one_inserted or searched or len(before) + len(after) <= 3


def _is_respelled(old: str, new: str) -> bool:
    """Return whether two names are spellings of one: another extension, case, separator or plural. Numbers must agree."""
    if _DIGITS.findall(old) != _DIGITS.findall(new):
        return False
    if is_variant(old, new):
        return False
    (stem, _dot, ending), (other, _dot2, other_ending) = (name.lstrip(".").partition(".") for name in (old, new))
    if stem.casefold() == other.casefold():
        return True
    words, others = ([word.casefold() for word in _WORDS.findall(name)] for name in (stem, other))
    if "".join(words) == "".join(others):
        return True
    if ending != other_ending:
        return False
    return SequenceMatcher(None, old.casefold(), new.casefold()).ratio() >= _ALIKE and _share_start(words, others)


def _share_start(words: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether names of one word are alike, or names of several share most words: `userService`, `userServices`."""
    if len(words) == len(others) == 1:
        return words[0][:3] == others[0][:3]
    small, large = sorted((words, others), key=len)
    return sum(any(word[:4] == other[:4] for other in large) for word in small) >= max(2, len(large) - 1)


def is_variant(name: str, other: str) -> bool:
    """Return whether one of two names is marked as another file: a test, a sample, a copy."""
    parts, others = ({part.casefold() for part in re.split(r"[._-]", text)} for text in (name, other))
    return bool((parts ^ others) & _MARKS)


def is_common(path: str) -> bool:
    """Return whether every folder may have a file of this name."""
    return path.rpartition("/")[2].partition(".")[0].casefold() in _COMMON
